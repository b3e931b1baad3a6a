import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Answers by async methods alone.
private final class AsyncDelegate: NSObject, URLSessionDataDelegate {
    let asked = Event<[String]>([])
    let errors = Event<[URLError.Code?]>([])
    private let takesRedirection: Bool
    private let disposition: URLSession.ResponseDisposition

    init(
        takesRedirection: Bool = true, disposition: URLSession.ResponseDisposition = .allow
    ) {
        self.takesRedirection = takesRedirection
        self.disposition = disposition
    }

    private func note(_ what: String) { self.asked.change { $0.append(what) } }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? {
        self.note("redirection")
        await Task.yield()
        return self.takesRedirection ? request : nil
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        self.note("challenge")
        let credential = URLCredential(user: "u", password: "p", persistence: .none)
        return challenge.previousFailureCount == 0
            ? (.useCredential, credential) : (.cancelAuthenticationChallenge, nil)
    }

    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> InputStream? {
        self.note("stream")
        return InputStream(data: Data("streamed".utf8))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        self.note("response")
        return self.disposition
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        self.note("caching")
        return nil
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.errors.change { $0.append((error as? URLError)?.code) }
    }

    func completion() async throws -> URLError.Code? {
        try await self.errors.wait(for: "the end") { !$0.isEmpty }
        return self.errors.value[0]
    }
}

/// Implements nothing that is asked for, but notes where it hears of the end.
private final class DeafDelegate: NSObject, URLSessionDataDelegate {
    let errors = Event<[URLError.Code?]>([])

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.errors.change { $0.append((error as? URLError)?.code) }
    }
}

/// Hears of redirections alone: a task's delegate that lacks the rest.
private final class RedirectionDelegate: NSObject, URLSessionTaskDelegate {
    let queues = Event<[OperationQueue?]>([])

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.queues.change { $0.append(OperationQueue.current) }
        completionHandler(request)
    }
}

/// Hands on what it is asked to another, whose default answers.
private final class ForwardingDelegate: NSObject, URLSessionTaskDelegate {
    let inner = DeafDelegate()
    let asked = Event(0)

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? {
        self.asked.change { $0 += 1 }
        _ = await self.inner.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        return nil
    }
}

