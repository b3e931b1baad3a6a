import LarderHTTP
import LarderSession
import NIOCore
import NIOEmbedded
import Testing

@testable import LarderProxy

@Suite("What a connection leaves behind")
struct ReleaseTests {
    static func connection(
        _ session: any ExchangeSession, log: LogRecorder, loop: EmbeddedEventLoop
    ) -> ClientConnection {
        let shared = ProxyShared(
            configuration: ProxyConfiguration(), access: LocalClients(), log: log,
            connections: ConnectionCount(maximum: 1), clock: { Fixture.now })
        let state = LoopState(shared: shared, counters: LoopCounters(), index: 0, count: 1)
        return ClientConnection(
            loop: state, directory: OneSessionDirectory(session), client: .unix(nil),
            own: OwnAuthorities(listeners: [], local: nil))
    }

    @Test(
        "is nothing, in whatever state its client goes",
        arguments: [
            ("", 0), ("GET http://a.ex", 0), (get(), 1), (get() + get("/2"), 1),
            (post("Content-Length: 5\r\n", "ab"), 1),
            (post("Transfer-Encoding: chunked\r\n", "5\r\nab"), 1),
            (post("Content-Length: 5\r\nExpect: 100-continue\r\n"), 1), ("bad\r\n\r\n", 1),
            (get("/source"), 1), (get("/answered"), 1), (get("/answered") + get("/source"), 2),
        ])
    func released(_ input: String, _ entries: Int) throws {
        weak var released: ClientConnection?
        let log = LogRecorder()
        let body = ScriptedBody([.piece(ByteBuffer(string: "begun"))])
        do {
            let session = ScriptedSession { exchange in
                switch exchange.request.uri.pathAndQuery {
                case "/answered": exchange.answer()
                case "/source": exchange.answer(from: body)
                default: break
                }
            }
            let loop = EmbeddedEventLoop()
            let connection = Self.connection(session, log: log, loop: loop)
            released = connection
            let channel = EmbeddedChannel(handler: connection, loop: loop)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            if !input.isEmpty { try channel.writeInbound(ByteBuffer(string: input)) }
            try? channel.close().wait()
            loop.run()
            #expect(
                session.exchanges.value.allSatisfy { exchange in
                    exchange.isCancelled.value || exchange.request.uri.pathAndQuery == "/answered"
                })
            // The script's own notes name their clients, and thereby the connection.
            session.exchanges.change { $0 = [] }
        }
        #expect(released == nil)
        #expect(log.entries.value.count == entries)
        if input.contains("/source") { #expect(body.isCancelled.value) }
    }

    @Test("is no buffer while it is idle")
    func idleBuffer() throws {
        let loop = EmbeddedEventLoop()
        let connection = Self.connection(ScriptedSession(), log: LogRecorder(), loop: loop)
        let channel = EmbeddedChannel(handler: connection, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(ByteBuffer(string: get()))
        #expect(connection.inbound.capacity == 0)
        // Head and content are one write.
        let first = try channel.readOutbound(as: ByteBuffer.self)
        #expect(
            first.map { String(buffer: $0) }
                == ExchangeTests.hello
                .replacing("1.1 pantry", with: "1.1 \(connection.configuration.pseudonym)"))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        _ = try channel.finish()
    }

    @Test("is a known request, counted as it was sent, as it was understood, and as it is logged")
    func knownRequest() throws {
        let lengths = [10, 3_010]
        let costs = try lengths.map { length in
            let loop = EmbeddedEventLoop()
            let connection = Self.connection(
                StoringSession { _ in "" }.session(), log: LogRecorder(), loop: loop)
            let channel = EmbeddedChannel(handler: connection, loop: loop)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            let request = get("/" + String(repeating: "a", count: length))
            for _ in 0..<3 { try channel.writeInbound(ByteBuffer(string: request)) }
            let cost = connection.loop.known.bytes
            #expect(cost > 0)
            _ = try channel.finish()
            return cost
        }
        #expect(costs[1] - costs[0] >= 3 * (lengths[1] - lengths[0]))
    }
}
