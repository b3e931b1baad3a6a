import Foundation
import LarderCredentials
import LarderHTTP

/// A proxy as it asked for a login.
struct ProxyParty: Sendable, Hashable {
    /// A name or an address; an IPv6 address may stand in brackets.
    var host: String
    var port: UInt16
    /// What it is a proxy for: https where a tunnel was asked for, else the request's scheme.
    var kind: ProtectionSpace.ProxyKind
}

extension AuthenticationMethod {
    /// The constants of the public interface.
    private static let names: [(AuthenticationMethod, String)] = [
        (.default, NSURLAuthenticationMethodDefault),
        (.basic, NSURLAuthenticationMethodHTTPBasic),
        (.digest, NSURLAuthenticationMethodHTTPDigest),
        (.form, NSURLAuthenticationMethodHTMLForm),
        (.ntlm, NSURLAuthenticationMethodNTLM),
        (.negotiate, NSURLAuthenticationMethodNegotiate),
        (.clientCertificate, NSURLAuthenticationMethodClientCertificate),
        (.serverTrust, NSURLAuthenticationMethodServerTrust),
    ]

    init?(named name: String) {
        guard let found = Self.names.first(where: { $0.1 == name }) else { return nil }
        self = found.0
    }

    var name: String {
        Self.names.first { $0.0 == self }?.1 ?? NSURLAuthenticationMethodDefault
    }

    /// Whether the session is asked first, as it is the connection that is authenticated (§6.1).
    var isSessionWide: Bool {
        switch self {
        case .ntlm, .negotiate, .clientCertificate, .serverTrust: true
        case .default, .basic, .digest, .form: false
        }
    }
}

extension URLProtectionSpace {
    convenience init(_ space: ProtectionSpace) {
        let host = Self.unbracketed(space.host)
        switch space.party {
        case .server(let scheme):
            self.init(
                host: host, port: Int(space.port), protocol: scheme.rawValue, realm: space.realm,
                authenticationMethod: space.method.name)
        case .proxy(let kind):
            self.init(
                proxyHost: host, port: Int(space.port), type: kind.name, realm: space.realm,
                authenticationMethod: space.method.name)
        }
    }

    /// As the engine has it; nil where it is none that the engine could meet: another protocol, a
    /// port that is none, a method of the program's own.
    var asEngineSpace: ProtectionSpace? {
        guard let port = UInt16(exactly: self.port), self.serverTrust == nil,
            self.distinguishedNames == nil,
            let method = AuthenticationMethod(named: self.authenticationMethod)
        else { return nil }
        let party: ProtectionSpace.Party
        if self.isProxy() {
            guard let type = self.proxyType, let kind = ProtectionSpace.ProxyKind(named: type)
            else { return nil }
            party = .proxy(kind)
        } else {
            guard let scheme = self.protocol.flatMap({ Scheme(rawValue: $0) }) else { return nil }
            party = .server(scheme)
        }
        let isAddress = self.host.utf8.contains(ASCII.colon) && !self.host.hasPrefix("[")
        let space = ProtectionSpace(
            party: party, host: isAddress ? "[\(self.host)]" : self.host, port: port,
            realm: self.realm, method: method)
        // What would come back as another one must not be taken for this one.
        return URLProtectionSpace(space) == self ? space : nil
    }

    /// The space for the host's default method; itself where it is that.
    var ofDefaultMethod: URLProtectionSpace {
        if self.authenticationMethod == NSURLAuthenticationMethodDefault { return self }
        guard self.isProxy() else {
            return URLProtectionSpace(
                host: self.host, port: self.port, protocol: self.protocol, realm: self.realm,
                authenticationMethod: nil)
        }
        return URLProtectionSpace(
            proxyHost: self.host, port: self.port, type: self.proxyType, realm: self.realm,
            authenticationMethod: nil)
    }
}

extension ProtectionSpace.ProxyKind {
    init?(named name: String) {
        switch name {
        case NSURLProtectionSpaceHTTPProxy: self = .http
        case NSURLProtectionSpaceHTTPSProxy: self = .https
        case NSURLProtectionSpaceFTPProxy: self = .ftp
        case NSURLProtectionSpaceSOCKSProxy: self = .socks
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .http: NSURLProtectionSpaceHTTPProxy
        case .https: NSURLProtectionSpaceHTTPSProxy
        case .ftp: NSURLProtectionSpaceFTPProxy
        case .socks: NSURLProtectionSpaceSOCKSProxy
        }
    }
}
