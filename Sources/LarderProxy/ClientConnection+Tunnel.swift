import LarderHTTP
import LarderSession
import NIOCore
import NIOPosix

/// `CONNECT` and `Upgrade`: connections of our own to origins.
extension ClientConnection {
    /// What a connection to an origin is for.
    enum DialPurpose: Sendable {
        case tunnel
        case upgrade(Request, protocols: [String])
    }

    /// Who dials where a parent proxy leads to the destination.
    private var dialer: (any TunnelDialer)? { self.exchange?.session?.dialer }

    /// Begins to connect, by way of the session's parent where it has one for this destination.
    ///
    /// - Parameter via: what the parent is told of the way that the request has come.
    func dial(host: String, port: UInt16, via: Fields, purpose: DialPurpose) {
        guard let loop = self.context?.eventLoop, let bound = self.bound else { return }
        // A client that sees no switch may have sent the first bytes of the other protocol.
        if case .upgrade = purpose { self.exchange?.mayPersist = false }
        let number = self.state.exchangeNumber
        let dial = self.dialer?.dial(host: host, port: port, via: via) { result in
            // Always a turn of the loop later, when the exchange has its handle.
            loop.execute { bound.value.dialled(result, host: host, purpose, number: number) }
        }
        if let dial {
            self.exchange?.handle = ParentDial(dial)
        } else {
            self.dialDirectly(host: host, port: port, purpose: purpose)
        }
    }

    private func dialDirectly(host: String, port: UInt16, purpose: DialPurpose) {
        guard let loop = self.context?.eventLoop else { return }
        let number = self.state.exchangeNumber
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let dial = DirectDial(on: loop) { ending in
            switch ending {
            case .connected(let channel):
                self.dialled(
                    channel, host: host, isDirect: true, purpose: purpose, number: number)
            case .failed(var failure):
                failure.nextHop = name
                self.failed(failure, number: number)
            case .refused(let answer):
                self.refused(with: answer, number: number)
            }
        }
        self.exchange?.handle = dial
        dial.begin(
            host: name, port: port, resolver: self.shared.resolver,
            for: ClientSource(self.client), within: self.configuration.resolveTimeout,
            bootstrap: self.bootstrap(loop) { try dial.admit($0) },
            objection: { address in
                OwnAuthorities.Endpoint(address).flatMap {
                    self.refusal(of: $0, near: nil, host: host)
                }
            })
    }

