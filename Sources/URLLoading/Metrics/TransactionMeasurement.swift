import Foundation
import LarderHTTP

/// What one transaction took, before it becomes an `URLSessionTaskTransactionMetrics`.
struct TransactionMeasurement: Sendable {
    enum Source: Sendable { case unknown, network, cache }

    var source = Source.unknown
    var begun = Date()
    var ended: Date?
}
