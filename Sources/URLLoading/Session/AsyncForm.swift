public import Foundation
import LarderHTTP
import Synchronization

/// A question to a delegate that it may answer by an async method in place of one with a handler.
///
/// Swift on Linux cannot ask an object which of its methods it implements. So the default of the method
/// with a handler asks the async one, whose default says that it is one: then the question falls through.
/// What is known of a class is remembered, so that this detour is made once; and it waits for none of
/// the threads that tasks share, which may all be blocked by who waits for the load.
enum AsyncForm: Hashable {
    case sessionChallenge, taskChallenge, delayedRequest, redirection, bodyStream, bodyStreamFrom
    case response, caching

    private struct Method: Hashable {
        let delegate: ObjectIdentifier
        let form: AsyncForm
    }

    /// The delegate that is being asked, and what its default implementation says of itself.
    fileprivate final class Question: Sendable {
        let delegate: any URLSessionDelegate
        let isMissing = Atomic(false)

        init(_ delegate: any URLSessionDelegate) {
            self.delegate = delegate
        }
    }

    /// Whether a class has a method, once that is known.
    private static let known = Mutex<[Method: Bool]>([:])
    @TaskLocal fileprivate static var question: Question?

    /// Asks the async method, where there is one.
    ///
    /// - Parameters:
    ///   - task: what is asked is about it; nil: nobody knows.
    ///   - handler: takes its answer, on any thread.
    ///   - alternative: done where there is none, on the thread of the call or among the task's messages;
    ///     false: the task is over, and nobody may be asked about it any more.
    func ask<Answer>(
        _ delegate: any URLSessionDelegate, of session: URLSession, about task: URLSessionTask?,
        _ method: @escaping @Sendable () async -> Answer,
        then handler: @escaping @Sendable (Answer) -> Void,
        orElse alternative: @escaping @Sendable (_ mayAsk: Bool) -> Void
    ) {
        let asked = Method(delegate: ObjectIdentifier(type(of: delegate)), form: self)
        switch Self.known.withLock({ $0[asked] }) {
        case false: return alternative(true)
        case true:
            Task { handler(await method()) }
            return
        case nil: break
        }
        Task(executorPreference: HouseExecutor.shared) {
            let question = Question(delegate)
            let answer = await Self.$question.withValue(question) { await method() }
            let isMissing = question.isMissing.load(ordering: .relaxed)
            Self.known.withLock { $0[asked] = !isMissing }
            guard isMissing else { return handler(answer) }
            // One that is over has no lane, and nobody to hear of it.
            let lane = task?.guarded.withLock { $0.lane } ?? session.dispatcher.session
            lane.send { alternative(task?.isSettled != true) }
        }
    }

    /// Called by the default of an async method.
    fileprivate static func isMissing(in delegate: any URLSessionDelegate) {
        // A delegate may call another's, which is not asked itself.
        guard let question = Self.question, question.delegate === delegate else { return }
        question.isMissing.store(true, ordering: .relaxed)
    }
}

extension URLSessionDelegate {
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        AsyncForm.isMissing(in: self)
        return (.performDefaultHandling, nil)
    }
}

extension URLSessionTaskDelegate {
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        AsyncForm.isMissing(in: self)
        return (.continueLoading, nil)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? {
        AsyncForm.isMissing(in: self)
        return request
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        AsyncForm.isMissing(in: self)
        return (.performDefaultHandling, nil)
    }

    public func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> InputStream? {
        AsyncForm.isMissing(in: self)
        return nil
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64
    ) async -> InputStream? {
        AsyncForm.isMissing(in: self)
        return nil
    }
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        AsyncForm.isMissing(in: self)
        return .allow
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        AsyncForm.isMissing(in: self)
        return proposedResponse
    }
}
