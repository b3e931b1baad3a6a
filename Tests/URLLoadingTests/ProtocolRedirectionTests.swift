import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Content behind a redirection by a program's URLProtocol (§3.3, §5, §10)")
struct ProtocolRedirectionTests {
    enum Kind: CaseIterable { case data, file, stream }

    struct Case: CustomStringConvertible {
        var status: Int
        var method = "PUT"
        /// It is sent again.
        var isKept = true

        var description: String { "\(self.status) \(self.method)" }
    }

    /// Reads the content of what it loads, and leads on to an origin.
    ///
    /// - Parameters:
    ///   - read: what it has read.
    ///   - change: the request that it leads to, beyond its URL.
    private static func script(
        to url: URL, _ status: Int, read: Event<[String]>,
        change: @escaping @Sendable (inout URLRequest) -> Void
    ) -> ProtocolScript {
        ProtocolScript { instance in
            let request = instance.it.request
            let text = Self.text(of: request)
            read.change { $0.append(text) }
            let copy = (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest
            guard let copy, let from = request.url,
                let redirection = HTTPURLResponse(
                    url: from, statusCode: status, httpVersion: nil, headerFields: nil)
            else { return }
            // That one is no program's to load.
            URLProtocol.removeProperty(forKey: ProtocolScript.key, in: copy)
            copy.url = url
            var next = copy as URLRequest
            change(&next)
            instance.client?.urlProtocol(
                instance.it, wasRedirectedTo: next, redirectResponse: redirection)
        }
    }

    private static func text(of request: URLRequest) -> String {
        guard let stream = request.httpBodyStream else { return "" }
        stream.open()
        defer { stream.close() }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64)
        while true {
            let count = unsafe stream.read(&piece, maxLength: piece.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += piece[..<count]
        }
    }

    /// What reaches the origin of a PUT that the protocol has redirected.
    private static func sent(
        _ kind: Kind, _ status: Int, _ delegate: RecordingDelegate = RecordingDelegate(),
        change: @escaping @Sendable (inout URLRequest) -> Void
    ) async throws -> Message {
        try await Scratch.with { scratch in
            let origin = try await ScriptedOrigin.answering { _ in response(body: "done") }
            let session = URLSession.alone(delegate) {
                $0.protocolClasses = [ScriptedProtocol.self]
            }
            let read = Event<[String]>([])
            let script = Self.script(
                to: try URL.of(origin.url("/there")), status, read: read, change: change)
            var request = script.request()
            request.httpMethod = "PUT"
            let content = Array("content".utf8)
            let task: URLSessionTask
            switch kind {
            case .data: task = session.uploadTask(with: request, from: Data(content))
            case .file:
                task = session.uploadTask(with: request, fromFile: try scratch.file("f", content))
            case .stream:
                request.httpBodyStream = InputStream(data: Data(content))
                task = session.dataTask(with: request)
            }
            task.resume()
            try await delegate.completion()
            #expect(task.error == nil && (task.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(read.value == ["content"])
            session.invalidateAndCancel()
            await origin.stop()
            return try #require(origin.requests.value.first)
        }
    }

    @Test(
        "is sent again by the same method, and not behind a 303, whatever it is",
        arguments: Kind.allCases,
        [
            Case(status: 307), Case(status: 308), Case(status: 303, isKept: false),
            Case(status: 307, method: "POST", isKept: false),
        ])
    func again(_ kind: Kind, _ c: Case) async throws {
        let delegate = RecordingDelegate()
        let sent = try await Self.sent(kind, c.status, delegate) { $0.httpMethod = c.method }
        #expect(sent.method == c.method && sent.target == "/there")
        #expect(sent.text == (c.isKept ? "content" : ""))
        // A stream can be read once.
        let asked = delegate.messages.value.filter { $0 == "stream" }.count
        #expect(asked == (c.isKept && kind == .stream ? 1 : 0))
    }

    @Test("is the protocol's own where that brings some", arguments: Kind.allCases)
    func own(_ kind: Kind) async throws {
        let data = try await Self.sent(kind, 307) { $0.httpBody = Data("other".utf8) }
        #expect(data.text == "other")
        let stream = try await Self.sent(kind, 307) {
            $0.httpBodyStream = InputStream(data: Data("other".utf8))
        }
        #expect(stream.text == "other")
    }
}
