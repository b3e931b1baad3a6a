import LarderHTTP

/// The hosts that a command on stored responses is about, as all of these commands take them.
///
/// `h.example` is that host, `*.h.example` all hosts below it, and `.h.example` both, as in access
/// rules.
package struct HostSelector: Sendable, Equatable {
    private enum Reach { case itself, below, both }

    /// As it was written.
    package let text: String
    /// In lower case; with the dot before it where hosts below it are meant.
    private let name: [UInt8]
    private let reach: Reach

    /// Nil for what fits no host, ever: with a port or a path, or with wildcards elsewhere.
    package init?(_ text: String) {
        var name = text.lowercased()[...]
        let reach: Reach = name.hasPrefix("*.") ? .below : name.hasPrefix(".") ? .both : .itself
        if reach == .below { name = name.dropFirst() }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        let isName = !name.contains { "/*?@ ".contains($0) }
        let colons = name.count { $0 == ":" }
        guard isName, colons != 1, name.count > (reach == .itself ? 0 : 1),
            !name.hasPrefix("..")
        else { return nil }
        self.text = text
        self.name = Array(name.utf8)
        self.reach = reach
    }

    /// - Parameter host: as `URLHost` gives it, in any case.
    package func matches(_ host: [UInt8]) -> Bool {
        switch self.reach {
        case .itself: Self.isEqual(host[...], self.name[...])
        case .below: self.isBelow(host)
        case .both: self.isBelow(host) || Self.isEqual(host[...], self.name.dropFirst())
        }
    }

    private func isBelow(_ host: [UInt8]) -> Bool {
        host.count > self.name.count
            && Self.isEqual(host.suffix(self.name.count), self.name[...])
    }

    private static func isEqual(_ host: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
        host.count == name.count && zip(host, name).allSatisfy { ASCII.lowercased($0) == $1 }
    }
}

/// The host of a URL's text.
package enum URLHost {
    /// Without brackets, port and user; empty where there is none.
    package static func of(_ url: some Collection<UInt8>) -> [UInt8] {
        let url = Array(url)
        guard let colon = url.firstIndex(of: ASCII.colon),
            url[(colon + 1)...].starts(with: "//".utf8)
        else { return [] }
        var authority = url[(colon + 3)...].prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            authority = authority[(at + 1)...]
        }
        if authority.first == UInt8(ascii: "[") {
            return Array(authority.dropFirst().prefix { $0 != UInt8(ascii: "]") })
        }
        return Array(authority.prefix { $0 != ASCII.colon })
    }
}
