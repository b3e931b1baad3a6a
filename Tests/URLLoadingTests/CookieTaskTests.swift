import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// An origin that sets what the query names, and says on `/echo` what was sent to it.
private func cookieOrigin() async throws -> ScriptedOrigin {
    try await ScriptedOrigin.answering { request in
        let target = request.line.split(separator: " ").dropFirst().first ?? "/"
        let parts = target.split(separator: "?", maxSplits: 1)
        let set = parts.count > 1 ? "Set-Cookie: \(parts[1]); Path=/" : "X-None: 1"
        switch parts[0] {
        case "/echo": return response(body: request["Cookie"] ?? "", cache: "no-store")
        case "/redirect": return response("302 Found", set, "Location: /echo", cache: "no-store")
        case "/401": return response("401 Unauthorized", set, cache: "no-store")
        case "/cached": return response("200 OK", set, body: "cached")
        default: return response("200 OK", set, cache: "no-store")
        }
    }
}

/// A program's own storage, which adds a cookie of its own by the method for tasks.
private final class AddingStorage: HTTPCookieStorage, @unchecked Sendable {
    override func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping ([HTTPCookie]?) -> Void
    ) {
        super.getCookiesFor(task) { cookies in
            let own = try? made("own", "1", domain: "127.0.0.1")
            completionHandler((cookies ?? []) + (own.map { [$0] } ?? []))
        }
    }
}

@Suite("Tasks and cookies (§9.2)")
struct CookieTaskTests {
    private func echo(
        _ session: URLSession, _ origin: ScriptedOrigin, path: String = "/echo",
        _ edit: (inout URLRequest) -> Void = { _ in }
    ) async throws -> String {
        var request = URLRequest(url: try url(origin.url(path)))
        edit(&request)
        return String(decoding: try await session.data(for: request).0, as: UTF8.self)
    }

    @Test("send what earlier responses have set, in the place of an explicit field")
    func sending() async throws {
        let origin = try await cookieOrigin()
        let session = URLSession(configuration: .ephemeral)
        let (_, answer) = try await session.data(from: try url(origin.url("/set?a=1")))
        #expect((answer as? HTTPURLResponse)?.value(forHTTPHeaderField: "Set-Cookie") != nil)
        #expect(try await self.echo(session, origin) == "a=1")
        #expect(
            try await self.echo(session, origin) {
                $0.setValue("x=y", forHTTPHeaderField: "Cookie")
            } == "a=1")
        let other = URLSession(configuration: .ephemeral)
        #expect(try await self.echo(other, origin) == "")
        await origin.stop()
    }

    @Test("store those of redirections before the next request, and those of a 401")
    func chains() async throws {
        let origin = try await cookieOrigin()
        let session = URLSession(configuration: .ephemeral)
        #expect(try await self.echo(session, origin, path: "/redirect?r=9") == "r=9")
        _ = try await self.echo(session, origin, path: "/401?u=7")
        #expect(session.configuration.httpCookieStorage?.names.sorted() == ["r", "u"])
        await origin.stop()
    }

    @Test("leave them alone where the request or the session says so")
    func refusals() async throws {
        let origin = try await cookieOrigin()
        let settings = URLSessionConfiguration.ephemeral
        settings.httpShouldSetCookies = false
        let session = URLSession(configuration: settings)
        let storage = try #require(session.configuration.httpCookieStorage)
        _ = try await self.echo(session, origin, path: "/set?b=2") {
            $0.httpShouldHandleCookies = false
        }
        #expect(storage.names == [])
        _ = try await self.echo(session, origin, path: "/set?a=1")
        #expect(storage.names == ["a"])
        #expect(try await self.echo(session, origin) == "")
        #expect(
            try await self.echo(session, origin) {
                $0.setValue("x=y", forHTTPHeaderField: "Cookie")
            } == "x=y")
        _ = try await self.echo(session, origin, path: "/set?c=3") {
            $0.mainDocumentURL = URL(string: "http://other.example/")
        }
        #expect(storage.names == ["a"])
        settings.httpCookieStorage = nil
        let none = URLSession(configuration: settings)
        _ = try await self.echo(none, origin, path: "/set?d=4")
        #expect(storage.names == ["a"])
        await origin.stop()
    }

    @Test(
        "take cookies without a name (RFC 6265bis §5.6), whatever the storage's class",
        arguments: [true, false], ["bare", "=bare"])
    func nameless(isOwn: Bool, line: String) async throws {
        let origin = try await cookieOrigin()
        let settings = URLSessionConfiguration.ephemeral
        if isOwn { settings.httpCookieStorage = IdleStorage() }
        let session = URLSession(configuration: settings)
        _ = try await self.echo(session, origin, path: "/set?\(line)")
        #expect(try await self.echo(session, origin) == "bare")
        await origin.stop()
    }

    @Test("take none from answers of the cache")
    func cached() async throws {
        let origin = try await cookieOrigin()
        let session = URLSession(configuration: .ephemeral)
        let storage = try #require(session.configuration.httpCookieStorage)
        #expect(try await self.echo(session, origin, path: "/cached?q=1") == "cached")
        #expect(storage.names == ["q"])
        storage.removeCookies(since: .distantPast)
        #expect(try await self.echo(session, origin, path: "/cached?q=1") == "cached")
        #expect(origin.count == 1)
        #expect(storage.names == [])
        await origin.stop()
    }

    @Test("ask a program's own storage by its methods for tasks, at each redirection")
    func overridden() async throws {
        let origin = try await cookieOrigin()
        let settings = URLSessionConfiguration.ephemeral
        settings.httpCookieStorage = AddingStorage()
        let session = URLSession(configuration: settings)
        #expect(try await self.echo(session, origin, path: "/redirect?r=9") == "r=9; own=1")
        #expect(origin.requests.value.first?["Cookie"] == "own=1")
        await origin.stop()
    }
}
