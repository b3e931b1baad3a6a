import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("What an origin may do to a request for another protocol (RFC 9110 §7.8)")
struct UpgradeTests {
    static func run(
        _ session: ScriptedSession = ScriptedSession(),
        configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: (Fixture, RawOrigin) async throws -> Void
    ) async throws {
        let origin = try await RawOrigin.start()
        try await Fixture.run(session, configure: configure) { try await body($0, origin) }
        try await origin.stop()
    }

    @Test("interim responses are few, together no larger than one head (§15.2)")
    func manyInterim() async throws {
        try await Self.run(configure: { $0.headLimits.head = 8_192 }) { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            let hints =
                "HTTP/1.1 103 Early Hints\r\nLink: <\(String(repeating: "x", count: 970))>\r\n\r\n"
            for _ in 0..<20 { try far.push(ByteBuffer(string: hints)) }
            try far.push(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
            let all = try await client.receivedAll()
            #expect(all.matches(of: #/HTTP/1.1 103 E/#).count == 8)
            #expect(all.contains("HTTP/1.1 502 Bad Gateway\r\n"))
            #expect(all.contains("error=http_response_header_section_size"))
            #expect(!all.contains("HTTP/1.1 200 "))
        }
    }

    @Test(
        "fields of the origin's connection stay there, but for the protocols it switches to (§7.6.1)"
    )
    func hopByHop() async throws {
        try await Self.run { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            let hop = "X-Hop: 1\r\nProxy-Authenticate: Basic\r\nX-End: 2\r\n\r\n"
            try await far.send("HTTP/1.1 103 Early Hints\r\nConnection: x-hop\r\n\(hop)")
            try await far.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade, X-Hop\r\n\(hop)first")
            let all = try await client.received("first")
            #expect(
                all == "HTTP/1.1 103 Early Hints\r\nX-End: 2\r\nVia: 1.1 pantry\r\n\r\n"
                    + "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nX-End: 2\r\n"
                    + "Via: 1.1 pantry\r\nConnection: upgrade\r\n\r\nfirst")
            try await client.close()
            try await far.close()
        }
    }

    @Test("trailers that an answer's Connection names stay on the origin's connection (§7.6.1)")
    func namedTrailers() async throws {
        try await Self.run { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            try await far.send(
                "HTTP/1.1 403 Forbidden\r\nConnection: x-t\r\nX-T: 0\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n")
            let all = try await client.receivedAll()
            #expect(all.hasSuffix("\r\n2\r\nno\r\n0\r\nX-U: 2\r\n\r\n"))
            #expect(!all.contains("X-T"))
        }
    }

    @Test(
        "a client is told which protocols an origin demands, and of no others (§15.5.22)",
        arguments: [
            ("426 Upgrade Required", "Upgrade: tls/1.3, x\r\n", "close, upgrade"),
            ("426 Upgrade Required", "", "close"), ("400 Bad Request", "", "close"),
        ])
    func demanded(_ status: String, _ relayed: String, _ connection: String) async throws {
        try await Self.run { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            let offer = status.hasPrefix("426") ? relayed : "Upgrade: x\r\n"
            try await far.send(
                "HTTP/1.1 \(status)\r\n\(offer)Connection: upgrade\r\nDate: today\r\n"
                    + "Content-Length: 2\r\n\r\nno")
            #expect(
                try await client.receivedAll()
                    == "HTTP/1.1 \(status)\r\n\(relayed)Date: today\r\n"
                    + "Cache-Status: larder; fwd=bypass; fwd-status=\(status.prefix(3)); "
                    + "detail=upgrade\r\nVia: 1.1 pantry\r\nContent-Length: 2\r\n"
                    + "Connection: \(connection)\r\n\r\nno")
        }
    }

    @Test("what a client sends ahead for it is no request, if nobody can be asked (RFC 9931)")
    func failedDial() async throws {
        try await Self.run { proxy, _ in
            let client = try await proxy.connect()
            try await client.send(
                "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nUpgrade: x\r\n"
                    + "Connection: upgrade\r\n\r\n" + get("/ahead"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 502 "))
            #expect(all.contains("\r\nConnection: close\r\n"))
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test("content reaches a client whole that takes nothing at first")
    func slowClient() async throws {
        let total = 16 << 20
        try await Self.run { proxy, origin in
            let client = try await proxy.connect(reads: false)
            try await client.send(TunnelTests.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            try await far.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: \(total)\r\n\r\n")
            try far.push(ByteBuffer(repeating: 120, count: total))
            // Whoever is served on all loops meanwhile has had his turn behind it.
            for _ in 0..<2 * proxy.server.loops.count {
                _ = try await proxy.connect().answer(to: get(), until: "hello")
            }
            try await client.resumeReading()
            try await client.seen.wait(for: "all") { $0.bytes.count > total }
            let entry = try await proxy.log.entry(2 * proxy.server.loops.count)
            #expect(entry.responseBodyBytes == UInt64(total))
        }
    }

    @Test("a request that the session must perform is performed, without the upgrade")
    func performed() async throws {
        try await Self.run(ScriptedSession(performsAll: true)) { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.upgrade(origin))
            try await client.received("hello")
            let request = try await proxy.session.exchange().request
            #expect(request.fields == ["Sec-WebSocket-Key": "k", "Via": "1.1 pantry"])
            #expect(origin.connections == 0)
        }
    }
}
