/// A credential for a scheme that authenticates a connection by a handshake of several messages
/// (RFC 4559): the upstream does it, as only it knows the connection.
///
/// The password is behind a closure, so that neither a description nor a mirror of a request shows it.
/// A class, as each copy of a request has room for one and hardly any request has one.
package final class ConnectionAuthentication: Sendable {
    package enum Scheme: String, Sendable, Hashable, CaseIterable {
        case ntlm, negotiate
    }

    package let scheme: Scheme
    /// Perhaps with a domain in front (`DOMAIN\user`); empty: the ticket that the process has, for
    /// `negotiate`.
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

extension ConnectionAuthentication: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package var description: String { "\(self.scheme.rawValue) (secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
