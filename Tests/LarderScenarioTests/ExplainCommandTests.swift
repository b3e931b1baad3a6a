import Foundation
import Testing
@testable import LarderProcess

@testable import LarderProcess

@Suite("larder explain, with a running proxy and after its end", .timeLimit(.minutes(10)))
struct ExplainCommandTests {
    private struct Told: Decodable {
        struct Reason: Decodable { var reason: String; var source: String }
        struct Variant: Decodable {
            var status: Int
            var isSelected: Bool
            var bodyBytes: Int
            var overrides: [String]
        }
        struct Recent: Decodable {
            var method: String
            var status: Int
            var isHit: Bool
            var isStored: Bool
            var reason: Reason?
            var storage: Reason?
            var error: String?
        }
        var verdict: String
        var reason: Reason
        var variants: [Variant]
        var remedies: [String]
        var history: [Recent]?
    }

    private func explain(_ home: Home, _ arguments: [String]) async throws -> Program.Output {
        try await home.start(["explain"] + arguments + ["--config", home.configuration]).ended()
    }

    private func told(_ home: Home, _ arguments: String...) async throws -> Told {
        let output = try await self.explain(home, arguments + ["--json"])
        #expect(output.status == 0, "\(output.errText)")
        #expect(output.lines.count == 1)
        return try JSONDecoder().decode(Told.self, from: Data((output.lines.first ?? "").utf8))
    }

    private static func answer(_ request: Message) -> String {
        switch request.target {
        case "/no-store": response("200 OK", body: "x", cache: "no-store")
        case "/language":
            response(
                "200 OK", "Vary: Accept-Language, Cookie", body: request["Accept-Language"] ?? "-")
        default: response("200 OK", "ETag: \"e\"", body: "hello")
        }
    }

    @Test("tells of a hit, a miss, a variant and what is not stored, and shows no secret")
    func lastAndNext() async throws {
        let home = try Home()
        // Without a memory tier a hit has been committed.
        try home.configure("sessions: {default: {cache: {memory: 0 B}}}")
        let origin = try await ScriptedOrigin.answering { Self.answer($0) }
        let proxy = try await home.serve()
        let (file, language) = (origin.url("/file"), origin.url("/language"))
        let secret = ["Cookie: id=hidden", "Authorization: Basic aGlkZGVu", "Accept-Language: en"]
        _ = try await proxy.get(file)
        _ = try await proxy.getStored(file)
        _ = try await proxy.send("GET", origin.url("/no-store"), secret)
        _ = try await proxy.get(language, "Accept-Language: en", "Cookie: id=hidden")

        let hit = try await self.told(home, file)
        #expect(hit.verdict == "hit")
        #expect(hit.reason.reason == "fresh" && hit.reason.source == "RFC 9111 §4.2")
        let selected = hit.variants.map(\.isSelected)
        #expect(selected == [true])
        #expect(hit.variants.first?.bodyBytes == 5)
        let history = try #require(hit.history)
        #expect(history.first?.isHit == true)
        #expect(history.last?.isStored == true)
        #expect(history.last?.reason?.reason == "nothing-stored")

        let unstored = try await self.told(home, origin.url("/no-store"))
        #expect(unstored.reason.reason == "nothing-stored")
        let storage: [String?] = (unstored.history ?? []).map { $0.storage?.reason }
        #expect(storage == ["response-no-store"])
        #expect(unstored.remedies.first?.contains("no-store") == true)

        try await self.variants(home, language)
        let never = try await self.told(home, origin.url("/never"))
        #expect(never.history?.isEmpty == true && never.verdict == "fetch")
        let text = try await self.explain(home, [file])
        #expect(text.lines.first == "GET \(file)")
        #expect(text.lines.last?.hasPrefix("What would have made it a hit: it is one,") == true)
        for path in ["/file", "/no-store", "/language"] {
            let page = try await self.explain(home, [origin.url(path), "--header", secret[0]])
            #expect(!page.outText.contains("hidden") && !page.outText.contains("aGlkZGVu"))
        }

        #expect(try await proxy.stop().status == 0)
        let offline = try await self.told(home, file)
        #expect(offline.verdict == "hit" && offline.history == nil)
        try await self.variants(home, language)
        let page = try await self.explain(home, [file])
        #expect(page.outText.contains("not known: no proxy runs"))
        let count = origin.count
        #expect(count == 3, "explaining asked the origin")
        await origin.stop()
    }

