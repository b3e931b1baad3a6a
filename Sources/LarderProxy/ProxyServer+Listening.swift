package import LarderSession
import NIOCore
import NIOPosix

/// The listeners, and what becomes of who connects to them.
extension ProxyServer {
    /// Opens a listener whose requests all go to one session.
    ///
    /// - Returns: the address with the port that it got.
    package func listen(
        on address: ListenAddress, session: any ExchangeSession,
        options: ListenerOptions = ListenerOptions()
    ) async throws(ListenError) -> ListenAddress {
        try await self.listen(
            on: address, directory: OneSessionDirectory(session), options: options)
    }

    /// Opens a listener whose requests go to the sessions that `directory` finds.
    ///
    /// - Returns: the address with the port that it got.
    package func listen(
        on address: ListenAddress, directory: any SessionDirectory,
        options: ListenerOptions = ListenerOptions()
    ) async throws(ListenError) -> ListenAddress {
        let channel = try await self.bind(address, directory: directory, options: options)
        let bound = Self.bound(channel, address)
        let isLate = self.state.withLock { state -> Bool in
            if state.isDraining { return true }
            state.channels.append(channel)
            if let endpoint = OwnAuthorities.Endpoint(channel.localAddress) {
                state.endpoints.append(endpoint)
            }
            return false
        }
        if isLate {
            channel.close(promise: nil)
            throw ListenError(.draining, address: address, detail: "the proxy is shutting down")
        }
        return bound
    }

    private static func bound(_ channel: any Channel, _ address: ListenAddress) -> ListenAddress {
        guard case .tcp(let host, _) = address, let local = channel.localAddress,
            let port = local.port.flatMap(UInt16.init(exactly:))
        else { return address }
        return .tcp(host: local.ipAddress ?? host, port: port)
    }

    private func bind(
        _ address: ListenAddress, directory: any SessionDirectory, options: ListenerOptions
    ) async throws(ListenError) -> any Channel {
        let isUnix = if case .unix = address { true } else { false }
        let bootstrap = self.bootstrap(isUnix: isUnix, directory: directory, options: options)
        do {
            switch address {
            case .tcp(let host, let port):
                return try await bootstrap.bind(host: host, port: Int(port)).get()
            case .unix(let path):
                // A socket file of a process that is gone is in the way; one that answers is not ours.
                let isLeftOver = await self.isLeftOver(path)
                return try await bootstrap.bind(
                    unixDomainSocketPath: path, cleanupExistingSocketFile: isLeftOver
                ).get()
            }
        } catch {
            throw ListenError(error, address: address)
        }
    }

    /// Whether a socket file is there and nobody listens on it.
    private func isLeftOver(_ path: String) async -> Bool {
        do {
            let channel = try await ClientBootstrap(group: self.group)
                .connect(unixDomainSocketPath: path).get()
            channel.close(promise: nil)
            return false
        } catch let error as IOError {
            return ListenError.isRefusal(error)
        } catch {
            return false
        }
    }

    private func bootstrap(
        isUnix: Bool, directory: any SessionDirectory, options: ListenerOptions
    ) -> ServerBootstrap {
        let count = self.count
        return ServerBootstrap(group: self.group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: 16)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptGate(count: count))
                }
            }
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.writeBufferWaterMark, value: Self.waterMark(self.configuration))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        try self.connection(
                            for: channel, client: try Self.client(of: channel, isUnix: isUnix),
                            directory: directory, options: options))
                }
            }
    }

    /// On the channel's own loop.
    private func connection(
        for channel: any Channel, client: ClientAddress, directory: any SessionDirectory,
        options: ListenerOptions
    ) throws -> ClientConnection {
        guard let loop = self.loops.first(where: { $0.eventLoop === channel.eventLoop }) else {
            throw ChannelError.unknownLocalAddress
        }
        let (endpoints, isDraining) = self.state.withLock { ($0.endpoints, $0.isDraining) }
        guard !isDraining else { throw ChannelError.alreadyClosed }
        let own = OwnAuthorities(
            listeners: endpoints, local: OwnAuthorities.Endpoint(channel.localAddress),
            names: self.configuration.hostNames)
        return ClientConnection(
            loop: loop.value, directory: directory, client: client, own: own, listener: options)
    }

    private static func client(of channel: any Channel, isUnix: Bool) throws -> ClientAddress {
        if isUnix { return .unix(PeerCredentials(of: channel)) }
        // A client that has reset its connection already has no address any more. It must not pass
        // for one of this machine, which may do more.
        guard let address = channel.remoteAddress, let ip = IPAddress(address) else {
            throw ChannelError.alreadyClosed
        }
        return .ip(
            ip, text: address.ipAddress ?? "",
            port: address.port.flatMap(UInt16.init(exactly:)) ?? 0)
    }
}
