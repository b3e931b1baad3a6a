package import LarderHTTP
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
    struct State {
        var channels: [any Channel] = []
        var endpoints: [OwnAuthorities.Endpoint] = []
        var isDraining = false
        var acceptTrouble = AcceptTrouble()
    }

    let group: MultiThreadedEventLoopGroup
    let configuration: ProxyConfiguration
    let access: any AccessPolicy
    let loops: [NIOLoopBoundBox<LoopState>]
    private let counters: [LoopCounters]
    let count: ConnectionCount
    let clients: ClientLimit
    let report: @Sendable (ProxyEvent) -> Void
    let state = Mutex(State())

    /// - Parameters:
    ///   - group: one loop a core.
    ///   - report: hears what happens; on any thread, and must not block.
    ///   - clock: the wall clock, for `Date` and the log.
    package convenience init(
        group: MultiThreadedEventLoopGroup, configuration: ProxyConfiguration,
        access: any AccessPolicy = LocalClients(), log: any ExchangeLog = NoExchangeLog(),
        report: @escaping @Sendable (ProxyEvent) -> Void = { _ in },
        clock: @escaping @Sendable () -> Timestamp
    ) {
        self.init(
            group: group, configuration: configuration, access: access, log: log, report: report,
            resolver: NameResolver(), clock: clock)
    }

    init(
        group: MultiThreadedEventLoopGroup, configuration: ProxyConfiguration,
        access: any AccessPolicy, log: any ExchangeLog,
        report: @escaping @Sendable (ProxyEvent) -> Void, resolver: NameResolver,
        clock: @escaping @Sendable () -> Timestamp
    ) {
        self.group = group
        self.configuration = configuration
        self.access = access
        self.report = report
        let eventLoops = Array(group.makeIterator())
        let count = ConnectionCount(maximum: configuration.maximumConnections)
        let shared = ProxyShared(
            configuration: configuration, access: access, log: log, connections: count,
            resolver: resolver, clock: clock)
        let counters = eventLoops.map { _ in LoopCounters() }
        let loops = eventLoops.enumerated().map { index, eventLoop in
            NIOLoopBoundBox.makeBoxSendingValue(
                LoopState(
                    shared: shared, counters: counters[index], index: index,
                    count: eventLoops.count), eventLoop: eventLoop)
        }
        self.count = count
        self.clients = ClientLimit(maximum: configuration.maximumConnectionsPerClient)
        self.counters = counters
        self.loops = loops
        let maximum = configuration.maximumConnections
        count.whenCrowded { news in
            switch news {
            case .full(let waited): report(.crowded(connections: maximum, waited: waited))
            case .over(let waited): report(.crowdOver(waited: waited))
            }
        }
        let room = RoomMaking(loops: loops, count: count)
        count.whenFull { room.begin(for: $0) }
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
        sum.acceptsFailed = self.state.withLock { $0.acceptTrouble.count }
        sum.connectionsRefused = self.clients.refused
        sum.connectionsWaited = self.count.waited
        return sum
    }

    /// Puts another share of each client into force; connections that are open stay so.
    ///
    /// - Parameter maximum: nil for no bound.
    package func follow(maximumConnectionsPerClient maximum: Int?) {
        self.clients.follow(maximum: maximum)
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
        self.count.whenFull { _ in }
    }
}