    /// The same, whether the proxy runs or not.
    private func variants(_ home: Home, _ url: String) async throws {
        for _ in 0..<200 {
            // What was relayed is stored a moment later.
            if try await self.told(home, url).variants.count == 1 { break }
        }
        let other = try await self.told(
            home, url, "--header", "Accept-Language: de", "--header", "Cookie: id=other")
        #expect(other.reason.reason == "no-matching-variant")
        #expect(other.remedies.contains { $0.contains("accept-language") })
        let same = try await self.told(
            home, url, "--header", "Accept-Language: en", "--header", "Cookie: id=hidden")
        #expect(same.verdict == "hit")
    }

    @Test("a failure is remembered with its error, and counts by its reason")
    func failure() async throws {
        let home = try Home()
        try home.configure("sessions: {default: {cache: {disk: 0 B}}}")
        let origin = try await ScriptedOrigin.answering { Self.answer($0) }
        let closed = origin.url("/gone")
        await origin.stop()
        let proxy = try await home.serve()
        let answer = try await proxy.get(closed)
        #expect(answer.status == 502)
        #expect(answer["Proxy-Status"]?.contains("; next-hop=\"127.0.0.1\"; details=") == true)
        #expect(answer.cacheStatus == "larder; fwd=uri-miss; detail=nothing-stored")
        let told = try await self.told(home, closed)
        let errors: [String?] = (told.history ?? []).map(\.error)
        #expect(errors == ["connection_refused"])
        let posted = try await self.told(home, closed, "--method", "POST")
        #expect(posted.reason.reason == "method-not-cacheable")
        let stats = try await home.cache("stats")
        #expect(stats.outText.contains("nothing-stored 1"))
        #expect(try await proxy.stop().status == 0)
    }

    @Test("names the cache rule that made it a hit, with a proxy and without")
    func override() async throws {
        let home = try Home()
        try home.configure(
            "sessions: {default: {cache: {memory: 0 B}}}\n"
                + "cache-rules: [{name: pinned, paths: '/pinned/*', minimum: 1 h}]")
        let origin = try await ScriptedOrigin.answering { _ in
            response("200 OK", "ETag: \"e\"", body: "hello", cache: "max-age=0")
        }
        let proxy = try await home.serve()
        let url = origin.url("/pinned/a")
        _ = try await proxy.get(url)
        _ = try await proxy.getStored(url)
        let online = try await self.told(home, url)
        #expect(try await proxy.stop().status == 0)
        await origin.stop()
        let offline = try await self.told(home, url)
        for told in [online, offline] {
            #expect(told.verdict == "hit")
            let overrides = try #require(told.variants.first).overrides
            #expect(overrides.contains { $0.contains("cache rule \"pinned\"") }, "\(overrides)")
        }
    }

    @Test("judges a response head from a file, and stores nothing")
    func judging() async throws {
        let home = try Home()
        try home.configure("")
        try home.write(
            "HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\nHTTP/2 200 \r\ncache-control: private\r\n\r\n",
            to: "head")
        try home.write("HTTP/1.1 200 OK\nwrong\n", to: "wrong")
        let page = try await self.explain(home, ["--response", "\(home.path)/head"])
        #expect(page.status == 0)
        #expect(page.outText.contains("is not stored: response-private (RFC 9111 §5.2.2.7)"))
        let json = try await self.explain(home, ["--response", "\(home.path)/head", "--json"])
        #expect(json.outText.contains("\"isStorable\":false"))
        let wrong = try await self.explain(home, ["--response", "\(home.path)/wrong"])
        #expect(wrong.status == 65)
        #expect(
            wrong.errText == "larder: \(home.path)/wrong:2: a field line without a colon\n")
        #expect(try await self.explain(home, ["--response", "\(home.path)/none"]).status == 66)
        #expect(try await self.explain(home, []).status == 64)
        #expect(try await self.explain(home, ["nonsense"]).status == 65)
        #expect(try await self.explain(home, ["http://h/", "--header", "x"]).status == 64)
        #expect(!FileManager.default.fileExists(atPath: home.cache))
    }
}
