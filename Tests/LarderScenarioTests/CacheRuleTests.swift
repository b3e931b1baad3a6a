import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("Cache rules, presets and negative caching through a whole proxy", .timeLimit(.minutes(10)))
struct CacheRuleTests {
    private static let pinned = """
        cache-rules:
          - name: pinned
            hosts: 127.0.0.1
            paths: "/pool/*"
            minimum: 1 h
        """

    @Test("A rule makes a hit of what is stale at birth, for its paths alone")
    func minimum() async throws {
        try await Scene.play(Self.pinned) {
            response("200 OK", "ETag: \"a\"", body: $0.target, cache: "max-age=0")
        } _: { scene in
            let miss = try await scene.get("/pool/a")
            #expect(
                miss.cacheStatus
                    == "larder; fwd=uri-miss; fwd-status=200; ttl; stored; detail=rule-minimum")
            // What the origin said goes on as it is.
            #expect(miss["Cache-Control"] == "max-age=0")
            try await scene.stored("/pool/a")
            let hit = try await scene.get("/pool/a")
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit; ttl=") == true)
            #expect(hit["Cache-Status"]?.hasSuffix("; detail=rule-minimum") == true)
            #expect(scene.origin.count == 1)
            for _ in 0..<2 {
                let other = try await scene.get("/other")
                #expect(other["Cache-Status"]?.contains("hit") == false)
            }
            #expect(scene.origin.count == 3)
        }
    }

    @Test("SIGHUP puts new rules into force for what is stored already, and takes them back")
    func reload() async throws {
        try await Scene.play { _ in
            response("200 OK", "ETag: \"a\"", body: "x", cache: "max-age=0")
        } _: { scene in
            _ = try await scene.get("/pool/a")
            try await scene.stored("/pool/a")
            _ = try await scene.get("/pool/a")
            #expect(scene.origin.count == 2)
            try scene.home.configure(Self.pinned)
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration reloaded")
            let hit = try await scene.get("/pool/a")
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit; ttl=") == true)
            // A file that is wrong changes nothing.
            try scene.home.configure("cache-rules: [{maximun: 1 h}]")
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration not reloaded")
            #expect(scene.proxy.log.contains("did you mean \"maximum\"?"))
            let still = try await scene.get("/pool/a")
            #expect(still["Cache-Status"]?.hasPrefix("larder; hit; ttl=") == true)
            #expect(scene.origin.count == 2)
        }
    }

    @Test("A reload that withdraws what let it be stored is obeyed by what is stored: credentials")
    func authorizationTakenBack() async throws {
        try await Scene.play("cache-rules: [{ignore: [authorization]}]") {
            response(body: $0["Authorization"] ?? "anybody")
        } _: { scene in
            _ = try await scene.get("/a", "Authorization: Bearer alice")
            try await scene.stored("/a")
            #expect(try await scene.get("/a").text == "Bearer alice")
            try scene.home.configure("")
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration reloaded")
            let answer = try await scene.get("/a")
            #expect(answer.text == "anybody")
            #expect(answer["Cache-Status"]?.hasSuffix("; detail=request-authorization") == true)
        }
    }

    @Test("A reload that withdraws what let it be stored is obeyed by what is stored: cookies")
    func cookiesTakenBack() async throws {
        // Of the disk, too: nothing is in memory.
        let settings = "sessions: {default: {cache: {memory: 0 B, store-set-cookie: true}}}"
        try await Scene.play(settings) {
            response("200 OK", "Set-Cookie: sid=\($0["X-User"] ?? "anybody")", body: "x")
        } _: { scene in
            _ = try await scene.get("/a", "X-User: alice")
            try await scene.stored("/a")
            #expect(try await scene.get("/a")["Set-Cookie"] == "sid=alice")
            try scene.home.configure(
                settings.replacingOccurrences(of: "cookie: true", with: "cookie: false"))
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration reloaded")
            let answer = try await scene.get("/a")
            #expect(answer["Set-Cookie"] == "sid=anybody")
            #expect(answer["Cache-Status"]?.hasSuffix("; detail=sets-cookie") == true)
        }
    }

    @Test("A cache that is shared from now on keeps to itself what credentials led to before")
    func sharedAfterRestart() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let settings = "sessions: {default: {cache: {memory: 0 B, shared: "
            try home.configure(settings + "false}}}")
            let origin = try await ScriptedOrigin.answering {
                response(body: $0["Authorization"] ?? "anybody")
            }
            let first = try await home.serve()
            for path in ["/alice", "/anybody"] {
                let fields = path == "/alice" ? ["Authorization: Bearer alice"] : []
                let miss = try await first.send("GET", origin.url(path), fields)
                let fromStore = ["Cache-Control: only-if-cached"]
                for _ in 0..<500 {
                    let hit = try await first.send("GET", origin.url(path), fromStore)
                    guard hit.status == 200 else { continue }
                    #expect(hit.text == miss.text)
                    break
                }
            }
            #expect(try await first.stop().status == 0)
            try home.configure(settings + "true}}}")
            let second = try await home.serve()
            #expect(try await second.get(origin.url("/alice")).text == "anybody")
            let hit = try await second.get(origin.url("/anybody"))
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit") == true)
            #expect(try await second.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("A 404 that says nothing is kept for as long as the settings say")
    func negative() async throws {
        let settings = "sessions: {default: {freshness: {negative: {404: 1 min}}}}"
        try await Scene.play(settings) { _ in
            response("404 Not Found", body: "none", cache: nil)
        } _: { scene in
            let miss = try await scene.get("/gone")
            #expect(
                miss.cacheStatus
                    == "larder; fwd=uri-miss; fwd-status=404; ttl; stored; detail=negative-lifetime"
            )
            let hit = try await scene.getStored("/gone")
            #expect(hit.status == 404)
            #expect(hit.text == "none")
            #expect(hit["Cache-Status"]?.hasSuffix("; detail=negative-lifetime") == true)
            #expect(scene.origin.count == 1)
        }
    }

    @Test("What a rule says is never stored leaves nothing behind")
    func never() async throws {
        let settings = "cache-rules: [{paths: '/secret/*', store: never}]"
        try await Scene.play(settings) { _ in
            response(body: "x")
        } _: { scene in
            for turn in 1...2 {
                let answer = try await scene.get("/secret/a")
                #expect(answer["Cache-Status"]?.hasSuffix("; detail=rule-stores-nothing") == true)
                #expect(scene.origin.count == turn)
            }
            let list = try await scene.home.cache("list")
            #expect(list.out.isEmpty)
        }
    }

    @Test("An ignored directive is no obstacle, and cookies are left out")
    func ignored() async throws {
        let settings = "cache-rules: [{lifetime: 1 h, ignore: [private, set-cookie, reload]}]"
        try await Scene.play(settings) { _ in
            response("200 OK", "Set-Cookie: a=b", body: "x", cache: "private")
        } _: { scene in
            let miss = try await scene.get("/a")
            #expect(miss["Set-Cookie"] == "a=b")
            let hit = try await scene.getStored("/a")
            #expect(!hit.has("Set-Cookie"))
            let reloaded = try await scene.get("/a", "Cache-Control: no-cache")
            #expect(reloaded["Cache-Status"]?.hasSuffix("; detail=rule-ignored") == true)
            #expect(scene.origin.count == 1)
        }
    }

    @Test("A preset beside the configuration counts, and cache list reckons by it")
    func preset() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("presets: [local]")
            let unknown = try await home.run("config", "check", home.configuration)
            #expect(unknown.status == 78)
            #expect(unknown.errText.contains(":2:11: presets: there is no preset \"local\""))
            try FileManager.default.createDirectory(
                atPath: "\(home.path)/presets", withIntermediateDirectories: true)
            try home.write(
                "cache-rules:\n  - { paths: ['*.deb'], minimum: 365 d }\n", to: "presets/local.yaml"
            )
            let origin = try await ScriptedOrigin.answering { _ in
                response("200 OK", "ETag: \"a\"", body: "deb", cache: "max-age=0")
            }
            let proxy = try await home.serve()
            _ = try await proxy.get(origin.url("/a.deb"))
            let hit = try await proxy.getStored(origin.url("/a.deb"))
            #expect(hit.text == "deb")
            #expect(origin.count == 1)
            let list = try await home.cache("list")
            let row = try #require(list.outText.split(separator: "\n").last)
            let freshFor = try #require(Int(row.split(separator: " ")[5]), "\(list.outText)")
            #expect((364 * 86_400...365 * 86_400).contains(freshFor))
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("The presets of the source tree are found by a build in it; a slip is named")
    func shipped() async throws {
        let home = try Home()
        try home.configure("presets: [debian, pypi, npm, crates, go, oci]")
        let good = try await home.run("config", "check", home.configuration)
        #expect(good.status == 0, "\(good.errText)")
        try home.configure("presets: [debain]")
        let slip = try await home.run("serve", "--config", home.configuration)
        #expect(slip.status == 78)
        #expect(slip.errText.contains("there is no preset \"debain\"; did you mean \"debian\"?"))
    }
}
