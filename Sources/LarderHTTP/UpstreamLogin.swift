/// A user's name and password with which an upstream logs in by itself, by a scheme.
///
/// The password is behind a closure, so that neither a description nor a mirror of a request shows it.
/// A class, as each copy of a request has room for one and hardly any request has one.
package final class UpstreamLogin<Scheme: LoginScheme>: Sendable {
    package let scheme: Scheme
    /// Perhaps with a domain in front (`DOMAIN\user`, for NTLM); empty: the ticket that the process has,
    /// for Negotiate.
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

/// The schemes of a kind of login, by their names.
package protocol LoginScheme: RawRepresentable, Hashable, Sendable, CaseIterable
where RawValue == String {}

/// A credential for a scheme that authenticates a connection by a handshake of several messages
/// (RFC 4559): the upstream does it, as only it knows the connection.
package typealias ConnectionAuthentication = UpstreamLogin<ConnectionScheme>

package enum ConnectionScheme: String, LoginScheme { case ntlm, negotiate }

/// A login for the parent proxy that one request goes through.
package typealias ProxyAuthorization = UpstreamLogin<ProxyScheme>

package enum ProxyScheme: String, LoginScheme { case basic, digest, ntlm, negotiate }

extension UpstreamLogin: Hashable {
    // What is equal has the same password today and may have another tomorrow: it is itself alone.

    package static func == (a: UpstreamLogin, b: UpstreamLogin) -> Bool { a === b }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension UpstreamLogin: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(self.scheme.rawValue) (secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
