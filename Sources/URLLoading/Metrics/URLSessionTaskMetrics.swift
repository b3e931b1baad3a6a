public import Foundation

/// What the requests of a task took.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {}

/// What one request of a task took, and its response.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {}
