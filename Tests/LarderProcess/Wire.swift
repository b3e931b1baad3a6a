import Glibc
import NIOCore
import NIOPosix

/// One end of a TCP connection in the hands of a test: sends bytes as they are, keeps what comes
/// until it is read.
final class Wire: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    struct Seen: Sendable {
        /// Received and not yet read.
        var bytes: [UInt8] = []
        /// Received in all.
        var count = 0
        /// Bytes behind these are counted and thrown away.
        var countedFrom: Int?
        var inputEnded = false
        var closed = false
        var wasReset = false

        var isOver: Bool { self.inputEnded || self.closed }
    }

    let seen = Event(Seen())
    private let opened = Event<(any Channel)?>(nil)

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        self.opened.change { $0 = channel }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let piece = self.unwrapInboundIn(data)
        self.seen.change { seen in
            seen.count += piece.readableBytes
            if seen.countedFrom == nil { seen.bytes += piece.readableBytesView }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.seen.change { $0.inputEnded = true } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if (error as? IOError)?.errnoCode == ECONNRESET { self.seen.change { $0.wasReset = true } }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.seen.change { $0.closed = true }
    }

    /// - Parameter reads: false for one that takes nothing until told to.
    /// - Parameter source: the address that the other end sees, any of 127.0.0.0/8; nil: 127.0.0.1.
    static func connect(
        port: Int, reads: Bool = true, source: String? = nil
    ) async throws -> Wire {
        let wire = Wire()
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: reads)
            .channelOption(.socketOption(.so_rcvbuf), value: reads ? 1 << 20 : 65_536)
            .channelInitializer { $0.pipeline.addHandler(wire) }
        if let source {
            bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: source, port: 0))
        }
        _ = try await bootstrap.connect(host: "127.0.0.1", port: port).get()
        try await wire.open()
        return wire
    }

    func open() async throws {
        try await self.opened.wait(for: "a connection to open") { $0 != nil }
    }

    private var channel: any Channel {
        get throws {
            guard let channel = self.opened.value else {
                throw TimedOut(description: "the connection is not open")
            }
            return channel
        }
    }

    // MARK: Sending

    func send(_ text: String) async throws { try await self.send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Ends the sending side.
    func endOutput() async throws { try await self.channel.close(mode: .output).get() }

    func close() async throws { try? await self.channel.close().get() }

    /// Closes with a reset.
    func reset() async throws {
        let channel = try self.channel
        let atOnce = unsafe unsafeBitCast((CInt(1), CInt(0)), to: NIOLinger.self)
        try await (channel as? any SocketOptionProvider)?.setSoLinger(atOnce).get()
        try? await channel.close().get()
    }

    /// Takes nothing more from the connection: what its other end can send is what the kernel keeps.
    func pauseReading() async throws {
        try await self.channel.setOption(.autoRead, value: false).get()
    }

    func resumeReading() async throws {
        try await self.channel.setOption(.autoRead, value: true).get()
    }

    // MARK: Reading

    /// Reads up to and with `mark`.
    func read(through mark: String) async throws -> String {
        let mark = Array(mark.utf8)
        try await self.seen.wait(for: self.waiting("\(mark.debugText)")) {
            $0.bytes.end(of: mark) != nil || $0.isOver
        }
        let read = self.seen.change { seen -> [UInt8]? in
            guard let end = seen.bytes.end(of: mark) else { return nil }
            defer { seen.bytes.removeFirst(end) }
            return Array(seen.bytes[..<end])
        }
        guard let read else { throw TimedOut(description: self.waiting(mark.debugText)) }
        return String(decoding: read, as: UTF8.self)
    }

    /// Reads so many bytes.
    func read(_ count: Int) async throws -> [UInt8] {
        try await self.seen.wait(for: self.waiting("\(count) bytes")) {
            $0.bytes.count >= count || $0.isOver
        }
        let read = self.seen.change { seen -> [UInt8]? in
            guard seen.bytes.count >= count else { return nil }
            defer { seen.bytes.removeFirst(count) }
            return Array(seen.bytes[..<count])
        }
        guard let read else { throw TimedOut(description: self.waiting("\(count) bytes")) }
        return read
    }

    /// Reads all until the other end has ended its sending side, or cut the connection.
    func readAll() async throws -> [UInt8] {
        try await self.seen.wait(for: self.waiting("the end")) { $0.isOver }
        return self.seen.change { seen in
            defer { seen.bytes = [] }
            return seen.bytes
        }
    }

    /// Counts what comes and keeps none of it from the first call on; waits for that many bytes,
    /// counted from there.
    func count(to count: Int) async throws {
        let target = self.seen.change { seen in
            let base = seen.countedFrom ?? seen.count - seen.bytes.count
            seen.countedFrom = base
            seen.bytes = []
            return base + count
        }
        try await self.seen.wait(for: self.waiting("\(count) bytes")) {
            $0.count >= target || $0.isOver
        }
        guard self.seen.value.count >= target else {
            throw TimedOut(description: self.waiting("\(count) bytes"))
        }
    }

    private func waiting(_ what: String) -> String {
        let seen = self.seen.value
        return "\(what); so far \(seen.count) bytes, unread \(seen.bytes.prefix(500).debugText)"
    }
}

extension Collection where Element == UInt8 {
    var debugText: String { String(decoding: self, as: UTF8.self).debugDescription }
}

extension [UInt8] {
    /// The index behind the first occurrence of `mark`.
    func end(of mark: [UInt8]) -> Int? {
        guard let first = mark.first else { return 0 }
        var start = 0
        while start + mark.count <= self.count {
            guard let found = self[start...].firstIndex(of: first), found + mark.count <= self.count
            else { return nil }
            if self[found..<(found + mark.count)].elementsEqual(mark) { return found + mark.count }
            start = found + 1
        }
        return nil
    }
}
