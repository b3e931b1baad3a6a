import LarderHTTP

/// When a disk that failed is tried again, and what is told of it: a value.
///
/// ```
/// sound ─failed─▶ failing (pause, then tried) ─stored─▶ recovering ─stored, after the calm─▶ sound
///                   ▲ ▲   └─failed: twice as long─┐         │
///                   │ └───────────────────────────┘         │
///                   └────────────────failed─────────────────┘
/// ```
///
/// A disk that is full, or about to die, takes some of what comes and refuses the rest: it fails and
/// recovers in turns, every few seconds, for days. So what happens now is told each time, for whoever
/// looks, and apart from it what is news to a person: that a trouble begins, and that it is over.
struct DiskHealth: Sendable, Equatable {
    private enum State: Sendable, Equatable {
        case sound
        /// Nothing is stored until then, and something is tried after it.
        case failing(until: Timestamp)
        case recovering(since: Timestamp)
    }

    /// No pause is longer, unless the first one is.
    static let longestPause = Duration.seconds(300)
    /// For how long it must not fail once it has recovered, until its trouble is over: longer than any
    /// pause, as one that takes the first thing after each of them and no more is not well.
    static let calm = Duration.seconds(600)

    private let firstPause: Duration
    private var pause: Duration
    private var state = State.sound
    /// What was said to fail in this trouble: another cause has another remedy.
    private var told: [StoreError.Code] = []
    /// Whether it was told in this trouble that removals are not kept.
    private var hasToldOfRemoval = false

    init(firstPause: Duration) {
        self.firstPause = firstPause
        self.pause = firstPause
    }

    private var limit: Duration { max(Self.longestPause, self.firstPause) }

    /// Whether it is worth while to store something now.
    func isHealthy(at now: Timestamp) -> Bool {
        guard case .failing(let until) = self.state else { return true }
        // A pause longer than any is one that began before the clock was set back.
        return now >= until || until - now > self.limit
    }

    /// How much of the pause is left.
    func left(at now: Timestamp) -> Duration {
        guard case .failing(let until) = self.state, !self.isHealthy(at: now) else { return .zero }
        return until - now
    }

    /// The disk failed; what is told of it, and until when nothing is stored.
    ///
    /// What was on its way when it failed fails, too: only a failure after the pause makes the next
    /// one longer.
    mutating func failed(
        _ error: StoreError, at now: Timestamp
    ) -> (event: DiskEvent?, until: Timestamp) {
        let event: DiskEvent?
        switch self.state {
        case .sound:
            self.told = [error.code]
            event = .failed(error)
        case .recovering(let since):
            // Where it was calm, nothing was stored that would have told that the trouble was over.
            if Self.isCalm(since: since, at: now) {
                self.hasToldOfRemoval = false
                self.told = []
            }
            event = self.tells(of: error) ? .failed(error) : .failedAgain(error)
        case .failing:
            event = self.tells(of: error) ? .failed(error) : nil
            if self.isHealthy(at: now) { self.pause = min(self.pause * 2, self.limit) }
        }
        let until = now + self.pause
        self.state = .failing(until: until)
        return (event, until)
    }

    /// Something was stored; what is told of it.
    ///
    /// What was on its way already when it failed proves nothing, and would make it say so in turns.
    mutating func worked(at now: Timestamp) -> DiskEvent? {
        switch self.state {
        case .sound: return nil
        case .failing: return self.isHealthy(at: now) ? self.mended(at: now) : nil
        case .recovering(let since):
            // A moment to come is one from before the clock was set back.
            if now < since { self.state = .recovering(since: now) }
            guard Self.isCalm(since: since, at: now) else { return nil }
            self = DiskHealth(firstPause: self.firstPause)
            return .settled
        }
    }

    /// The cause was removed; what is told of it.
    mutating func mended(at now: Timestamp) -> DiskEvent? {
        switch self.state {
        case .failing:
            self.pause = self.firstPause
            self.state = .recovering(since: now)
            return .recovered
        case .sound:
            self.hasToldOfRemoval = false
        case .recovering(let since):
            if Self.isCalm(since: since, at: now) { self.hasToldOfRemoval = false }
        }
        return nil
    }

    /// Whether a cause is new in this trouble.
    private mutating func tells(of error: StoreError) -> Bool {
        guard !self.told.contains(error.code) else { return false }
        self.told.append(error.code)
        return true
    }

    /// What was removed could be noted nowhere; whether that is to be told.
    mutating func tellsOfUnkeptRemoval() -> Bool {
        defer { self.hasToldOfRemoval = true }
        return !self.hasToldOfRemoval
    }

    private static func isCalm(since moment: Timestamp, at now: Timestamp) -> Bool {
        now >= moment && now - moment >= Self.calm
    }
}
