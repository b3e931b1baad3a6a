import NIOCore

/// Closes a connection that is idle: it has one of few places.
///
/// One whose peer takes its time with an answer, such as a list that somebody reads by pages, is not:
/// something waits to be sent. Stands behind an `IdleStateHandler`.
final class IdleEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// What was to be sent and has not been.
    private var unsent = 0

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let promise = promise ?? context.eventLoop.makePromise()
        self.unsent += 1
        promise.futureResult.assumeIsolated().whenComplete { _ in self.unsent -= 1 }
        context.write(data, promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        if self.unsent == 0 { context.close(promise: nil) }
    }
}