    /// A parent has connected, or has not.
    private func dialled(
        _ result: Result<DialledSocket, UpstreamFailure>, host: String, _ purpose: DialPurpose,
        number: UInt64
    ) {
        // Left by then: the socket goes with the result.
        guard self.exchange?.number == number, self.state.awaitsAnswer,
            let context = self.context
        else { return }
        self.exchange?.handle = nil
        let descriptor: Int32
        switch result {
        case .success(let socket):
            guard let taken = socket.take() else { return }
            descriptor = taken
        case .failure(let reason):
            var failure = ExchangeFailure(reason)
            failure.cacheStatus = CacheStatus(forward: .bypass)
            return self.failed(failure, number: number)
        }
        let channel = self.bootstrap(context.eventLoop).withConnectedSocket(descriptor)
        channel.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                self.dialled(
                    channel, host: host, isDirect: false, purpose: purpose, number: number)
            case .failure(let error):
                self.failed(DialError.failure(of: error), number: number)
            }
        }
    }

    private func bootstrap(
        _ loop: any EventLoop, admit: @escaping @Sendable (any Channel) throws -> Void = { _ in }
    ) -> ClientBootstrap {
        let configuration = self.configuration
        return ClientBootstrap(group: loop)
            .connectTimeout(.nanoseconds(configuration.connectTimeout.inNanoseconds))
            .channelOption(.autoRead, value: false)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(
                .writeBufferWaterMark, value: ProxyServer.waterMark(configuration)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try admit(channel)
                    try channel.pipeline.syncOperations.addHandler(OriginConnection())
                }
            }
    }

    private func dialled(
        _ channel: any Channel, host: String, isDirect: Bool, purpose: DialPurpose,
        number: UInt64
    ) {
        let handler = try? channel.pipeline.syncOperations.handler(type: OriginConnection.self)
        guard self.exchange?.number == number, self.state.awaitsAnswer else {
            channel.close(promise: nil)
            return
        }
        guard let handler, handler.context != nil else {
            var failure = ExchangeFailure.tunnel(
                502, .connectionTerminated, "the origin closed the connection")
            failure.nextHop = host
            self.failed(failure, number: number)
            return
        }
        if let refusal = self.refusal(of: channel, host: host, isDirect: isDirect) {
            channel.close(promise: nil)
            return self.refused(with: refusal, number: number)
        }
        self.exchange?.origin = NextHop(
            address: channel.remoteAddress.map(Self.text) ?? "", isParent: !isDirect)
        self.exchange?.handle = DialledOrigin(channel: channel)
        switch purpose {
        case .tunnel:
            self.beginTunnel(to: handler, ahead: ByteBuffer(), answer: nil)
        case .upgrade(let request, let protocols):
            self.upgrade(request, protocols: protocols, over: handler, number: number)
        }
    }

    static func text(of address: SocketAddress) -> String {
        guard let ip = address.ipAddress, let port = address.port else { return "" }
        return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }

    /// The rules do not let it be connected to what the host leads to.
    private func refused(with answer: OwnAnswer, number: UInt64) {
        guard self.exchange?.number == number, self.state.awaitsAnswer else { return }
        self.exchange?.handle = nil
        self.respond(answer)
        self.settleUnlessAdvancing()
    }

    /// Judges where a connection has led to, of which both ends are known only now.
    ///
    /// What a parent connects to it alone knows: rules on addresses say nothing about tunnels
    /// through it, whose own address was chosen by the configuration.
    private func refusal(of channel: any Channel, host: String, isDirect: Bool) -> OwnAnswer? {
        guard let far = OwnAuthorities.Endpoint(channel.remoteAddress) else { return nil }
        let near = channel.localAddress.flatMap { IPAddress($0) }
        guard isDirect else { return self.own.contains(far, from: near) ? .tunnelLoop : nil }
        return self.refusal(of: far, near: near, host: host)
    }

    /// Judges the address that a host leads to, together with the host: the rules saw only that.
    ///
    /// - Parameter near: this end of a connection to it, where there is one.
    private func refusal(
        of far: OwnAuthorities.Endpoint, near: IPAddress?, host: String
    ) -> OwnAnswer? {
        if self.own.contains(far, from: near) { return .tunnelLoop }
        let query = AccessQuery(
            client: self.client, user: self.exchange?.user,
            method: self.exchange?.method ?? .connect, host: host, port: far.port,
            address: far.address)
        guard case .denied(let rule) = self.shared.access.judge(query) else { return nil }
        return RequestRouter.denied(by: rule, port: far.port)
    }

    // MARK: Upgrades

    private func upgrade(
        _ request: Request, protocols: [String], over origin: OriginConnection, number: UInt64
    ) {
        guard let context = origin.context else { return }
        let upgrade = UpgradeExchange(
            context: context, method: request.method, configuration: self.configuration
        ) { outcome in
            switch outcome {
            case .informational(let head):
                self.informational(head, number: number)
            case .answered(let answer):
                var answer = answer
                answer.origin = self.exchange?.origin ?? NextHop()
                self.answered(answer, number: number)
            case .failed(var failure):
                failure.nextHop = request.uri.host
                self.failed(failure, number: number)
            case .switched(let head, let ahead):
                guard self.exchange?.number == number, self.state.awaitsAnswer else {
                    origin.context?.close(promise: nil)
                    return
                }
                self.beginTunnel(to: origin, ahead: ahead, answer: head)
            }
        }
        origin.mode = .upgrading(upgrade)
        upgrade.begin(request, protocols: protocols)
    }

    // MARK: Tunnels

    /// Answers, and joins both connections: from here on no byte is HTTP to us.
    ///
    /// - Parameters:
    ///   - ahead: what the origin has sent already.
    ///   - answer: the head of its 101; nil for a CONNECT, which we answer ourselves.
    private func beginTunnel(
        to origin: OriginConnection, ahead: ByteBuffer, answer: ResponseHead?
    ) {
        guard let client = self.context, let far = origin.context else { return }
        let head = answer ?? ResponseHead(status: .ok, reason: "Connection established")
        var buffer = ByteBuffer()
        self.shared.headWriter.write(
            head, framing: nil, persistence: answer == nil ? .implied : .upgrade, date: nil,
            into: &buffer)
        self.exchange?.status = head.status
        self.exchange?.headBytes = UInt64(clamping: buffer.readableBytes)
        self.write(buffer)
        self.needsFlush = false
        let inputHadEnded = !self.state.takesInput
        self.state.tunnelBegan()
        self.cancelTimer()
        let tunnel = Tunnel(
            client: client, origin: far, idleTimeout: self.configuration.tunnelIdleTimeout,
            loop: self.loop
        ) { tunnel, reason in
            self.tunnelEnded(tunnel, reason)
        }
        self.tunnel = tunnel
        origin.mode = .tunnel(tunnel)
        let early = self.inbound
        self.inbound = ByteBuffer()
        tunnel.received(early, from: .client)
        tunnel.received(ahead, from: .origin)
        client.flush()
        tunnel.begin()
        if inputHadEnded { tunnel.inputEnded(from: .client) }
    }

    private func tunnelEnded(_ tunnel: Tunnel, _ reason: String?) {
        self.exchange?.bodyBytes = tunnel.fromOrigin
        self.exchange?.requestBodyBytes = tunnel.fromClient
        self.exchange?.handle = nil
        self.closeExchange(failure: reason, isCut: reason != nil)
    }
}

/// A connection to an origin, as something that can be given up.
private final class DialledOrigin: Exchange {
    private let channel: any Channel

    init(channel: any Channel) { self.channel = channel }

    func cancel() { self.channel.close(promise: nil) }
}

/// A connection that a parent is to make, as something that can be given up.
private final class ParentDial: Exchange {
    private let dial: any TunnelDial

    init(_ dial: any TunnelDial) { self.dial = dial }

    func cancel() { self.dial.cancel() }
}
