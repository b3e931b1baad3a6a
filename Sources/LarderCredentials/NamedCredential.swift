import LarderHTTP

/// A credential with a name, by which the rules of a session speak of it.
///
/// The name is no secret; what is in it may be.
package struct NamedCredential: Sendable, Hashable {
    /// What is sent.
    package enum Kind: Sendable, Hashable {
        /// Answers challenges: Basic, Digest, NTLM or Negotiate, whichever the origin asks for.
        case password(user: String, password: Secret)
        /// `Authorization: Bearer` (RFC 6750 §2.1).
        case bearer(Secret)
        /// A field of the request as it is: an API key, say.
        case field(name: String, value: Secret)

        /// The kind in a word, for lists.
        package var word: String {
            switch self {
            case .password: "password"
            case .bearer: "bearer"
            case .field: "field"
            }
        }
    }

    package let name: String
    package let kind: Kind
    package let persistence: CredentialPersistence

    package init(name: String, kind: Kind, persistence: CredentialPersistence) {
        self.name = name
        self.kind = kind
        self.persistence = persistence
    }

    /// Whether a text may be a name: 1 to 64 of `A–Z a–z 0–9 . _ -`.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                let isLetter = ASCII.lowercased(byte) &- UInt8(ascii: "a") < 26
                return isLetter || ASCII.isDigit(byte) || "._-".utf8.contains(byte)
            }
    }
}

extension NamedCredential: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { "\(self.name) (\(self.kind.word))" }
    package var debugDescription: String { self.description }
}
