/// A login for the parent proxy that one request goes through.
///
/// A secret: the password is behind a closure, and no description shows it.
package final class ProxyAuthorization: Sendable {
    package enum Scheme: String, Sendable, Hashable, CaseIterable {
        case basic, digest, ntlm, negotiate
    }

    package let scheme: Scheme
    /// Perhaps with a domain in front (`DOMAIN\user`, for NTLM).
    package let user: String
    private let reveal: @Sendable () -> [UInt8]

    /// - Parameter password: gives the octets each time they are needed; any thread, must not block.
    package init(
        scheme: Scheme, user: String, password: @escaping @Sendable () -> [UInt8]
    ) {
        self.scheme = scheme
        self.user = user
        self.reveal = password
    }

    /// The password's octets: for the moment of their use, and to be overwritten after it.
    package var revealedPassword: [UInt8] { self.reveal() }
}

extension ProxyAuthorization: Hashable {
    // What is equal has the same password today and may have another tomorrow: it is itself alone.

    package static func == (a: ProxyAuthorization, b: ProxyAuthorization) -> Bool { a === b }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension ProxyAuthorization: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package var description: String { "\(self.scheme.rawValue) (secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
