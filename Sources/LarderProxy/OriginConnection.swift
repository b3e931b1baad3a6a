import LarderHTTP
import LarderSession
import NIOCore

/// The far end of a tunnel or of an upgraded connection: the only handler of its channel.
///
/// ```
/// idle ──▶ tunnel
///   └────▶ upgrading ──101──▶ tunnel
///             └──any other──▶ answering (its content feeds an ordinary answer) ──▶ closed
/// ```
final class OriginConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Mode {
        case idle
        case tunnel(Tunnel)
        case upgrading(UpgradeExchange)
    }

    private(set) var context: ChannelHandlerContext?
    var mode = Mode.idle

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.mode = .idle
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        switch self.mode {
        case .idle: break
        case .tunnel(let tunnel): tunnel.received(bytes, from: .origin)
        case .upgrading(let upgrade): upgrade.received(bytes)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        switch self.mode {
        case .idle: break
        case .tunnel(let tunnel): tunnel.readCompleted(from: .origin)
        case .upgrading(let upgrade): upgrade.readCompleted()
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .tunnel(let tunnel) = self.mode { tunnel.writabilityChanged(of: .origin) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        switch self.mode {
        case .idle: break
        case .tunnel(let tunnel): tunnel.inputEnded(from: .origin)
        case .upgrading(let upgrade): upgrade.inputEnded()
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        switch self.mode {
        case .idle: break
        case .tunnel(let tunnel): tunnel.closed(.origin)
        case .upgrading(let upgrade): upgrade.closed()
        }
    }
}
