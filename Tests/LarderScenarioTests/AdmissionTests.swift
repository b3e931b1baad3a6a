import Testing

@testable import LarderProcess

@Suite("Admission to the disk, through the whole proxy", .timeLimit(.minutes(10)))
struct AdmissionTests {
    /// Plays with a session of no memory tier, so that only the disk can answer.
    private func play(
        _ cache: String, _ body: (ProxyProcess, ScriptedOrigin, Home) async throws -> Void
    ) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("sessions: {default: {cache: {memory: 0, \(cache)}}}")
            let origin = try await ScriptedOrigin.answering { request in
                response(
                    body: String(
                        repeating: "x", count: request.target.hasPrefix("/large") ? 200_000 : 100))
            }
            let proxy = try await home.serve()
            do {
                try await body(proxy, origin, home)
            } catch {
                Issue.record("\(error); the proxy said: \(proxy.log)")
            }
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("What is asked for once is not stored, and Cache-Status says why; the second time it is")
    func onceSeen() async throws {
        try await self.play("admission: {once-seen: false}") { proxy, origin, _ in
            let first = try await proxy.get(origin.url("/a"))
            #expect(first["Cache-Status"]?.contains("detail=seen-once") == true)
            #expect(first["Cache-Status"]?.contains("stored") == false)
            let second = try await proxy.get(origin.url("/a"))
            #expect(second["Cache-Status"]?.contains("stored") == true)
            #expect(second["Cache-Status"]?.contains("hit") == false)
            let third = try await proxy.getStored(origin.url("/a"))
            #expect(third["Cache-Status"]?.contains("hit") == true)
            #expect(third.text.count == 100)
        }
    }

    @Test("A large body is not stored the first time, a small one is")
    func large() async throws {
        try await self.play("admission: {large-from: 100 KiB}") { proxy, origin, _ in
            let first = try await proxy.get(origin.url("/large"))
            #expect(first["Cache-Status"]?.contains("detail=large-seen-once") == true)
            #expect(first.text.count == 200_000)
            let second = try await proxy.get(origin.url("/large"))
            let told = second["Cache-Status"] ?? ""
            #expect(told.contains("stored"), "\(told)")
            let small = try await proxy.get(origin.url("/small"))
            #expect(small["Cache-Status"]?.contains("stored") == true)
        }
    }

    @Test("That a body is too large to be stored is told by Cache-Status, counters and explain")
    func tooLarge() async throws {
        try await self.play("maximum-object: 100 KiB") { proxy, origin, home in
            for _ in 0..<2 {
                let answer = try await proxy.get(origin.url("/large"))
                #expect(answer["Cache-Status"]?.contains("detail=too-large") == true)
                #expect(answer["Cache-Status"]?.contains("stored") == false)
                #expect(answer.text.count == 200_000)
            }
            let small = try await proxy.get(origin.url("/small"))
            #expect(small["Cache-Status"]?.contains("stored") == true)
            let stats = try await home.cache("stats")
            #expect(stats.outText.contains("too-large 2\n"), "\(stats.outText)")
            #expect(stats.outText.contains("2 refused"), "\(stats.outText)")
            let explained = try await home.larder(
                "explain", origin.url("/large"), "--config", home.configuration)
            #expect(explained.outText.contains("cache.maximum-object"), "\(explained.outText)")
        }
    }
}
