import Foundation
import Testing

@testable import LarderProcess

@Suite("A stored response through a whole proxy (RFC 9111 §4)", .timeLimit(.minutes(10)))
struct CachingTests {
    @Test("A miss, then hits, and the origin is asked once")
    func missThenHit() async throws {
        try await Scene.play { _ in
            response("200 OK", "Content-Type: text/plain", "ETag: \"a\"", body: "hello")
        } _: { scene in
            let miss = try await scene.get("/file")
            #expect(miss.status == 200)
            #expect(miss.text == "hello")
            #expect(
                miss.cacheStatus
                    == "larder; fwd=uri-miss; fwd-status=200; ttl; stored; detail=nothing-stored")
            #expect(miss["Via"]?.hasPrefix("1.1 ") == true)
            try await scene.stored("/file")
            let hit = try await scene.get("/file")
            #expect(hit.text == "hello")
            #expect(hit["ETag"] == "\"a\"")
            #expect(hit["Content-Length"] == "5")
            let age = try #require(hit["Age"].flatMap { Int($0) })
            #expect((0...20).contains(age))
            // Whole seconds of both: what is left of the second counts in neither.
            let words = [600 - age, 599 - age].map { "larder; hit; ttl=\($0)" }
            #expect(words.contains(hit["Cache-Status"] ?? ""))
            #expect(hit["Date"] == miss["Date"])
            #expect(scene.origin.count == 1)
        }
    }

    @Test("Whoever asks again as soon as the answer is there causes no second request")
    func atOnce() async throws {
        try await Scene.play {
            response(body: $0.target)
        } _: { scene in
            let client = try await scene.proxy.connect()
            for i in 0..<100 {
                for turn in 0..<2 {
                    try await client.send(scene.request("GET", "/\(i)"))
                    let answer = try await client.message(to: "GET")
                    #expect(answer.text == "/\(i)")
                    // The last bytes may be here a moment before the proxy knows them for the last.
                    let status = answer["Cache-Status"] ?? ""
                    let isReused = status.contains("; hit;") || status.hasSuffix("; collapsed")
                    #expect(isReused == (turn == 1), "\(i): \(status)")
                }
            }
            #expect(scene.origin.count == 100)
        }
    }

    @Test(
        "It is still a hit after a restart, from memory and disk or from the disk alone",
        arguments: [
            "", "sessions: {default: {cache: {memory: 0 B}}}",
        ])
    func restart(_ settings: String) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure(settings)
            let origin = try await ScriptedOrigin.answering { _ in response(body: "kept") }
            let first = try await home.serve()
            let miss = try await first.get(origin.url("/a"))
            #expect(miss.text == "kept")
            #expect(try await first.stop().status == 0)
            let second = try await home.serve()
            let hit = try await second.get(origin.url("/a"))
            #expect(hit.text == "kept")
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit; ttl=") == true)
            #expect(try await second.stop().status == 0)
            #expect(origin.count == 1)
            await origin.stop()
        }
    }

    @Test("What was on the disk is a hit after the proxy was killed")
    func crash() async throws {
        try await Scene.inTurn {
            let home = try Home()
            // Without a memory tier a hit comes from the disk: then it was committed.
            try home.configure("sessions: {default: {cache: {memory: 0 B}}}")
            let body = String(repeating: "0123456789abcdef", count: 20_000)
            let origin = try await ScriptedOrigin.answering { _ in response(body: body) }
            let first = try await home.serve()
            #expect(try await first.get(origin.url("/a")).text == body)
            #expect(try await first.getStored(origin.url("/a")).text == body)
            try await first.crash()
            let second = try await home.serve()
            let hit = try await second.get(origin.url("/a"))
            #expect(hit.text == body)
            #expect(hit["Cache-Status"]?.hasPrefix("larder; hit; ttl=") == true)
            #expect(!second.log.contains("warning"))
            #expect(try await second.stop().status == 0)
            #expect(origin.count == 1)
            await origin.stop()
        }
    }

    @Test("Twenty clients of one slow response make one request")
    func collapsed() async throws {
        let isOpen = Event(false)
        let body = String(repeating: "x", count: 100_000)
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 200000\r\n\r\n\(body)"
            )
            try await isOpen.wait(for: "the barrier") { $0 }
            try await connection.send(body)
        } _: { scene in
            var clients: [Wire] = []
            for _ in 0..<20 {
                let client = try await scene.proxy.connect()
                try await client.send(scene.request("GET", "/slow"))
                clients.append(client)
            }
            var forwards: [String: Int] = [:]
            for client in clients {
                let head = try await client.head()
                forwards[head.cacheStatus, default: 0] += 1
                try await client.count(to: 50_000)
            }
            // One leaves by the front door, one by the window.
            try await clients[3].close()
            try await clients[0].reset()
            isOpen.change { $0 = true }
            for (index, client) in clients.enumerated() where index != 3 && index != 0 {
                try await client.count(to: 200_000)
            }
            let missed = "larder; fwd=uri-miss; fwd-status=200; ttl; stored"
            #expect(forwards["\(missed); detail=nothing-stored"] == 1)
            #expect(forwards["\(missed); collapsed; detail=nothing-stored"] == 19)
            #expect(scene.origin.count == 1)
            #expect(try await scene.getStored("/slow").body.count == 200_000)
            #expect(scene.origin.count == 1)
        }
    }

    @Test("The fetch goes on to the end when its only client leaves")
    func finishes() async throws {
        let isOpen = Event(false)
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nabc")
            try await isOpen.wait(for: "the barrier") { $0 }
            try await connection.send("def")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a"))
            _ = try await client.head()
            _ = try await client.read(3)
            try await client.reset()
            isOpen.change { $0 = true }
            #expect(try await scene.getStored("/a").text == "abcdef")
            #expect(scene.origin.count == 1)
        }
    }

    @Test(
        "What may not be stored is not",
        arguments: [
            ("GET", "no-store", ""), ("GET", "private", ""),
            ("GET", "max-age=60", "Authorization: x"),
            ("POST", "max-age=60", ""),
        ] as [(String, String, String)])
    func notStored(_ method: String, _ cache: String, _ field: String) async throws {
        try await Scene.play { _ in
            response(body: "x", cache: cache)
        } _: { scene in
            let fields = field.isEmpty ? [] : [field]
            for turn in 1...2 {
                let body = method == "POST" ? "q" : nil
                let answer = try await scene.send(method, "/a", fields, body: body)
                #expect(answer.text == "x")
                #expect(answer["Cache-Status"]?.contains("stored") == false)
                #expect(answer["Cache-Status"]?.contains("hit") == false)
                #expect(scene.origin.count == turn)
            }
            let list = try await scene.home.cache("list")
            #expect(list.out.isEmpty)
        }
    }
}