@Suite("Delegates with async methods (§4)", .timeLimit(.minutes(5)))
struct AsyncDelegateTests {
    private func origin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.answering { request in
            switch request.target {
            case "/hop": response("302 Found", "Location: /", cache: nil)
            case "/secret" where !request.has("Authorization"):
                response("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", cache: nil)
            default: response("200 OK", body: request.body.isEmpty ? "none" : "some")
            }
        }
    }

    @Test("answer redirections, challenges, responses and what is stored by them")
    func answers() async throws {
        let origin = try await self.origin()
        let delegate = AsyncDelegate()
        let session = URLSession.plain(delegate)
        for path in ["/hop", "/secret"] {
            delegate.asked.change { $0 = [] }
            delegate.errors.change { $0 = [] }
            session.dataTask(with: try URL.of(origin.url(path))).resume()
            #expect(try await delegate.completion() == nil)
            let first = path == "/hop" ? "redirection" : "challenge"
            #expect(delegate.asked.value == [first, "response", "caching"])
        }
        // Nothing was stored.
        let again = try URL.of(origin.url("/hop"))
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: again)) == nil)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("refuse by them")
    func refusals() async throws {
        let origin = try await self.origin()
        let staying = AsyncDelegate(takesRedirection: false)
        let first = URLSession.plain(staying)
        let (_, response) = try await first.data(
            from: try URL.of(origin.url("/hop")), delegate: staying)
        #expect((response as? HTTPURLResponse)?.statusCode == 302)
        let cancelling = AsyncDelegate(disposition: .cancel)
        let second = URLSession.plain(cancelling)
        second.dataTask(with: try URL.of(origin.url("/"))).resume()
        #expect(try await cancelling.completion() == .cancelled)
        for session in [first, second] { session.invalidateAndCancel() }
        await origin.stop()
    }

    @Test("give streamed uploads their content by them")
    func streams() async throws {
        let origin = try await self.origin()
        let delegate = AsyncDelegate()
        let session = URLSession.plain(delegate)
        var request = URLRequest(url: try URL.of(origin.url("/up")))
        request.httpMethod = "PUT"
        session.uploadTask(withStreamedRequest: request).resume()
        #expect(try await delegate.completion() == nil)
        #expect(delegate.asked.value.first == "stream")
        #expect(
            origin.requests.value.map { String(decoding: $0.body, as: UTF8.self) } == ["streamed"])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("that have neither form fall through, time and again, on the delegate queue")
    func none() async throws {
        let origin = try await self.origin()
        let common = RedirectionDelegate()
        let session = URLSession.plain(common)
        for _ in 0..<3 {
            let own = DeafDelegate()
            let (data, _) = try await session.data(
                from: try URL.of(origin.url("/hop")), delegate: own)
            #expect(String(decoding: data, as: UTF8.self) == "none")
            #expect(own.errors.value == [])
        }
        #expect(common.queues.value.count == 3)
        #expect(common.queues.value.allSatisfy { $0 === session.delegateQueue })
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("fall through to nobody when the task is over, however late that comes")
    func late() async throws {
        for isOver in [false, true] {
            let s = ScriptedSession()
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            _ = try await s.loaders.load()
            let (goOn, fallen) = (Event(false), Event<[Bool]>([]))
            // Of a class that nobody has asked.
            let own: UnknownDelegate =
                isOver ? FreshDelegate<Bool, Int>() : FreshDelegate<Int, Bool>()
            let session = s.session
            AsyncForm.response.ask(own, of: session, about: task) {
                try? await goOn.wait(for: "the end of the task") { $0 }
                return await own.urlSession(session, dataTask: task, didReceive: URLResponse())
            } then: { _ in
            } orElse: { mayAsk in
                fallen.change { $0.append(mayAsk) }
                #expect(OperationQueue.current === session.delegateQueue)
            }
            if isOver {
                session.invalidateAndCancel()
                try await s.delegate?.messages.wait(for: "the end") { $0.last == "invalid" }
            }
            goOn.change { $0 = true }
            try await fallen.wait(for: "what falls through") { !$0.isEmpty }
            #expect(fallen.value == [!isOver])
            session.invalidateAndCancel()
        }
    }

    @Test("let nobody hear of a task behind the session's last message (128 times)")
    func endsMeanwhile() async throws {
        for (index, delegate) in (UnknownDelegate.all() + UnknownDelegate.all()).enumerated() {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = index % 2 == 0 ? 1 : 4
            let s = ScriptedSession(queue: queue)
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.delegate = delegate
            task.resume()
            try await s.loaders.load().answer(200, [:], "one")
            queue.addOperation { s.session.invalidateAndCancel() }
            try await s.delegate?.messages.wait(for: "the end") { $0.contains("invalid") }
            await withCheckedContinuation { done in queue.addBarrierBlock { done.resume() } }
            #expect(s.delegate?.messages.value.last == "invalid")
        }
    }

    @Test("are asked each time, though they ask another that has none")
    func forwarded() async throws {
        let origin = try await self.origin()
        let delegate = ForwardingDelegate()
        let session = URLSession.plain()
        for number in 1...3 {
            let (_, response) = try await session.data(
                from: try URL.of(origin.url("/hop")), delegate: delegate)
            #expect((response as? HTTPURLResponse)?.statusCode == 302)
            #expect(delegate.asked.value == number)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }
}

/// Implements nothing.
private class UnknownDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private static var parts: [any (Sendable & FixedWidthInteger).Type] {
        [
            Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self,
            UInt16.self,
        ]
    }

    /// One each of many classes, of which nobody knows at first what they implement.
    static func all() -> [UnknownDelegate] {
        self.parts.flatMap { first in self.parts.map { Self.make(first, $0) } }
    }

    private static func make<A, B>(_: A.Type, _: B.Type) -> UnknownDelegate {
        FreshDelegate<A, B>()
    }
}

private final class FreshDelegate<First, Second>: UnknownDelegate, @unchecked Sendable {}
