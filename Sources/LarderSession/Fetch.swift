import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A request on its way to the origin, and its response on the way into a filling.
///
/// The driver of `FetchMachine`: it reads the clock, asks policy, and moves bytes. Kept alive by the
/// upstream while that has something to say, and by its sink until that has ended.
final class Fetch: Sendable {
    /// What a fetch is made for.
    struct Order: Sendable {
        /// The client's request.
        var request: Request
        /// What the session was told when the client's exchange began, for its URI.
        var snapshot: ConfigurationSnapshot
        var body: (any BodySource)?
        var key: CacheKey
        /// What the store holds for the key: to be validated, to stand in, or to be replaced.
        var stored: [StoredObject]
        /// The place in the order of storings before they were looked up.
        var mark: UInt64 = 0
        /// The store's removals before they were looked up; nil: those when the request is sent.
        var removals: RemovalMark?
        /// Responses to other queries, stored where this one may go.
        var neighbours: [StoredObject] = []
        /// The index in `stored` of the response that validation is about, if it is.
        var validating: Int?
        /// Hears 1xx responses.
        var client: (any ExchangeClient)?
        /// The filling stands in the table, where other requests find it.
        var isEntered: Bool
        /// Made for the store, not for a client: nobody's leaving ends it.
        var isBackground = false
        /// The cache policy that the client asked for.
        var cachePolicy = RequestCachePolicy.useProtocol
        /// Nothing stored is selected by the request: the origin is asked whether another variant
        /// would do (RFC 9111 §4.1).
        var asksForVariants = false
        /// The answer is to be put together from what is stored and what this fetch brings.
        var splicing: Splicing?
        /// Has a say in the storing.
        var gate: (any StoringGate)?
        /// The client may hear the answer before the fetch has begun.
        var mayBeAnsweredAtOnce = false
        /// Where the client's request came from (`ExchangeOptions.source`).
        var source: Int?
        /// Who owns it, where its response is stored.
        var owner: (any FetchOwner)?

        /// The indices of what is stored that the request selects, and the request that validates it.
        fileprivate var validation: (matching: [Int], conditional: Request?) {
            if self.stored.isEmpty { return ([], nil) }
            let heads = self.stored.map(\.head)
            let matching = heads.indices.filter {
                Variance.matches(
                    heads[$0], self.request, configuration: self.snapshot.values.policy)
            }
            guard self.validating != nil || self.asksForVariants else { return (matching, nil) }
            let conditional = Validation.conditionalRequest(
                self.request, validating: heads, matching: matching)
            return (
                matching, conditional.map { Validation.keepingRange($0, of: self.request) }
            )
        }
    }

    /// What names a stored response.
    struct StoredName: Sendable {
        let key: CacheKey
        let id: ObjectID
    }

    /// What is missing from a stored response.
    struct Splicing: Sendable {
        var splice: Splice
        var object: StoredObject
        /// The client has a part of the answer already.
        var hasBegun = false
    }

    struct State: ~Copyable {
        var machine: FetchMachine
        var upstream: (any UpstreamFetch)?
        var requestTime = Timestamp(seconds: 0)
        /// The store's removals at that time: what was purged since must not come back.
        var removals = RemovalMark(rawValue: 0)
        var resumesWhenBegun = false
        /// Nobody waits for the head for certain, as far as was told.
        var mayEndForAnother = false
        /// Removed as soon as what is being stored can be found.
        var outdated: [StoredName] = []
        var isCancelled = false
        /// Counts requests: the answer to one may come before the upstream has said that it is under
        /// way, and lead to the next.
        var requests = 0
        /// The response has content that is still to come.
        var expectsContent = true
        /// The store's part, until it has ended.
        var storing: Storing?
        /// The store's part has ended, or there never was one.
        var sinkIsOver = true
        /// Why the store would not have the response, where its rules of admission say so.
        var turnedAway: PolicyReason?
        var upstreamIsOver = false
        var isRelayingStored = false
        /// The clients have heard of the head.
        var isSettled = false
        /// It has an owner, who has not heard of its end yet.
        var isOwned = false
        /// How the owned one ended, once the store's part has; nil: as long as it has not.
        var ending: FetchEnding?
        /// What came of the body was kept as a part.
        var isPart = false
        var announced: BodyLength = .unknown
        var patience: (any TimerToken)?
        var clientPatience: (any TimerToken)?
        /// The request under way is the one for missing bytes.
        var asksForGap = false
        /// The bytes go to a client between others.
        var isSpliced = false
        /// How much content there must be, where only the content itself can show that.
        var counted: UInt64?
        /// Nothing but the end of the connection says where the content ends.
        var endsWithConnection = false
        /// A body that breaks off stays in the store as the part that it is.
        var isKept = false
        /// A part that breaks off is kept only if it has more bytes than this: so many of the same
        /// representation are stored already.
        var bytesStored: UInt64 = 0
        /// How the rest of the body could be asked for.
        var resumption: Resumption?
        var resumptions = 0
        /// The request for the rest.
        var asked: Request?
        var brokenOff: UpstreamFailure?
        /// What the head keeps back, which must not come behind the content either.
        var keptBack = NamedFields([])
        /// What the head said about the request that it answers.
        var connection = UpstreamConnectionFacts()

