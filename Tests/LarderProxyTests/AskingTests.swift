import NIOCore
import NIOEmbedded
import Testing

@testable import LarderProxy

@Suite("A connection asks its channel for input")
struct AskingTests {
    private final class Asked: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        private(set) var count = 0

        func read(context: ChannelHandlerContext) {
            self.count += 1
            context.read()
        }
    }

    @Test("once for each time that it brings some, whatever else happens")
    func once() throws {
        let session = ScriptedSession { _ in }
        let loop = EmbeddedEventLoop()
        let connection = ReleaseTests.connection(session, log: LogRecorder(), loop: loop)
        let asked = Asked()
        let channel = EmbeddedChannel(handlers: [asked, connection], loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(asked.count == 1)
        for number in 1...3 {
            try channel.writeInbound(ByteBuffer(string: get("/\(number)")))
            #expect(asked.count == 1 + number)
            try #require(session.exchanges.value.last).answer()
            loop.run()
            #expect(try channel.readOutbound(as: ByteBuffer.self) != nil)
            #expect(asked.count == 1 + number)
        }
        // A head that comes in two pieces is one that more is wanted for.
        for (number, piece) in ["GET http://a.ex/ HT", "TP/1.1\r\n"].enumerated() {
            try channel.writeInbound(ByteBuffer(string: piece))
            #expect(asked.count == 5 + number)
        }
        _ = try? channel.finish()
    }
}
