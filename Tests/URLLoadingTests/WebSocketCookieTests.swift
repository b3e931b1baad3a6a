import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// A program's own storage, which adds a cookie, and notes what it is told to store.
private final class NotingStorage: HTTPCookieStorage, @unchecked Sendable {
    let stored = Mutex<[String]>([])

    override func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping ([HTTPCookie]?) -> Void
    ) {
        super.getCookiesFor(task) { cookies in
            let own = try? made("own", "1", domain: "127.0.0.1")
            completionHandler((cookies ?? []) + (own.map { [$0] } ?? []))
        }
    }

    override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        self.stored.withLock { $0 += cookies.map(\.name) }
        super.storeCookies(cookies, for: task)
    }
}

@Suite("WebSockets and cookies (§3.7, §9.2)")
struct WebSocketCookieTests {
    /// Sets cookies, by whole lines, and says what it was sent.
    private static func origin(_ lines: String = "") async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            let request = try await connection.requestHead()
            if request.target == "/redirect" {
                return try await connection.send(
                    response(
                        "302 Found", "Location: /next", "Set-Cookie: r=9; Path=/",
                        "Connection: close"))
            }
            try await connection.accept(request, lines)
            try await connection.send(0x81, Array((request["Cookie"] ?? "none").utf8))
            _ = try await connection.frame()
        }
    }

    /// What cookies a handshake bore.
    private static func sent(
        _ settings: URLSessionConfiguration, _ origin: ScriptedOrigin, path: String = "/",
        _ edit: (inout URLRequest) -> Void = { _ in }
    ) async throws -> String {
        let session = URLSession(configuration: settings)
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try url("ws://\(origin.authority)\(path)"))
        edit(&request)
        let task = session.webSocketTask(with: request)
        task.resume()
        guard case .string(let text) = try await task.receive() else { return "no text" }
        return text
    }

    @Test("are taken from each line whole, by the session's policy, not by the storage's")
    func taken() async throws {
        let origin = try await Self.origin("Set-Cookie: v=1,b=2; Path=/\r\nSet-Cookie: c=3\r\n")
        let settings = URLSessionConfiguration.ephemeral
        let storage = try #require(settings.httpCookieStorage)
        storage.cookieAcceptPolicy = .never
        settings.httpCookieAcceptPolicy = .never
        #expect(try await Self.sent(settings, origin) == "none")
        #expect(storage.names == [])
        settings.httpCookieAcceptPolicy = .onlyFromMainDocumentDomain
        _ = try await Self.sent(settings, origin) {
            $0.mainDocumentURL = URL(string: "http://other.example/")
        }
        _ = try await Self.sent(settings, origin) { $0.httpShouldHandleCookies = false }
        #expect(storage.names == [])
        _ = try await Self.sent(settings, origin)
        #expect(storage.cookies?.map { "\($0.name) \($0.value)" } == ["v 1,b=2", "c 3"])
        #expect(try await Self.sent(settings, origin) == "v=1,b=2; c=3")
        await origin.stop()
    }

    @Test("keep to their site where they say so, and the document is another's")
    func sites() async throws {
        let origin = try await Self.origin()
        let settings = URLSessionConfiguration.ephemeral
        let storage = try #require(settings.httpCookieStorage)
        storage.setCookie(try made("any", domain: "127.0.0.1"))
        storage.setCookie(
            try made("strict", domain: "127.0.0.1", [.sameSitePolicy: "strict"]))
        #expect(try await Self.sent(settings, origin) == "any=v; strict=v")
        let elsewhere = try await Self.sent(settings, origin) {
            $0.mainDocumentURL = URL(string: "http://other.example/")
        }
        #expect(elsewhere == "any=v")
        await origin.stop()
    }

    @Test("replace an explicit field where there are any and the session sets them")
    func explicit() async throws {
        let origin = try await Self.origin()
        let settings = URLSessionConfiguration.ephemeral
        let names: @Sendable (inout URLRequest) -> Void = {
            $0.setValue("x=y", forHTTPHeaderField: "Cookie")
        }
        #expect(try await Self.sent(settings, origin, names) == "x=y")
        settings.httpCookieStorage?.setCookie(try made("n", domain: "127.0.0.1"))
        #expect(try await Self.sent(settings, origin, names) == "n=v")
        let unhandled = try await Self.sent(settings, origin) {
            names(&$0)
            $0.httpShouldHandleCookies = false
        }
        #expect(unhandled == "x=y")
        settings.httpShouldSetCookies = false
        #expect(try await Self.sent(settings, origin, names) == "x=y")
        #expect(try await Self.sent(settings, origin) == "none")
        await origin.stop()
    }

    @Test("are a program's own storage's by its methods for tasks, also at a redirection")
    func overridden() async throws {
        let origin = try await Self.origin("Set-Cookie: late=1\r\n")
        let settings = URLSessionConfiguration.ephemeral
        let storage = NotingStorage()
        settings.httpCookieStorage = storage
        #expect(try await Self.sent(settings, origin, path: "/redirect") == "r=9; own=1")
        #expect(origin.requests.value.first?["Cookie"] == "own=1")
        #expect(storage.stored.withLock { $0 } == ["r", "late"])
        await origin.stop()
    }
}
