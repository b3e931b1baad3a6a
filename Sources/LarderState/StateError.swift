/// Why a session's state (cookies, credentials) could not be opened, read or written.
package struct StateError: Error, Sendable, Equatable {
    package enum Code: String, Sendable {
        /// Another process holds it.
        case inUse = "in-use"
        /// The key does not open what is there, or there is none for it.
        case wrongKey = "wrong-key"
        /// A key file that others may read, or that holds something else.
        case badKeyFile = "bad-key-file"
        case damaged, full, unavailable
        /// This user may not read or write it.
        case denied
        /// Somebody else may have laid it there, or could.
        case untrusted
    }

    package let code: Code
    /// The file that it is about.
    package let path: String
    /// What is the matter; holds no secret.
    package let cause: String
    /// What a person can do about it.
    package let remedy: String

    package init(_ code: Code, path: String, cause: String, remedy: String) {
        self.code = code
        self.path = path
        self.cause = cause
        self.remedy = remedy
    }
}

extension StateError: CustomStringConvertible {
    package var description: String { "\(self.path): \(self.cause); \(self.remedy)" }
}
