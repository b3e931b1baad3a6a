import LarderHTTP

/// How far a sink of two tiers is.
///
/// A value: events in, what to do and what to tell out.
///
/// ```
///            ┌─▶ memory: collecting ─▶ taken | given up
/// open ──────┤
///            └─▶ lower:  open ─▶ ended(outcome)
/// ended as soon as memory has taken it, else as soon as both have ended: visible if either is
/// ended for one who awaits the lower tier: as soon as both have, and as that has if it takes part
/// ```
///
/// What memory has taken is visible whatever becomes of it below, so nobody waits for a lower tier
/// that takes its time to commit many at once; but for one who wants to know that it is there.
struct TieredSinkState: Sendable {
    /// What the observer is told: first how much was written, then the end.
    struct News: Sendable, Equatable {
        var written: UInt64?
        var ended: SinkOutcome?

        var isNone: Bool { self.written == nil && self.ended == nil }
    }

    private enum Upper: Sendable {
        case collecting
        case taken(ObjectID)
        case givenUp(SinkAbandonment)
    }

    private enum Lower: Sendable {
        case open
        case ended(SinkOutcome)
        case absent
    }

    private let awaitsLower: Bool
    private var upper: Upper
    private var lower = Lower.open
    private var isCommitted = false
    private(set) var hasEnded = false
    private var total: UInt64 = 0
    private var lowerWritten: UInt64 = 0
    private var told: UInt64 = 0
    private var news = News()
    private var isTelling = false

    /// - Parameters:
    ///   - collecting: whether memory may take the response.
    ///   - awaitsLower: whether the lower tier's end is awaited in any case.
    init(collecting: Bool, awaitsLower: Bool = false) {
        self.awaitsLower = awaitsLower
        self.upper = collecting ? .collecting : .givenUp(.tooLarge)
    }

    var isOpen: Bool { !self.isCommitted && !self.hasEnded }
    var isCollecting: Bool { if case .collecting = self.upper { true } else { false } }
    var isLowerOpen: Bool { if case .open = self.lower { true } else { false } }

    // MARK: Events

    /// The lower tier does not take the response.
    ///
    /// false: memory neither, or that is not enough.
    mutating func lowerRefused() -> Bool {
        self.lower = .absent
        if self.isCollecting, !self.awaitsLower { return true }
        self.hasEnded = true
        return false
    }

    mutating func wrote(_ bytes: Int) {
        self.total += UInt64(bytes)
        self.progressed()
    }

    /// The body has outgrown memory.
    mutating func outgrown() {
        self.upper = .givenUp(.tooLarge)
        self.progressed()
    }

    mutating func lowerWrote(_ offset: UInt64) {
        self.lowerWritten = max(self.lowerWritten, offset)
        self.progressed()
    }

    mutating func lowerEnded(_ outcome: SinkOutcome) {
        guard self.isLowerOpen else { return }
        self.lower = .ended(outcome)
        self.progressed()
    }

    /// The body is whole.
    mutating func committed() {
        self.isCommitted = true
    }

    /// What memory made of the commit: its id, or why it did not take the response.
    mutating func placed(_ id: ObjectID?) {
        if let id {
            self.upper = .taken(id)
        } else if self.isCollecting {
            self.upper = .givenUp(.tooLarge)
        }
        self.progressed()
    }

    /// Nothing becomes visible.
    mutating func abandoned(_ reason: SinkAbandonment) {
        guard !self.hasEnded else { return }
        self.end(.abandoned(reason))
    }

    // MARK: Telling

    /// What there is to tell; whoever gets it calls `toldThem` when that is done.
    ///
    /// nil when there is nothing, or another thread tells already: so the observer hears all in
    /// order.
    mutating func nextToTell() -> News? {
        guard !self.isTelling, !self.news.isNone else { return nil }
        self.isTelling = true
        defer { self.news = News() }
        return self.news
    }

    mutating func toldThem() {
        self.isTelling = false
    }

    private mutating func progressed() {
        guard !self.hasEnded else { return }
        // The lower tier sets the pace while it takes part: what it has written may leave memory.
        let offset: UInt64
        switch (self.upper, self.lower) {
        case (.taken, _): offset = self.total
        case (_, .open): offset = min(self.lowerWritten, self.total)
        case (_, .absent), (_, .ended): offset = self.isCollecting ? self.total : self.told
        }
        if offset > self.told {
            self.told = offset
            self.news.written = offset
        }
        switch (self.upper, self.lower) {
        case (.taken, .open) where self.awaitsLower: break
        case (.taken, .ended(.abandoned(let reason))) where self.awaitsLower:
            self.end(.abandoned(reason))
        case (.taken(let id), _): self.end(.visible(id))
        case (_, .open), (.collecting, _): break
        case (.givenUp, .ended(let outcome)): self.end(outcome)
        case (.givenUp(let reason), .absent): self.end(.abandoned(reason))
        }
    }

    private mutating func end(_ outcome: SinkOutcome) {
        self.hasEnded = true
        self.news.ended = outcome
    }
}
