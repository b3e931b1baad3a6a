/// Credentials of which one verdict, right or wrong, was found a short time ago, so that they need
/// not be verified again: by a keyed digest, never as they are.
struct RememberedVerdicts: Sendable {
    private struct Entry {
        let user: String
        let end: ContinuousClock.Instant
    }

    private let capacity: Int
    private let time: Duration
    private var entries: [[UInt8]: Entry] = [:]

    init(capacity: Int, time: Duration) {
        self.capacity = max(1, capacity)
        self.time = time
    }

    var count: Int { self.entries.count }

    func user(of digest: [UInt8], at now: ContinuousClock.Instant) -> String? {
        guard let entry = self.entries[digest], entry.end > now else { return nil }
        return entry.user
    }

    mutating func remember(
        _ digest: [UInt8], user: String, at now: ContinuousClock.Instant
    ) {
        if self.entries[digest] == nil, self.entries.count >= self.capacity {
            self.entries = self.entries.filter { $0.value.end > now }
            if self.entries.count >= self.capacity,
                let oldest = self.entries.min(by: { $0.value.end < $1.value.end })
            {
                self.entries[oldest.key] = nil
            }
        }
        self.entries[digest] = Entry(user: user, end: now + self.time)
    }

    mutating func forgetAll() { self.entries = [:] }
}
