package import LarderHTTP
import LarderPolicy
import LarderStore
package import NIOCore

/// An answer from memory that the same request gets again, as long as it stands.
///
/// It stands while the session follows the same rules, while nothing that is stored under its key
/// changes, and while it is fresh; for a minute at most, after which everything is decided anew.
/// What changes from one time to the next is `Age` and the remaining freshness alone, so neither
/// policy need be asked nor a head be made. A value: whoever got it may keep it, and asks the
/// session each time whether it still stands.
package final class StandingAnswer: Sendable {
    /// What an answer that stands says at one moment.
    package struct Moment: Sendable {
        /// When it was found to stand.
        package let time: Timestamp
        /// What `Age` says, in seconds.
        package let age: Int64
        /// What `ttl` in `Cache-Status` says.
        package let ttl: Int64
    }

    /// It, given once more.
    package struct Repetition: Sendable {
        /// What is said of it this time.
        package let moment: Moment
        /// The part of the stored body that is sent; nil: none.
        package let body: ByteBuffer?
    }

    /// Whether it is the answer to all requests of the same ``RequestGist``, and not of the same bytes
    /// alone.
    package let isByGist: Bool
    /// The number of the rules that the session followed.
    let rules: UInt64
    /// What the request's own options said of its use of the cache.
    let asked: RequestCachePolicy?
    let key: CacheKey
    let place: StandingPlace
    /// Which bytes of the stored body are sent; empty: none.
    let range: Range<Int>
    /// What is remembered of it.
    let exchange: RecentExchange

    private let received: Timestamp
    /// In microseconds: `corrected_initial_age` (RFC 9111 §4.2.3), and the lifetime.
    private let initialAge: Int64
    private let lifetime: Int64
    private let until: Timestamp

    /// However long it stays fresh.
    private static let longest = Duration.seconds(60)

    /// - Parameters:
    ///   - exchange: what is remembered of it.
    ///   - ground: what it stands on; fresh at `now`.
    init(
        rules: UInt64, asked: RequestCachePolicy?, key: CacheKey, range: Range<Int>,
        exchange: RecentExchange, ground: StandingGround, now: Timestamp
    ) {
        let (freshness, received) = (ground.freshness, ground.received)
        self.rules = rules
        self.asked = asked
        self.key = key
        self.place = ground.place
        self.isByGist = ground.isByGist
        self.range = range
        self.exchange = exchange
        self.received = received
        self.initialAge = (freshness.currentAge - max(.zero, now - received)).inMicroseconds
        self.lifetime = freshness.lifetime.inMicroseconds
        self.until = now + Self.longest
    }

    /// Whether all it stands on lies in memory: asking whether it still does reads no disk.
    package var isResident: Bool {
        switch self.place {
        case .resident: true
        case .found: false
        }
    }

    /// The bytes of the heads that it holds and no store does.
    package var heldBytes: Int {
        switch self.place {
        case .resident: 0
        case .found(let place): place.fieldBytes
        }
    }

    /// Whether it was asked for in the same way.
    func wasAsked(with policy: RequestCachePolicy?) -> Bool {
        // Nearly always; the comparison of words is a call.
        if self.asked == nil, policy == nil { return true }
        return self.asked == policy
    }

    /// What it says at a moment; nil where it does not stand any more, or not yet.
    func moment(at now: Timestamp) -> Moment? {
        guard now >= self.received, now < self.until else { return nil }
        let (resident, overflow) = now.microseconds.subtractingReportingOverflow(
            self.received.microseconds)
        let (age, overflowed) = self.initialAge.addingReportingOverflow(resident)
        guard !overflow, !overflowed, age >= 0, age < self.lifetime else { return nil }
        return Moment(
            time: now, age: age / 1_000_000, ttl: (self.lifetime - age) / 1_000_000)
    }
}
