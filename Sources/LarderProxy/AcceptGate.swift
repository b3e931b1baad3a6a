package import NIOCore

/// Stands before NIO's own acceptor: lets connections through while there are places for them.
///
/// Where accept(2) finds no descriptor, it stops asking until a connection closes or a second has
/// passed, as the listener stays readable all the while. NIO's `AcceptBackoffHandler` would not do:
/// the channel still takes itself for read after such an error, and goes on without a further `read`.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// Connections accepted in one go, and as many idle ones give way where nothing can be.
    static let batch = 16
    private static let pause = TimeAmount.seconds(1)

    private let count: ConnectionCount
    private let isWelcome: (any Channel) -> Bool
    private let report: (AcceptFailure, any Error) -> Void
    /// Accepted, but without a place; no more than one batch of accepts.
    private var waiting = CircularBuffer<any Channel>()
    private var wantsRead = false
    /// The next connection that closes calls us: once is enough, however many wait.
    private var awaitsPlace = false
    /// Ends the pause while nothing can be accepted.
    private var retry: Scheduled<Void>?

    /// - Parameters:
    ///   - isWelcome: whether a connection may have a place or wait for one; else it is closed.
    ///   - report: hears of errors, but for those of a client that has gone.
    init(
        count: ConnectionCount, isWelcome: @escaping (any Channel) -> Bool = { _ in true },
        report: @escaping (AcceptFailure, any Error) -> Void
    ) {
        self.count = count
        self.isWelcome = isWelcome
        self.report = report
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = self.unwrapInboundIn(data)
        guard self.isWelcome(channel) else { return channel.close(promise: nil) }
        let isShut = !self.waiting.isEmpty
        self.waiting.append(channel)
        if !isShut { self.admit(context) }
        if !self.waiting.isEmpty { self.count.noteWaiting() }
    }

    func read(context: ChannelHandlerContext) {
        if self.waiting.isEmpty, self.retry == nil {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    private func admit(_ context: ChannelHandlerContext) {
        while let channel = self.waiting.first {
            let reopen = self.awaitsPlace ? nil : self.placeFreed(context)
            guard self.count.enter(of: self.waiting.count, orElse: reopen) else {
                self.awaitsPlace = true
                return
            }
            self.waiting.removeFirst()
            let count = self.count
            channel.closeFuture.whenComplete { _ in count.leave() }
            context.fireChannelRead(self.wrapInboundOut(channel))
        }
        if self.wantsRead, self.retry == nil {
            self.wantsRead = false
            context.read()
        }
    }

    /// What a connection that closes calls, on whatever thread.
    private func placeFreed(_ context: ChannelHandlerContext) -> @Sendable () -> Void {
        let gate = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        return {
            gate.eventLoop.execute {
                let (handler, context) = gate.value
                handler.awaitsPlace = false
                handler.admit(context)
                handler.resume(context)
            }
        }
    }

    // MARK: Errors

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let failure = AcceptFailure(error)
        switch failure {
        case .passing: break
        case .exhausted:
            self.report(failure, error)
            self.pause(context)
        case .fatal: self.report(failure, error)
        }
    }

    private func pause(_ context: ChannelHandlerContext) {
        guard self.retry == nil else { return }
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        self.retry = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.resume(context)
        }
        guard !self.awaitsPlace else { return }
        self.awaitsPlace = true
        self.count.whenOneLeaves(wanting: Self.batch, self.placeFreed(context))
    }

    private func resume(_ context: ChannelHandlerContext) {
        // Where some wait at the cap, it goes on with them.
        guard self.waiting.isEmpty, let retry = self.retry.take() else { return }
        retry.cancel()
        // It throws where the listener is closed.
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.retry.take()?.cancel()
        for channel in self.waiting { channel.close(promise: nil) }
        self.waiting.removeAll()
        context.fireChannelInactive()
    }
}

/// The gate of a listener beside those that clients connect to.
package enum ListenerGate {
    /// Lets so many connections be open at a time; further ones wait in the kernel's queue, as all do
    /// for a second where there is no descriptor left.
    ///
    /// One handler a listener, before NIO's own acceptor.
    package static func make(connections: Int) -> any ChannelHandler {
        // That descriptors are lacking is said for the listeners of clients.
        AcceptGate(count: ConnectionCount(maximum: connections)) { _, _ in }
    }
}
