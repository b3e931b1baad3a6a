/// What a request is about, in the form in which its request line says it (RFC 9112 §3.2).
package enum RequestTarget: Hashable, Sendable {
    /// `http://host/path`: what a proxy is asked for.
    case absolute(TargetURI)
    /// `/path?query`, as received: asked of the proxy itself, as if it were an origin.
    case origin(String)
    /// `host:port`, only with CONNECT. The host is in lower case, an IPv6 address in brackets.
    case authority(host: String, port: UInt16)
    /// `*`, only with OPTIONS: the proxy itself as a whole.
    case asterisk
}

/// The head of a request as its client sent it.
///
/// One that came from `RequestHeadParser` keeps every rule of RFC 9112 that a recipient must
/// enforce: its framing is certain and its `Host` is valid and agrees with its target.
package struct RequestHead: Sendable, Equatable {
    package var method: Method
    package var target: RequestTarget
    package var version: HTTPVersion
    /// All fields as received, hop-by-hop fields included.
    package var fields: Fields
    /// How much content follows, by `MessageFraming`.
    package var bodyLength: BodyLength
    /// What an http or https target had before its host, as it was written: `user:password`, percent-encoded.
    ///
    /// No part of `target`, so that no key, log or origin ever sees it; for `Authorization`.
    package var userInfo: String?

    package init(
        method: Method, target: RequestTarget, version: HTTPVersion = .http11,
        fields: Fields = Fields(), bodyLength: BodyLength = .none
    ) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        self.bodyLength = bodyLength
    }
}

extension RequestTarget {
    /// The target without the user information that http and https give no place to, and that.
    var splitUserInfo: (RequestTarget, String?) {
        guard case .absolute(var uri) = self, uri.scheme != .ftp, let userInfo = uri.userInfo else {
            return (self, nil)
        }
        uri.userInfo = nil
        return (.absolute(uri), userInfo)
    }

    /// Checks `Host` (RFC 9112 §3.2): one valid line, absent only in HTTP/1.0, the same authority
    /// as the target's where that has one.
    ///
    /// RFC 9112 §3.2.2 has a proxy ignore a `Host` that differs. We refuse, against its letter, as whoever
    /// reads the other of the two sees another request; but not one that names the proxy, which clients
    /// send who know nothing of proxies and were told to connect to one (Node's `http.request`).
    ///
    /// - Parameters:
    ///   - isOwnPort: whether the proxy listens on that port.
    ///   - hadUserInfo: the target had user information; some clients repeat it here.
    func checkHost(
        in fields: Fields, _ version: HTTPVersion, isOwnPort: (UInt16) -> Bool,
        hadUserInfo: Bool
    ) throws(HeadError) {
        var only: Fields.Line?
        for line in fields.lines where line.known == .host {
            guard only == nil else { throw HeadError(.repeatedHost, "more than one Host") }
            only = line
        }
        guard let only else {
            guard version < .http11 else {
                throw HeadError(.missingHost, "no Host in an HTTP/1.1 request")
            }
            return
        }
        var value = fields.bytes.span.extracting(only.valuePlace)
        if hadUserInfo, let at = value.firstIndex(of: UInt8(ascii: "@"), in: 0..<value.count) {
            value = value.extracting(at + 1..<value.count)
        }
        // As nearly all do, letter by letter: what was read as the target's host is a valid one.
        if case .absolute(let uri) = self,
            let place = Authority.place(ofPortIn: value, behind: uri.host.utf8.span)
        {
            let port = try Authority.port(value.extracting(place))
            let presented = port ?? uri.scheme.defaultPort
            // Where there was a login, lynx leaves out the port.
            guard presented == uri.port || port.map(isOwnPort) ?? hadUserInfo else {
                throw Self.hostMismatch
            }
            return
        }
        let host = try Authority(parsing: value)
        let agrees: Bool =
            switch self {
            case .absolute(let uri):
                host.host == uri.host && (host.port ?? uri.scheme.defaultPort) == uri.port
            case .authority(let name, let port):
                host.host == name && (host.port ?? port) == port
            case .origin, .asterisk:
                true
            }
        guard agrees || host.port.map(isOwnPort) == true else { throw Self.hostMismatch }
    }

    private static var hostMismatch: HeadError {
        HeadError(.hostMismatch, "Host and the request target name different servers")
    }
}
