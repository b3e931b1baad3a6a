import LarderHTTP
import LarderSession
import NIOCore
import NIOPosix
import Testing

@testable import LarderProxy

@Suite("Connecting to the origin of a tunnel (RFC 9110 §9.3.6)")
struct DialTests {
    /// Runs `body` with a proxy of one event loop.
    static func run(
        _ names: HeldNames, threads: Int = 64,
        configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: (Fixture, RawOrigin) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let origin = try await RawOrigin.start()
        try await Fixture.run(
            group: group,
            configure: {
                $0.connectPorts = nil
                // Held names take as long as a busy machine lets the test take.
                $0.resolveTimeout = .seconds(60)
                configure(&$0)
            }, resolver: names.resolver(threads: threads)
        ) { try await body($0, origin) }
        names.release(16)
        try await origin.stop()
        try await group.shutdownGracefully()
    }

    @Test("waits for no other name", arguments: ["localhost", "127.0.0.1"])
    func independent(_ host: String) async throws {
        let names = HeldNames()
        // Neither needs a thread.
        try await Self.run(names, threads: 1) { proxy, origin in
            let slow = try await proxy.connect()
            try await slow.send(TunnelTests.connect(origin, "slow.example"))
            try await names.asked.wait(for: "the look-up") { $0 == ["slow.example"] }
            let client = try await proxy.connect()
            try await client.send(TunnelTests.connect(origin, host))
            try await client.received("HTTP/1.1 200 ")
            names.release(1)
            try await slow.received("HTTP/1.1 200 ")
        }
    }

    @Test("ends where a name is not resolved in time, or not at all (RFC 9209 §2.3.1, §2.3.2)")
    func names() async throws {
        try await Self.run(HeldNames(), configure: { $0.resolveTimeout = .milliseconds(20) }) {
            proxy, origin in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.connect(origin, "slow.example"))
            let all = try await client.receivedAll()
            #expect(all.hasPrefix("HTTP/1.1 504 "))
            #expect(all.contains("error=dns_timeout"))
            #expect(all.contains("next-hop=\"slow.example\""))
        }
        for (error, status, kind) in [
            (NameError.notFound, "502", "dns_error"),
            (.exhausted, "503", "connection_limit_reached"),
        ] {
            let names = HeldNames(.failure(error))
            names.release(1)
            try await Self.run(names) { proxy, origin in
                let client = try await proxy.connect()
                try await client.send(TunnelTests.connect(origin, "none.example"))
                let all = try await client.receivedAll()
                #expect(all.hasPrefix("HTTP/1.1 \(status) "))
                #expect(all.contains("error=\(kind)"))
            }
        }
    }

    /// What a client gets for a request, but for the moment of the answer.
    private static func answer(_ proxy: Fixture, to text: String) async throws -> [Substring] {
        let client = try await proxy.connect()
        try await client.send(text)
        try await client.endOutput()
        return try await client.receivedAll().split(separator: "\r\n")
            .filter { !$0.hasPrefix("Date: ") }
    }

    private static func request(_ way: String, port: Int) -> String {
        let authority = "a.example:\(port)"
        guard way == "Upgrade" else {
            return "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
        }
        return "GET http://\(authority)/ HTTP/1.1\r\nHost: \(authority)\r\n"
            + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    }

    /// A resolver that leads every name to these addresses.
    private static func resolver(_ addresses: [String]) -> NameResolver {
        NameResolver { _ in
            Result { try addresses.map { try SocketAddress(ipAddress: $0, port: 0) } }
                .mapError { _ in .notFound }
        }
    }

    @Test(
        "sends nothing to an address that the rules deny, and does not tell who listens there",
        arguments: ["CONNECT", "Upgrade"])
    func denied(_ way: String) async throws {
        let access = ScriptedAccess { $0.address?.isLoopback == true }
        let origin = try await RawOrigin.start()
        try await Fixture.run(
            access: access, configure: { $0.connectPorts = nil },
            resolver: Self.resolver(["127.0.0.1"])
        ) { proxy in
            // Nobody is given port 1.
            let open = try await Self.answer(proxy, to: Self.request(way, port: origin.port))
            let closed = try await Self.answer(proxy, to: Self.request(way, port: 1))
            #expect(open.first == "HTTP/1.1 403 Forbidden")
            #expect(open == closed)
            // Connections are accepted in the order in which they came: this one is the first.
            let own = try await Peer.connect(
                to: .tcp(host: "127.0.0.1", port: UInt16(origin.port)))
            _ = try await origin.accepted()
            #expect(origin.connections == 1)
            try await own.close()
        }
        try await origin.stop()
    }

    @Test("goes to the address of a name that the rules allow, where they deny another")
    func allowedAddress() async throws {
        let denied = try #require(IPAddress("127.0.0.2"))
        let access = ScriptedAccess { $0.address == denied }
        let origin = try await RawOrigin.start()
        try await Fixture.run(
            access: access, configure: { $0.connectPorts = nil },
            resolver: Self.resolver(["127.0.0.2", "127.0.0.1"])
        ) { proxy in
            let client = try await proxy.connect()
            try await client.send(TunnelTests.connect(origin, "a.example"))
            try await client.received("HTTP/1.1 200 ")
            #expect(try await origin.accepted().seen.value.error == nil)
            try await client.close()
        }
        try await origin.stop()
    }

    private struct Weak { weak var connection: ClientConnection? }

    /// Asks for a tunnel, resets the connection when that is begun, and says whether it is let go.
    private static func isLetGo(_ proxy: Fixture, _ text: String) async throws -> Bool {
        let client = try await proxy.connect()
        // When the first request is in the log, the second is at work.
        try await client.send(get() + text)
        try await client.received("hello")
        let loop = proxy.server.loops[0]
        let connection = try await loop.eventLoop.submit {
            NIOLoopBound(
                Weak(connection: loop.value.connections.values.first), eventLoop: loop.eventLoop)
        }.get()
        let isAtWork = try await loop.eventLoop.submit {
            connection.value.connection?.exchange?.method == .connect
        }.get()
        #expect(isAtWork)
        try await client.reset()
        #expect(try await proxy.log.entry(1).failure == "the client went away")
        // The script's own notes name their clients, and thereby the connection.
        proxy.session.exchanges.change { $0 = [] }
        // A few turns are what its channels take to close.
        for _ in 0..<100 { try await loop.eventLoop.submit {}.get() }
        return try await loop.eventLoop.submit { connection.value.connection == nil }.get()
    }

    @Test("is given up with its client while a name is looked for")
    func leftResolving() async throws {
        let names = HeldNames()
        try await Self.run(names) { proxy, origin in
            #expect(try await Self.isLetGo(proxy, TunnelTests.connect(origin, "slow.example")))
            try await names.asked.wait(for: "the look-up") { $0 == ["slow.example"] }
        }
    }

    @Test("is given up with its client while it is connecting")
    func leftConnecting() async throws {
        // The kernel answers nobody for whom its queue has no place.
        let group = MultiThreadedEventLoopGroup.singleton
        let full = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 0)
            .serverChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(full.localAddress)
        let first = try await ClientBootstrap(group: group).connect(to: address).get()
        try await Self.run(HeldNames()) { proxy, _ in
            let authority = "127.0.0.1:\(address.port ?? 0)"
            let text = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
            let isLetGo = try await Self.isLetGo(proxy, text)
            #expect(isLetGo)
        }
        try await first.close().get()
        try await full.close().get()
    }
}
