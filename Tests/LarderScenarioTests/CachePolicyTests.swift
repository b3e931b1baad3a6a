import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("Request cache policies through a whole proxy", .timeLimit(.minutes(10)))
struct CachePolicyTests {
    @Test("Offline answers what is stored, refuses and remembers the rest, and asks no origin")
    func offline() async throws {
        try await Scene.play {
            response("200 OK", "ETag: \"a\"", body: $0.target, cache: "max-age=0, must-revalidate")
        } _: { scene in
            _ = try await scene.get("/here")
            try await scene.home.waitUntilListed("/here")
            try scene.home.configure(
                "sessions: {default: {cache-policy: return-cache-dont-load}}")
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration reloaded")
            let asked = scene.origin.count
            let here = try await scene.get("/here")
            #expect(here.text == "/here")
            #expect(here["Cache-Status"]?.hasSuffix("; detail=return-cache-dont-load") == true)
            let missing = try await scene.get("/missing?a=b")
            #expect(missing.status == 504)
            #expect(missing["Content-Type"] == "application/problem+json")
            #expect(missing.text.contains("offline: this is not in the cache"))
            #expect(missing["Cache-Status"] == "larder; detail=return-cache-dont-load")
            _ = try await scene.get("/missing?a=b")
            let post = try await scene.send("POST", "/form", body: "q")
            #expect(post.status == 504)
            let tunnel = try await scene.proxy.connect()
            try await tunnel.send(
                "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
            #expect(try await tunnel.message(to: "GET").status == 504)
            try await tunnel.close()
            #expect(scene.origin.count == asked)
            try await Self.checkReport(scene)
        }
    }

    private static func checkReport(_ scene: Scene) async throws {
        let report = try await scene.home.cache("missing", "--json")
        #expect(report.status == 0)
        let objects = try report.lines.map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        #expect(objects.map { $0?["method"] as? String } == ["GET", "POST"])
        #expect(objects.first??["url"] as? String == scene.origin.url("/missing?a=b"))
        #expect(objects.first??["count"] as? Int == 2)
        let table = try await scene.home.cache("missing", "--clear")
        #expect(table.lines.first?.hasPrefix("URL ") == true)
        #expect(table.lines.count == 3)
        #expect(try await scene.home.cache("missing").out.isEmpty)
    }

    @Test("The report of what was missing needs a proxy that runs")
    func noProxy() async throws {
        let home = try Home()
        try home.configure("")
        let report = try await home.cache("missing")
        #expect(report.status == 69)
        #expect(report.errText.contains("no proxy is running"))
    }

    private static let trusting =
        "listeners: [{address: '127.0.0.1:0', trusted-clients: 127.0.0.1}]"

    @Test(
        "A trusted client says for one request how the cache is used; the origin never hears of it")
    func trusted() async throws {
        try await Scene.play(Self.trusting) {
            response(body: "\($0.has("Larder-Cache-Policy")) \($0["Pragma"] ?? "")")
        } _: { scene in
            let first = try await scene.get("/a", "Larder-Cache-Policy: use-protocol")
            #expect(first.text == "false ")
            try await scene.stored("/a")
            let again = try await scene.get("/a", "Larder-Cache-Policy: reload-ignoring-local")
            #expect(again["Cache-Status"]?.hasPrefix("larder; fwd=bypass; ") == true)
            #expect(again.text == "false ")
            let all = try await scene.get("/a", "Larder-Cache-Policy: Reload-Ignoring-All")
            #expect(all.text == "false no-cache")
            #expect(scene.origin.count == 3)
            let offline = try await scene.get("/b", "Larder-Cache-Policy: return-cache-dont-load")
            #expect(offline.status == 504)
            #expect(scene.origin.count == 3)
            let unknown = try await scene.get("/a", "Larder-Cache-Policy: reload-validating")
            #expect(unknown.status == 400)
            #expect(unknown.text.contains("did you mean reload-revalidating?"))
            let twice = try await scene.get(
                "/a", "Larder-Cache-Policy: use-protocol", "Larder-Cache-Policy: use-protocol")
            #expect(twice.status == 400)
            #expect(scene.origin.count == 3)
        }
    }

    @Test("Of another client the field is ignored, and kept from the origin")
    func untrusted() async throws {
        try await Scene.play {
            response(body: "\($0.has("Larder-Cache-Policy"))")
        } _: { scene in
            let first = try await scene.get("/a", "Larder-Cache-Policy: nonsense")
            #expect(first.status == 200)
            #expect(first.text == "false")
            try await scene.stored("/a")
            let hit = try await scene.get("/a", "Larder-Cache-Policy: reload-ignoring-local")
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit; ") == true)
            let miss = try await scene.get("/b", "Larder-Cache-Policy: return-cache-dont-load")
            #expect(miss.status == 200)
            #expect(scene.origin.count == 2)
        }
    }

    @Test("A listener has a policy of its own, beside another of the same session")
    func listener() async throws {
        let settings = """
            listeners:
              - address: 127.0.0.1:0
              - { address: 127.0.0.1:0, cache-policy: return-cache-dont-load }
            """
        try await Scene.play(settings) {
            response(body: $0.target)
        } _: { scene in
            let ports = scene.proxy.log.components(separatedBy: "127.0.0.1:").dropFirst()
                .compactMap { Int($0.prefix { $0.isNumber }) }
            try #require(ports.count == 2)
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            for (path, status) in [("/a", 200), ("/b", 504)] {
                let client = try await Wire.connect(port: ports[1], reads: true)
                try await client.send(scene.request("GET", path))
                #expect(try await client.message(to: "GET").status == status)
                try await client.close()
            }
            #expect(scene.origin.count == 1)
            #expect(try await scene.get("/b").status == 200)
        }
    }
}

extension Home {
    /// Waits until a URL with this path is in the listing of what is stored.
    fileprivate func waitUntilListed(_ path: String) async throws {
        for _ in 0..<100 where !(try await self.cache("list").outText.contains(path)) {}
        guard try await self.cache("list").outText.contains(path) else {
            throw TimedOut(description: "\(path) was never stored")
        }
    }
}
