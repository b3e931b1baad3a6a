import LarderHTTP
import LarderPolicy
import NIOCore
import Synchronization

/// Feeds one response to both tiers, and hears the lower one.
///
/// The lower tier holds it until its own sink has ended, whoever else has gone.
final class TieredSinkCore: ObjectSinkObserver {
    /// What is being stored.
    struct Response: Sendable {
        let head: StoredHead
        let key: HashedKey
        let replacing: [ObjectID]
        /// The ids among them that the lower tier was told to replace.
        let passedOn: [ObjectID]
        let begun: RemovalMark
    }

    private struct Guarded {
        var state: TieredSinkState
        /// The lower tier's sink while it takes part.
        var lower: (any ObjectSink)?
        /// The lower tier's sink for readers that lag, who need what it has written also when it
        /// has ended.
        var readable: (any ObjectSink)?
        /// nil once it has heard the end.
        var observer: (any ObjectSinkObserver)?
        /// The landing, from commit until the lower tier has ended.
        var ticket: ObjectID?
        /// The lower tier gets the body when it is whole, from memory's copy.
        var isWithheld: Bool
    }

    /// A lower tier writes nothing of a body up to this before it is whole.
    private static let smallBody: UInt64 = 65_536

    private let store: TieredStore
    private let response: Response
    private let body: CollectedBody?
    let awaitsLowest: Bool
    private let guarded: Mutex<Guarded>

    /// - Parameters:
    ///   - body: where memory's copy is collected; nil where it may not have one.
    ///   - length: of the body, where it is known. A small one goes below as memory's copy: the pieces
    ///     of a thousand responses that wait for one commit would be as much again.
    init(
        _ store: TieredStore, _ response: Response, collecting body: CollectedBody?,
        length: UInt64?, _ observer: any ObjectSinkObserver
    ) {
        self.store = store
        self.response = response
        self.body = body
        // Of what never leaves memory nobody counts on finding it after a restart.
        self.awaitsLowest = observer.awaitsLowest && !response.head.staysInMemory
        self.guarded = Mutex(
            Guarded(
                state: TieredSinkState(
                    collecting: body != nil, awaitsLower: self.awaitsLowest),
                observer: observer,
                isWithheld: body != nil && (length ?? .max) <= Self.smallBody))
    }

    /// The lower tier has answered: its sink, or nil.
    ///
    /// false where no tier takes the response.
    func opened(_ lower: (any ObjectSink)?) -> Bool {
        self.guarded.withLock { guarded in
            // Its sink may have ended before we got it.
            if lower != nil, guarded.state.isLowerOpen { guarded.lower = lower }
            guarded.readable = lower
            return lower != nil || guarded.state.lowerRefused()
        }
    }

    // MARK: The writer

    func write(_ piece: ByteBuffer) {
        let (lower, withheld) = self.guarded.withLock {
            guarded -> ((any ObjectSink)?, ByteBuffer?) in
            guard guarded.state.isOpen else { return (nil, nil) }
            // The body's own lock is a leaf: it calls nothing.
            let fits = guarded.state.isCollecting && self.body?.append(piece) == true
            var withheld: ByteBuffer?
            if guarded.state.isCollecting, !fits {
                guarded.state.outgrown()
                if guarded.isWithheld { withheld = self.body?.finish() }
                guarded.isWithheld = false
                // Readers have been promised no more than the lower tier has, if it still writes.
                if guarded.state.isLowerOpen { self.body?.giveUp() }
            }
            guarded.state.wrote(piece.readableBytes)
            return (guarded.isWithheld ? nil : guarded.lower, withheld)
        }
        if let withheld { lower?.write(withheld) }
        lower?.write(piece)
        self.tell()
    }

    func hurry() {
        self.guarded.withLock { $0.lower }?.hurry()
    }

    func commit(trailers: Fields) {
        let (isFirst, collects, hasLower) = self.guarded.withLock { guarded in
            let isFirst = guarded.state.isOpen
            if isFirst { guarded.state.committed() }
            return (isFirst, guarded.state.isCollecting, guarded.state.isLowerOpen)
        }
        guard isFirst else { return }
        let body = collects ? self.body?.finish() : nil
        let withheld = self.takeWithheld()
        self.place(body, trailers: trailers, landing: hasLower) { lower in
            if let withheld { lower.write(withheld) }
            lower.commit(trailers: trailers)
        }
    }

