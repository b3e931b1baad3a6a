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
/// and host, the default port, an empty path. Path and query are kept as received.
package struct TargetURI: Hashable, Sendable {
    package var scheme: Scheme
    /// `user:password` of an ftp URI as received; always nil for http and https.
    package var userInfo: String?
    /// Lower case; an IPv6 address stands in brackets.
    package var host: String
    package var port: UInt16
    /// Begins with `/`, or is `*` for a server-wide OPTIONS; no fragment.
    package var pathAndQuery: String

    package init(
        scheme: Scheme, userInfo: String? = nil, host: String, port: UInt16? = nil,
        pathAndQuery: String
    ) {
        self.scheme = scheme
        self.userInfo = userInfo
        self.host = host
        self.port = port ?? scheme.defaultPort
        self.pathAndQuery = pathAndQuery
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

extension TargetURI: CustomStringConvertible {
    /// The URI as text, its user information left out.
    package var description: String {
        let path = self.pathAndQuery == "*" ? "" : self.pathAndQuery
        return "\(self.scheme.rawValue)://\(self.authority)\(path)"
    }
}
