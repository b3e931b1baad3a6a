import CLinux
import LarderHTTP
import NIOCore

/// Bytes to the client: by way of the channel, or past it.
extension ClientConnection {
    func write(_ buffer: ByteBuffer) {
        guard let context = self.context, buffer.readableBytes > 0 else { return }
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
    /// ``sendWhole(_:)`` makes sure of that.
    func sendAtOnce(_ answer: ByteBuffer) {
        guard let socket = self.socket, self.hasNothingUnsent else { return self.write(answer) }
        let count = answer.readableBytes
        let result = unsafe answer.withUnsafeReadableBytes {
            unsafe larder_send(socket, $0.baseAddress, UInt($0.count), 0)
        }
        // The channel meets an error again, and knows what to do about it.
        let sent = max(0, min(result, count))
        self.loop.counters.sent(sent)
        guard sent < count else { return }
        if let rest = answer.getSlice(at: answer.readerIndex + sent, length: count - sent) {
            self.write(rest)
        }
    }

    /// Sends a whole answer at any moment, where nothing follows yet.
    ///
    /// A channel that is closed has given its descriptor back before its handlers hear of that: it is
    /// asked.
    func sendWhole(_ answer: ByteBuffer) {
        guard self.inbound.readableBytes == 0, self.socket != nil,
            self.context?.channel.isActive == true
        else { return self.write(answer) }
        self.sendAtOnce(answer)
    }

    /// Whether the client has been given all that was written; what is said now comes next.
    private var hasNothingUnsent: Bool {
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
