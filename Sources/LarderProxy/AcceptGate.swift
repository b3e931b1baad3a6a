import NIOCore

/// Stands before NIO's own acceptor: lets connections through while there are places for them.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    private let count: ConnectionCount
    /// Accepted, but without a place; no more than one batch of accepts.
    private var waiting = CircularBuffer<any Channel>()
    private var wantsRead = false

    init(count: ConnectionCount) {
        self.count = count
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.waiting.append(self.unwrapInboundIn(data))
        self.admit(context)
    }

    func read(context: ChannelHandlerContext) {
        if self.waiting.isEmpty {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    private func admit(_ context: ChannelHandlerContext) {
        while let channel = self.waiting.first {
            let gate = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let entered = self.count.enter {
                gate.eventLoop.execute {
                    let (handler, context) = gate.value
                    handler.admit(context)
                }
            }
            guard entered else { return }
            self.waiting.removeFirst()
            let count = self.count
            channel.closeFuture.whenComplete { _ in count.leave() }
            context.fireChannelRead(self.wrapInboundOut(channel))
        }
        if self.wantsRead {
            self.wantsRead = false
            context.read()
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        for channel in self.waiting { channel.close(promise: nil) }
        self.waiting.removeAll()
        context.fireChannelInactive()
    }
}
