import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Sessions with a program's URLProtocol, file and data URLs (§10)")
struct ProtocolSessionTests {
    private struct Own: Error, Equatable { var number = 7 }

    private static func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        return URLSession(configuration: configuration)
    }

    @Test("bytes gather, and a class of the program's wins over what is built in")
    func gathers() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let script = ProtocolScript {
            $0.respond(203, ["X-A": "b"])
            for text in ["ab", "c", "def"] { $0.load(text) }
            $0.finish()
        }
        let (data, response) = try await session.data(for: script.request())
        #expect(data == Data("abcdef".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 203)
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("a download is served, too")
    func download() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let script = ProtocolScript {
            $0.respond()
            $0.load("in a ")
            $0.load("file")
            $0.finish()
        }
        let (url, _) = try await session.download(for: script.request())
        defer { try? FileManager.default.removeItem(at: url) }
        #expect(try Data(contentsOf: url) == Data("in a file".utf8))
    }

    @Test("an error of the program's comes as it is", arguments: [true, false])
    func errors(isEarly: Bool) async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let script = ProtocolScript {
            if !isEarly {
                $0.respond()
                $0.load("a")
            }
            $0.fail(Own())
            $0.finish()
        }
        await #expect(throws: Own()) { try await session.data(for: script.request()) }
    }

    @Test("a redirection is followed to wherever it leads, and the first protocol stopped")
    func redirects() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let second = ProtocolScript {
            $0.respond(200)
            $0.load("there")
            $0.finish()
        }
        let first = ProtocolScript {
            guard
                let response = HTTPURLResponse(
                    url: URL(string: "http://protocol.test/a")!, statusCode: 302, httpVersion: nil,
                    headerFields: nil)
            else { return }
            $0.client?.urlProtocol(
                $0.it, wasRedirectedTo: second.request("http://protocol.test/b"),
                redirectResponse: response)
        }
        let (data, response) = try await session.data(for: first.request())
        #expect(data == Data("there".utf8) && response.url?.path == "/b")
        try await first.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("a GET with content is the protocol's to take")
    func contentOfGet() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        for isUpload in [true, false] {
            let script = ProtocolScript {
                $0.respond()
                $0.load("taken")
                $0.finish()
            }
            var request = script.request()
            if isUpload {
                let (data, _) = try await session.upload(for: request, from: Data("a".utf8))
                #expect(data == Data("taken".utf8))
            } else {
                request.httpBody = Data("a".utf8)
                let (data, _) = try await session.data(for: request)
                #expect(data == Data("taken".utf8))
            }
        }
    }

    private static let urlsOfGets = ["http://a.test/", "file:///etc/hostname", "data:,a"]

    @Test(
        "a GET with content that no protocol takes is refused unseen (§3.3)",
        arguments: Self.urlsOfGets)
    func contentOfOtherGet(_ text: String) async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let plain = URLRequest(url: try #require(URL(string: text)))
        var whole = plain
        whole.httpBody = Data("a".utf8)
        let nowhere = URL(fileURLWithPath: "/nowhere/at/all")
        let empty = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data().write(to: empty)
        defer { try? FileManager.default.removeItem(at: empty) }
        let errors = [
            await #expect(throws: URLError.self) { try await session.data(for: whole) },
            await #expect(throws: URLError.self) {
                try await session.upload(for: plain, fromFile: empty)
            },
            await #expect(throws: URLError.self) {
                try await session.upload(for: plain, from: Data("a".utf8))
            },
            await #expect(throws: URLError.self) {
                try await session.upload(for: plain, fromFile: nowhere)
            },
        ]
        #expect(errors.map(\.?.code) == Array(repeating: .dataLengthExceedsMaximum, count: 4))
    }

    /// Has a credential for every challenge.
    private final class Knowing: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let heard = Event<[String]>([])

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            self.heard.change { $0.append(String(decoding: data, as: UTF8.self)) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.useCredential, .test)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            self.heard.change { $0.append(error == nil ? "end" : "error") }
        }
    }

    @Test("a challenge behind the response ends no task, and the delegate is asked")
    func lateChallenge() async throws {
        let sender = RecordingSender()
        let challenging = ProtocolScript {
            $0.respond()
            $0.load("a")
            $0.client?.urlProtocol($0.it, didReceive: .test(sender))
        }
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        async let whole = session.data(for: challenging.request())
        try await sender.heard.wait(for: "an answer") { !$0.isEmpty }
        #expect(sender.heard.value == ["default"])
        let instance = try await challenging.instance()
        instance?.load("b")
        instance?.finish()
        #expect(try await whole.0 == Data("ab".utf8))
        let delegate = Knowing()
        let asking = URLSession(
            configuration: session.configuration, delegate: delegate, delegateQueue: nil)
        defer { asking.invalidateAndCancel() }
        let waiting = ProtocolScript {
            $0.respond()
            $0.load("a")
        }
        asking.dataTask(with: waiting.request()).resume()
        try await delegate.heard.wait(for: "data") { $0 == ["a"] }
        let other = try #require(try await waiting.instance())
        other.client?.urlProtocol(other.it, didReceive: .test(sender))
        try await sender.heard.wait(for: "another answer") { $0.count == 2 }
        #expect(sender.heard.value.last == "use")
        other.finish()
        try await delegate.heard.wait(for: "the end") { $0.count == 2 }
        #expect(delegate.heard.value.last == "end")
    }

    /// Decides by a field that the session adds.
    private final class ByField: ScriptedProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            request.value(forHTTPHeaderField: "X-A") != nil && super.canInit(with: request)
        }
    }

    @Test("a protocol sees the fields that the configuration adds, the task does not (§2)")
    func additionalFields() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ByField.self]
        configuration.httpAdditionalHeaders = ["x-a": "added", "x-b": "added", "Host": "c"]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let seen = Event<[[String: String]]>([])
        let script = ProtocolScript { instance in
            seen.change { $0.append(instance.it.request.allHTTPHeaderFields ?? [:]) }
            instance.respond()
            instance.finish()
        }
        var request = script.request()
        request.setValue("own", forHTTPHeaderField: "X-B")
        let isAnswered = Event(false)
        let task = session.dataTask(with: request) { _, _, _ in isAnswered.change { $0 = true } }
        task.resume()
        try await isAnswered.wait(for: "the answer") { $0 }
        #expect(seen.value == [["X-A": "added", "X-B": "own"]])
        #expect(task.originalRequest?.allHTTPHeaderFields == ["X-B": "own"])
        #expect(task.currentRequest?.allHTTPHeaderFields == ["X-B": "own"])
    }

    @Test("a cancelled task stops its protocol")
    func cancelling() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let script = ProtocolScript { $0.respond() }
        let task = session.dataTask(with: script.request())
        task.resume()
        _ = try await script.instance()
        task.cancel()
        try await script.stops.wait(for: "stopLoading") { $0 == 1 }
    }

    @Test("file and data URLs are loaded, and bad ones end their task")
    func builtIn() async throws {
        let session = Self.session()
        defer { session.invalidateAndCancel() }
        let (data, response) = try await session.data(
            from: try #require(URL(string: "data:text/x;charset=y,a%20b")))
        #expect(data == Data("a b".utf8) && response.textEncodingName == "y")
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("\(UUID().uuidString).txt")
        try Data("file".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let (read, found) = try await session.data(from: file)
        #expect(read == Data("file".utf8) && found.mimeType == "text/plain")
        for (url, code) in [
            ("data:none", URLError.Code.badURL), ("file:///nowhere/at/all", .fileDoesNotExist),
            ("file:///", .fileIsDirectory), ("gopher://a/", .unsupportedURL),
        ] {
            let url = try #require(URL(string: url))
            let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
            #expect(error?.code == code)
        }
    }
}
