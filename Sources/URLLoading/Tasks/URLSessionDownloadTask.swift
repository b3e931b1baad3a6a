public import Foundation

/// A task that writes the body of the response to a temporary file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: borrowing TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }

    /// Cancels the task, and keeps what it got, for `downloadTask(withResumeData:)`.
    ///
    /// The task completes with `URLError.cancelled`. What it got can be gone on with where the
    /// request was a GET over HTTP without a range of its own, and the response has a strong `ETag` or
    /// a `Last-Modified`, no content coding, and comes from a server that serves byte ranges.
    ///
    /// - Parameter completionHandler: called once, on any thread: nil where it cannot be gone on
    ///   with. The data names the temporary file, which must stay where it is.
    @preconcurrency
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        let purpose = self.purpose as? DownloadPurpose
        let isHeard = purpose?.produceResumeData(for: completionHandler) ?? false
        self.cancel()
        if !isHeard { FileWork.queue.async { completionHandler(nil) } }
    }

    /// Cancels the task, and keeps what it got; see `cancel(byProducingResumeData:)`.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}

/// Where the error of a download that failed has its resume data, in `userInfo`.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// Where the error of a download that failed has its resume data; Foundation's name on Linux.
public let URLSessionDownloadTaskResumeData = NSURLSessionDownloadTaskResumeData

/// Where the error of an upload that failed has its resume data, in `userInfo`.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// Where the error of an upload that failed has its resume data; named as Foundation names the other.
public let URLSessionUploadTaskResumeData = NSURLSessionUploadTaskResumeData
