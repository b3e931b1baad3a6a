/// How many tokens there are, and how fast they come back.
package struct FailureRules: Sendable, Hashable {
    /// Tokens in a full bucket.
    package var burst: Int
    /// The time in which one token comes back.
    package var refill: Duration
    /// Buckets that are kept at once.
    package var buckets: Int

    package init(
        burst: Int = 20, refill: Duration = .seconds(5), buckets: Int = 4_096
    ) {
        self.burst = min(max(1, burst), 1_000_000)
        self.refill = min(max(refill, .milliseconds(1)), .seconds(86_400))
        self.buckets = max(1, buckets)
    }
}

/// What a limit says of an attempt.
package enum LimitedAttempt: Hashable, Sendable {
    case granted
    /// - Parameter isNews: the first that is not granted since the bucket was last full.
    case throttled(retryAfter: Duration, isNews: Bool)
}

/// How often something may fail: a token bucket for each of whatever is told apart, in a table of
/// bounded size.
///
/// An attempt takes a token and gets it back when it succeeds. Of each bucket only the moment is kept
/// at which it will be full again (the generic cell rate algorithm): one that is full is no different
/// from one that was never used, and is forgotten.
package struct FailureLimit<Key: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var fullAt: ContinuousClock.Instant
        var failures = 0
        var wasThrottled = false
    }

    private let rules: FailureRules
    private var buckets: [Key: Bucket] = [:]

    package init(_ rules: FailureRules) {
        self.rules = rules
    }

    /// Buckets that are not full, and some that were not when somebody last looked.
    package var count: Int { self.buckets.count }

    private var capacity: Duration { self.rules.refill * self.rules.burst }

    // MARK: Attempts

    /// Whether an attempt would be granted; takes nothing.
    package mutating func look(
        _ key: Key, at now: ContinuousClock.Instant
    ) -> LimitedAttempt {
        guard var bucket = self.buckets[key] else { return .granted }
        let wait = max(bucket.fullAt, now) + self.rules.refill - now - self.capacity
        guard wait > .zero else { return .granted }
        let isNews = !bucket.wasThrottled
        bucket.wasThrottled = true
        self.buckets[key] = bucket
        return .throttled(retryAfter: wait, isNews: isNews)
    }

    /// Takes a token for an attempt, if there is one.
    package mutating func take(
        _ key: Key, at now: ContinuousClock.Instant
    ) -> LimitedAttempt {
        let attempt = self.look(key, at: now)
        guard attempt == .granted else { return attempt }
        var bucket = self.buckets[key] ?? Bucket(fullAt: now)
        if bucket.fullAt <= now { bucket = Bucket(fullAt: now) }
        bucket.fullAt += self.rules.refill
        if self.buckets[key] == nil { self.makeRoom(at: now) }
        self.buckets[key] = bucket
        return .granted
    }

    /// The attempt has succeeded, or was not made: its token goes back.
    package mutating func giveBack(_ key: Key) {
        guard var bucket = self.buckets[key] else { return }
        bucket.fullAt -= self.rules.refill
        self.buckets[key] = bucket
    }

    /// The attempt has failed: its token stays taken.
    ///
    /// - Returns: how many have since the bucket was last full; 0 where others have taken its place.
    package mutating func failed(_ key: Key) -> Int {
        guard var bucket = self.buckets[key] else { return 0 }
        bucket.failures += 1
        self.buckets[key] = bucket
        return bucket.failures
    }

    /// Forgets full buckets, and if all are in use the one that is nearest to being full.
    private mutating func makeRoom(at now: ContinuousClock.Instant) {
        guard self.buckets.count >= self.rules.buckets else { return }
        self.buckets = self.buckets.filter { $0.value.fullAt > now }
        guard self.buckets.count >= self.rules.buckets,
            let nearest = self.buckets.min(by: { $0.value.fullAt < $1.value.fullAt })
        else { return }
        self.buckets[nearest.key] = nil
    }
}
