import Foundation
@testable import LarderProcess
import Synchronization
import Testing
@testable import URLLoading

@Suite("Tasks against an origin (§1.6, §5, §6)")
struct CoreOriginTests {
    private static func session(_ delegate: RecordingDelegate?) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    @Test("messages come in order, with the metrics, for redirections too")
    func order() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            request.target == "/"
                ? response("302 Found", "Location: /next", body: "moved")
                : response(body: "content")
        }
        let delegate = RecordingDelegate()
        let session = Self.session(delegate)
        let task = session.dataTask(with: try #require(URL(string: origin.url("/"))))
        task.resume()
        try await delegate.completion()
        #expect(
            delegate.messages.value.filter { $0 != "storing" }
                == ["created", "redirect 302", "response", "data", "metrics", "complete"])
        #expect(delegate.data.value == Data("content".utf8))
        #expect(task.countOfBytesReceived == 7)
        #expect(task.response?.url?.path == "/next")
        // What was left of the redirection was read: the connection was used again.
        #expect(origin.connections.value == 1)
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test(
        "requests behind a flush or a reset use new connections (§1.2)", arguments: [true, false])
    func newConnections(_ resets: Bool) async throws {
        // By which connection each request came. Beside hundreds of other sessions this one's may be
        // closed while it is idle, so only that counts.
        let used = Event<[Int]>([])
        let origin = try await ScriptedOrigin.start { connection in
            while try await connection.request() != nil {
                used.change { $0.append(connection.index) }
                try await connection.send(response(body: "a", cache: nil))
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        // The next waits until the connection is free.
        configuration.httpMaximumConnectionsPerHost = 1
        let session = URLSession(configuration: configuration)
        let url = try URL.of(origin.url("/"))
        for _ in 0..<2 { _ = try await session.data(from: url) }
        let before = used.value
        await withCheckedContinuation { done in
            if resets {
                session.reset { done.resume() }
            } else {
                session.flush { done.resume() }
            }
        }
        for _ in 0..<2 { _ = try await session.data(from: url) }
        let after = used.value.dropFirst(before.count)
        #expect(before.count == 2 && after.count == 2)
        #expect(Set(before).isDisjoint(with: after))
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("a 401 is answered by the delegate, and its body is not delivered (§1.6, §6)")
    func basic() async throws {
        let origin = try await ScriptedOrigin.answering { request in
            request["Authorization"] == "Basic dXNlcjpwYXNz"
                ? response(body: "welcome", cache: "no-store")
                : response(
                    "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?",
                    cache: "no-store")
        }
        let delegate = AnsweringDelegate()
        let session = Self.session(delegate)
        session.dataTask(with: try #require(URL(string: origin.url("/")))).resume()
        try await delegate.completion()
        #expect(
            delegate.messages.value
                == ["created", "challenge 0", "response", "data", "metrics", "complete"])
        #expect(delegate.data.value == Data("welcome".utf8))
        session.finishTasksAndInvalidate()
        await origin.stop()
    }

    @Test("a 401 that nobody answers is an ordinary response, without an error (§6.3)")
    func unanswered() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"", body: "who?")
        }
        let session = Self.session(nil)
        let results = Event<[(Data?, Int?, (any Error)?)]>([])
        session.dataTask(with: try #require(URL(string: origin.url("/")))) { data, head, error in
            let status = (head as? HTTPURLResponse)?.statusCode
            results.change { $0.append((data, status, error)) }
        }.resume()
        try await results.wait(for: "the result") { $0.count == 1 }
        #expect(results.value[0].0 == Data("who?".utf8))
        #expect(results.value[0].1 == 401 && results.value[0].2 == nil)
        await origin.stop()
    }

    @Test("cancel ends a task in the midst of its body, or of its head")
    func cancelled() async throws {
        let origin = try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            if request.target == "/body" {
                try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            }
            // Until the client goes.
            _ = try await connection.request()
        }
        let delegate = RecordingDelegate()
        let session = Self.session(delegate)
        let body = session.dataTask(with: try #require(URL(string: origin.url("/body"))))
        body.resume()
        try await delegate.messages.wait(for: "data") { $0.contains("data") }
        body.cancel()
        try await delegate.completion(1)
        let head = session.dataTask(with: try #require(URL(string: origin.url("/head"))))
        head.resume()
        try await origin.requests.wait(for: "the request") { $0.count >= 2 }
        head.cancel()
        try await delegate.completion(2)
        for task in [body, head] {
            #expect((task.error as? URLError)?.code == .cancelled)
            #expect(task.state == .completed)
        }
        session.invalidateAndCancel()
        try await delegate.messages.wait(for: "the session's end") { $0.last == "invalid" }
        await origin.stop()
    }

    @Test("sequential tasks of one session all complete, by handlers and by async methods")
    func many() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response(body: "content", cache: "no-store")
        }
        let session = Self.session(nil)
        let url = try #require(URL(string: origin.url("/")))
        for _ in 0..<100 {
            let (data, _) = try await session.data(from: url)
            #expect(data == Data("content".utf8))
        }
        try await withThrowingTaskGroup { group in
            for _ in 0..<64 {
                group.addTask { try await session.data(from: url).0 }
            }
            for try await data in group { #expect(data == Data("content".utf8)) }
        }
        session.invalidateAndCancel()
        await #expect(throws: URLError.self) { try await session.data(from: url) }
        await origin.stop()
    }
}

/// Answers challenges by a login.
private final class AnsweringDelegate: RecordingDelegate, @unchecked Sendable {
    override func challenged(
        _ challenge: URLAuthenticationChallenge,
        _ answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        answer(
            .useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
    }
}
