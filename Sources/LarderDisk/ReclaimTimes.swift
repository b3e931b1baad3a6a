import Synchronization

/// How long steps of reclaiming took, from beginning to committed: a histogram by powers of two.
final class ReclaimTimes: Sendable {
    /// Bounds in microseconds, the first above 64; the last is whatever is longer.
    static let classes = 16

    private let counts = Mutex(Array(repeating: UInt64(0), count: ReclaimTimes.classes))

    func note(_ time: Duration) {
        let microseconds = UInt64(max(0, time / .microseconds(1)))
        var index = 0
        while index < Self.classes - 1, microseconds >= 64 << UInt64(index) { index += 1 }
        self.counts.withLock { $0[index] += 1 }
    }

    /// How many steps took less than `64 << index` microseconds, and not less than half of that.
    var histogram: [UInt64] { self.counts.withLock { $0 } }
}
