public import Foundation

// What a delegate does not implement falls through: from the session to the task, and from a task's
// own delegate to the session's. These defaults are where that is known.

extension URLSessionDelegate {
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let passOn = challenge.passOn else {
            return completionHandler(.performDefaultHandling, nil)
        }
        passOn(completionHandler)
    }
}

extension URLSessionTaskDelegate {
    /// The session's delegate, where this one is the task's own and has no such method.
    private func next(_ session: URLSession, _ task: URLSessionTask) -> (
        any URLSessionTaskDelegate
    )? {
        guard let delegate = session.delegate as? any URLSessionTaskDelegate, delegate !== self,
            task.delegate === self
        else { return nil }
        return delegate
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let next = self.next(session, task) else { return completionHandler(request) }
        next.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request,
            completionHandler: completionHandler)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let next = self.next(session, task) else {
            return completionHandler(.performDefaultHandling, nil)
        }
        next.urlSession(
            session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        guard let next = self.next(session, task) else { return completionHandler(nil) }
        next.urlSession(session, task: task, needNewBodyStream: completionHandler)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        guard let next = self.next(session, task) else { return completionHandler(nil) }
        next.urlSession(
            session, task: task, needNewBodyStreamFrom: offset,
            completionHandler: completionHandler)
    }
}
