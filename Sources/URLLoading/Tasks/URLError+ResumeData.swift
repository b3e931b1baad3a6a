public import Foundation

extension URLError {
    /// What `URLSession.downloadTask(withResumeData:)` needs to go on with the download that failed with
    /// this; nil: it cannot be gone on with.
    public var downloadTaskResumeData: Data? {
        self.userInfo[NSURLSessionDownloadTaskResumeData] as? Data
    }

    /// What `URLSession.uploadTask(withResumeData:)` needs to go on with the upload that failed with
    /// this; nil: it cannot be gone on with.
    public var uploadTaskResumeData: Data? {
        self.userInfo[NSURLSessionUploadTaskResumeData] as? Data
    }
}
