import LarderHTTP

/// Octets that no description, mirror or message shows, and that are cleared when the last copy goes.
///
/// Kept as octets, because they are hashed and encoded as such. Copies share one piece of memory.
/// Equality takes a time that depends on the lengths alone. What was handed in and what `revealed`
/// hands out is the caller's, and is not cleared.
package struct Secret: Sendable, Hashable {
    private let storage: SecretBytes

    package init(_ octets: [UInt8]) {
        self.storage = SecretBytes(octets.span)
    }

    package init(_ octets: Span<UInt8>) {
        self.storage = SecretBytes(octets)
    }

    package init(_ text: String) {
        self.init(Array(text.utf8))
    }

    /// A copy of the octets: the name says at each use that a secret leaves its shell.
    ///
    /// An array's memory is not cleared when it is freed, so that this is where a secret may stay
    /// behind; what needs the octets for a moment only takes ``withBytes(_:)``.
    package var revealed: [UInt8] {
        self.withBytes { octets in unsafe octets.withUnsafeBufferPointer { unsafe Array($0) } }
    }

    /// Lends the octets themselves, without a copy.
    package func withBytes<R, E: Error>(
        _ body: (Span<UInt8>) throws(E) -> R
    ) throws(E) -> R {
        try self.storage.withBytes(body)
    }

    package var isEmpty: Bool { self.withBytes { $0.isEmpty } }

    /// Compares all octets whatever the first ones say.
    package static func == (a: Secret, b: Secret) -> Bool {
        a.withBytes { left in
            b.withBytes { right in
                guard left.count == right.count else { return false }
                var difference: UInt8 = 0
                for i in left.indices { difference |= left[i] ^ right[i] }
                return difference == 0
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        self.withBytes { octets in
            unsafe octets.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
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
