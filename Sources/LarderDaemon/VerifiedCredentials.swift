/// Credentials that were verified a short time ago, so that they need not be again: by a keyed digest,
/// never as they are.
struct VerifiedCredentials: Sendable {
    private struct Entry {
        let user: String
        let end: ContinuousClock.Instant
    }

    private let capacity: Int
    private let time: Duration
    private var entries: [KeyedDigest: Entry] = [:]

    init(capacity: Int, time: Duration) {
        self.capacity = max(1, capacity)
        self.time = time
    }

    var count: Int { self.entries.count }

    func user(of digest: KeyedDigest, at now: ContinuousClock.Instant) -> String? {
        guard let entry = self.entries[digest], entry.end > now else { return nil }
        return entry.user
    }

    mutating func remember(
        _ digest: KeyedDigest, user: String, at now: ContinuousClock.Instant
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
