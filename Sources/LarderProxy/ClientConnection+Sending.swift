import CLinux
import LarderHTTP
import NIOCore

/// Bytes to the client: by way of the channel, or past it.
extension ClientConnection {
    func write(_ buffer: ByteBuffer) {
        guard let context = self.context, buffer.readableBytes > 0 else { return }
        if self.isGathering { return self.loop.gathering.append(buffer) }
        self.loop.counters.sent(buffer.readableBytes)
        self.needsFlush = true
        self.mayHaveUnsent = true
        context.write(self.wrapOutboundOut(buffer), promise: nil)
    }

    /// Gives the socket as much of a whole answer as it takes, and the channel what is left.
    ///
    /// The channel would queue the answer, note where to flush and then do the same: a third of the
    /// instructions of a hit. To be called from `channelRead`, before anything may have closed the
    /// channel: it has just been read from, so the descriptor is that of its socket. Elsewhere
    /// ``sendWhole(_:)`` makes sure of that. What is longer than ``JoinedAnswer`` takes goes by way of
    /// the channel.
    func sendAtOnce(_ head: ByteBuffer, _ body: ByteBuffer?) {
        guard let socket = self.socket, self.hasNothingUnsent,
            let sent = unsafe self.loop.joined.withBytes(
                of: head, body, { unsafe self.send($0, to: socket) })
        else {
            self.write(head)
            if let body { self.write(body) }
            return
        }
        guard sent < head.readableBytes + (body?.readableBytes ?? 0) else { return }
        self.write(head.dropping(sent))
        if let body { self.write(body.dropping(sent - head.readableBytes)) }
    }

    /// Gives a socket what it takes of these.
    ///
    /// - Returns: how much that was. The channel meets an error again, and knows what to do about it.
    private func send(_ bytes: UnsafeRawBufferPointer, to socket: NIOBSDSocket.Handle) -> Int {
        let result = unsafe larder_send(socket, bytes.baseAddress, UInt(bytes.count), 0)
        let sent = max(0, min(result, bytes.count))
        self.loop.counters.sent(sent)
        return sent
    }

    /// Sends a whole answer at any moment, where nothing follows yet: past the channel, too.
    func sendWhole(_ answer: ByteBuffer) {
        guard self.inbound.readableBytes == 0, let socket = self.openSocket, self.hasNothingUnsent
        else { return self.write(answer) }
        let sent = unsafe answer.withUnsafeReadableBytes { unsafe self.send($0, to: socket) }
        guard sent < answer.readableBytes else { return self.loop.keepAnswerRoom(answer) }
        self.write(answer.dropping(sent))
    }

    /// The socket, at any moment; nil where it may be another's by now.
    ///
    /// A channel that is closed has given its descriptor back before its handlers hear of that: it is
    /// asked.
    var openSocket: NIOBSDSocket.Handle? {
        guard let socket = self.socket, self.context?.channel.isActive == true else { return nil }
        return socket
    }

    /// Whether the client has been given all that was written; what is said now comes next.
    var hasNothingUnsent: Bool {
        if self.isGathering { return false }
        guard self.mayHaveUnsent else { return true }
        guard !self.needsFlush, self.unsentBytes == 0 else { return false }
        self.mayHaveUnsent = false
        return true
    }

    static func socket(of context: ChannelHandlerContext) -> NIOBSDSocket.Handle? {
        // It throws where the channel is closed.
        let found = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { $0 }
        return found ?? nil
    }
}

extension ByteBuffer {
    /// These bytes without the first ones; all of them where `count` is negative.
    func dropping(_ count: Int) -> ByteBuffer {
        let count = min(max(0, count), self.readableBytes)
        return self.getSlice(at: self.readerIndex + count, length: self.readableBytes - count)
            ?? self
    }
}
