public import Foundation

/// A server or a proxy, or a realm of one, that asks for a credential by one method.
///
/// Immutable, and safe to use on any thread. Equal in all its parts or not at all; the host counts
/// without regard to case, as host names do, and an IPv6 address with or without brackets.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Invariant of `@unchecked`: nothing is changed after `init`.

    private struct Parts: Hashable {
        var host: String
        var port: Int
        var isProxy: Bool
        /// The protocol, or the type of the proxy.
        var kind: String?
        var realm: String?
        var method: String
        var names: [Data]?
        var trust: ServerTrust?
    }

    private let parts: Parts

    /// Makes the space of a server.
    ///
    /// - Parameters:
    ///   - port: 0 where none is meant.
    ///   - protocol: one of `NSURLProtectionSpaceHTTP` and so on, or a scheme.
    ///   - realm: nil where the method has none.
    ///   - authenticationMethod: nil for `NSURLAuthenticationMethodDefault`.
    public init(
        host: String, port: Int, protocol: String?, realm: String?, authenticationMethod: String?
    ) {
        self.parts = Parts(
            host: host, port: port, isProxy: false, kind: `protocol`, realm: realm,
            method: authenticationMethod ?? NSURLAuthenticationMethodDefault)
        super.init()
    }

    /// Makes the space of a proxy.
    ///
    /// - Parameters:
    ///   - type: one of `NSURLProtectionSpaceHTTPProxy` and so on.
    ///   - authenticationMethod: nil for `NSURLAuthenticationMethodDefault`.
    public init(
        proxyHost host: String, port: Int, type: String?, realm: String?,
        authenticationMethod: String?
    ) {
        self.parts = Parts(
            host: host, port: port, isProxy: true, kind: type, realm: realm,
            method: authenticationMethod ?? NSURLAuthenticationMethodDefault)
        super.init()
    }

    /// The space of a server whose certificate is to be judged.
    init(trust: ServerTrust, protocol: String) {
        self.parts = Parts(
            host: trust.host, port: trust.port, isProxy: false, kind: `protocol`, realm: nil,
            method: NSURLAuthenticationMethodServerTrust, trust: trust)
        super.init()
    }

    /// The space of a server that wants a client certificate.
    init(host: String, port: Int, protocol: String, distinguishedNames: [Data]) {
        self.parts = Parts(
            host: host, port: port, isProxy: false, kind: `protocol`, realm: nil,
            method: NSURLAuthenticationMethodClientCertificate, names: distinguishedNames)
        super.init()
    }

    // MARK: What it says

    /// The server's or the proxy's name; an IPv6 address without brackets.
    open var host: String { self.parts.host }

    /// The port; 0 where it was not set.
    open var port: Int { self.parts.port }

    /// The server's protocol; nil for a proxy.
    open var `protocol`: String? { self.parts.isProxy ? nil : self.parts.kind }

    /// What kind of proxy it is; nil for a server.
    open var proxyType: String? { self.parts.isProxy ? self.parts.kind : nil }

    /// The part of the server that the credential is for; nil where the method has none.
    open var realm: String? { self.parts.realm }

    /// How the credential is given.
    open var authenticationMethod: String { self.parts.method }

    /// Whether it is a proxy's.
    open override func isProxy() -> Bool { self.parts.isProxy }

    /// The issuers that the server accepts client certificates of, as DER of their names; nil where
    /// the method is not `NSURLAuthenticationMethodClientCertificate`.
    open var distinguishedNames: [Data]? { self.parts.names }

    /// The server's certificates; nil where the method is not
    /// `NSURLAuthenticationMethodServerTrust`.
    open var serverTrust: ServerTrust? { self.parts.trust }

    /// Whether a listener on the way learns nothing that it could use.
    ///
    /// True over TLS, and for NTLM, Negotiate and certificates (where Foundation says false).
    open var receivesCredentialSecurely: Bool {
        switch self.parts.kind?.lowercased() {
        case "https" where !self.parts.isProxy, "ftps" where !self.parts.isProxy,
            "nsurlprotectionspacehttps":
            return true
        default: break
        }
        switch self.parts.method {
        case NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
            NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust:
            return true
        default: return false
        }
    }

    // MARK: Comparing

    /// An IPv6 address without the brackets that it has in a URL.
    static func unbracketed(_ host: String) -> String {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return host }
        return String(host.dropFirst().dropLast())
    }

    private var identity: Parts {
        var parts = self.parts
        parts.host = Self.unbracketed(parts.host).lowercased()
        return parts
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLProtectionSpace else { return false }
        return other === self || other.identity == self.identity
    }

    open override var hash: Int { self.identity.hashValue }

    open override func copy() -> Any { self.copy(with: nil) }

    /// Itself: it cannot be changed.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    private static let methods: Set<String> = [
        NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic,
        NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodHTMLForm,
        NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
        NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust,
    ]

    /// All parts in a line; a method that is none of the constants is shown as the default one.
    open override var description: String {
        let method =
            Self.methods.contains(self.authenticationMethod)
            ? self.authenticationMethod : NSURLAuthenticationMethodDefault
        let place = String(
            UInt(bitPattern: ObjectIdentifier(self).hashValue), radix: 16, uppercase: false)
        return "<\(type(of: self)) 0x\(place)>: "
            + "Host:\(self.host), Server:\(self.protocol ?? "(null)"), Auth-Scheme:\(method), "
            + "Realm:\(self.realm ?? "(null)"), Port:\(self.port), "
            + "Proxy:\(self.isProxy() ? "YES" : "NO"), Proxy-Type:\(self.proxyType ?? "(null)")"
    }

    // MARK: Coding

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    private enum Key {
        static let host = "host"
        static let port = "port"
        static let isProxy = "isProxy"
        static let kind = "kind"
        static let realm = "realm"
        static let method = "method"
    }

    /// Reads a space from a keyed archive; nil where it is not keyed or has no host.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding, let host = coder.text(forKey: Key.host) else { return nil }
        self.parts = Parts(
            host: host, port: coder.decodeInteger(forKey: Key.port),
            isProxy: coder.decodeBool(forKey: Key.isProxy), kind: coder.text(forKey: Key.kind),
            realm: coder.text(forKey: Key.realm),
            method: coder.text(forKey: Key.method) ?? NSURLAuthenticationMethodDefault)
        super.init()
    }

    /// Writes all but certificates to a keyed archive.
    open func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        coder.encode(NSString(string: self.host), forKey: Key.host)
        coder.encode(self.port, forKey: Key.port)
        coder.encode(self.isProxy(), forKey: Key.isProxy)
        for (text, key) in [
            (self.parts.kind, Key.kind), (self.realm, Key.realm),
            (self.authenticationMethod, Key.method),
        ] {
            guard let text else { continue }
            coder.encode(NSString(string: text), forKey: key)
        }
    }
}
