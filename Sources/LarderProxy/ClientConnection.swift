import LarderHTTP
import LarderSession
import NIOCore

/// One client's connection: the only handler of its channel.
///
/// It drives `ClientConnectionState`: reads what the state wants read, does what it says, and
/// keeps one deadline. Confined to its event loop; a session's calls arrive by `ConnectionClient`.
///
/// Reading is by hand (`autoRead` is off): nothing is taken off the socket that has no place yet.
final class ClientConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let loop: LoopState
    let directory: any SessionDirectory
    let listener: ListenerOptions
    let standing: ClientStanding
    /// Where the client comes from, as sessions tell that apart (`ExchangeOptions.source`).
    let source: Int
    let own: OwnAuthorities

    var context: ChannelHandlerContext?
    /// Self, for other threads to name: a cycle, broken when the handler is removed.
    var bound: NIOLoopBound<ClientConnection>?
    var state = ClientConnectionState()
    var parser: RequestHeadParser
    /// The parser has seen something of the next head, if only an empty line.
    var isMidHead = false
    /// Bytes received and not yet understood.
    var inbound = ByteBuffer()
    var exchange: OpenExchange?
    /// Content of the current request that has still to come.
    ///
    /// It may outlive the exchange: what an early answer left unread is taken off the connection
    /// before the next request.
    var upload: Upload?
    var tunnel: Tunnel?
    /// The read at work, while it is a request that came before, or may be kept as one.
    var arrival: Arrival?

    /// The socket below the channel, for `sendAtOnce`; nil where there is none.
    private(set) var socket: NIOBSDSocket.Handle?
    /// Whether the channel takes more, as it last said: asked several times with each request, and the
    /// channel itself is found only by way of the pipeline.
    private(set) var isWritable = true
    /// Something was written since the last flush.
    var needsFlush = false
    /// Something was written since the channel was last known to have sent all.
    var mayHaveUnsent = false
    /// `advance` is at work further up the stack.
    var isAdvancing = false
    /// What is written waits in the loop's `PieceGathering`.
    var isGathering = false
    /// `pump` is at work further up the stack.
    var isPumping = false
    /// All is written, and the channel closes when it is sent.
    var isClosing = false
    /// The channel was asked for input and has brought none since: it knows, and to ask once more takes
    /// a thousand instructions.
    private var hasAskedForInput = false
    /// Lingering, with nothing left to send.
    private(set) var hasSentAll = false
    var timer = ConnectionTimer()

    init(
        loop: LoopState, directory: any SessionDirectory, client: ClientAddress,
        own: OwnAuthorities, listener: ListenerOptions = ListenerOptions()
    ) {
        self.listener = listener
        self.standing = ClientStanding(client, listener: listener)
        self.source = ClientSource(client).hashValue
        self.loop = loop
        self.directory = directory
        self.own = own
        self.parser = Self.parser(loop, own)
    }

    private static func parser(_ loop: LoopState, _ own: OwnAuthorities) -> RequestHeadParser {
        RequestHeadParser(
            limits: loop.shared.configuration.headLimits, isOwnPort: { own.hasPort($0) })
    }

    /// One for a head of this connection that was parsed before.
    var newParser: RequestHeadParser { Self.parser(self.loop, self.own) }

    var client: ClientAddress { self.standing.identity.address }
    var shared: ProxyShared { self.loop.shared }
    var configuration: ProxyConfiguration { self.loop.shared.configuration }
    var isUsedAndIdle: Bool {
        self.state.isIdle && self.state.exchangeNumber > 0 && self.inbound.readableBytes == 0
    }

    // MARK: Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        self.bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        self.socket = Self.socket(of: context)
        self.loop.connections[ObjectIdentifier(self)] = self
        self.loop.counters.connectionOpened()
        if context.channel.isActive { self.settle() }
    }

    func channelActive(context: ChannelHandlerContext) {
        self.settle()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        self.hasAskedForInput = false
        self.loop.counters.received(bytes.readableBytes)
        if let tunnel = self.tunnel {
            tunnel.received(bytes, from: .client)
            return
        }
        guard !self.state.isLingering else { return }
        if self.inbound.readableBytes == 0 {
            if self.answerKnown(bytes) { return }
            self.inbound = bytes
        } else {
            var inbound = self.takeInbound()
            inbound.discardReadBytes()
            inbound.writeBuffer(&bytes)
            self.inbound = inbound
        }
        self.advance()
        guard self.arrival != nil else { return }
        self.keepUnderstood()
        // An answer that comes later is not kept: the buffer of this read would be held until then.
        self.arrival = nil
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let tunnel = self.tunnel {
            tunnel.readCompleted(from: .client)
        } else {
            self.settle()
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.isWritable = context.channel.isWritable
        if let tunnel = self.tunnel {
            tunnel.writabilityChanged(of: .client)
            return
        }
        if self.isWritable {
            self.pump()
            self.advance()
        }
        self.settle()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return }
        if let tunnel = self.tunnel {
            tunnel.inputEnded(from: .client)
            return
        }
        self.apply(self.state.inputEnded())
        if self.state.awaitsAnswer { self.exchange?.handle?.clientMayHaveGone() }
        self.settle()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let tunnel = self.tunnel {
            tunnel.closed(.client)
        }
        if self.state.connectionEnded() || self.exchange != nil {
            self.abandonExchange("the client went away")
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        // Also when the pipeline goes without the channel ever having been active.
        if self.exchange != nil { self.abandonExchange("the client went away") }
        self.cancelTimer()
        self.inbound = ByteBuffer()
        self.context = nil
        self.socket = nil
        self.bound = nil
        self.loop.connections[ObjectIdentifier(self)] = nil
        self.loop.counters.connectionClosed()
    }

    // MARK: Shutdown

    func drain() {
        self.apply(self.state.drain())
        self.settle()
    }

    func cutForShutdown() {
        let reason = "the proxy is shutting down"
        if let tunnel = self.tunnel {
            tunnel.cut(reason)
            self.context?.close(promise: nil)
        } else {
            self.cutAtOnce(reason)
        }
    }

    // MARK: Doing what the state says

    func apply(_ action: ClientConnectionState.Action) {
        switch action {
        case .nothing:
            break
        case .discardContent:
            if self.discardsMore {
                self.advance()
            } else {
                self.apply(self.state.discardingEnded())
            }
        case .readHead:
            self.advance()
        case .linger:
            self.linger()
        case .close:
            self.closeWhenSent()
        case .abort:
            self.cutAtOnce("the client sends no more of its content")
        case .answerTimeout:
            self.answerTimeout()
        }
    }

    /// Flushes, asks for input, sets the deadline: what every event ends with.
    func settle() {
        guard let context = self.context else { return }
        if self.needsFlush {
            self.needsFlush = false
            context.flush()
        }
        // The flush may have closed the channel, or made it writable and thus gone on.
        guard self.context != nil, self.tunnel == nil else { return }
        if self.wantsInput, !self.hasAskedForInput {
            self.hasAskedForInput = true
            context.read()
        }
        self.updateDeadline()
    }

    private var wantsInput: Bool {
        guard self.state.takesInput, !self.isClosing || self.state.isLingering else { return false }
        switch self.state.reading {
        case .head:
            // A head larger than its bounds is refused by the parser, so this is bounded.
            return self.isWritable
        case .content:
            return self.upload?.isPaused != true
        case .discarded:
            return self.state.isLingering || self.discardsMore
        case .nothing:
            return self.inbound.readableBytes < self.configuration.pipelineBuffer.clamped
        case .tunnel:
            return false
        }
    }

    /// Ends the sending side when all is sent, then waits for the client to end its own.
    private func linger() {
        guard let context = self.context else { return }
        self.inbound = ByteBuffer()
        self.whenSent {
            $0.hasSentAll = true
            $0.context?.close(mode: .output, promise: nil)
            $0.updateDeadline()
        }
        context.read()
    }

    /// Closes when all that was written is sent; NIO's own `close` would drop what waits.
    func closeWhenSent() {
        guard !self.isClosing else { return }
        self.isClosing = true
        self.whenSent { $0.context?.close(promise: nil) }
    }

    private func whenSent(_ action: @escaping (ClientConnection) -> Void) {
        guard let context = self.context else { return }
        self.endGathering()
        self.needsFlush = false
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { _ in action(self) }
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer()), promise: sent)
    }
}
