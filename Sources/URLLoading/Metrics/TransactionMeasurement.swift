import Foundation
import LarderHTTP

/// What one transaction took, before it becomes an `URLSessionTaskTransactionMetrics`.
///
/// A value that is cheap to make: nothing of it is translated before somebody looks at the metrics.
struct TransactionMeasurement: Sendable {
    enum Source: Sendable { case unknown, network, cache }

    var source = Source.unknown
    var begun = Date()
    var ended: Date?
    var request: URLRequest?
    var response: URLResponse?
    /// What the upstream measured; nil where it was not asked.
    var transfer: TransferMeasurement?
    /// The request's content as the program gave it.
    var contentBytes: Int64 = 0
    /// The response's content as the program got it.
    var bodyBytes: Int64 = 0
}
