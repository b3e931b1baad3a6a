/// The scheme of a target URI that Larder can forward.
package enum Scheme: String, Hashable, Sendable, Codable {
    case http, https, ftp

    package var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        case .ftp: 21
        }
    }
}

/// The target URI of a request, taken apart (RFC 9110 §7.1, RFC 3986).
///
/// Only what RFC 3986 §6.2.2 and RFC 9110 §4.2.3 call equivalent is normalised: the case of scheme
/// and host, the default port, an empty path. Path and query are kept as received, bytes beyond ASCII
/// encoded.
///
/// A value that lies behind one reference, made anew when it is changed: it is read and handed on
/// some fifteen times in a miss, each of which would count three texts up and down.
package struct TargetURI: Sendable {
    private var storage: TargetURIStorage

    package init(
        scheme: Scheme, userInfo: String? = nil, host: String, port: UInt16? = nil,
        pathAndQuery: String
    ) {
        self.storage = TargetURIStorage(
            TargetURIParts(
                scheme: scheme, userInfo: userInfo, host: host, port: port ?? scheme.defaultPort,
                pathAndQuery: pathAndQuery))
    }

    package var scheme: Scheme {
        get { self.storage.parts.scheme }
        set { self.change { $0.scheme = newValue } }
    }

    /// `user:password` of an ftp URI as received; always nil for http and https.
    package var userInfo: String? {
        get { self.storage.parts.userInfo }
        set { self.change { $0.userInfo = newValue } }
    }

    /// Lower case; an IPv6 address stands in brackets.
    package var host: String {
        get { self.storage.parts.host }
        set { self.change { $0.host = newValue } }
    }

    package var port: UInt16 {
        get { self.storage.parts.port }
        set { self.change { $0.port = newValue } }
    }

    /// Begins with `/`, or is `*` for a server-wide OPTIONS; no fragment.
    package var pathAndQuery: String {
        get { self.storage.parts.pathAndQuery }
        set { self.change { $0.pathAndQuery = newValue } }
    }

    private mutating func change(_ change: (inout TargetURIParts) -> Void) {
        var parts = self.storage.parts
        change(&parts)
        self.storage = TargetURIStorage(parts)
    }

    /// `host` or `host:port` where the port is not the scheme's own: what `Host` says.
    package var authority: String {
        self.port == self.scheme.defaultPort ? self.host : "\(self.host):\(self.port)"
    }

    /// The path without the query.
    package var path: Substring {
        self.pathAndQuery.prefix { $0 != "?" }
    }

    /// Whether both have scheme, host and port in common (RFC 9110 §4.3.1).
    package func hasSameOrigin(as other: TargetURI) -> Bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }
}

extension TargetURI: Hashable {
    package static func == (a: TargetURI, b: TargetURI) -> Bool {
        a.storage === b.storage || a.storage.parts == b.storage.parts
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.parts)
    }
}

private struct TargetURIParts: Hashable, Sendable {
    var scheme: Scheme
    var userInfo: String?
    var host: String
    var port: UInt16
    var pathAndQuery: String
}

private final class TargetURIStorage: Sendable {
    let parts: TargetURIParts

    init(_ parts: TargetURIParts) {
        self.parts = parts
    }
}

extension TargetURI: CustomStringConvertible {
    /// The URI as text, its user information left out.
    package var description: String {
        let path = self.pathAndQuery == "*" ? "" : self.pathAndQuery
        return "\(self.scheme.rawValue)://\(self.authority)\(path)"
    }
}