    /// The body broke off: the lower tier alone keeps partial content.
    func keep(completeLength: UInt64?) {
        let (isFirst, hasLower) = self.guarded.withLock { guarded in
            let isFirst = guarded.state.isOpen
            if isFirst { guarded.state.committed() }
            return (isFirst, guarded.state.isLowerOpen)
        }
        guard isFirst else { return }
        guard hasLower else { return self.abandon(because: .byWriter) }
        let withheld = self.takeWithheld()
        self.place(nil, trailers: Fields(), landing: true) { lower in
            if let withheld { lower.write(withheld) }
            lower.keep(completeLength: completeLength)
        }
    }

    /// The body as far as it came, where the lower tier has nothing of it yet.
    private func takeWithheld() -> ByteBuffer? {
        let isWithheld = self.guarded.withLock { guarded in
            defer { guarded.isWithheld = false }
            return guarded.isWithheld
        }
        return isWithheld ? self.body?.finish() : nil
    }

    /// Makes the response visible in memory where it has a body there, and hands it to the lower
    /// tier, which `ends` with it.
    private func place(
        _ body: ByteBuffer?, trailers: Fields, landing hasLower: Bool,
        _ ends: (any ObjectSink) -> Void
    ) {
        let placing = self.store.place(
            self.response, body: body, trailers: trailers, landing: hasLower)
        switch placing {
        case .refused(let reason):
            self.abandon(because: reason)
        case .admitted(let placed):
            // The lower tier may have ended meanwhile: then its end finds the ticket taken here.
            let (lower, ended) = self.guarded.withLock { guarded in
                guarded.state.placed(placed.isInMemory ? placed.ticket : nil)
                guard hasLower, guarded.state.isLowerOpen else { return (guarded.lower, hasLower) }
                guarded.ticket = placed.ticket
                return (guarded.lower, false)
            }
            if ended {
                // It gave up between our two looks: it cannot have shown anything.
                self.store.landed(placed.ticket, self.response, as: nil)
            } else if let lower {
                ends(lower)
                // A removal that came before could not yet hurry it.
                if self.store.isAwaited(placed.ticket, of: self.response.key) { lower.hurry() }
            }
            self.tell()
        }
    }

    func abandon() {
        guard self.guarded.withLock({ $0.state.isOpen }) else { return }
        self.abandon(because: .byWriter)
    }

    private func abandon(because reason: SinkAbandonment) {
        let lower = self.guarded.withLock { guarded in
            guarded.state.abandoned(reason)
            return guarded.lower.take()
        }
        lower?.abandon()
        self.tell()
    }

    func reader(from offset: UInt64) -> (any BodySource)? {
        // Both locks are let go before the lower tier is asked.
        if let reader = self.body?.reader(from: offset) { return reader }
        return self.guarded.withLock { $0.readable }?.reader(from: offset)
    }

    // MARK: The lower tier

    func sink(written offset: UInt64) {
        self.guarded.withLock { $0.state.lowerWrote(offset) }
        self.tell()
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let ticket = self.guarded.withLock { guarded in
            guarded.lower = nil
            if guarded.ticket == nil { guarded.state.lowerEnded(outcome) }
            return guarded.ticket.take()
        }
        if let ticket {
            let id: ObjectID? = if case .visible(let id) = outcome { id } else { nil }
            let isKept = self.store.landed(ticket, self.response, as: id)
            self.guarded.withLock {
                $0.state.lowerEnded(
                    id == nil || isKept ? outcome : .abandoned(.removed))
            }
        }
        self.tell()
    }

    /// Tells the observer what there is to tell, unless another thread is at it.
    private func tell() {
        while let (news, observer) = self.guarded.withLock({ guarded in
            guarded.state.nextToTell().map { ($0, guarded.observer) }
        }) {
            if let offset = news.written { observer?.sink(written: offset) }
            if let outcome = news.ended {
                // It may hold, by way of the sink, what holds us.
                self.guarded.withLock { $0.observer = nil }
                observer?.sinkEnded(outcome)
            }
            self.guarded.withLock { $0.state.toldThem() }
        }
    }
}
