package import LarderHTTP
import LarderPolicy

/// One exchange, as the access log tells it.
///
/// Written when the exchange has ended.
///
/// The texts come from strangers as they are; the formats escape them.
package struct AccessLogEntry: Sendable, Equatable {
    /// How the answer came about; each format has its own words for it.
    package enum Outcome: Sendable, Equatable, CaseIterable {
        case memoryHit, diskHit
        /// Answered by another request's fetch.
        case collapsed
        case miss
        /// The origin said that the stored response still holds.
        case validated
        /// The origin sent a new one in its place.
        case refreshed
        case staleHit
        /// A stored response stood in for the origin, which failed or gave no answer.
        case standIn
        /// `only-if-cached`, or the offline mode, and there was nothing.
        case onlyIfCachedMiss
        case bypass
        case tunnel
        /// The access rules said no.
        case denied
        /// Larder answered by itself: a rejection, a failure, a page of its own.
        case own
        /// It ended before anybody had an answer: the client left, or had to.
        case unanswered
    }

    package var end: Timestamp
    package var duration: Duration
    /// An address, or `unix:` with the user's number.
    package var client: String
    /// The name under which the client has authenticated itself to the proxy.
    package var user: String?
    /// The user of this machine that a client of a Unix socket is.
    package var uid: UInt32?
    package var method: String
    /// The target as a URI, or `host:port` for a tunnel; ftp passwords left out.
    package var target: String
    package var version: String
    package var status: Int
    /// Bytes sent to the client, head included.
    package var bytesSent: UInt64
    package var bytesReceived: UInt64
    package var outcome: Outcome
    /// The address that was asked; empty where none was.
    package var origin: String
    /// That is a parent proxy.
    package var isParent = false
    package var contentType: String?
    package var referer: String?
    package var userAgent: String?
    /// Names the exchange in every log.
    package var id: String
    package var session: String
    /// The `Cache-Status` member (RFC 9211).
    package var cacheStatus: String
    /// The token of the rule that decided, where a session answered.
    package var reason: String?
    /// The access rule that denied it: `access[0]`.
    package var rule: String?
    /// The tokens of what the session did by itself on the way to the answer, in order.
    package var acts: [String] = []
    /// What went wrong: one line for people.
    package var error: String?
    /// The proxy error type (RFC 9209 §2.3), where the answer has one.
    package var errorType: String?
    /// The exchange ended before its answer did: the client left, or the answer broke off.
    package var wasAborted: Bool

    package init(
        end: Timestamp, duration: Duration, client: String, method: String, target: String,
        version: String = "HTTP/1.1", status: Int, bytesSent: UInt64, outcome: Outcome
    ) {
        self.end = end
        self.duration = duration
        self.client = client
        self.method = method
        self.target = target
        self.version = version
        self.status = status
        self.bytesSent = bytesSent
        self.bytesReceived = 0
        self.outcome = outcome
        self.origin = ""
        self.id = ""
        self.session = ""
        self.cacheStatus = ""
        self.wasAborted = false
    }
}

extension AccessLogEntry.Outcome {
    /// The outcome that a cache status tells of, for an exchange that a session answered.
    ///
    /// - Parameter fromMemory: a hit came from the memory tier.
    package init(_ status: CacheStatus, fromMemory: Bool) {
        if status.hit {
            self = (status.ttl ?? 0) < 0 ? .staleHit : fromMemory ? .memoryHit : .diskHit
        } else if status.collapsed {
            self = .collapsed
        } else if let validation = status.validation {
            switch validation {
            case .confirmed: self = .validated
            case .replaced: self = .refreshed
            case .standIn: self = .standIn
            }
        } else if status.forward == .bypass {
            self = .bypass
        } else if status.forward != nil {
            self = .miss
        } else {
            let asksNobody = [PolicyReason.onlyIfCached, .returnCacheDontLoad].contains {
                $0.rawValue == status.detail
            }
            self = asksNobody ? .onlyIfCachedMiss : .own
        }
    }
}
