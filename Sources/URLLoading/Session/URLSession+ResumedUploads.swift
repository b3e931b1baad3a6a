public import Foundation

extension URLSession {
    /// Makes a task that would go on where an earlier upload was broken off; it completes with
    /// `URLError.unsupportedURL`, as there is no data that says where that was.
    ///
    /// Uploads leave no resume data: see `URLSessionUploadTask.cancel(byProducingResumeData:)`.
    public func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.makeUpload(Self.resumedUpload(DelegatePurpose()))
    }

    /// Makes a task that would go on where an earlier upload was broken off, and gives its result to a
    /// handler: always `URLError.unsupportedURL`.
    ///
    /// - Parameter completionHandler: called once, on the delegate queue.
    @preconcurrency
    public func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(Self.resumedUpload(HandlerPurpose(completionHandler)))
    }

    private static func resumedUpload(_ purpose: any TaskPurpose) -> TaskOrder {
        var order = TaskOrder(nil, for: purpose)
        order.fault = URLError(.unsupportedURL)
        return order
    }
}