        /// Whether content that is shorter than it must be has broken off: else it is whole by its own
        /// framing, and contradicts its head.
        var mayHaveBrokenOff: Bool {
            self.isSpliced || self.resumptions > 0 || self.endsWithConnection
        }
    }

    let session: Session
    let order: Order
    let filling: Filling
    /// The indices of what is stored that the request selects by `Vary`.
    let matching: [Int]
    /// The request with conditions of the cache's own; nil: it goes as it came.
    let conditional: Request?
    let state: Mutex<State>

    // So that the order is made where it stays, and not copied.
    @inline(__always)
    init(session: Session, order: consuming Order, filling: Filling) {
        let (matching, conditional) = order.validation
        self.session = session
        self.filling = filling
        self.matching = matching
        self.conditional = conditional
        self.order = order
        self.state = Mutex(State(machine: FetchMachine(validating: conditional != nil)))
    }

    var policy: PolicyConfiguration { _read { yield self.order.snapshot.values.policy } }

    /// A request as it was answered in the end: with what the session added on the way.
    func answered(_ request: Request) -> Request {
        let (isAuthorized, answered) = self.state.withLock {
            ($0.connection.isAuthorized, $0.connection.answered)
        }
        var request = request
        if isAuthorized { request.isAuthorized = true }
        guard let lines = answered else { return request }
        for name in [KnownField.cookie, .authorization] { request.fields.remove(FieldName(name)) }
        for pair in lines.pairs { request.fields.remove(FieldName(pair.name)) }
        request.fields.append(contentsOf: lines)
        return request
    }

    // MARK: Towards the origin

    func start() {
        self.session.live.openFetches.add()
        self.filling.begin(control: self)
        if let splicing = self.order.splicing {
            self.state.withLock { $0.asksForGap = true }
            return self.send(splicing.splice.request(self.order.request))
        }
        self.send(self.conditional ?? self.order.request)
    }

    func send(_ request: Request) {
        let now = self.session.clock.now()
        let removals = self.session.store.removalMark()
        let (number, earlier) = self.state.withLock { state in
            state.requestTime = now
            state.removals = removals
            state.requests += 1
            return (state.requests, state.upstream.take())
        }
        // Its answer led to this request, and is of no use.
        earlier?.cancel()
        let upstream = self.session.upstream.fetch(
            request, body: self.order.body, receiver: Receiver(self, number))
        let (isCancelled, resumes, mayEnd) = self.state.withLock { state in
            guard state.requests == number else { return (true, false, false) }
            if !state.upstreamIsOver { state.upstream = upstream }
            defer { state.resumesWhenBegun = false }
            return (state.isCancelled, state.resumesWhenBegun, state.mayEndForAnother)
        }
        if isCancelled {
            upstream.cancel()
        } else if resumes {
            upstream.resume()
        }
        // Asked then, it sees whether somebody has come.
        if mayEnd { upstream.mayEndForAnother() }
    }

    /// Stops the fetch where it is, unless a client has come meanwhile; what came of it stays in the
    /// store as a part, or is dropped.
    ///
    /// - Returns: whether it did.
    @discardableResult
    func cancel() -> Bool {
        guard let ended = self.filling.endDeserted() else { return false }
        self.state.withLock { $0.machine.cancel() }
        self.cancelUpstream()
        self.keepOrAbandon(ended.sink, received: self.filling.bytesReceived)
        self.upstreamEnded()
        return true
    }

    func cancelUpstream() {
        let upstream = self.state.withLock { state in
            state.isCancelled = true
            return state.upstream
        }
        upstream?.cancel()
    }

    func upstreamEnded() {
        let (first, isOver, patience, clientPatience) = self.state.withLock { state in
            let first = !state.upstreamIsOver
            state.upstreamIsOver = true
            state.upstream = nil
            return (
                first, state.sinkIsOver, state.patience.take(), state.clientPatience.take()
            )
        }
        patience?.cancel()
        clientPatience?.cancel()
        if first { self.session.live.openFetches.subtract() }
        if isOver { self.over() }
    }

    /// Neither the origin nor the store has anything more to say.
    func over() {
        self.leaveTable()
        self.endOwnership()
    }

    private func endOwnership() {
        let ending = self.state.withLock { state -> FetchEnding? in
            guard state.isOwned else { return nil }
            state.isOwned = false
            return state.ending ?? .brokenOff
        }
        if let ending { self.order.owner?.fetchEnded(ending) }
    }

    /// Offers the fetch to its owner: the response that has begun to arrive is being stored.
    ///
    /// - Parameter offset: where what arrives begins in the whole, in bytes.
    func offerToOwner(length: UInt64?, from offset: UInt64 = 0) {
        guard let owner = self.order.owner else { return }
        let isTaken = owner.fetch(stores: length) { [filling] in
            offset &+ filling.bytesReceived
        }
        guard isTaken else { return }
        let isOver = self.state.withLock { state in
            state.isOwned = true
            return state.upstreamIsOver && state.sinkIsOver
        }
        // Its origin was faster.
        if isOver { self.endOwnership() }
    }

    func leaveTable() {
        if self.order.isEntered { self.session.fillings.remove(self.filling) }
    }
}
