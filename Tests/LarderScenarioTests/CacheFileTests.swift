import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("The cache's file under a running proxy", .timeLimit(.minutes(10)))
struct CacheFileTests {
    private static let body = String(repeating: "x", count: 200_000)

    /// Plays with a proxy that keeps nothing in memory, and has stored `/0` to `/9`.
    private func play(
        settings: String = "memory: 0 B",
        _ body: (Home, ScriptedOrigin, ProxyProcess) async throws -> Void
    ) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("sessions: {default: {cache: {\(settings)}}}")
            let origin = try await ScriptedOrigin.answering { request in
                response(body: request.target + Self.body)
            }
            let proxy = try await home.serve()
            for i in 0..<10 { _ = try await proxy.get(origin.url("/\(i)")) }
            _ = try await proxy.getStored(origin.url("/9"))
            do {
                try await body(home, origin, proxy)
            } catch {
                Issue.record("\(error); the proxy said: \(proxy.log)")
            }
            if proxy.program.output.value.status == nil {
                let end = try await proxy.stop()
                #expect(end.status == 0, "\(end.errText)")
            }
            await origin.stop()
        }
    }

    private func size(_ home: Home) throws -> UInt64 {
        let facts = try FileManager.default.attributesOfItem(atPath: home.cache + "/cache.mdb")
        return try #require(facts[.size] as? UInt64)
    }

    private func expectStored(
        _ path: String, _ proxy: ProxyProcess, _ origin: ScriptedOrigin
    ) async throws {
        let answer = try await proxy.getStored(origin.url(path))
        #expect(answer.text == path + Self.body)
    }

    @Test(
        "larder cache compact makes it small, and loses nothing, with a proxy or without",
        arguments: [true, false])
    func compact(isRunning: Bool) async throws {
        try await self.play { home, origin, proxy in
            for i in 1..<9 { _ = try await home.cache("purge", origin.url("/\(i)")) }
            let before = try self.size(home)
            if !isRunning { #expect(try await proxy.stop().status == 0) }
            let output = try await home.cache("compact")
            #expect(output.status == 0, "\(output.errText)")
            #expect(output.lines.count == 1)
            #expect(output.errText.isEmpty)
            let line = /[0-9.]+ MiB before, [0-9.]+ [KM]iB after\n/
            #expect(output.outText.wholeMatch(of: line) != nil, "\(output.outText)")
            #expect(try self.size(home) < before / 2)
            let server = isRunning ? proxy : try await home.serve()
            for path in ["/0", "/9"] {
                let kept = try await server.send(
                    "GET", origin.url(path), ["Cache-Control: only-if-cached"])
                #expect(kept.text == path + Self.body)
            }
            _ = try await server.get(origin.url("/new"))
            try await self.expectStored("/new", server, origin)
            if !isRunning { #expect(try await server.stop().status == 0) }
        }
    }

    @Test("larder cache compact says how much room is missing, and changes nothing")
    func noRoom() async throws {
        let place = try Home()
        let path = place.path + "/disk"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard geteuid() == 0,
            try await Program(
                "/bin/mount", ["-t", "tmpfs", "-o", "size=4m", "larder-test", path],
                environment: [:]
            ).ended().status == 0
        else {
            return withKnownIssue("not permitted to mount a small disk", isIntermittent: true) {}
        }
        let settings = "memory: 0 B, directory: '\(path)/cache'"
        try await self.play(settings: settings) { home, origin, proxy in
            let output = try await home.cache("compact")
            #expect(output.status == 73)
            #expect(output.out.isEmpty)
            #expect(output.errText.contains("the copy takes 2"), "\(output.errText)")
            #expect(output.errText.contains(" more, or lower the cache's capacity"))
            let kept = try await proxy.send(
                "GET", origin.url("/0"), ["Cache-Control: only-if-cached"])
            #expect(kept.text == "/0" + Self.body)
        }
        try await Program("/bin/umount", ["-l", path], environment: [:]).ended()
    }

    @Test("larder cache compact of nothing says so, as the other verbs do")
    func nothing() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let output = try await home.cache("compact")
            #expect(output.status == 1)
            #expect(output.errText == "larder: the session default has nothing on disk\n")
            let unknown = try await home.cache("compact", "--session", "nowhere")
            #expect(unknown.status == 64)
        }
    }

    @Test("Deleted, it is made anew: clients see nothing of it, and storing goes on")
    func deleted() async throws {
        try await self.play { home, origin, proxy in
            try FileManager.default.removeItem(atPath: home.cache + "/cache.mdb")
            for i in 20..<30 {
                let answer = try await proxy.get(origin.url("/\(i)"))
                #expect(answer.text == "/\(i)" + Self.body)
            }
            try await proxy.program.said("cache file lost, a new one made")
            _ = try await proxy.get(origin.url("/after"))
            try await self.expectStored("/after", proxy, origin)
            let end = try await proxy.stop()
            #expect(end.status == 0)
            #expect(end.errText.components(separatedBy: "cache file lost").count == 2)
            let again = try await home.serve()
            try await self.expectStored("/after", again, origin)
            _ = try await again.stop()
        }
    }

    @Test("Ruined in its root page, it is set aside by name: no client gets a wrong byte")
    func ruined() async throws {
        try await self.play { home, origin, proxy in
            let file = home.cache + "/cache.mdb"
            let data = try Data(contentsOf: URL(fileURLWithPath: file)).prefix(8192)
            func number(_ offset: Int) -> Int {
                (0..<8).reversed().reduce(0) { $0 << 8 | Int(data[offset + $1]) }
            }
            let root = number(144) > number(4096 + 144) ? number(128) : number(4096 + 128)
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: file))
            try handle.seek(toOffset: UInt64(root * 4096))
            try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
            try handle.close()
            for i in 0..<30 {
                let answer = try await proxy.get(origin.url("/\(i)"))
                #expect(answer.status == 200)
                #expect(answer.text == "/\(i)" + Self.body)
            }
            try await proxy.program.said("cache file set aside, a new one made")
            _ = try await proxy.get(origin.url("/after"))
            try await self.expectStored("/after", proxy, origin)
            let names = try FileManager.default.contentsOfDirectory(atPath: home.cache)
            let aside = names.filter { $0.hasPrefix("cache.mdb.damaged-") }
            #expect(aside.count == 1)
            #expect(proxy.log.contains(aside.first ?? "?"))
        }
    }

    @Test("Ruined from its beginning, its figures are those that the running proxy knows")
    func figures() async throws {
        try await self.play { home, _, _ in
            let handle = try FileHandle(
                forUpdating: URL(fileURLWithPath: home.cache + "/cache.mdb"))
            try handle.write(contentsOf: Data(repeating: 0xA5, count: 8192))
            try handle.close()
            let stats = try await home.start(
                ["cache", "stats", "--config", home.configuration]
            ).ended()
            #expect(stats.status == 0)
            #expect(stats.outText.contains("requests"))
            #expect(stats.errText.contains("damaged"))
        }
    }

    @Test("Starts that fail for another reason leave a sound cache alone")
    func failedStarts() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(
                "sessions: {default: {cache: {memory: 0 B}, cookies: {mode: jar}}}")
            let origin = try await ScriptedOrigin.answering { request in
                request.target == "/set"
                    ? response(
                        "200 OK", "Set-Cookie: a=b; Max-Age=1000", body: "x", cache: "no-store")
                    : response(body: "kept")
            }
            var proxy = try await home.serve()
            _ = try await proxy.get(origin.url("/set"))
            _ = try await proxy.getStored(origin.url("/kept"))
            #expect(try await proxy.stop().status == 0)
            let key = home.path + "/state/larder/default.key"
            try FileManager.default.moveItem(atPath: key, toPath: home.path + "/aside.key")
            for _ in 0..<10 {
                let end = try await home.run("serve", "--config", home.configuration)
                #expect(end.status == 78, "\(end.errText)")
                #expect(!end.errText.contains("set aside"))
                // An end behind which it does not say so counts as one by a damaged file.
                let lock = try String(contentsOfFile: home.cache + "/cache.lock", encoding: .utf8)
                #expect(lock.contains("\nclosed\n"))
            }
            try FileManager.default.moveItem(atPath: home.path + "/aside.key", toPath: key)
            proxy = try await home.serve()
            let answer = try await proxy.get(origin.url("/kept"))
            #expect(answer["Cache-Status"]?.hasPrefix("larder; hit") == true)
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }
}
