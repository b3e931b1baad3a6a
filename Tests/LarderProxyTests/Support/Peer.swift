import NIOCore
import NIOPosix

@testable import LarderProxy

/// One end of a raw TCP connection, in the hands of a test: sends bytes, and notes what comes.
final class Peer: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    struct Seen: Sendable {
        var bytes: [UInt8] = []
        var inputEnded = false
        var closed = false
        var error: String?
    }

    let seen = Event(Seen())
    fileprivate let opened = Event<(any Channel)?>(nil)

    var channel: any Channel {
        get throws {
            guard let channel = self.opened.value else { throw TimedOut(description: "not open") }
            return channel
        }
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        self.opened.change { $0 = channel }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(buffer: self.unwrapInboundIn(data))
        self.seen.change { $0.bytes += bytes }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.seen.change { $0.inputEnded = true } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.seen.change { $0.error = "\(error)" }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.seen.change { $0.closed = true }
    }

    /// - Parameter reads: false for a client that takes nothing until told to.
    static func connect(to address: ListenAddress, reads: Bool = true) async throws -> Peer {
        let peer = Peer()
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: reads)
            .channelOption(.socketOption(.so_rcvbuf), value: reads ? 1 << 20 : 4_096)
            .channelInitializer { channel in channel.pipeline.addHandler(peer) }
        switch address {
        case .tcp(let host, let port):
            _ = try await bootstrap.connect(host: host, port: Int(port)).get()
        case .unix(let path):
            _ = try await bootstrap.connect(unixDomainSocketPath: path).get()
        }
        try await peer.opened.wait(for: "the connection") { $0 != nil }
        return peer
    }

    func send(_ text: String) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(string: text)).get()
    }

    /// Sends without waiting for it to be sent.
    func push(_ buffer: ByteBuffer) throws {
        try self.channel.writeAndFlush(buffer, promise: nil)
    }

    func endOutput() async throws { try await self.channel.close(mode: .output).get() }

    func close() async throws { try? await self.channel.close().get() }

    /// Closes with a reset.
    func reset() async throws {
        let channel = try self.channel
        let atOnce = unsafe unsafeBitCast((CInt(1), CInt(0)), to: NIOLinger.self)
        try await (channel as? any SocketOptionProvider)?.setSoLinger(atOnce).get()
        try? await channel.close().get()
    }

    func resumeReading() async throws {
        try await self.channel.setOption(.autoRead, value: true).get()
    }

    /// Everything received so far, once it holds `text`.
    @discardableResult
    func received(_ text: String) async throws -> String {
        let seen = try await self.seen.wait(for: "to receive \(text)") {
            String(decoding: $0.bytes, as: UTF8.self).contains(text)
        }
        return String(decoding: seen.bytes, as: UTF8.self)
    }

    /// Sends a request and gives back its answer, of which the last bytes are known.
    func answer(to request: String, until end: String = "</a>") async throws -> String {
        self.seen.change { $0.bytes = [] }
        try await self.send(request)
        return try await self.received(end)
    }

    /// Everything received, once the other end has ended its sending side or is gone.
    func receivedAll() async throws -> String {
        let seen = try await self.seen.wait(for: "the end") { $0.inputEnded || $0.closed }
        return String(decoding: seen.bytes, as: UTF8.self)
    }
}

/// A TCP server in the hands of a test: each connection is a `Peer`.
final class RawOrigin: Sendable {
    private let peers = Event<[Peer]>([])
    private let listening = Event<(any Channel)?>(nil)

    static func start() async throws -> RawOrigin {
        let origin = RawOrigin()
        let peers = origin.peers
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                let peer = Peer()
                return channel.pipeline.addHandler(peer).map { peers.change { $0.append(peer) } }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        origin.listening.change { $0 = channel }
        return origin
    }

    var port: Int { self.listening.value?.localAddress?.port ?? 0 }
    var connections: Int { self.peers.value.count }

    func accepted(_ index: Int = 0) async throws -> Peer {
        let peers = try await self.peers.wait(for: "connection \(index)") { $0.count > index }
        try await peers[index].opened.wait(for: "connection \(index) to open") { $0 != nil }
        return peers[index]
    }

    func stop() async throws { try await self.listening.value?.close().get() }
}
