import Foundation
import Testing

@testable import LarderProcess

@Suite("larder cache, on a running proxy's cache and after its end", .timeLimit(.minutes(10)))
struct CacheCommandTests {
    private struct Row: Decodable {
        var url: String
        var status: Int
        var bytes: UInt64
        var ageMilliseconds: Int64
        var freshForMilliseconds: Int64
        var hits: UInt64
        var tier: String
        var variant: [Field]?
    }

    private struct Field: Decodable, Equatable { var name: String; var value: String }

    private struct Shown: Decodable {
        var url: String
        var variant: [Field]
        var fields: [Field]
        var bodyBytes: UInt64
        var sha256: String?
    }

    private struct Figures: Decodable {
        struct Disk: Decodable { var objects: UInt64; var bodyBytes: UInt64 }
        struct Running: Decodable { var requests: UInt64; var hits: UInt64 }
        var session: String
        var running: Running?
        var disk: Disk?
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ output: Program.Output) throws
        -> [Value]
    {
        try output.lines.map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
    }

    /// Runs `body` with the proxy running, and once more when it has stopped.
    private func play(_ body: (Home, ScriptedOrigin, Bool) async throws -> Void) async throws {
        try await Scene.inTurn {
            let home = try Home()
            // Without a memory tier a hit has been committed.
            try home.configure("sessions: {default: {cache: {memory: 0 B}}}")
            let origin = try await ScriptedOrigin.answering { request in
                response(
                    "200 OK", "Vary: Accept-Language", "ETag: \"e\"",
                    body: "body of \(request.target)")
            }
            let proxy = try await home.serve()
            for path in ["/one", "/two", "/three"] {
                _ = try await proxy.get(origin.url(path))
                _ = try await proxy.getStored(origin.url(path))
            }
            try await body(home, origin, true)
            let end = try await proxy.stop()
            #expect(end.status == 0)
            try await body(home, origin, false)
            await origin.stop()
        }
    }

    @Test("list shows each URL, its size, age, freshness and tier")
    func list() async throws {
        try await self.play { home, origin, _ in
            let text = try await home.cache("list")
            #expect(text.status == 0)
            #expect(text.lines.first?.hasPrefix("URL ") == true)
            #expect(text.lines.count == 4)
            for path in ["/one", "/two", "/three"] {
                #expect(text.outText.contains(origin.url(path) + " "))
            }
            let json = try await home.cache("list", "--json")
            let rows = try self.decode(Row.self, json)
            #expect(Set(rows.map(\.url)) == Set(["/one", "/two", "/three"].map(origin.url)))
            for row in rows {
                #expect(row.status == 200)
                #expect(row.bytes >= 12 && row.bytes <= 14)
                #expect(row.tier == "disk")
                #expect(row.variant == [Field(name: "Accept-Language", value: "")])
                #expect(row.freshForMilliseconds > 500_000 && row.freshForMilliseconds <= 600_000)
                #expect(row.ageMilliseconds >= 0 && row.ageMilliseconds < 60_000)
            }
            let none = try await home.cache("list", "--session", "ephemeral")
            #expect(none.status == 0)
            #expect(none.out.isEmpty)
            let unknown = try await home.cache("list", "--session", "defualt")
            #expect(unknown.status == 64)
            #expect(unknown.errText.contains("did you mean \"default\"?"))
        }
    }

