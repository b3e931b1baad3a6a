/// What is known about names under which anyone may register: the port to a list of them.
///
/// The rules here ask, and do not care whose list it is.
package protocol PublicSuffixes: Sendable {
    /// Whether names directly below `domain` belong to different owners.
    ///
    /// - Parameter domain: lower case, ASCII, no dot at either end; never an IP address.
    func isPublicSuffix(_ domain: String) -> Bool
}

/// The rule for names that no list knows: the last label, and it alone, is a public suffix.
///
/// It is the default rule of every list (`*`): for those who need no list, as tests. What holds where
/// there should be one and is none is `EverySuffix`.
package struct TopLevelSuffixes: PublicSuffixes {
    package init() {}

    package func isPublicSuffix(_ domain: String) -> Bool { !domain.utf8.contains(0x2E) }
}

/// What to hold to where there should be a list and is none: every domain may be a public suffix.
///
/// Each host then has the cookies that it sets for itself, and none for the names around it.
package struct EverySuffix: PublicSuffixes {
    package init() {}

    package func isPublicSuffix(_ domain: String) -> Bool { true }
}

/// What a list says of some hosts and the names above them, asked beforehand.
///
/// For a caller that holds a lock while it uses a jar: the list is asked outside of it. Other names
/// count as no suffixes; as no cookie of these hosts can be for them, nothing depends on it.
package struct SuffixAnswers: PublicSuffixes {
    private let suffixes: Set<String>

    package init(for hosts: [String], from list: any PublicSuffixes) {
        var suffixes: Set<String> = []
        for name in hosts.flatMap(CookieDomain.candidates) {
            let name = name.hasSuffix(".") ? String(name.dropLast()) : name
            guard !name.isEmpty, !CookieDomain.isAddress(name), list.isPublicSuffix(name) else {
                continue
            }
            suffixes.insert(name)
        }
        self.suffixes = suffixes
    }

    package func isPublicSuffix(_ domain: String) -> Bool { self.suffixes.contains(domain) }
}

/// Host names as cookies compare them (RFC 6265bis §5.1.2, §5.1.3).
///
/// Hosts are canonical already: those of a `TargetURI` are ASCII in lower case, where a name of other
/// letters stands as A-labels (`xn--…`). A `Domain` attribute must have them, too: one with bytes
/// beyond ASCII is refused.
package enum CookieDomain {
    /// Whether `host` is `domain`, or a name below it.
    package static func matches(_ host: String, _ domain: String) -> Bool {
        if host == domain { return true }
        guard !domain.isEmpty, !self.isAddress(host), host.hasSuffix(domain) else { return false }
        return host.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".")
    }

    /// Whether the host is an IP address: in brackets, or a name that ends in a number, which no
    /// name but an IPv4 address may.
    package static func isAddress(_ host: String) -> Bool {
        if host.utf8.first == UInt8(ascii: "[") { return true }
        guard let label = host.split(separator: ".").last else { return false }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether the domain is a public suffix; the final dot of an absolute name set aside, which
    /// would hide it from the list.
    package static func isPublicSuffix(
        _ domain: String, _ suffixes: any PublicSuffixes
    ) -> Bool {
        guard !self.isAddress(domain) else { return false }
        let name = domain.hasSuffix(".") ? String(domain.dropLast()) : domain
        return name.isEmpty || suffixes.isPublicSuffix(name)
    }

    /// The registrable domain of a host: its longest public suffix and one label more.
    ///
    /// The host itself where it is an address or a public suffix.
    package static func registrable(_ host: String, _ suffixes: any PublicSuffixes) -> String {
        guard !self.isAddress(host), !self.isPublicSuffix(host, suffixes) else { return host }
        var name = host[...]
        while let dot = name.firstIndex(of: ".") {
            let parent = name[name.index(after: dot)...]
            if self.isPublicSuffix(String(parent), suffixes) { return String(name) }
            name = parent
        }
        return String(name)
    }

    /// Whether both hosts are of one site (RFC 6265bis §5.2, without schemes).
    package static func isSameSite(
        _ a: String, _ b: String, _ suffixes: any PublicSuffixes
    ) -> Bool {
        a == b || self.registrable(a, suffixes) == self.registrable(b, suffixes)
    }

    /// The host and each name above it: all domains whose cookies could be for it.
    static func candidates(_ host: String) -> [String] {
        guard !self.isAddress(host) else { return [host] }
        var names = [host]
        var rest = host[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if !rest.isEmpty { names.append(String(rest)) }
        }
        return names
    }
}
