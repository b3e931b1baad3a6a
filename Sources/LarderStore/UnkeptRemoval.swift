/// Why what was removed may come back with the next process that opens the store.
///
/// Nobody is shown it meanwhile.
package struct UnkeptRemoval: Error, Sendable, Equatable {
    package enum Code: Sendable, Equatable {
        /// Neither what is stored nor a note beside it could be changed.
        case notWritten
        /// Somebody else has what is stored, or the store is being closed.
        case unavailable
    }

    package var code: Code
    /// The file in question.
    package var path: String
    /// What happened, in a line.
    package var cause: String
    /// What a person can do about it, in a line.
    package var remedy: String

    package init(_ code: Code, path: String, cause: String, remedy: String) {
        self.code = code
        self.path = path
        self.cause = cause
        self.remedy = remedy
    }
}

extension UnkeptRemoval: CustomStringConvertible {
    /// All but the remedy.
    package var description: String {
        "\(self.path): \(self.cause): what was removed may come back at the next start"
    }
}
