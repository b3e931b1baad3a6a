package import LarderHTTP

/// Which cross-site requests may bear a cookie (RFC 6265bis §5.6.7).
package enum SameSite: String, Sendable, Codable, CaseIterable {
    /// The server did not say, or said a word that nobody knows: treated as `lax`.
    ///
    /// Without the two minutes in which §5.6.7.2 lets a new one go with unsafe methods, too: that is
    /// for sites that browsers would break, and browsers have jars of their own.
    case unspecified
    /// None is refused; the cookie must be `Secure` (§5.7).
    case none
    /// Only navigation of the whole document by a safe method.
    case lax
    /// None.
    case strict
}

/// A stored cookie: name, value and the attributes of the storage model (RFC 6265bis §5.7).
///
/// Name and value are octets, kept as received: servers do put other things there than UTF-8. The
/// value is often a secret, so no description of a cookie shows it.
package struct Cookie: Hashable, Sendable {
    /// What no two cookies in a jar have in common (§5.7).
    package struct Identity: Hashable, Sendable {
        package let name: [UInt8]
        package let domain: String
        package let isHostOnly: Bool
        package let path: String

        package init(name: [UInt8], domain: String, isHostOnly: Bool, path: String) {
            self.name = name
            self.domain = domain
            self.isHostOnly = isHostOnly || CookieDomain.isAddress(domain)
            self.path = path
        }
    }

    /// Empty for a nameless cookie, which is sent as its value alone.
    package let name: [UInt8]
    package let value: [UInt8]
    /// Lower case, without a leading dot; an IPv6 address stands in brackets.
    package let domain: String
    /// The cookie is for `domain` itself and for no name below it, as always where that is an address.
    package let isHostOnly: Bool
    /// Begins with `/`.
    package let path: String
    package let isSecure: Bool
    package let isHTTPOnly: Bool
    package let sameSite: SameSite
    /// Kept when a later `Set-Cookie` replaces the cookie, since cookies are sent in this order.
    package var creation: Timestamp
    /// When it was stored; not kept on the disk, where it is the creation.
    package var stored: Timestamp
    /// When it was last sent or stored: what was not used for longest is evicted first.
    package var lastAccess: Timestamp
    /// Nil for a cookie of the session, which ends with it.
    package var expiry: Timestamp?

    package init(
        name: [UInt8], value: [UInt8], domain: String, isHostOnly: Bool, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified,
        creation: Timestamp, lastAccess: Timestamp? = nil, expiry: Timestamp? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.creation = creation
        self.stored = creation
        self.lastAccess = lastAccess ?? creation
        self.expiry = expiry
    }

    package var identity: Identity {
        Identity(
            name: self.name, domain: self.domain, isHostOnly: self.isHostOnly, path: self.path)
    }

    /// Whether it outlives the session (§5.7: the persistent-flag).
    package var isPersistent: Bool { self.expiry != nil }

    /// Whether both are equal in all but when they were last stored and used.
    package func isSame(as other: Cookie) -> Bool {
        var other = other
        other.lastAccess = self.lastAccess
        other.stored = self.stored
        return self == other
    }

    /// Whether its expiry lies in the past.
    package func isExpired(at now: Timestamp) -> Bool {
        guard let expiry = self.expiry else { return false }
        return expiry <= now
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name and place; never the value.
    package var description: String {
        let name = String(decoding: self.name, as: UTF8.self)
        return "\(name) for \(self.isHostOnly ? "" : ".")\(self.domain)\(self.path)"
    }

    package var debugDescription: String { self.description }

    /// Without the value, which `dump` would show otherwise.
    package var customMirror: Mirror {
        Mirror(self, children: ["name": self.name, "domain": self.domain, "path": self.path])
    }
}
