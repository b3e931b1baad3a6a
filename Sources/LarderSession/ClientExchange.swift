import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// One client's request on its way to an answer: the driver of `ClientMachine`.
///
/// Looks up, asks policy, and then serves what is stored, or leads or joins a filling.
final class ClientExchange: Exchange {
    struct State: ~Copyable {
        var machine = ClientMachine()
        var forward = CacheStatus.Forward.uriMiss
        /// The rule that sent the request forward.
        var reason: PolicyReason?
        var stored: [StoredObject] = []
        /// The origin is asked about one of them.
        var validates = false
        /// Stored beside them, for other queries.
        var neighbours: [StoredObject] = []
        /// Another's fetch was waited for long enough: the next one is as long as it takes.
        var hasWaited = false
        /// The client sends nothing more.
        var mayHaveGone = false
        /// What is missing of what is stored, where another client's fetch may bring it.
        var splicing: Fetch.Splicing?
        /// A range is taken out of what another client's fetch brings, where it begins no further on
        /// than this; nil: that is not so.
        var reach: UInt64?
        var looks = 1
        var marks: Marks
        /// The verdict that was counted, as long as it may turn out not to be the last.
        var counted: PolicyReason?
    }

    /// What there was before the store was asked.
    struct Marks {
        /// The era of the table of fillings.
        let era: UInt64
        /// The mark of what is being stored.
        let storings: UInt64
        /// The store's removals.
        let removals: RemovalMark

        init(_ session: Session) {
            self.removals = session.store.removalMark()
            self.era = session.fillings.era
            self.storings = session.storings.mark
        }
    }

    let session: Session
    let request: Request
    let body: (any BodySource)?
    let client: any ExchangeClient
    /// What the session was told when the exchange began, for its URI.
    let snapshot: ConfigurationSnapshot
    let cachePolicy: RequestCachePolicy
    let collapses: Bool
    let gate: (any StoringGate)?
    let mayBeAnsweredAtOnce: Bool
    let source: Int?
    let owner: (any FetchOwner)?
    /// The client can make use of an answer that stands.
    let keepsStanding: Bool
    /// What the client itself asked for.
    let askedPolicy: RequestCachePolicy?
    /// The number of the rules, from before they were read.
    let rules: UInt64
    let key: CacheKey
    let state: Mutex<State>

    init(
        session: Session, request: Request, body: (any BodySource)?, options: ExchangeOptions,
        rules: UInt64, client: any ExchangeClient
    ) {
        self.session = session
        self.body = body
        self.client = client
        self.collapses = options.collapses
        self.keepsStanding = options.keepsStanding
        self.askedPolicy = options.cachePolicy
        self.rules = rules
        let snapshot = session.snapshot.resolved(for: request.uri)
        self.snapshot = snapshot
        self.cachePolicy = options.cachePolicy ?? snapshot.values.cachePolicy
        self.gate = options.storing
        self.mayBeAnsweredAtOnce = options.mayBeAnsweredAtOnce
        self.source = options.source
        self.owner = options.owner
        self.request = self.cachePolicy.forwarded(request)
        self.key = CacheKey(
            method: request.method, uri: request.uri, partition: session.partition)
        self.state = Mutex(State(marks: Marks(session)))
        session.live.requests.add()
        session.live.openExchanges.add()
    }

    deinit {
        self.session.live.openExchanges.subtract()
    }

    func begin() {
        guard self.request.method == .get || self.request.method == .head else {
            return self.act(on: [], now: self.session.clock.now())
        }
        self.session.find(self.key, for: self.request.uri) { found in
            self.act(on: found.usable, now: self.session.clock.now(), isWhole: false)
        }
    }

    /// Begins anew, as the store may have more by now.
    func lookAgain() {
        let marks = Marks(self.session)
        let (isCancelled, counted) = self.state.withLock { state in
            state.marks = marks
            state.looks += 1
            return (state.machine.isCancelled, state.counted.take())
        }
        guard !isCancelled else { return }
        if let counted { self.session.live.reasons.takeBack(counted) }
        self.begin()
    }

    /// How often the store was asked, and what was being stored before it was the last time.
    var looked: (count: Int, mark: UInt64) {
        self.state.withLock { ($0.looks, $0.marks.storings) }
    }

    var era: UInt64 { self.state.withLock { $0.marks.era } }

    /// Looks where responses to several queries are stored, once the exact target has nothing to
    /// serve.
    private func search(beside objects: [StoredObject]) {
        self.session.find(self.key.withoutSearch, for: self.request.uri) { found in
            self.state.withLock { $0.neighbours = found.neighbours }
            self.act(on: objects + found.usable, now: self.session.clock.now())
        }
    }

