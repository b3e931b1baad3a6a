import NIOCore

/// Two connections joined: what one receives, the other sends (RFC 9110 §9.3.6).
///
/// Both channels live on one event loop, and their handlers pass their events here. A side is read
/// only while the other takes bytes, so that a tunnel holds no more than one read and one send
/// buffer, or what a pipe takes, each way.
///
/// Where a read was filled, more has come than a little, and the kernel moves that by itself
/// (`Tunnel+Splicing.swift`).
final class Tunnel {
    typealias Side = TunnelState.Side

    private(set) var state = TunnelState()
    /// Nil once that side's channel is gone.
    private var client: ChannelHandlerContext?
    private var origin: ChannelHandlerContext?
    let loop: LoopState
    /// Let go of when it is called: it holds the client's connection, which holds this.
    private var ended: ((Tunnel, String?) -> Void)?

    private(set) var fromClient: UInt64 = 0
    private(set) var fromOrigin: UInt64 = 0
    var splicing = Splicing()
    private var idleness: TunnelIdleness
    private var timer: NIOScheduledCallback?
    private(set) var hasEnded = false
    private var reason: String?

    /// - Parameter ended: called once, when both sides are closed or about to be; the text says why,
    ///   where it was not an orderly end.
    init(
        client: ChannelHandlerContext, origin: ChannelHandlerContext, idleTimeout: Duration,
        loop: LoopState, ended: @escaping (Tunnel, String?) -> Void
    ) {
        self.client = client
        self.origin = origin
        self.idleness = TunnelIdleness(
            limit: .nanoseconds(idleTimeout.inNanoseconds), now: .now())
        self.loop = loop
        self.ended = ended
        self.loop.counters.tunnelOpened()
        for side in Side.allCases { self.boundReads(of: side) }
    }

    /// Lets both sides flow, after what they sent ahead was passed to `received`.
    func begin() {
        self.armTimer(at: self.idleness.deadline)
        for side in Side.allCases { self.readCompleted(from: side) }
    }

    // MARK: Events of either channel

    func received(_ bytes: ByteBuffer, from side: Side) {
        guard bytes.readableBytes > 0 else { return }
        self.carried(bytes.readableBytes, from: side)
        // At the end of a connection NIO reads all there is, wanted or not.
        self.emptyPipe(from: side)
        if !self.splicing[side].waitsForRoom, self.isFilled(bytes, from: side) {
            self.writeAhead(bytes, from: side)
        } else {
            self.context(of: side.other)?.write(NIOAny(bytes), promise: nil)
        }
    }

    func readCompleted(from side: Side) {
        self.context(of: side.other)?.flush()
        self.readIfWanted(side)
    }

    /// Counts what has come from a side.
    func carried(_ bytes: Int, from side: Side) {
        self.noteActivity()
        switch side {
        case .client:
            self.fromClient &+= UInt64(clamping: bytes)
        case .origin:
            self.fromOrigin &+= UInt64(clamping: bytes)
            self.loop.counters.sent(bytes)
        }
    }

    func noteActivity() { self.idleness.noteActivity(at: .now()) }

    func writabilityChanged(of side: Side) {
        guard self.context(of: side)?.channel.isWritable == true else { return }
        self.noteActivity()
        self.readIfWanted(side.other)
    }

    func inputEnded(from side: Side) {
        self.emptyPipe(from: side)
        self.perform(self.state.inputEnded(from: side))
    }

    func closed(_ side: Side) {
        switch side {
        case .client: self.client = nil
        case .origin: self.origin = nil
        }
        self.dropPipe(to: side)
        self.emptyPipe(from: side)
        self.perform(self.state.closed(side))
        self.cancelTimerIfGone()
    }

    /// Ends both sides at once, whatever is on its way.
    func cut(_ reason: String) {
        self.reason = reason
        let contexts = [self.client, self.origin]
        self.finish()
        for context in contexts { context?.close(promise: nil) }
    }

    // MARK: Acting

    func context(of side: Side) -> ChannelHandlerContext? {
        side == .client ? self.client : self.origin
    }

    func readIfWanted(_ side: Side) {
        guard self.state.takesInput(from: side), !self.splicing[side].waitsForRoom,
            self.context(of: side.other)?.channel.isWritable == true
        else { return }
        self.context(of: side)?.read()
    }

    private func perform(_ action: TunnelState.Action) {
        switch action {
        case .nothing:
            break
        case .closeOutput(let side):
            self.context(of: side)?.flush()
            self.context(of: side)?.close(mode: .output, promise: nil)
        case .close(let side):
            self.finish()
            self.closeWhenSent(side)
        case .closeBoth:
            self.finish()
            for side in Side.allCases { self.closeWhenSent(side) }
        }
    }

    /// NIO's `close` drops what waits to be sent, also where only the sending side is closed but
    /// the other had ended before: so an empty write is sent behind it, and waited for.
    private func closeWhenSent(_ side: Side) {
        guard let context = self.context(of: side) else { return }
        let sent = context.eventLoop.makePromise(of: Void.self)
        let channel = context.channel
        sent.futureResult.whenComplete { _ in channel.close(promise: nil) }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: sent)
    }

    private func finish() {
        guard !self.hasEnded else { return }
        self.hasEnded = true
        self.loop.counters.tunnelClosed()
        self.ended.take()?(self, self.reason)
    }

    // MARK: Idle time

    private struct TimerHandler: NIOScheduledCallbackHandler {
        let tunnel: Tunnel

        func handleScheduledCallback(eventLoop: some EventLoop) {
            self.tunnel.timerFired()
        }
    }

    private func armTimer(at deadline: NIODeadline) {
        guard let loop = (self.client ?? self.origin)?.eventLoop else { return }
        self.timer = try? loop.assumeIsolated().scheduleCallback(
            at: deadline, handler: TimerHandler(tunnel: self))
    }

    /// Runs on after the tunnel's end until both channels are gone: a side that takes nothing
    /// would otherwise stay for ever.
    private func timerFired() {
        self.timer = nil
        guard self.client != nil || self.origin != nil else { return }
        let waiting = Side.allCases.reduce(0) { $0 + self.waiting(for: $1) }
        if self.idleness.isOver(
            at: .now(), carried: self.fromClient &+ self.fromOrigin, waiting: waiting)
        {
            self.cut("the tunnel was idle")
        } else {
            self.armTimer(at: self.idleness.deadline)
        }
    }

    /// Bytes that a side has not taken yet, in a pipe or with NIO.
    private func waiting(for side: Side) -> Int {
        let options = self.context(of: side)?.channel.syncOptions
        let unsent = (try? options?.getOption(.bufferedWritableBytes)) ?? 0
        return unsent + (self.splicing[side.other].pipe?.held ?? 0)
    }

    /// Both channels are gone: nothing is left to wait for.
    private func cancelTimerIfGone() {
        guard self.client == nil, self.origin == nil else { return }
        self.timer?.cancel()
        self.timer = nil
    }
}
