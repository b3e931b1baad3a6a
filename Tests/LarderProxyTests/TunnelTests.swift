import LarderHTTP
import LarderSession
import NIOCore
import Testing

@testable import LarderProxy

@Suite("Tunnels and upgrades (RFC 9110 §9.3.6, §7.8)")
struct TunnelTests {
    static func run(
        access: any AccessPolicy = LocalClients(),
        configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: (Fixture, RawOrigin, Peer) async throws -> Void
    ) async throws {
        let origin = try await RawOrigin.start()
        try await Fixture.run(
            access: access,
            configure: {
                $0.connectPorts = [UInt16(origin.port)]
                configure(&$0)
            }
        ) { proxy in
            try await body(proxy, origin, try await proxy.connect())
        }
        try await origin.stop()
    }

    static func connect(_ origin: RawOrigin, _ host: String = "127.0.0.1") -> String {
        "CONNECT \(host):\(origin.port) HTTP/1.1\r\nHost: \(host):\(origin.port)\r\n\r\n"
    }

    @Test("carries bytes both ways, those sent ahead too, and each end by itself")
    func tunnel() async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.connect(origin) + "ahead")
            let far = try await origin.accepted()
            try await client.received("HTTP/1.1 200 Connection established\r\n")
            try await far.received("ahead")
            try await far.send("back")
            try await client.received("\r\n\r\nback")
            try await client.endOutput()
            #expect(try await far.receivedAll() == "ahead")
            try await far.send("still")
            try await client.received("still")
            #expect(proxy.server.statistics().tunnelsOpen == 1)
            try await far.endOutput()
            try await client.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            let entry = try await proxy.log.entry()
            #expect(entry.isTunnel)
            #expect(entry.method == "CONNECT")
            #expect(entry.uri == "127.0.0.1:\(origin.port)")
            #expect(entry.origin == NextHop(address: "127.0.0.1:\(origin.port)"))
            #expect((entry.requestBodyBytes, entry.responseBodyBytes) == (5, 9))
            #expect(entry.failure == nil)
        }
    }

    @Test("ends for one side what the other has ended first")
    func originEndsFirst() async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.connect(origin, "localhost"))
            try await client.received("200 ")
            let far = try await origin.accepted()
            try await far.send("bye")
            try await far.endOutput()
            #expect(try await client.receivedAll().hasSuffix("\r\n\r\nbye"))
            try await client.send("late")
            try await far.received("late")
            try await client.endOutput()
            try await far.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
        }
    }

    @Test("is lost for both when one connection is reset", arguments: [true, false])
    func reset(byClient: Bool) async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.connect(origin))
            try await client.received("200 ")
            let far = try await origin.accepted()
            let (one, other) = byClient ? (client, far) : (far, client)
            try await one.reset()
            try await other.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            try await proxy.log.entry()
        }
    }

    enum End: String, Sendable, CaseIterable {
        case orderly, clientCloses, originCloses, clientResets, originResets, idle, upgraded
    }

    private struct Left {
        weak var connection: ClientConnection?
        weak var tunnel: Tunnel?
    }

    @Test("leaves nothing behind", arguments: End.allCases)
    func released(_ end: End) async throws {
        let idle = Duration.milliseconds(end == .idle ? 50 : 600_000)
        try await DialTests.run(
            HeldNames(), configure: { $0.tunnelIdleTimeout = idle }
        ) { proxy, origin in
            let client = try await proxy.connect()
            try await client.send(end == .upgraded ? Self.upgrade(origin) : Self.connect(origin))
            let far = try await origin.accepted()
            if end == .upgraded {
                try await far.received("\r\n\r\n")
                try await far.send(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        + "Connection: Upgrade\r\n\r\n")
            }
            try await client.received("\r\n\r\n")
            let loop = proxy.server.loops[0]
            let left = try await loop.eventLoop.submit {
                let connection = loop.value.connections.values.first
                return NIOLoopBound(
                    Left(connection: connection, tunnel: connection?.tunnel),
                    eventLoop: loop.eventLoop)
            }.get()
            switch end {
            case .orderly: try await client.endOutput()
            case .clientCloses, .upgraded: try await client.close()
            case .originCloses: try await far.close()
            case .clientResets: try await client.reset()
            case .originResets: try await far.reset()
            case .idle: break
            }
            let isOrigins = end == .originCloses || end == .originResets
            let (other, own) = isOrigins ? (client, far) : (far, client)
            try await other.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            try? await other.close()
            try await own.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            try await proxy.log.entry()
            try? await own.close()
            // The script's own notes name their clients, and thereby the connection.
            proxy.session.exchanges.change { $0 = [] }
            // A few turns are what its channels take to close.
            var isLetGo = false
            for _ in 0..<10_000 where !isLetGo {
                isLetGo = try await loop.eventLoop.submit {
                    left.value.connection == nil && left.value.tunnel == nil
                }.get()
            }
            #expect(isLetGo)
        }
    }

    @Test("takes no more from one side than the other accepts")
    func backPressure() async throws {
        try await Self.run(configure: { $0.tunnelIdleTimeout = .seconds(10) }) {
            proxy, origin, _ in
            let total = 64 << 20
            let much = ByteBuffer(repeating: 120, count: total)
            let client = try await proxy.connect(reads: false)
            try await client.send(Self.connect(origin))
            let far = try await origin.accepted()
            try far.push(much)
            // Nothing moves any more, so the tunnel counts as idle in the end: not before it begins on a
            // busy machine.
            let entry = try await proxy.log.entry()
            #expect(entry.responseBodyBytes > 0)
            #expect(entry.responseBodyBytes < UInt64(total) / 2)
            #expect(entry.failure == "the tunnel was idle")
            try await client.close()
        }
    }

    @Test(
        "that cannot be had is refused with its reason, and what came ahead is no request (RFC 9931)",
        arguments: [
            // Nobody is given this port, as one that was closed may be given to another test.
            ("127.0.0.1:1", "502 Bad Gateway", "error=connection_refused"),
            ("127.0.0.1:2", "403 Forbidden", "error=http_request_denied"),
        ])
    func refused(_ authority: String, _ status: String, _ error: String) async throws {
        try await Self.run(configure: { configuration in
            configuration.connectPorts?.insert(1)
            // Longer than a busy machine takes to send what comes late.
            configuration.lingerTimeout = .seconds(120)
        }) { proxy, origin, client in
            try await client.send(
                "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
                    + post("Content-Length: 2\r\n", "hi", path: "/ahead"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 \(status)\r\n"))
            #expect(all.contains(error))
            #expect(all.contains("\r\nConnection: close\r\n"))
            // Input is still taken, so that no reset destroys the answer on its way.
            try await client.send(get("/late"))
            try await client.endOutput()
            try await client.seen.wait(for: "the end") { $0.closed }
            #expect(client.seen.value.error == nil)
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    /// Refuses all ports of tunnels, as a configuration does by its own list.
    private final class NoPorts: AccessPolicy {
        func judge(_ query: AccessQuery) -> AccessVerdict {
            .denied(rule: AccessVerdict.connectPorts)
        }
    }

    @Test("to a port that is not allowed is told so, and not that the access rules forbid it")
    func port() async throws {
        try await Self.run(access: NoPorts(), configure: { $0.connectPorts = nil }) {
            _, _, client in
            try await client.send(
                "CONNECT h.example:8443 HTTP/1.1\r\nHost: h.example:8443\r\n\r\n")
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
            #expect(all.contains("no tunnels to port 8443: see connect-ports"))
            #expect(!all.contains("access rules"))
        }
    }

    @Test("is judged by the address that a name led to, with the name")
    func judgedByAddress() async throws {
        let access = ScriptedAccess { $0.host == "localhost" && $0.address?.isLoopback == true }
        try await Self.run(access: access) { proxy, origin, client in
            try await client.send(Self.connect(origin, "localhost"))
            try await client.received("HTTP/1.1 403 Forbidden")
        }
    }

    @Test("to the proxy itself is a loop")
    func loop() async throws {
        try await Fixture.run { proxy in
            let client = try await proxy.connect()
            try await client.send(
                "CONNECT 127.0.0.1:\(proxy.port) HTTP/1.1\r\nHost: 127.0.0.1:\(proxy.port)\r\n\r\n"
                    + get("/ahead"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 508 Loop Detected"))
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test("is given up when its client leaves first")
    func clientLeaves() async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.connect(origin))
            try await client.reset()
            try await proxy.log.entry()
        }
    }

    // MARK: Upgrades

    static func upgrade(_ origin: RawOrigin) -> String {
        "GET http://127.0.0.1:\(origin.port)/chat HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
            + "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n"
    }

    @Test("an origin that switches is joined with its client")
    func switching() async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.upgrade(origin))
            let far = try await origin.accepted()
            let request = try await far.received("\r\n\r\n")
            #expect(
                request == "GET /chat HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                    + "Sec-WebSocket-Key: k\r\nVia: 1.1 pantry\r\nConnection: upgrade\r\n"
                    + "Upgrade: websocket\r\n\r\n")
            try await far.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: a\r\n\r\nfirst")
            let answer = try await client.received("first")
            #expect(
                answer == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n"
                    + "Sec-WebSocket-Accept: a\r\nVia: 1.1 pantry\r\nConnection: upgrade\r\n\r\nfirst"
            )
            try await client.send("frame")
            try await far.received("frame")
            try await client.close()
            try await far.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
            try await far.close()
            let entry = try await proxy.log.entry()
            #expect(entry.status == StatusCode(101))
            #expect(proxy.session.exchanges.value.isEmpty)
        }
    }

    @Test(
        "an origin that does not switch has its answer relayed",
        arguments: [
            (
                "Content-Length: 2\r\n\r\nno and more",
                "Content-Length: 2\r\nConnection: close\r\n\r\nno"
            ),
            (
                "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
                "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nno\r\n0\r\n\r\n"
            ),
            (
                "\r\nno",
                "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nno\r\n0\r\n\r\n"
            ),
        ])
    func refusing(_ answer: String, _ relayed: String) async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            try await far.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
            try await far.send("HTTP/1.1 426 Upgrade Required\r\nKeep-Alive: 3\r\n\(answer)")
            try await far.endOutput()
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 103 Early Hints\r\nLink: x\r\n"))
            #expect(
                all.contains(
                    "HTTP/1.1 426 Upgrade Required\r\n"
                        + "Cache-Status: larder; fwd=bypass; fwd-status=426; detail=upgrade\r\nDate: "
                ))
            #expect(all.hasSuffix(relayed))
        }
    }

    @Test(
        "an origin that breaks its word is a bad gateway",
        arguments: [
            ("", "connection_terminated"), ("SSH-2.0\r\n\r\n", "http_protocol_error"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "http_protocol_error"),
            // Neither its framing nor its 101 would be what those of HTTP/1.1 are.
            (
                "HTTP/2 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n0\r\n\r\n", "http_protocol_error"
            ),
            ("HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n", "http_protocol_error"),
            (
                "HTTP/2.0 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
                "http_protocol_error"
            ),
            (
                "HTTP/1.0 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
                "http_protocol_error"
            ),
            // RFC 9110 §7.8: it names what it switches to, and that was offered.
            ("HTTP/1.1 101 S\r\n\r\n", "http_protocol_error"),
            ("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n", "http_protocol_error"),
            (
                "HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
                "http_protocol_error"
            ),
            (
                "HTTP/1.1 101 S\r\nUpgrade: websocket, h2c\r\nConnection: upgrade\r\n\r\n",
                "http_protocol_error"
            ),
            // RFC 9110 §10.1.4: no TE was sent.
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nabc", "http_protocol_error"),
        ])
    func failing(_ answer: String, _ error: String) async throws {
        try await Self.run { proxy, origin, client in
            try await client.send(Self.upgrade(origin))
            let far = try await origin.accepted()
            try await far.received("\r\n\r\n")
            try await far.send(answer)
            try await far.endOutput()
            let all = try await client.received("error=\(error)")
            #expect(all.hasPrefix("HTTP/1.1 502 "))
        }
    }

    @Test("an origin that does not answer an upgrade is a gateway timeout")
    func silent() async throws {
        try await Self.run(configure: { $0.upgradeTimeout = .milliseconds(50) }) {
            proxy, origin, client in
            try await client.send(Self.upgrade(origin))
            try await client.received("HTTP/1.1 504 ")
        }
    }
}
