public import Foundation

/// A data task that sends a body: data, a file, or what a delegate's stream gives.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }

    /// Cancels the task.
    ///
    /// Uploads cannot be resumed: that takes a server that speaks a protocol for it, which is no
    /// standard yet.
    ///
    /// - Parameter completionHandler: called with nil, on any thread.
    @preconcurrency
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        self.cancel()
        FileWork.queue.async { completionHandler(nil) }
    }

    /// Cancels the task; uploads have no resume data.
    public func cancelByProducingResumeData() async -> Data? {
        self.cancel()
        return nil
    }
}
