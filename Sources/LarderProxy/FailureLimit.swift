/// How often clients may fail to authenticate themselves: a token bucket an address, in a table of
/// bounded size.
///
/// An attempt takes a token and gets it back when it succeeds. Of each bucket only the moment is kept
/// at which it will be full again (the generic cell rate algorithm): one that is full is no different
/// from one that was never used, and is forgotten.
package struct FailureLimit: Sendable {
    package struct Rules: Sendable, Hashable {
        /// Tokens in a full bucket.
        package var burst: Int
        /// The time in which one token comes back.
        package var refill: Duration
        /// Buckets that are kept at once.
        package var addresses: Int

        package init(
            burst: Int = 20, refill: Duration = .seconds(5), addresses: Int = 4_096
        ) {
            self.burst = min(max(1, burst), 1_000_000)
            self.refill = min(max(refill, .milliseconds(1)), .seconds(86_400))
            self.addresses = max(1, addresses)
        }
    }

    package enum Attempt: Hashable, Sendable {
        case granted
        /// - Parameter isNews: the first that is not granted since the bucket was last full.
        case throttled(retryAfter: Duration, isNews: Bool)
    }

    /// Who shares a bucket.
    private enum Key: Hashable {
        case v4(UInt128)
        /// The first half of the address: the other is the client's own to choose (RFC 4291 §2.5.4).
        case v6(UInt128)
        case unix(UInt32?)

        init(_ client: ClientAddress) {
            switch client {
            case .ip(let address, _, _):
                self = address.isIPv4 ? .v4(address.bits) : .v6(address.bits >> 64)
            case .unix(let peer): self = .unix(peer?.uid)
            }
        }
    }

    private struct Bucket {
        var fullAt: ContinuousClock.Instant
        var failures = 0
        var wasThrottled = false
    }

    private let rules: Rules
    private var buckets: [Key: Bucket] = [:]

    package init(_ rules: Rules = Rules()) {
        self.rules = rules
    }

    /// Buckets that are not full, and some that were not when somebody last looked.
    package var count: Int { self.buckets.count }

    private var capacity: Duration { self.rules.refill * self.rules.burst }

    // MARK: Attempts

    /// Whether an attempt would be granted; takes nothing.
    package mutating func look(
        _ client: ClientAddress, at now: ContinuousClock.Instant
    ) -> Attempt {
        let key = Key(client)
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
        _ client: ClientAddress, at now: ContinuousClock.Instant
    ) -> Attempt {
        let attempt = self.look(client, at: now)
        guard attempt == .granted else { return attempt }
        let key = Key(client)
        var bucket = self.buckets[key] ?? Bucket(fullAt: now)
        if bucket.fullAt <= now { bucket = Bucket(fullAt: now) }
        bucket.fullAt += self.rules.refill
        if self.buckets[key] == nil { self.makeRoom(at: now) }
        self.buckets[key] = bucket
        return .granted
    }

    /// The attempt has succeeded, or was not made: its token goes back.
    package mutating func giveBack(_ client: ClientAddress) {
        let key = Key(client)
        guard var bucket = self.buckets[key] else { return }
        bucket.fullAt -= self.rules.refill
        self.buckets[key] = bucket
    }

    /// The attempt has failed: its token stays taken.
    ///
    /// - Returns: whether this is the first failure since the bucket was last full.
    package mutating func failed(_ client: ClientAddress) -> Bool {
        let key = Key(client)
        // Nil where others have taken its place: they are news enough.
        guard var bucket = self.buckets[key] else { return false }
        bucket.failures += 1
        self.buckets[key] = bucket
        return bucket.failures == 1
    }

    /// Forgets full buckets, and if all are in use the one that is nearest to being full.
    private mutating func makeRoom(at now: ContinuousClock.Instant) {
        guard self.buckets.count >= self.rules.addresses else { return }
        self.buckets = self.buckets.filter { $0.value.fullAt > now }
        guard self.buckets.count >= self.rules.addresses,
            let nearest = self.buckets.min(by: { $0.value.fullAt < $1.value.fullAt })
        else { return }
        self.buckets[nearest.key] = nil
    }
}
