/// When the next batch may begin: a value.
///
/// Much of what a commit costs it costs for a thousand responses as for one: the wait for the disk,
/// the paths of the trees, the lists of free pages. Measured with bodies of 4 KiB at 7,000 a second,
/// 13 of them to a commit: 44 µs of the writer each. So where more than one comes to a commit, the
/// next one waits for nine times as long as the last one took, and more come to it; a response that
/// comes alone waits for nothing.
struct CommitPacing: Sendable, Equatable {
    /// The longest that a response waits for others.
    static let longest = Duration.milliseconds(100)
    /// The pause after a batch, in times of it.
    private static let pausePerBatch = 9

    /// The pause after each batch, whatever came to it; nil leaves it to the batches.
    private let fixed: Duration?
    /// nil: at once.
    private(set) var notBefore: ContinuousClock.Instant?

    /// - Parameter fixed: before the first batch, too.
    init(fixed: Duration? = nil) {
        self.fixed = fixed
        self.notBefore = fixed.map { .now + $0 }
    }

    /// A batch of so many commands has ended.
    mutating func ended(
        commands: Int, began: ContinuousClock.Instant, at now: ContinuousClock.Instant
    ) {
        if let fixed {
            self.notBefore = now + fixed
            return
        }
        guard commands > 1 else {
            self.notBefore = nil
            return
        }
        self.notBefore = now + min(Self.longest, (now - began) * Self.pausePerBatch)
    }
}
