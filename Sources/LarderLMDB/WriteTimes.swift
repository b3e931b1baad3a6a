import Synchronization

/// How long the write transactions of an environment took, and how many found no room.
///
/// Counted in a fixed number of classes, four for each doubling: a quantile is exact to within a
/// fifth, the longest time exact. Any thread may read it; the one that writes notes.
package final class WriteTimes: Sendable {
    /// A distribution of durations.
    package struct Distribution: Sendable {
        fileprivate var counts = [UInt64](repeating: 0, count: Self.classes)
        fileprivate var nanoseconds: UInt64 = 0
        fileprivate var most: UInt64 = 0

        fileprivate static let classes = 160

        package var count: UInt64 { self.counts.reduce(0, &+) }
        package var longest: Duration { .nanoseconds(Int64(clamping: self.most)) }
        package var sum: Duration { .nanoseconds(Int64(clamping: self.nanoseconds)) }

        /// The upper end of the class in which that share of all durations is reached.
        package func quantile(_ share: Double) -> Duration {
            let rank = UInt64((Double(self.count) * min(1, max(0, share))).rounded(.up))
            var seen: UInt64 = 0
            for (index, count) in self.counts.enumerated() where count > 0 {
                seen &+= count
                if seen >= rank { return min(Self.end(of: index), self.longest) }
            }
            return self.longest
        }

        fileprivate mutating func note(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            let whole = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
            let amount =
                whole.overflow
                ? .max : whole.partialValue &+ UInt64(clamping: attoseconds / 1_000_000_000)
            self.counts[Self.index(of: amount)] &+= 1
            self.nanoseconds &+= amount
            self.most = max(self.most, amount)
        }

        /// Classes begin at a microsecond, which is four quarters of one.
        private static func index(of nanoseconds: UInt64) -> Int {
            let quarters = max(4, nanoseconds / 250)
            let power = 63 - quarters.leadingZeroBitCount
            let part = Int(truncatingIfNeeded: quarters >> UInt64(power - 2) & 3)
            return min(Self.classes - 1, (power - 2) * 4 + part)
        }

        private static func end(of index: Int) -> Duration {
            .nanoseconds(Int64(5 + index % 4) << Int64(index / 4) &* 250)
        }
    }

    /// What was noted since the last look.
    package struct Figures: Sendable {
        /// From the begin to the end of a transaction, its commit included.
        package fileprivate(set) var transactions = Distribution()
        /// Commits alone, which wait for the disk.
        package fileprivate(set) var commits = Distribution()
        /// Transactions that failed because no run of free pages was long enough.
        package fileprivate(set) var withoutRoom: UInt64 = 0
    }

    private let figures = Mutex(Figures())

    init() {}

    /// Takes out what was noted, and begins anew.
    package func take() -> Figures {
        self.figures.withLock { figures in
            defer { figures = Figures() }
            return figures
        }
    }

    func note(transaction: Duration, commit: Duration?) {
        self.figures.withLock { figures in
            figures.transactions.note(transaction)
            if let commit { figures.commits.note(commit) }
        }
    }

    func noteWithoutRoom() {
        self.figures.withLock { $0.withoutRoom &+= 1 }
    }
}
