import NIOCore

/// Bulk through a tunnel: what follows a filled read is moved by the kernel, from socket to socket.
///
/// The channels stay NIO's, with their events, ends and errors. It is NIO that hears of bytes and of
/// room: it reads the first bytes of a burst, and writes the first of those that a socket would not
/// take. When it has written these it has nothing in hand, and both sockets are the kernel's to move
/// between.
///
/// ```
/// reading ──a filled read──▶ NIO writes it ──written──▶ splicing ──▶ reading
///                                  ▲                       │ the target is full: the pipe is kept
///                                  └──first bytes of it────┘
/// ```
///
/// What lies in a pipe goes before all else. So where something is to follow that is not spliced
/// (bytes that NIO has read, an end), NIO gets the rest of the pipe first.
extension Tunnel {
    struct Splicing {
        /// The size of NIO's reads that shows that there is more to come.
        static let filledRead = 16 << 10
        /// The size of a read that shows it while there was much after the last: so much of every
        /// burst is copied.
        static let filledReadInBulk = 1 << 10
        /// A burst of at least so much is bulk: below it, one large read is cheaper.
        static let bulk = 64 << 10
        /// What is moved in a turn at most, so that others have theirs.
        static let turn = 1 << 20
        /// What NIO writes to learn when there is room.
        static let probe = 1 << 10

        /// What comes from one side, on its way to the other.
        struct Direction {
            /// Holds what the target would not take; nil when that is nothing.
            var pipe: SplicePipe?
            /// NIO has something to write that was taken before: nothing more is taken until then.
            var waitsForRoom = false
            var isBulk = false
            /// What may be taken until others have had their turn.
            var allowance = Splicing.turn

            /// Whatever a movement stops at, what comes next comes with a turn of its own; but for
            /// room, which may be there again at once.
            mutating func note(_ movement: SplicePipe.Movement) {
                self.allowance =
                    movement.stop == .outputIsFull
                    ? self.allowance - movement.taken : Splicing.turn
            }

            var filledRead: Int { self.isBulk ? Splicing.filledReadInBulk : Splicing.filledRead }
        }

        var fromClient = Direction()
        var fromOrigin = Direction()
        /// One of the sockets is of a kind that cannot be spliced.
        var isRefused = false

        subscript(_ side: Side) -> Direction {
            get { side == .client ? self.fromClient : self.fromOrigin }
            set {
                switch side {
                case .client: self.fromClient = newValue
                case .origin: self.fromOrigin = newValue
                }
            }
        }
    }

    /// Reads of at most what shows that there is more, one a turn.
    func boundReads(of side: Side) {
        guard let options = self.context(of: side)?.channel.syncOptions else { return }
        let allocator: any RecvByteBufferAllocator =
            self.splicing[side].isBulk
            ? FixedSizeRecvByteBufferAllocator(capacity: Splicing.filledReadInBulk)
            : AdaptiveRecvByteBufferAllocator(
                minimum: 64, initial: 2_048, maximum: Splicing.filledRead)
        // Where a channel takes neither, all goes through NIO, as little does.
        try? options.setOption(.maxMessagesPerRead, value: 1)
        try? options.setOption(.recvAllocator, value: allocator)
    }

    private func setBulk(_ isBulk: Bool, from side: Side) {
        guard self.splicing[side].isBulk != isBulk else { return }
        self.splicing[side].isBulk = isBulk
        self.boundReads(of: side)
    }

    /// Whether a read shows that more has come than a little, which can be spliced.
    func isFilled(_ bytes: ByteBuffer, from side: Side) -> Bool {
        !self.splicing.isRefused && bytes.readableBytes >= self.splicing[side].filledRead
    }

