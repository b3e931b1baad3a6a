package import LarderHTTP
package import LarderPolicy
package import LarderStore
import Synchronization

/// A session of the URL Loading System: one configuration, one store, and the exchanges between them
/// and the origins.
///
/// Any thread may use it. It holds no threads of its own: it acts on those of whoever calls it, and
/// on those of its upstream, its store and its timers.
package final class Session: ExchangeSession {
    /// What may change while the session runs.
    private struct Current {
        /// Exchanged as a whole: each exchange keeps the one that it began with, by one reference.
        var configuration: ConfigurationSnapshot
        /// What it adds to requests; nil: nothing.
        var conduct: SessionConduct?
        var upstream: any Upstream

        /// Once there is a chain there always is one: a request that was prepared for it finds it.
        mutating func take(
            _ conduct: SessionConduct?, _ origins: any Upstream, _ clock: any WallClock,
            _ timers: any Timers
        ) {
            self.conduct = conduct
            guard let conduct, conduct.takesPart else { return }
            self.upstream = RequestChain(
                origins, conduct: conduct, clock: clock, timers: timers)
        }
    }

    private let current: Mutex<Current>
    private let origins: any Upstream
    private let makeConduct: @Sendable (SessionConfiguration) -> SessionConduct?
    private let offlineMisses = Mutex(OfflineMisses())
    package let store: any ObjectStore
    let clock: any WallClock
    let timers: any Timers
    let fillings = FillingTable()
    let storings = StoringTable()
    let merges = PartMerges()
    let live = LiveCounters()
    let recent: RecentExchanges
    let dates = DateLines()
    let rules = RulesNumber()
    let credentials: SessionCredentials?
    /// Whose entries these are, where a session is split by principal.
    package let partition: String
    let role: SessionConfiguration.Role

    /// - Parameters:
    ///   - store: the session's alone; whoever made it closes it, after the last exchange.
    ///   - upstream: may be shared with other sessions.
    ///   - partition: the principal whose entries in the store these are, where it holds those of
    ///     several: then the rules of a private cache hold. Empty where a session is not split.
    ///   - cookies: nil: cookies are the clients' business.
    ///   - credentials: nil: it holds none.
    ///   - digest: a keyed hash that stands for secrets where requests are compared and kept, the
    ///     same as long as what is stored. nil: what varies by a secret answers no second request.
    package init(
        configuration: SessionConfiguration, store: any ObjectStore, upstream: any Upstream,
        clock: any WallClock, timers: any Timers, partition: String = "",
        cookies: (any HopCookies)? = nil, credentials: SessionCredentials? = nil,
        digest: (@Sendable ([UInt8]) -> [UInt8])? = nil
    ) {
        let partition = CacheKey.partition(of: partition)
        let own = ConfigurationSnapshot(configuration, isPrivate: !partition.isEmpty)
        self.store = store
        self.credentials = credentials
        self.partition = partition
        self.role = configuration.role
        let acts = self.live.acts
        self.makeConduct = { configuration in
            SessionConduct(
                configuration, partition: partition, cookies: cookies, credentials: credentials,
                digest: digest, acts: acts)
        }
        self.origins = upstream
        var current = Current(configuration: own, upstream: upstream)
        current.take(self.makeConduct(configuration), upstream, clock, timers)
        self.current = Mutex(current)
        self.clock = clock
        self.timers = timers
        self.recent = RecentExchanges(
            capacity: configuration.remembersExchanges / (partition.isEmpty ? 1 : Self.share))
    }

    /// Principals remember so many times fewer exchanges than a session that is not split.
    private static let share = 32

    /// The configuration of this moment.
    ///
    /// An exchange reads it once, so that all of it follows the same rules.
    package var configuration: SessionConfiguration { self.snapshot.values }

    var snapshot: ConfigurationSnapshot { self.current.withLock { $0.configuration } }

    package var cachePolicy: RequestCachePolicy { self.snapshot.values.cachePolicy }

    package func mustPerform(_ request: Request) -> Bool {
        self.conduct?.rules.injections.first(for: request.uri, request.method) != nil
    }

    var conduct: SessionConduct? { self.current.withLock { $0.conduct } }

    /// The way to origins, with what the session does on it.
    var upstream: any Upstream { self.current.withLock { $0.upstream } }

    /// Puts other rules into force, for exchanges that begin from now on.
    ///
    /// What is stored is judged by them when it is asked for next. Of a configuration only that is
    /// taken which may change while the session runs.
    package func follow(_ newer: SessionConfiguration) {
        let conduct = self.makeConduct(newer)
        self.current.withLock { current in
            var values = current.configuration.values
            values.policy = newer.policy
            values.cachePolicy = newer.cachePolicy
            values.additionalFields = newer.additionalFields
            values.injections = newer.injections
            values.answersChallenges = newer.answersChallenges
            values.followsRedirects = newer.followsRedirects
            current.configuration = ConfigurationSnapshot(
                values, isPrivate: !self.partition.isEmpty)
            current.take(conduct, self.origins, self.clock, self.timers)
        }
        self.rules.change()
    }

    package var dialer: (any TunnelDialer)? { self.upstream.dialer }

    package func perform(
        _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) -> any Exchange {
        var request = request
        // Before anything is read that they govern.
        let rules = self.rules.current
        if let conduct = self.conduct {
            request = conduct.prepared(
                request, permits: options.permits, at: self.clock.now())
        }
        let exchange = ClientExchange(
            session: self, request: request, body: body, options: options, rules: rules,
            client: client)
        exchange.begin()
        return exchange
    }

    /// What the session has done so far.
    package func counters() -> SessionCounters {
        self.live.snapshot()
    }

    // MARK: Offline

    func noteOfflineMiss(_ request: Request, at now: Timestamp) {
        self.offlineMisses.withLock { $0.note(request, at: now) }
    }

    /// What was asked for and missing while the origin must not be asked.
    ///
    /// - Parameter clears: begin a new list.
    package func missedOffline(clears: Bool = false) -> OfflineMisses {
        self.offlineMisses.withLock { misses in
            let all = misses
            if clears { misses.clear() }
            return all
        }
    }

    /// A fetch under way that others may join.
    package struct OpenFetch: Sendable, Equatable, Codable {
        package var uri: String
        package var bytesReceived: UInt64
        package var clients: Int
    }

    package func openFetches() -> [OpenFetch] {
        self.fillings.all.map {
            OpenFetch(
                uri: $0.key.parts.uri, bytesReceived: $0.bytesReceived, clients: $0.readerCount)
        }
    }

    /// Removes all stored responses of a key, and those that `No-Vary-Search` lets answer other
    /// queries of its path.
    ///
    /// - Parameter completion: gets their number, once neither a lookup finds them nor a request
    ///   can join a fetch that was under way.
    package func remove(
        _ key: CacheKey, _ completion: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        _ = self.remove(key, begun: self.store.removalMark(), completion)
    }

    /// Removes all of a key, and what may answer other queries of its path, on account of a request
    /// that was sent when the mark was `begun`.
    ///
    /// - Returns: the mark with which what that request brings may be stored.
    func remove(
        _ key: CacheKey, begun: RemovalMark,
        _ completion: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> RemovalMark {
        let mark = self.store.removeWithSearch(key, begun: begun) { removed in
            self.fillings.forget(key)
            completion(removed)
        }
        self.fillings.forget(key)
        return mark
    }

    /// Removes all stored responses of a key, and leaves those that `No-Vary-Search` lets answer it.
    func removeAlone(_ key: CacheKey) {
        self.store.remove(key, ids: nil) { _ in self.fillings.forget(key) }
        self.fillings.forget(key)
    }

    /// Removes all stored responses of every key in `selection`.
    package func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        self.store.removeAll(in: selection) { removed in
            self.forgetFetches(in: selection)
            completion(removed)
        }
    }

    /// Lets no later request join a fetch for a key in `selection`: what another session over the same
    /// store has removed must not come from here.
    package func forgetFetches(in selection: KeySelection) {
        self.fillings.forget(where: selection.contains)
    }
}
