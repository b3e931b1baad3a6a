import LarderHTTP

/// Octets that no description, mirror or message shows.
///
/// Kept as octets, because they are hashed and encoded as such. Equality takes a time that depends
/// on the lengths alone.
package struct Secret: Sendable, Hashable {
    private let octets: [UInt8]

    package init(_ octets: [UInt8]) {
        self.octets = octets
    }

    package init(_ text: String) {
        self.octets = Array(text.utf8)
    }

    /// The octets themselves: the name says at each use that a secret leaves its shell.
    package var revealed: [UInt8] { self.octets }

    package var isEmpty: Bool { self.octets.isEmpty }

    /// Compares all octets whatever the first ones say.
    package static func == (a: Secret, b: Secret) -> Bool {
        guard a.octets.count == b.octets.count else { return false }
        return zip(a.octets, b.octets).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// How long a credential is kept.
package enum CredentialPersistence: String, Sendable, Hashable, Codable, CaseIterable {
    /// Used once, never kept.
    case none
    /// In memory, until the session ends.
    case forSession = "for-session"
    /// In the session's storage too, where it has one.
    case permanent
}

/// A user name, a password, and how long they are kept.
package struct Credential: Sendable, Hashable {
    package let user: String
    package let password: Secret
    package let persistence: CredentialPersistence

    package init(user: String, password: Secret, persistence: CredentialPersistence) {
        self.user = user
        self.password = password
        self.persistence = persistence
    }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { "\(self.user) (\(self.persistence.rawValue))" }
    package var debugDescription: String { self.description }
}

/// Why a credential cannot be put into a field, or a field not be read as one.
package enum CredentialFault: String, Error, Sendable, CaseIterable {
    /// The user name holds a colon, which would end it (RFC 7617 §2).
    case colonInUser = "colon-in-user"
    /// A control character, which no scheme can carry (RFC 7617 §2).
    case controlCharacter = "control-character"
    /// Not the scheme's `Authorization`, or damaged.
    case malformed
    /// The nonce was used as often as eight digits can count (RFC 7616 §3.4.3).
    case nonceExhausted = "nonce-exhausted"
    /// `auth-int` needs the hash of a content that is not known (RFC 7616 §3.4.3).
    case contentUnknown = "content-unknown"
    /// The hash is not to be had.
    case unsupportedAlgorithm = "unsupported-algorithm"
}

extension [UInt8] {
    /// Whether a control character is among the octets.
    var hasControl: Bool { self.contains { $0 < 0x20 || $0 == 0x7F } }
}