    /// Has NIO send what comes before anything that is spliced, and goes on when that is done: at
    /// once, as a rule, but not where a target that takes all would keep the loop from others.
    func writeAhead(_ bytes: ByteBuffer, from side: Side) {
        guard let context = self.context(of: side.other) else { return }
        self.splicing[side].waitsForRoom = true
        let sent = context.eventLoop.makePromise(of: Void.self)
        let loop = context.eventLoop.assumeIsolated()
        sent.futureResult.assumeIsolated().whenComplete { _ in
            guard self.splicing[side].allowance <= 0 else { return self.goOn(from: side) }
            loop.execute {
                self.splicing[side].allowance = Splicing.turn
                self.goOn(from: side)
            }
        }
        context.write(NIOAny(bytes), promise: sent)
    }

    private func goOn(from side: Side) {
        self.splicing[side].waitsForRoom = false
        self.splice(from: side)
        self.readIfWanted(side)
    }

    /// Moves what has come from a side on to the other, where that has got all that came before.
    private func splice(from side: Side) {
        guard !self.splicing.isRefused, self.state.takesInput(from: side),
            let source = self.context(of: side), let target = self.context(of: side.other),
            Self.hasSentAll(target.channel)
        else { return }
        guard let pipe = self.splicing[side].pipe.take() ?? self.loop.pipes.borrow() else {
            return self.setBulk(false, from: side)
        }
        let movement = Self.move(
            from: source.channel, to: target.channel, through: pipe,
            limit: self.splicing[side].allowance)
        var first: ByteBuffer?
        if movement?.stop == .outputIsFull {
            first = pipe.take(atMost: Splicing.probe)
            if first == nil { self.cut("the system lost what was in a pipe") }
        }
        if pipe.held > 0, !self.hasEnded {
            self.splicing[side].pipe = pipe
        } else {
            self.loop.pipes.giveBack(pipe)
        }
        guard let movement else { return }
        self.splicing[side].note(movement)
        self.count(movement, from: side)
        switch movement.stop {
        case .limit, .inputIsEmpty, .inputEnded:
            // Of the end, NIO hears by itself.
            let most = max(movement.taken, movement.given)
            self.setBulk(most >= Splicing.bulk, from: side)
        case .outputIsFull:
            guard let first else { return }
            self.setBulk(true, from: side)
            self.writeAhead(first, from: side)
            self.context(of: side.other)?.flush()
        case .unsupported:
            self.splicing.isRefused = true
            for side in Side.allCases {
                self.emptyPipe(from: side)
                self.context(of: side.other)?.flush()
                self.setBulk(false, from: side)
            }
        case .inputFailed:
            // The kernel tells an error once, and NIO would take what follows for an orderly end.
            source.close(promise: nil)
        }
    }

    private func count(_ movement: SplicePipe.Movement, from side: Side) {
        if movement.given > 0 { self.noteActivity() }
        guard movement.taken > 0 else { return }
        self.carried(movement.taken, from: side)
        if side == .client { self.loop.counters.received(movement.taken) }
    }

    /// Gives NIO what lies in a side's pipe, ahead of what is not spliced.
    func emptyPipe(from side: Side) {
        guard let pipe = self.splicing[side].pipe.take() else { return }
        defer { self.loop.pipes.giveBack(pipe) }
        guard let rest = pipe.take() else {
            return self.cut("the system lost what was in a pipe")
        }
        self.context(of: side.other)?.write(NIOAny(rest), promise: nil)
    }

    /// What was on its way to a side that is gone is lost.
    func dropPipe(to side: Side) {
        if let pipe = self.splicing[side.other].pipe.take() { self.loop.pipes.giveBack(pipe) }
    }

    private static func hasSentAll(_ channel: any Channel) -> Bool {
        (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
    }

    /// Nil where one of the sockets is not to be had.
    private static func move(
        from source: any Channel, to target: any Channel, through pipe: SplicePipe, limit: Int
    ) -> SplicePipe.Movement? {
        let movement = try? source.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { from in
            try target.pipeline.syncOperations.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { to in pipe.move(from: from, to: to, limit: limit) }
        }
        return movement ?? nil
    }
}
