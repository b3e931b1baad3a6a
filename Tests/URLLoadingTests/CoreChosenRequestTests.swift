import Foundation
import LarderHTTP
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The request that a delegate chooses for a redirection (§5)")
struct CoreChosenRequestTests {
    /// Redirects a request by 307, and gives what is sent then.
    private func sent(
        _ make: (URLSession, URLRequest) -> URLSessionTask,
        choosing choose: @escaping @Sendable (URLRequest) -> URLRequest
    ) async throws -> (method: String?, content: String?) {
        let s = ScriptedSession()
        s.delegate?.redirection.withLock { $0 = { next, answer in answer(choose(next)) } }
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpMethod = "POST"
        let task = make(s.session, request)
        task.resume()
        let first = try await s.loaders.load(1)
        first.answer(307, ["Location": "/next", "Content-Length": "0"])
        try await s.delegate?.messages.wait(for: "the question") { $0.contains("redirect 307") }
        await s.session.delegateQueue.settled()
        // What fails has completed by now, or is about to.
        try await s.loaders.loads.wait(for: "the next load") { $0.count == 2 || task.isSettled }
        try #require(s.loaders.loads.value.count == 2, "\(task.error as Any)")
        let second = try await s.loaders.load(2)
        var content: String?
        if let body = second.order.body {
            let bytes = try await Pulled.all(of: body.source).bytes
            content = String(decoding: bytes, as: UTF8.self)
            #expect(task.countOfBytesExpectedToSend == body.length ?? -1)
        } else {
            #expect(task.countOfBytesExpectedToSend == 0)
        }
        second.answer()
        try await s.delegate?.completion()
        first.order.body?.source.cancel()
        return (second.request.httpMethod, content)
    }

    private func data(_ session: URLSession, _ request: URLRequest) -> URLSessionTask {
        var request = request
        request.httpBody = Data("content".utf8)
        return session.dataTask(with: request)
    }

    private func upload(_ session: URLSession, _ request: URLRequest) -> URLSessionTask {
        session.uploadTask(with: request, from: Data("content".utf8))
    }

    @Test("sends the content again where the delegate changes nothing about it")
    func unchanged() async throws {
        for make in [self.data, self.upload] {
            let sent = try await self.sent(make) { next in
                var chosen = next
                chosen.setValue("1", forHTTPHeaderField: "X-Own")
                return chosen
            }
            #expect(sent.method == "POST" && sent.content == "content")
        }
    }

    @Test("sends nothing where it is a GET")
    func get() async throws {
        for make in [self.data, self.upload] {
            let sent = try await self.sent(make) { next in
                next.url.map { URLRequest(url: $0) } ?? next
            }
            #expect(sent.method == "GET" && sent.content == nil)
        }
    }

    @Test("sends nothing where its content was taken away")
    func emptied() async throws {
        let sent = try await self.sent(self.data) { next in
            var chosen = next
            chosen.httpBody = nil
            return chosen
        }
        #expect(sent.method == "POST" && sent.content == nil)
    }

    @Test("sends the data or the stream that was put into it")
    func replaced() async throws {
        for make in [self.data, self.upload] {
            let streamed = try await self.sent(make) { next in
                var chosen = next
                chosen.httpBodyStream = InputStream(data: Data("stream".utf8))
                return chosen
            }
            #expect(streamed.method == "POST" && streamed.content == "stream")
            let data = try await self.sent(make) { next in
                var chosen = next
                chosen.httpBody = Data("other".utf8)
                return chosen
            }
            #expect(data.method == "POST" && data.content == "other")
        }
    }
}
