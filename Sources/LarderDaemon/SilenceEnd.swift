import NIOCore

/// Closes a connection on which nothing has been said for a while after it was opened: it has one of few
/// places, and a command asks at once.
///
/// Leaves the pipeline with the first bytes that come.
final class SilenceEnd: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let patience: TimeAmount
    private var end: Scheduled<Void>?

    init(after patience: TimeAmount) {
        self.patience = patience
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.end = context.eventLoop.assumeIsolated().scheduleTask(in: self.patience) {
            context.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.end?.cancel()
        self.end = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireChannelRead(data)
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
}
