import NIOCore

/// Bulk through a tunnel: what follows a filled read is moved by the kernel, from socket to socket.
///
/// The channels stay NIO's, with their events, ends and errors. It is NIO that hears of bytes, reads
/// the first of them, and writes what a socket would not take at once; between these it has nothing
/// in hand, and then both sockets are the kernel's to move between.
extension Tunnel {
    struct Splicing {
        /// The size of NIO's reads that shows that there is more to come.
        ///
        /// So much of every burst is copied. Smaller ones are cheaper for bulk, and cost what comes in
        /// bits a system call more.
        static let filledRead = 16 << 10
        /// What is moved in a turn at most, so that others have theirs.
        static let turn = 1 << 20

        /// The side whose last read was filled.
        var wasFilled: Side?
        /// Sides that have not got yet what was taken for them: until then nothing more is.
        var owes: Set<Side> = []
        /// One of the sockets is of a kind that cannot be spliced.
        var isRefused = false
    }

    /// Reads that grow to `filledRead` and no further, one a turn.
    static func boundReads(of channel: any Channel) {
        guard let options = channel.syncOptions else { return }
        // Where a channel takes neither, all goes through NIO, as little does.
        try? options.setOption(.maxMessagesPerRead, value: 1)
        try? options.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(
                minimum: 64, initial: 2_048, maximum: Splicing.filledRead))
    }

    /// Moves what has come from a side on to the other, where that has got all that it is owed.
    func splice(from side: Side) {
        guard !self.splicing.isRefused, self.state.takesInput(from: side),
            let source = self.context(of: side), let target = self.context(of: side.other),
            Self.hasSentAll(target.channel), let pipe = self.loop.splicePipe(),
            let movement = Self.move(from: source.channel, to: target.channel, through: pipe)
        else { return }
        if movement.count > 0 {
            self.carried(movement.count, from: side)
            if side == .client { self.loop.counters.received(movement.count) }
        }
        switch movement.stop {
        case .limit:
            self.splicing.wasFilled = side
        case .inputIsEmpty, .inputEnded:
            // Of the end, NIO hears by itself.
            break
        case .outputIsFull:
            self.write(movement.rest, to: side.other)
        case .unsupported:
            self.splicing.isRefused = true
        case .inputFailed:
            // The kernel tells an error once, and NIO would take what follows for an orderly end.
            source.close(promise: nil)
        }
    }

    /// Has NIO send what a socket would not take, and goes on when that is done.
    private func write(_ rest: ByteBuffer, to side: Side) {
        guard let context = self.context(of: side) else { return }
        self.splicing.owes.insert(side)
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { _ in
            self.splicing.owes.remove(side)
            self.splice(from: side.other)
            self.readIfWanted(side.other)
        }
        context.writeAndFlush(NIOAny(rest), promise: sent)
    }

    private static func hasSentAll(_ channel: any Channel) -> Bool {
        (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
    }

    /// Nil where one of the sockets is not to be had.
    private static func move(
        from source: any Channel, to target: any Channel, through pipe: SplicePipe
    ) -> SplicePipe.Movement? {
        let movement = try? source.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { from in
            try target.pipeline.syncOperations.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { to in pipe.move(from: from, to: to, limit: Splicing.turn) }
        }
        return movement ?? nil
    }
}
