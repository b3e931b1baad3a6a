import Foundation
import Testing

@testable import LarderProcess

@Suite("Tunnels and upgrades (RFC 9110 §9.3.6, §7.8)", .timeLimit(.minutes(10)))
struct TunnelTests {
    /// A proxy that lets tunnels go anywhere but to port 25, and an origin that says what it does.
    private func play(
        _ script: @escaping ScriptedOrigin.Script, _ body: (Scene) async throws -> Void
    ) async throws {
        try await Scene.scripted("connect-ports: [1024-65535]", script: script, body)
    }

    private func open(_ scene: Scene, ahead: String = "") async throws -> Wire {
        let client = try await scene.proxy.connect()
        let authority = scene.origin.authority
        try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n\(ahead)")
        let head = try await client.head()
        #expect(head.status == 200)
        #expect(!head.has("Content-Length") && !head.has("Transfer-Encoding"))
        return client
    }

    @Test("Bytes go through as they are, both ways, those sent ahead included")
    func echo() async throws {
        try await self.play { connection in
            let wire = connection.wire
            while !wire.seen.value.isOver {
                try await wire.seen.wait(for: "bytes") { !$0.bytes.isEmpty || $0.isOver }
                let count = wire.seen.value.bytes.count
                try await wire.send(try await wire.read(count))
            }
        } _: { scene in
            let client = try await self.open(scene, ahead: "early\u{0}\r\n")
            let early = try await client.read(8)
            #expect(early == Array("early\u{0}\r\n".utf8))
            let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await client.send(large)
            let back = try await client.read(large.count)
            #expect(back == large)
        }
    }

    @Test("The client's end reaches the origin, which may still speak")
    func halfCloseByClient() async throws {
        try await self.play { connection in
            let all = try await connection.wire.readAll()
            try await connection.send("got \(all.count)")
        } _: { scene in
            let client = try await self.open(scene)
            try await client.send("12345")
            try await client.endOutput()
            let answer = try await client.readAll()
            #expect(answer == Array("got 5".utf8))
        }
    }

    @Test("The origin's end reaches the client, which may still speak")
    func halfCloseByOrigin() async throws {
        let heard = Event("")
        try await self.play { connection in
            try await connection.send("bye")
            try await connection.wire.endOutput()
            let all = try await connection.wire.readAll()
            heard.change { $0 = String(decoding: all, as: UTF8.self) }
        } _: { scene in
            let client = try await self.open(scene)
            let bye = try await client.readAll()
            #expect(bye == Array("bye".utf8))
            try await client.send("one more thing")
            try await client.endOutput()
            try await heard.wait(for: "the origin to hear it") { !$0.isEmpty }
            #expect(heard.value == "one more thing")
        }
    }

    @Test("A reset on one side ends the other")
    func reset() async throws {
        let ended = Event(false)
        try await self.play { connection in
            try await connection.send("x")
            _ = try await connection.wire.readAll()
            ended.change { $0 = true }
        } _: { scene in
            let client = try await self.open(scene)
            _ = try await client.read(1)
            try await client.reset()
            try await ended.wait(for: "the origin's end") { $0 }
        }
    }

    @Test(
        "Only allowed ports, and only what listens",
        arguments: [
            ("connect-ports: [443]", false, 403, "http_request_denied"),
            ("connect-ports: [1]", true, 502, "connection_refused"),
            (
                "connect-ports: [1024-65535]\naccess: [{action: deny, methods: [CONNECT]}]", false,
                403, "http_request_denied"
            ),
        ] as [(String, Bool, Int, String)])
    func refused(_ settings: String, _ isGone: Bool, _ status: Int, _ error: String) async throws {
        try await Scene.play(settings) { _ in
            ""
        } _: { scene in
            let client = try await scene.proxy.connect()
            // Nobody is given port 1, as one that was closed may be given to another test.
            let authority = isGone ? "127.0.0.1:1" : scene.origin.authority
            try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let answer = try await client.message(to: "CONNECT")
            #expect(answer.status == status)
            #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=\(error);") == true)
            #expect(scene.origin.connections.value == 0)
        }
    }

    @Test("A tunnel into the proxy itself is refused as the loop that it is")
    func loop() async throws {
        try await self.play({ _ in }) { scene in
            let client = try await scene.proxy.connect()
            let own = "127.0.0.1:\(scene.proxy.port)"
            try await client.send("CONNECT \(own) HTTP/1.1\r\nHost: \(own)\r\n\r\n")
            let answer = try await client.message(to: "CONNECT")
            #expect(answer.status == 508)
        }
    }

    /// The handshake of RFC 6455 §1.3.
    private static let handshake = [
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]

    @Test("A WebSocket handshake is relayed, and then bytes, those sent ahead included")
    func webSocket() async throws {
        try await Scene.scripted { connection in
            let head = try await connection.requestHead()
            guard head["Upgrade"] == "websocket", head["Connection"]?.lowercased() == "upgrade",
                head["Sec-WebSocket-Key"] == "dGhlIHNhbXBsZSBub25jZQ=="
            else {
                return try await connection.send("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
            }
            // The first frame comes in one piece with the answer.
            try await connection.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello")
            let frame = try await connection.wire.read(4)
            try await connection.wire.send(frame)
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/chat", Self.handshake))
            let head = try await client.head()
            #expect(head.status == 101)
            #expect(head["Upgrade"] == "websocket")
            #expect(head["Connection"]?.lowercased() == "upgrade")
            #expect(head["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            let first = try await client.read(5)
            #expect(first == Array("hello".utf8))
            try await client.send([0x81, 2, 0x68, 0x69])
            let echo = try await client.read(4)
            #expect(echo == [0x81, 2, 0x68, 0x69])
            let rest = try await client.readAll()
            #expect(rest.isEmpty)
        }
    }

    /// What the client has sent since may be of the other protocol: no request may follow.
    @Test("An origin that does not switch answers, and the connection ends with that")
    func notSwitched() async throws {
        try await Scene.play {
            response(body: $0.target, cache: nil)
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/chat", Self.handshake))
            let answer = try await client.message(to: "GET")
            #expect(answer.status == 200)
            #expect(answer.text == "/chat")
            #expect(answer["Connection"] == "close")
            let rest = try await client.readAll()
            #expect(rest.isEmpty)
        }
    }

    @Test("A request with Upgrade that has something to say to the cache does not go past it")
    func notPastTheCache() async throws {
        let refusing =
            "injections: [{hosts: [127.0.0.1], paths: [/none], credential: absent, "
            + "insecure: true}]"
        try await Scene.play(refusing) {
            response(body: $0.target, cache: $0.method == "DELETE" ? nil : "max-age=600")
        } _: { scene in
            _ = try await scene.get("/a")
            try await scene.stored("/a")
            let deleted = try await scene.send("DELETE", "/a", Self.handshake)
            #expect(deleted.status == 200)
            let asked = scene.origin.count
            #expect(asked == 2)
            let again = try await scene.get("/a")
            #expect(again.status == 200)
            #expect(scene.origin.count == 3, "RFC 9111 §4.4")
            let cached = try await scene.send(
                "GET", "/b", Self.handshake + ["Cache-Control: only-if-cached"])
            #expect(cached.status == 504)
            let naked = try await scene.send("GET", "/none", Self.handshake)
            #expect(naked.status >= 500)
            #expect(scene.origin.count == 3)
        }
    }
}
