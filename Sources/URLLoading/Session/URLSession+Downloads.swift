public import Foundation

extension URLSession {
    /// Makes a task that writes the response's body to a temporary file, and tells the delegate
    /// (`URLSessionDownloadDelegate`).
    ///
    /// - Parameter request: may have a body. Neither read from the cache nor stored in it.
    public func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(request, for: DownloadPurpose(for: .delegate)))
    }

    /// Makes a task that writes the response's body to a temporary file, and tells the delegate.
    public func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.downloadTask(with: URLRequest(url: url))
    }

    /// Makes a task that goes on where an earlier download was broken off, also one of another
    /// session or process.
    ///
    /// The rest is asked for under the condition that the resource is the same. Where it is not, or
    /// the partial file is gone, in use or altered, the download begins anew. The delegate hears
    /// `didResumeAtOffset` where it goes on.
    ///
    /// - Parameter resumeData: of `cancel(byProducingResumeData:)`, or of the error of a download that
    ///   failed. With anything else the task completes with `URLError.unsupportedURL`.
    public func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.makeDownload(.resuming(resumeData, for: .delegate))
    }

    /// Makes a task that writes the response's body to a temporary file.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue: the file, which is deleted
    ///   when it returns unless it was moved away, and the response; or an error alone, which may have
    ///   resume data in its `userInfo`.
    @preconcurrency
    public func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.makeDownload(TaskOrder(request, for: DownloadPurpose(for: .handler(completionHandler))))
    }

    /// Makes a task that writes the response's body to a temporary file; see above.
    @preconcurrency
    public func downloadTask(
        with url: URL,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    /// Makes a task that goes on where an earlier download was broken off; see above.
    @preconcurrency
    public func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.makeDownload(.resuming(resumeData, for: .handler(completionHandler)))
    }
}

extension TaskOrder {
    /// Goes on with what a blob describes; with one that is none, the task fails.
    static func resuming(_ blob: Data, for receiver: DownloadPurpose.Receiver) -> TaskOrder {
        guard let resume = ResumeData(decoding: blob) else {
            var order = TaskOrder(nil, for: DownloadPurpose(for: receiver))
            order.fault = URLError(.unsupportedURL)
            return order
        }
        return TaskOrder(resume.request, for: DownloadPurpose(for: receiver, resuming: resume))
    }
}
