package import LarderHTTP
package import LarderSession
import NIOCore
package import NIOPosix
import Synchronization

/// The door to HTTP clients: listens, and serves every connection on the event loops it was given.
///
/// ```
/// init ─▶ listen … listen ─▶ drain
/// ```
///
/// The group belongs to the caller, who shuts it down after `drain` has returned. All methods may be
/// called from any thread.
package final class ProxyServer: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var endpoints: [OwnAuthorities.Endpoint] = []
        var isDraining = false
    }

    private let group: MultiThreadedEventLoopGroup
    private let configuration: ProxyConfiguration
    let loops: [NIOLoopBoundBox<LoopState>]
    private let counters: [LoopCounters]
    private let count: ConnectionCount
    private let state = Mutex(State())

    /// - Parameters:
    ///   - group: one loop a core.
    ///   - clock: the wall clock, for `Date` and the log.
    package init(
        group: MultiThreadedEventLoopGroup, configuration: ProxyConfiguration,
        access: any AccessPolicy = LocalClients(), log: any ExchangeLog = NoExchangeLog(),
        clock: @escaping @Sendable () -> Timestamp
    ) {
        self.group = group
        self.configuration = configuration
        let eventLoops = Array(group.makeIterator())
        let count = ConnectionCount(maximum: configuration.maximumConnections)
        let shared = ProxyShared(
            configuration: configuration, access: access, log: log, connections: count,
            clock: clock)
        let counters = eventLoops.map { _ in LoopCounters() }
        let loops = eventLoops.enumerated().map { index, eventLoop in
            NIOLoopBoundBox.makeBoxSendingValue(
                LoopState(
                    shared: shared, counters: counters[index], index: index,
                    count: eventLoops.count), eventLoop: eventLoop)
        }
        self.count = count
        self.counters = counters
        self.loops = loops
        count.whenFull {
            for loop in loops {
                loop.eventLoop.execute { loop.value.closeIdle(limit: 8) }
            }
        }
    }

    static func waterMark(
        _ configuration: ProxyConfiguration
    ) -> ChannelOptions.Types.WriteBufferWaterMark {
        let low = max(1, min(configuration.sendBufferLow.clamped, Int(Int32.max)))
        let high = min(configuration.sendBufferHigh.clamped, Int(Int32.max))
        return .init(low: low, high: max(low, high))
    }

    /// Connections with clients that are open now.
    package var openConnections: Int { self.count.open }

    package func statistics() -> ProxyStatistics {
        var sum = ProxyStatistics()
        for counters in self.counters { counters.add(to: &sum) }
        return sum
    }

    // MARK: Listening

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

    // MARK: Shutdown

    /// Stops listening, lets running exchanges end, and returns when no connection is left.
    ///
    /// Idle connections close at once; what still runs at the deadline is cut. May be called again
    /// meanwhile with a nearer deadline.
    package func drain(within time: Duration) async {
        let channels = self.state.withLock { state -> [any Channel] in
            state.isDraining = true
            defer { state.channels = [] }
            return state.channels
        }
        for channel in channels { try? await channel.close().get() }
        for loop in self.loops {
            loop.eventLoop.execute { loop.value.drain() }
        }
        let cut = self.group.next().scheduleTask(in: .nanoseconds(time.inNanoseconds)) {
            for loop in self.loops {
                loop.eventLoop.execute { loop.value.cutAll() }
            }
        }
        await withCheckedContinuation { continuation in
            _ = self.count.whenNone { continuation.resume() }
        }
        cut.cancel()
        // The closure holds the loops, and they the count: with nobody left to admit, let go.
        self.count.whenFull {}
    }
}
