import LarderHTTP

/// When a disk that failed is tried again, and what is said of it: a value.
///
/// ```
/// sound ─failed─▶ pausing ─(pause is over)─▶ tried ─stored─▶ sound
///                    ▲                         │
///                    └──failed: twice as long──┘
/// ```
struct DiskHealth: Sendable, Equatable {
    /// No pause is longer, unless the first one is.
    static let longestPause = Duration.seconds(300)

    private let firstPause: Duration
    private var pause: Duration
    private var failedUntil: Timestamp?
    private var isReported = false

    init(firstPause: Duration) {
        self.firstPause = firstPause
        self.pause = firstPause
    }

    private var limit: Duration { max(Self.longestPause, self.firstPause) }

    /// Whether it is worth while to store something now.
    func isHealthy(at now: Timestamp) -> Bool {
        guard let until = self.failedUntil else { return true }
        // A pause longer than any is one that began before the clock was set back.
        return now >= until || until - now > self.limit
    }

    /// How much of the pause is left.
    func left(at now: Timestamp) -> Duration {
        guard let until = self.failedUntil, !self.isHealthy(at: now) else { return .zero }
        return until - now
    }

    /// The disk failed; whether that is to be said, and until when nothing is stored.
    ///
    /// What was on its way when it failed fails, too: only a failure after the pause makes the next
    /// one longer.
    mutating func failed(at now: Timestamp) -> (isFirst: Bool, until: Timestamp) {
        if self.failedUntil != nil, self.isHealthy(at: now) {
            self.pause = min(self.pause * 2, self.limit)
        }
        let until = now + self.pause
        self.failedUntil = until
        defer { self.isReported = true }
        return (!self.isReported, until)
    }

    /// Something was stored; whether it is to be said that the disk works again.
    ///
    /// What was on its way already when it failed proves nothing, and would make it say so in turns.
    mutating func worked(at now: Timestamp) -> Bool {
        guard self.failedUntil != nil, self.isHealthy(at: now) else { return false }
        return self.mended()
    }

    /// The cause was removed; whether it is to be said that the disk works again.
    mutating func mended() -> Bool {
        defer { self = DiskHealth(firstPause: self.firstPause) }
        return self.isReported
    }
}
