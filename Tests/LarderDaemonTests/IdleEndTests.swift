import NIOCore
import NIOEmbedded
import Testing

@testable import LarderDaemon

@Suite("The end of an idle connection")
struct IdleEndTests {
    private let idle = IdleStateHandler.IdleStateEvent.all

    private func connected() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: IdleEnd())
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/c")).wait()
        return channel
    }

    @Test("comes between requests")
    func idleness() throws {
        let channel = try self.connected()
        try channel.writeAndFlush(ByteBuffer(string: "answer\n")).wait()
        #expect(channel.isActive)
        channel.pipeline.fireUserInboundEventTriggered(self.idle)
        #expect(!channel.isActive)
    }

    @Test("does not come while a command takes nothing of what it is told")
    func pausingReader() throws {
        let channel = try self.connected()
        let writes = (0..<2).map { channel.write(ByteBuffer(string: "line \($0)\n")) }
        channel.pipeline.fireUserInboundEventTriggered(self.idle)
        channel.pipeline.fireUserInboundEventTriggered(self.idle)
        #expect(channel.isActive)
        channel.flush()
        for write in writes { try write.wait() }
        #expect(try channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(string: "line 0\n"))
        channel.pipeline.fireUserInboundEventTriggered(self.idle)
        #expect(!channel.isActive)
    }
}

@Suite("The end of a connection on which nothing is said")
struct SilenceEndTests {
    @Test("comes after a while, and not once something was said", arguments: [false, true])
    func silence(_ speaks: Bool) throws {
        let channel = EmbeddedChannel(handler: SilenceEnd(after: .seconds(5)))
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/c")).wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(channel.isActive)
        if speaks { try channel.writeInbound(ByteBuffer(string: "{")) }
        channel.embeddedEventLoop.advanceTime(by: .seconds(60))
        #expect(channel.isActive == speaks)
    }
}
