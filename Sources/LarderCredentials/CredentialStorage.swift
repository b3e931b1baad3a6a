/// Where permanent credentials outlive a process: the port that an encrypting disk tier fills.
///
/// Calls come one at a time, in the order of the changes.
package protocol CredentialStorage: Sendable {
    /// All that is held, as the changes that lead to it: credentials, then defaults.
    func load() async throws(CredentialStorageError) -> [CredentialChange]

    /// Makes changes last; returns when they do. All or none of them.
    func apply(_ changes: [CredentialChange]) async throws(CredentialStorageError)
}

/// Why a storage could not do it.
///
/// A store whose storage fails goes on in memory.
package struct CredentialStorageError: Error, Sendable, Equatable {
    package enum Code: String, Sendable { case unavailable, damaged, full, wrongKey }

    package var code: Code
    /// For a log; holds no secret.
    package var detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
