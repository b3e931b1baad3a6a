package import LarderHTTP

/// A proxy that stands between Larder and origins.
package struct Parent: Sendable {
    /// The protocol that the parent speaks.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case http
        /// HTTP inside TLS.
        case https
        /// RFC 1928, by host name: the parent resolves.
        case socks5
    }

    /// How the login is given (RFC 9110 §11.7); SOCKS5 knows RFC 1929 and, for `negotiate`, GSS-API.
    package enum Authentication: String, Hashable, Sendable, CaseIterable {
        case none
        /// Whichever of Digest, NTLM and Basic the parent asks for, the best first.
        ///
        /// Costs a question more each time, where the parent takes more than Basic. Negotiate, which
        /// needs a ticket of the machine's, must be asked for by name.
        case any
        case basic, digest, ntlm, negotiate
    }

    package var kind: Kind
    /// A name, an IPv4 address or a bracketed IPv6 address.
    package var host: String
    package var port: UInt16
    package var authentication: Authentication
    package var credential: ParentCredential?

    package init(
        kind: Kind, host: String, port: UInt16, authentication: Authentication = .none,
        credential: ParentCredential? = nil
    ) {
        self.kind = kind
        self.host = host
        self.port = port
        self.authentication = authentication
        self.credential = credential
    }

    /// `host:port`, as failures name it.
    package var authority: String { "\(self.host):\(self.port)" }
}

/// Where the login for a parent comes from.
package struct ParentCredential: Sendable {
    /// Tells logins apart, and is no secret: what goes by one name may use the same connections.
    package let name: String
    /// Asked for each transfer, on its thread: must not block.
    ///
    /// Nil where there is no login any more: the parent is then asked without one.
    package let reveal: @Sendable () -> ParentLogin?

    package init(name: String, reveal: @escaping @Sendable () -> ParentLogin?) {
        self.name = name
        self.reveal = reveal
    }
}

/// A user name and a password for a parent, which no description shows.
package struct ParentLogin: Sendable {
    /// Perhaps with a domain in front (`DOMAIN\user`, for NTLM).
    package let user: String
    /// Overwritten when it has been used.
    var password: [UInt8]

    package init(user: String, password: [UInt8]) {
        self.user = user
        self.password = password
    }
}

extension ParentLogin: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(login)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Which parent leads to which destination: the first rule that fits speaks.
package struct ParentRules: Sendable {
    package enum Via: Sendable {
        case direct
        case parent(Parent)
    }

    package struct Rule: Sendable {
        /// Gets the host as `TargetURI` has it; any thread, must not block.
        package var matches: @Sendable (_ host: String, _ port: UInt16) -> Bool
        package var via: Via
        /// Which requests it speaks of; nil: all.
        package var schemes: Set<Scheme>?
        /// It speaks also of tunnels of which nobody knows what they carry.
        package var leadsTunnels = true

        package init(
            via: Via, schemes: Set<Scheme>? = nil,
            matches: @escaping @Sendable (_ host: String, _ port: UInt16) -> Bool
        ) {
            self.matches = matches
            self.via = via
            self.schemes = schemes
        }

        fileprivate func fits(_ scheme: Scheme?, _ host: String, _ port: UInt16) -> Bool {
            if let scheme {
                if let schemes = self.schemes, !schemes.contains(scheme) { return false }
            } else if !self.leadsTunnels {
                return false
            }
            return self.matches(host, port)
        }
    }

    package var rules: [Rule]

    package init(_ rules: [Rule] = []) {
        self.rules = rules
    }

    /// The parent for a destination; nil: directly, as where no rule fits.
    ///
    /// - Parameter scheme: of the request; nil: a tunnel, of which nobody knows what it carries.
    package func parent(host: String, port: UInt16, scheme: Scheme? = nil) -> Parent? {
        guard let rule = self.rules.first(where: { $0.fits(scheme, host, port) }),
            case .parent(let parent) = rule.via
        else { return nil }
        return parent
    }

    /// Whether two rules name the same parent and log in differently.
    ///
    /// libcurl tells connections to HTTP parents apart by host and port alone: it would lead one
    /// login's request through the other's tunnel. Such parents' connections are not used twice.
    func hasOtherLogins(_ parent: Parent) -> Bool {
        self.rules.contains { rule in
            guard case .parent(let other) = rule.via else { return false }
            return other.kind == parent.kind && other.authority == parent.authority
                && (other.credential?.name != parent.credential?.name
                    || other.authentication != parent.authentication)
        }
    }
}

/// How a transfer gets to its origin.
enum Way {
    case direct
    /// The parent gets the request itself, with its target in absolute form (RFC 9112 §3.2.2).
    case relay(Parent)
    /// The parent makes a connection to the origin: CONNECT or SOCKS.
    case tunnel(Parent)

    /// - Parameters:
    ///   - isDial: a bare connection is wanted.
    ///   - spoken: what will be spoken over that; nil: nobody knows, or it is neither of these.
    init(to uri: TargetURI, isDial: Bool, for spoken: Scheme? = nil, _ rules: ParentRules) {
        let scheme = isDial ? spoken : uri.scheme
        guard !rules.rules.isEmpty,
            let parent = rules.parent(host: uri.host, port: uri.port, scheme: scheme)
        else {
            self = .direct
            return
        }
        // An ftp resource is read by an HTTP parent that knows FTP (RFC 9112 §3.2.2 lets a target be
        // any URI), and by ourselves where SOCKS leads to its server.
        let isRelayed = parent.kind != .socks5 && uri.scheme != .https && !isDial
        self = isRelayed ? .relay(parent) : .tunnel(parent)
    }

    var parent: Parent? {
        switch self {
        case .direct: nil
        case .relay(let parent), .tunnel(let parent): parent
        }
    }

    var isRelay: Bool {
        if case .relay = self { true } else { false }
    }

    var isTunnel: Bool {
        if case .tunnel = self { true } else { false }
    }
}
