package import LarderHTTP
package import LarderPolicy
import Synchronization

/// What is remembered of an exchange that was answered, for people who ask why.
///
/// Facts of the answer alone: no field of the request is kept, as it may be a secret, and of the
/// URI nothing that stands before the host.
package struct RecentExchange: Sendable, Equatable {
    /// When it was answered.
    package var time: Timestamp
    package var method: Method
    /// Partition, method and URI, its user information left out.
    package var key: CacheKey
    package var status: StatusCode
    package var isHit: Bool
    package var isFromMemory: Bool
    package var isStored: Bool
    package var isCollapsed: Bool
    package var forward: CacheStatus.Forward?
    package var forwardStatus: StatusCode?
    /// The rule that decided on the use of what is stored.
    package var reason: PolicyReason?
    /// The rule that kept the origin's response out of the store.
    package var storage: PolicyReason?
    /// Remaining freshness in seconds, negative when stale; nil where nothing stored was used.
    package var ttl: Int64?
    /// `Age` of what was sent, in seconds.
    package var age: Int64?
    /// Length of the content that was announced; nil where that was unknown.
    package var bytes: UInt64?
    /// The proxy error type (RFC 9209 §2.3), where the origin gave no answer.
    package var error: ProxyErrorType?
    /// What the session did by itself on the way to the answer, in order.
    package var acts: [SessionAct] = []
    /// Made by the session for its store, after a client had been served a stale response.
    package var isBackground = false

    init(
        time: Timestamp, method: Method, key: CacheKey, status: StatusCode,
        cacheStatus: CacheStatus, reason: PolicyReason?, storage: PolicyReason? = nil
    ) {
        self.time = time
        self.method = method
        self.key = key
        self.status = status
        self.isHit = cacheStatus.hit
        self.isFromMemory = cacheStatus.isFromMemory
        self.isStored = cacheStatus.stored
        self.isCollapsed = cacheStatus.collapsed
        self.forward = cacheStatus.forward
        self.forwardStatus = cacheStatus.forwardStatus
        self.ttl = cacheStatus.ttl
        self.reason = reason
        self.storage = storage
    }
}

/// The last exchanges of a session, as many as were asked for.
///
/// A ring in several parts, taken in turn, so that loops that note at the same time seldom meet at
/// a lock. Noting costs an atomic addition, a lock that is nearly always free, and the writing of
/// one entry.
final class RecentExchanges: Sendable {
    private enum Noted {
        /// Behind a reference: the ring is written with every hit, and most of what it has is small.
        case exchange(Whole)
        /// As the one that the answer was first given in, but for these.
        case again(StandingAnswer, at: Timestamp, age: Int64, ttl: Int64)

        var exchange: RecentExchange {
            switch self {
            case .exchange(let whole): return whole.exchange
            case .again(let standing, let time, let age, let ttl):
                var exchange = standing.exchange
                exchange.time = time
                exchange.age = age
                exchange.ttl = ttl
                return exchange
            }
        }
    }

    private final class Whole: Sendable {
        let exchange: RecentExchange

        init(_ exchange: consuming RecentExchange) {
            self.exchange = exchange
        }
    }

    private struct Entry {
        var number: UInt64
        var noted: Noted
    }

    private final class Part: Sendable {
        let entries = Mutex<[Entry?]>([])
    }

    private static let partCount: UInt64 = 8

    private let parts: [Part]
    private let perPart: UInt64
    private let next = Atomic<UInt64>(0)

    /// - Parameter capacity: rounded up to a multiple of the number of parts; 0: nothing is
    ///   remembered.
    init(capacity: Int) {
        let wanted = UInt64(clamping: min(max(0, capacity), 1 << 20))
        let perPart = (wanted + Self.partCount - 1) / Self.partCount
        self.perPart = perPart
        self.parts = perPart == 0 ? [] : (0..<Self.partCount).map { _ in Part() }
    }

    var isOff: Bool { self.perPart == 0 }

    func note(_ exchange: consuming RecentExchange) { self.note(.exchange(Whole(exchange))) }

    /// Notes that an answer was given once more.
    func note(_ standing: StandingAnswer, at time: Timestamp, age: Int64, ttl: Int64) {
        self.note(.again(standing, at: time, age: age, ttl: ttl))
    }

    private func note(_ noted: Noted) {
        guard !self.isOff else { return }
        let number = self.next.wrappingAdd(1, ordering: .relaxed).oldValue
        let part = self.parts[Int(number % Self.partCount)]
        let place = Int((number / Self.partCount) % self.perPart)
        var entry: Entry? = Entry(number: number, noted: noted)
        part.entries.withLock { entries in
            // The ring grows as it is used: a session that rests holds nothing.
            while entries.count <= place { entries.append(nil) }
            // What was there is let go outside the lock.
            swap(&entries[place], &entry)
        }
    }

    /// The exchanges that match, the last one first, at most `limit`.
    func last(
        _ limit: Int, where matches: (RecentExchange) -> Bool
    ) -> [RecentExchange] {
        var found: [(number: UInt64, exchange: RecentExchange)] = []
        for part in self.parts {
            let entries = part.entries.withLock { $0 }
            for case let entry? in entries {
                let exchange = entry.noted.exchange
                if matches(exchange) { found.append((entry.number, exchange)) }
            }
        }
        found.sort { $0.number > $1.number }
        return found.prefix(max(0, limit)).map(\.exchange)
    }
}

extension TargetURI {
    /// The URI without user and password, which nothing may remember.
    var withoutUserInfo: TargetURI {
        var uri = self
        uri.userInfo = nil
        return uri
    }
}
