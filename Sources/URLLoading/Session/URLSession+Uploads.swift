public import Foundation

extension URLSession {
    /// Makes a task that sends data.
    ///
    /// - Parameters:
    ///   - request: its own body does not count.
    ///   - bodyData: sent with its length; can be sent again after redirections and challenges.
    public func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.makeUpload(.sending(.whole(bodyData), with: request, for: DelegatePurpose()))
    }

    /// Makes a task that sends a file.
    ///
    /// The file is read while it is sent; one that cannot be read, or that changes its length
    /// meanwhile, fails the task. `Content-Type` is made of its extension where the request has none.
    public func uploadTask(
        with request: URLRequest, fromFile fileURL: URL
    ) -> URLSessionUploadTask {
        self.makeUpload(.sending(.file(fileURL), with: request, for: DelegatePurpose()))
    }

    /// Makes a task that sends what the delegate's `urlSession(_:task:needNewBodyStream:)` gives.
    ///
    /// Without `Content-Length` in the request it is sent in chunks. The delegate is asked again where
    /// the body must be sent again; without a stream the task fails with
    /// `URLError.requestBodyStreamExhausted`. A stream that blocks in `read` keeps one thread for so
    /// long.
    public func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        self.makeUpload(.sending(.streamed, with: request, for: DelegatePurpose()))
    }

    /// Makes a task that fails with `URLError.unsupportedURL`: uploads have no resume data.
    public func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.makeUpload(.unresumable(for: DelegatePurpose()))
    }

    /// Makes a task that sends data.
    ///
    /// - Parameters:
    ///   - bodyData: nil sends no body.
    ///   - completionHandler: called once, on the delegate queue: data (perhaps empty) and response,
    ///     or an error alone.
    @preconcurrency
    public func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(
            .sending(
                .whole(bodyData ?? Data()), with: request, for: HandlerPurpose(completionHandler)))
    }

    /// Makes a task that sends a file; see above.
    @preconcurrency
    public func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(
            .sending(.file(fileURL), with: request, for: HandlerPurpose(completionHandler)))
    }

    /// Makes a task that fails with `URLError.unsupportedURL`: uploads have no resume data.
    @preconcurrency
    public func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.makeUpload(.unresumable(for: HandlerPurpose(completionHandler)))
    }
}

extension UploadBody {
    /// All of some data; none where that is empty.
    static func whole(_ data: Data) -> UploadBody { data.isEmpty ? .none : .data(data) }
}

extension TaskOrder {
    static func sending(
        _ content: UploadBody, with request: URLRequest, for purpose: any TaskPurpose
    ) -> TaskOrder {
        var order = TaskOrder(request, for: purpose)
        order.content = content
        return order
    }

    fileprivate static func unresumable(for purpose: any TaskPurpose) -> TaskOrder {
        var order = TaskOrder(nil, for: purpose)
        order.fault = URLError(.unsupportedURL)
        return order
    }
}