    @Test("list is narrowed, ordered and cut short, in each of its forms")
    func order() async throws {
        try await self.play { home, origin, _ in
            func paths(_ arguments: String...) async throws -> [String] {
                let all = ["cache", "list", "--json"] + arguments
                let output = try await home.start(all + ["--config", home.configuration]).ended()
                #expect(output.status == 0, "\(output.errText)")
                return try self.decode(Row.self, output).map {
                    String($0.url.dropFirst(origin.url("").count))
                }
            }
            // Bodies of 14, 12 and 12 bytes; what is alike comes by URL.
            #expect(try await paths("--sort", "size") == ["/three", "/one", "/two"])
            #expect(try await paths("--sort", "size", "--reverse") == ["/two", "/one", "/three"])
            #expect(try await paths("--sort", "url", "--limit", "2") == ["/one", "/three"])
            #expect(try await paths("--limit", "2").count == 2)
            #expect(try await paths("--limit", "0").isEmpty)
            #expect(try await paths("--url", "*/t*", "--sort", "url") == ["/three", "/two"])
            #expect(try await paths("--larger-than", "12") == ["/three"])
            #expect(try await paths("--smaller-than", "12").isEmpty)
            #expect(try await paths("--host", "127.0.0.1").count == 3)
            #expect(try await paths("--host", "*.0.0.1").count == 3)
            #expect(try await paths("--host", "elsewhere.example").isEmpty)
            #expect(try await paths("--stale").isEmpty)
            #expect(try await paths("--fresh", "--status", "2xx", "--method", "get").count == 3)
            #expect(try await paths("--tier", "memory").isEmpty)
            #expect(try await paths("--tier", "disk").count == 3)
            let urls = try await home.cache("list", "-0", "--sort", "url")
            #expect(
                urls.outText == ["/one", "/three", "/two"].map { origin.url($0) + "\0" }.joined())
            let wrong = try await home.cache("list", "--sort", "colour")
            #expect(wrong.status == 64)
            let verb = try await home.cache("lsit")
            #expect(verb.status == 64)
            #expect(verb.errText.hasSuffix("did you mean \"larder cache list\"?\n"))
        }
    }

    @Test("What lies in both tiers is one row, and shown once")
    func bothTiers() async throws {
        try await Scene.play {
            response(body: $0.target)
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            var tiers: [String] = []
            // The disk has it a moment later.
            for _ in 0..<100 where tiers != ["memory+disk"] {
                let rows = try self.decode(Row.self, try await scene.home.cache("list", "--json"))
                tiers = rows.map(\.tier)
                #expect(tiers.count == 1)
            }
            #expect(tiers == ["memory+disk"])
            for tier in ["memory", "disk"] {
                let rows = try self.decode(
                    Row.self, try await scene.home.cache("list", "--json", "--tier", tier))
                #expect(rows.map(\.tier) == ["memory+disk"])
            }
            let shown = try await scene.home.cache("show", scene.origin.url("/a"))
            #expect(shown.outText.components(separatedBy: "HTTP 200 OK").count == 2)
            #expect(shown.outText.contains("memory+disk, "))
        }
    }

    @Test("show tells the key, the variant, the stored head, the freshness and the body's digest")
    func show() async throws {
        try await self.play { home, origin, _ in
            let url = origin.url("/one")
            let text = try await home.cache("show", url)
            #expect(text.status == 0)
            for part in ["GET \(url)", "HTTP 200 OK", "ETag: \"e\"", "max-age", "SHA-256 "] {
                #expect(text.outText.contains(part), "\(part)")
            }
            let shown = try self.decode(Shown.self, try await home.cache("show", url, "--json"))
            #expect(shown.count == 1)
            #expect(shown.first?.url == url)
            #expect(shown.first?.bodyBytes == 12)
            #expect(shown.first?.variant.map { $0.name.lowercased() } == ["accept-language"])
            // printf 'body of /one' | sha256sum
            #expect(shown.first?.sha256 == "\(Self.digest)")
            let body = try await home.cache("show", url, "--body")
            #expect(body.outText == "body of /one")
            let none = try await home.cache("show", origin.url("/none"))
            #expect(none.status == 1)
            #expect(none.out.isEmpty)
            let wrong = try await home.cache("show", "not a URL")
            #expect(wrong.status == 65)
        }
    }

    private static let digest = "7ce1715962c8809f6b4ed26926cb36aa1bd54aed58b31bae5dee4fff0f86acad"

    @Test("stats tells what is stored, and what the running proxy did")
    func stats() async throws {
        try await self.play { home, _, isRunning in
            let text = try await home.cache("stats")
            #expect(text.status == 0)
            #expect(text.outText.contains("3 objects"))
            #expect(text.outText.contains("not running") == !isRunning)
            let figures = try self.decode(Figures.self, try await home.cache("stats", "--json"))
            #expect(figures.count == 1)
            #expect(figures.first?.session == "default")
            #expect(figures.first?.disk?.objects == 3)
            #expect(figures.first?.disk?.bodyBytes == 12 + 12 + 14)
            #expect((figures.first?.running != nil) == isRunning)
            if isRunning {
                #expect((figures.first?.running?.requests ?? 0) >= 6)
                #expect((figures.first?.running?.hits ?? 0) >= 3)
            }
        }
    }

    @Test(
        "purge removes by URL, host, pattern or all, and says how many", arguments: [true, false])
    func purge(_ isRunning: Bool) async throws {
        try await self.play { home, origin, runs in
            guard runs == isRunning else { return }
            func count(_ output: Program.Output) -> String {
                output.outText.trimmingCharacters(in: .newlines)
            }
            let none = try await home.cache("purge")
            #expect(none.status == 64)
            let both = try await home.cache("purge", "--all", "--host", "x")
            #expect(both.status == 64)
            let url = try await home.cache("purge", origin.url("/one"))
            #expect(count(url) == "1")
            let again = try await home.cache("purge", origin.url("/one"))
            #expect(count(again) == "0")
            let pattern = try await home.cache("purge", "--pattern", "*/tw*")
            #expect(count(pattern) == "1")
            let other = try await home.cache("purge", "--host", "elsewhere.example")
            #expect(count(other) == "0")
            let host = try await home.cache("purge", "--host", "127.0.0.1")
            #expect(count(host) == "1")
            let all = try await home.cache("purge", "--all")
            #expect(count(all) == "0")
            let list = try await home.cache("list")
            #expect(list.out.isEmpty)
        }
    }

    @Test("Without a cache there is nothing, which is no error")
    func nothing() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            for arguments in [["list"], ["stats"], ["purge", "--all"]] {
                let output = try await home.start(
                    ["cache"] + arguments + ["--config", home.configuration]
                ).ended()
                #expect(output.status == 0, "\(arguments): \(output.errText)")
            }
        }
    }

    @Test("What lies in memory alone is listed and purged through the running proxy")
    func memory() async throws {
        try await Scene.play("sessions: {default: {cache: {disk: 0 B}}}") {
            response("200 OK", "Vary: Accept-Language", body: $0.target)
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let rows = try self.decode(Row.self, try await scene.home.cache("list", "--json"))
            #expect(rows.map(\.url) == [scene.origin.url("/a")])
            #expect(rows.map(\.tier) == ["memory"])
            #expect(rows.map(\.variant) == [[Field(name: "Accept-Language", value: "")]])
            let url = scene.origin.url("/a")
            let shown = try self.decode(
                Shown.self, try await scene.home.cache("show", url, "--json"))
            #expect(shown.map(\.url) == [url])
            #expect(shown.first?.bodyBytes == 2)
            // printf '/a' | sha256sum
            #expect(shown.first?.sha256?.hasPrefix("6a50dc85") == true)
            let body = try await scene.home.cache("show", url, "--body")
            #expect(body.outText == "/a")
            let purged = try await scene.home.cache("purge", scene.origin.url("/a"))
            #expect(purged.outText == "1\n")
            let after = try await scene.get("/a", "Cache-Control: only-if-cached")
            #expect(after.status == 504)
        }
    }
}