    func cancel() {
        let (action, unanswered) = self.state.withLock { $0.machine.cancel() }
        if unanswered { self.session.live.cancelled.add() }
        switch action {
        case .leave(let filling): filling.leave(self)
        case .cancelBody(let source): source.cancel()
        case .nothing: break
        }
    }

    func clientMayHaveGone() {
        guard self.request.method == .get || self.request.method == .head else { return }
        let awaited = self.state.withLock { state in
            state.mayHaveGone = true
            return state.machine.awaited
        }
        awaited?.doubt(self)
    }

    // Lent: each copy counts a dozen references up and down.
    var configuration: SessionConfiguration { _read { yield self.snapshot.values } }
    var policy: PolicyConfiguration { _read { yield self.snapshot.values.policy } }

    // MARK: Deciding

    /// - Parameter isWhole: nothing else that is stored may answer.
    private func act(on found: [StoredObject], now: Timestamp, isWhole: Bool = true) {
        let isShown = found.allSatisfy { self.session.mayShow($0.head, for: self.request) }
        let objects =
            isShown ? found : found.filter { self.session.mayShow($0.head, for: self.request) }
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head), now: now,
            configuration: self.policy, policy: self.cachePolicy)
        if !isWhole, verdict.mayGainByMore, self.policy.honoursNoVarySearch,
            self.session.store.mayHoldWithoutSearch
        {
            return self.search(beside: objects)
        }
        let isAnswered = self.isAnswered(by: verdict, objects)
        if !isAnswered, !self.mayJoin(verdict, objects), self.looksAgain(beyond: objects) {
            return
        }
        self.session.live.reasons.add(verdict.reason)
        if !isAnswered { self.state.withLock { $0.counted = verdict.reason } }
        switch verdict {
        case .serve(let index, let freshness, let stale, let revalidates):
            guard objects.indices.contains(index) else {
                return self.fetch(objects, nil, .miss, because: nil)
            }
            guard self.covers(objects[index]) else {
                return self.fetch(objects, index, .partial, because: .bytesMissing)
            }
            let spoke =
                stale
                ?? self.policy.override(of: objects[index].head, freshness, request: self.request)
            let status = CacheStatus(
                hit: true, ttl: CacheStatus.ttl(of: freshness.remaining), detail: spoke?.rawValue)
            if !freshness.isFresh { self.session.live.staleHits.add() }
            self.session.live.hits.add()
            let ground =
                isWhole || stale != nil ? nil : self.standing(on: objects, index, freshness)
            self.serve(
                objects[index], status: status, because: verdict.reason, now: now, on: ground)
            if revalidates {
                self.session.revalidate(
                    BackgroundValidation(
                        request: self.request, snapshot: self.snapshot, key: self.key,
                        objects: objects, index: index, era: self.era))
            }
        case .validate(let index, let forward, let reason):
            self.fetch(objects, index, forward, because: reason)
        case .fetch(let forward, let reason):
            self.fetch(objects, nil, forward, because: reason)
        case .refuse(let reason):
            self.state.withLock { $0.reason = reason }
            self.refuse(because: reason, now: now)
        }
    }

    /// Whether what is stored is all that is needed.
    private func isAnswered(by verdict: ReuseVerdict, _ objects: [StoredObject]) -> Bool {
        guard case .serve(let index, _, _, _) = verdict, objects.indices.contains(index) else {
            return false
        }
        return self.covers(objects[index])
    }

    /// Whether another client's fetch is under way, of which this one need not wait for the storing.
    private func mayJoin(_ verdict: ReuseVerdict, _ objects: [StoredObject]) -> Bool {
        let forward: CacheStatus.Forward
        var index: Int?
        switch verdict {
        case .serve(let stored, _, _, _): (forward, index) = (.partial, stored)
        case .validate(let stored, let why, _): (forward, index) = (why, stored)
        case .fetch(let why, _): forward = why
        case .refuse: return false
        }
        // What nearly never is comes first: it costs the least to ask.
        return self.session.fillings.whole(self.key) != nil && self.isCollapsible(forward)
            && self.splicing(objects, index) == nil
    }

    private func refuse(because reason: PolicyReason, now: Timestamp) {
        var detail = "not in the cache, and the request allows nothing else"
        if reason == .returnCacheDontLoad {
            self.session.noteOfflineMiss(self.request, at: now)
            detail =
                "offline: this is not in the cache, and the request cache policy "
                + "return-cache-dont-load asks no origin"
        }
        self.fail(
            ExchangeFailure(
                status: .gatewayTimeout, error: nil, detail: detail, party: .client,
                cacheStatus: CacheStatus(detail: reason.rawValue)))
    }
}
