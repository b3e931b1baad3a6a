package import LarderSession
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The listeners, and what becomes of who connects to them.
extension ProxyServer {
    /// A listener that is open, or is to be opened again.
    private struct Listener: Sendable {
        /// With the port that it got.
        var address: ListenAddress
        let directory: any SessionDirectory
        let options: ListenerOptions
        /// A socket that listens at the address already, and that others have, too.
        var inherited: CInt?
    }

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
    /// Where an error closes it later, it is opened again, at the same port.
    ///
    /// - Parameter inherited: a socket that listens at this address already. A duplicate is used of
    ///   it; it stays the caller's, and open for as long as the proxy serves.
    /// - Returns: the address with the port that it got.
    package func listen(
        on address: ListenAddress, directory: any SessionDirectory,
        options: ListenerOptions = ListenerOptions(), inherited: CInt? = nil
    ) async throws(ListenError) -> ListenAddress {
        try await self.open(
            Listener(
                address: address, directory: directory, options: options, inherited: inherited))
    }

    private func open(_ listener: Listener) async throws(ListenError) -> ListenAddress {
        let channel = try await self.bind(listener)
        var listener = listener
        listener.address = Self.bound(channel, listener.address)
        let isLate = self.state.withLock { state -> Bool in
            if state.isDraining { return true }
            state.channels.append(channel)
            if let endpoint = OwnAuthorities.Endpoint(channel.localAddress),
                !state.endpoints.contains(endpoint)
            {
                state.endpoints.append(endpoint)
            }
            return false
        }
        if isLate {
            channel.close(promise: nil)
            throw ListenError(
                .draining, address: listener.address, detail: "the proxy is shutting down")
        }
        let opened = NIODeadline.now()
        channel.closeFuture.whenComplete { [listener] _ in
            self.lost(listener, channel, opened: opened)
        }
        return listener.address
    }

    private static func bound(_ channel: any Channel, _ address: ListenAddress) -> ListenAddress {
        guard case .tcp(let host, _) = address, let local = channel.localAddress,
            let port = local.port.flatMap(UInt16.init(exactly:))
        else { return address }
        return .tcp(host: local.ipAddress ?? host, port: port)
    }

    private func bind(_ listener: Listener) async throws(ListenError) -> any Channel {
        let bootstrap = self.bootstrap(listener)
        do {
            if let inherited = listener.inherited {
                let socket = fcntl(inherited, F_DUPFD_CLOEXEC, 0)
                guard socket >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
                return try await bootstrap.withBoundSocket(socket).get()
            }
            switch listener.address {
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
            throw ListenError(error, address: listener.address)
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

    // MARK: Trouble

    /// The time between two attempts to open a listener that was lost.
    private static let reopening = TimeAmount.seconds(1)

    /// A listener was closed: by the end of the proxy, or by an error of accept(2).
    private func lost(_ listener: Listener, _ channel: any Channel, opened: NIODeadline) {
        let isDraining = self.state.withLock { state in
            state.channels.removeAll { $0 === channel }
            return state.isDraining
        }
        guard !isDraining else { return }
        self.report(.listenerLost(listener.address))
        self.reopen(listener, at: max(.now(), opened + Self.reopening), isFirst: true)
    }

    private func reopen(_ listener: Listener, at moment: NIODeadline, isFirst: Bool) {
        self.group.next().scheduleTask(deadline: moment) {
            Task {
                do throws(ListenError) {
                    _ = try await self.open(listener)
                    self.report(.listenerReopened(listener.address))
                } catch {
                    guard error.code != .draining else { return }
                    if isFirst { self.report(.listenerNotReopened(error)) }
                    self.reopen(listener, at: .now() + Self.reopening, isFirst: false)
                }
            }
        }
    }

    private func acceptFailed(
        _ failure: AcceptFailure, _ error: any Error, at address: ListenAddress
    ) {
        switch failure {
        case .passing: break
        case .fatal: self.report(.acceptFailed(address, cause: "\(error)"))
        case .exhausted:
            let (isSaid, count) = self.state.withLock { state in
                (state.acceptTrouble.failed(at: .now()), state.acceptTrouble.count)
            }
            if isSaid {
                self.report(.acceptingPaused(address, cause: "\(error)", count: count))
            }
        }
    }

    // MARK: Connections

    /// Whether the client may have one more connection, which is then counted until it closes.
    ///
    /// Asked before there is a place for it: others need not give way to who has enough.
    private func admits(_ channel: any Channel, at listener: ListenAddress) -> Bool {
        // Clients of a Unix socket have none, nor has one that has gone already.
        guard let address = channel.remoteAddress, let ip = IPAddress(address) else { return true }
        let client = ClientSource(ip)
        switch self.clients.enter(client) {
        case .admitted:
            let clients = self.clients
            channel.closeFuture.whenComplete { _ in clients.leave(client) }
            return true
        case .refused(let count, let isNews):
            if isNews {
                let bound = channel.parent.map { Self.bound($0, listener) } ?? listener
                let text = ip.dotted ?? address.ipAddress ?? ""
                self.report(.clientRefused(bound, client: text, count: count))
            }
            return false
        }
    }

    private func bootstrap(_ listener: Listener) -> ServerBootstrap {
        let isUnix = if case .unix = listener.address { true } else { false }
        return ServerBootstrap(group: self.group)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: UInt(AcceptGate.batch))
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    Self.setMode(of: channel, for: listener)
                    let gate = AcceptGate(
                        count: self.count, isWelcome: { self.admits($0, at: listener.address) }
                    ) { failure, error in
                        self.acceptFailed(failure, error, at: listener.address)
                    }
                    try channel.pipeline.syncOperations.addHandler(gate)
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
                            listener))
                }
            }
    }

    /// Gives a Unix socket that is not bound yet the permissions that its file is to have.
    ///
    /// Linux makes the file with the mode of the socket, less the umask: so there is no moment in
    /// which others could connect.
    private static func setMode(of channel: any Channel, for listener: Listener) {
        guard case .unix = listener.address, listener.inherited == nil,
            let mode = listener.options.socketMode
        else { return }
        _ = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { fchmod($0, mode_t(mode)) }
    }

    /// On the channel's own loop.
    private func connection(
        for channel: any Channel, client: ClientAddress, _ listener: Listener
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
            loop: loop.value, directory: listener.directory, client: client, own: own,
            listener: listener.options)
    }

    private static func client(of channel: any Channel, isUnix: Bool) throws -> ClientAddress {
        if isUnix { return .unix(PeerCredentials(of: channel)) }
        // A client that has reset its connection already has no address any more. It must not pass
        // for one of this machine, which may do more.
        guard let address = channel.remoteAddress, let ip = IPAddress(address) else {
            throw ChannelError.alreadyClosed
        }
        return .ip(
            ip, text: ip.dotted ?? address.ipAddress ?? "",
            port: address.port.flatMap(UInt16.init(exactly:)) ?? 0)
    }
}
