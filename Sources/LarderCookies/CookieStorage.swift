/// Where persistent cookies outlive a process: the port that a disk tier fills.
///
/// It keeps persistent cookies only; of the others it is told that they removed what they replaced.
/// Calls come one at a time, in the order of the changes; changes that waited for a call come
/// together, each cookie's last alone. What could not be kept is brought again.
package protocol CookieStorage: Sendable {
    /// All that is held, in no order; expired ones may be among them.
    func load() async throws(CookieStorageError) -> [Cookie]

    /// Makes changes last; returns when they do. All or none of them.
    func apply(_ changes: [CookieChange]) async throws(CookieStorageError)
}

/// Why a storage could not do it.
///
/// A jar whose storage fails goes on in memory.
package struct CookieStorageError: Error, Sendable, Equatable {
    package enum Code: String, Sendable { case unavailable, damaged, full }

    package var code: Code
    /// For a log; holds no cookie's value.
    package var detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
