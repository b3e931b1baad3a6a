package import LarderHTTP

/// How somebody proves who they are, in the words of the URL Loading System.
package enum AuthenticationMethod: String, Sendable, Hashable, Codable, CaseIterable {
    case `default`, basic, digest, form, ntlm, negotiate
    case clientCertificate = "client-certificate"
    case serverTrust = "server-trust"

    /// The method of a scheme that a user name and a password answer.
    package init?(_ scheme: AuthenticationScheme) {
        switch scheme {
        case .basic: self = .basic
        case .digest: self = .digest
        case .ntlm: self = .ntlm
        case .negotiate: self = .negotiate
        default: return nil
        }
    }
}

/// Where a credential is good: a server or proxy, a realm, a method (RFC 9110 §11.5).
///
/// Equal in all its parts or not at all: a credential for one is never offered to another.
package struct ProtectionSpace: Sendable, Hashable {
    package enum ProxyKind: String, Sendable, Hashable, Codable, CaseIterable {
        case http, https, ftp, socks
    }

    package enum Party: Sendable, Hashable {
        case server(Scheme)
        case proxy(ProxyKind)
    }

    package let party: Party
    /// Lower case; an IPv6 address stands in brackets.
    package let host: String
    package let port: UInt16
    /// Nil for methods that have none.
    package let realm: String?
    package let method: AuthenticationMethod

    package init(
        party: Party, host: String, port: UInt16, realm: String?, method: AuthenticationMethod
    ) {
        self.party = party
        // Not `lowercased()`: it changes letters that no host name has.
        self.host = String(decoding: host.utf8.map(ASCII.lowercased), as: UTF8.self)
        self.port = port
        self.realm = realm
        self.method = method
    }

    /// The space of an origin's challenge; nil where no password answers it.
    package init?(_ challenge: Challenge, from uri: TargetURI) {
        guard let method = AuthenticationMethod(challenge.scheme) else { return nil }
        self.init(
            party: .server(uri.scheme), host: uri.host, port: uri.port, realm: challenge.realm,
            method: method)
    }

    package var isProxy: Bool {
        if case .proxy = self.party { return true }
        return false
    }

    /// Whether the secret reaches the party so that none who listens can use it.
    package var receivesCredentialSecurely: Bool {
        switch self.method {
        case .ntlm, .negotiate, .clientCertificate, .serverTrust: true
        case .default, .basic, .digest, .form:
            self.party == .server(.https) || self.party == .proxy(.https)
        }
    }
}
