public import Foundation
import LarderHTTP
import Synchronization

/// What the requests of a task took.
///
/// Given to `urlSession(_:task:didFinishCollecting:)`, once for each task, before its completion.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    /// Where a response came from.
    public enum ResourceFetchType: Int, Sendable {
        /// From nowhere: the load failed before that was known.
        case unknown = 0
        /// Over the network.
        case networkLoad = 1
        /// Pushed by the server; does not happen on Linux.
        case serverPush = 2
        /// From the cache, without asking the server.
        case localCache = 3
    }

    /// How a name was resolved; always unknown on Linux, as the system's resolver does not tell.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// Nobody knows.
        case unknown = 0
        /// DNS over UDP.
        case udp = 1
        /// DNS over TCP.
        case tcp = 2
        /// DNS over TLS (RFC 7858).
        case tls = 3
        /// DNS over HTTPS (RFC 8484).
        case https = 4
    }

    /// One for each request and its response, in their order: redirections, answered challenges and
    /// what came from the cache among them.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]
    /// From the making of the task until it was about to complete.
    public let taskInterval: DateInterval
    /// How often the task was redirected.
    public let redirectCount: Int

    /// Makes metrics of no task, without transactions, for programs that call delegates themselves.
    public override init() {
        self.transactionMetrics = []
        self.taskInterval = DateInterval()
        self.redirectCount = 0
        super.init()
    }

    /// - Parameters:
    ///   - transactions: in the order in which they began.
    ///   - created: when the task was made.
    init(
        _ transactions: [TransactionMeasurement], created: Date, ended: Date, redirects: Int
    ) {
        self.transactionMetrics = transactions.map { URLSessionTaskTransactionMetrics($0) }
        // A clock that was set back in between must not trap.
        self.taskInterval = DateInterval(start: created, end: max(created, ended))
        self.redirectCount = redirects
        super.init()
    }
}
