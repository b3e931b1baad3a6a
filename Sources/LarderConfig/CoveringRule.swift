/// A rule of a list of which the first that fits decides.
protocol CoveringRule {
    /// Whether it surely fits everything that another fits.
    ///
    /// Says no where that takes more than comparing patterns one by one.
    func covers(_ other: Self) -> Bool
}

extension RouteSettings: CoveringRule {
    func covers(_ other: RouteSettings) -> Bool {
        holdsAll(self.listeners, other.listeners, ==)
            && holdsAll(self.clients, other.clients, holds)
            && holdsAll(self.users, other.users, { $0.holds($1) })
            && holdsAll(self.uids, other.uids, ==)
    }
}

extension InjectionSettings: CoveringRule {
    func covers(_ other: InjectionSettings) -> Bool {
        holdsAll(self.sessions, other.sessions, ==) && holdsAll(self.hosts, other.hosts, holds)
            && holdsAll(self.paths, other.paths, holds) && holdsAll(self.methods, other.methods, ==)
    }
}

extension AccessRule: CoveringRule {
    func covers(_ other: AccessRule) -> Bool {
        holdsAll(self.clients, other.clients, holds)
            && holdsAll(self.destinations, other.destinations, holds)
            && holdsAll(self.methods, other.methods, ==)
    }
}

extension CacheRuleSettings: CoveringRule {
    func covers(_ other: CacheRuleSettings) -> Bool {
        holdsAll(self.sessions, other.sessions, ==) && holdsAll(self.hosts, other.hosts, holds)
            && holdsAll(self.paths, other.paths, holds)
    }
}

extension ParentSettings: CoveringRule {
    func covers(_ other: ParentSettings) -> Bool {
        holdsAll(self.sessions, other.sessions, ==)
            && holdsAll(self.destinations, other.destinations, holds)
    }
}

/// Whether each pattern of one list lies within some pattern of the other; an empty list is all.
private func holdsAll<Pattern>(
    _ wide: [Pattern], _ narrow: [Pattern], _ holds: (Pattern, Pattern) -> Bool
) -> Bool {
    if wide.isEmpty { return true }
    // Of long lists of names, which are compared each with each, nobody waits for the end.
    guard wide.count <= 1_000_000 / max(1, narrow.count) else { return false }
    return !narrow.isEmpty && narrow.allSatisfy { one in wide.contains { holds($0, one) } }
}

private func holds(_ wide: ClientPattern, _ narrow: ClientPattern) -> Bool {
    switch (wide, narrow) {
    case (.anyone, _): true
    case (.unix, .uid): true
    case (.user(let wide), .user(let narrow)): wide.holds(narrow)
    case (.block(let wide), .block(let narrow)):
        wide.prefixLength <= narrow.prefixLength && wide.contains(narrow.base)
    default: wide == narrow
    }
}

private func holds(_ wide: HostPattern, _ narrow: HostPattern) -> Bool {
    guard holds(wide.ports, narrow.ports) else { return false }
    if wide.host == "*" || wide.host == narrow.host { return true }
    return holdsDomain(wide.host, narrow.host)
}

private func holds(_ wide: PathPattern, _ narrow: PathPattern) -> Bool {
    wide.pattern == narrow.pattern || wide.pattern == "*" || wide.pattern == "/*"
        || (!narrow.pattern.contains { "*?".contains($0) }
            && Glob(wide.pattern).matches(narrow.pattern))
}

private func holds(_ wide: DestinationPattern, _ narrow: DestinationPattern) -> Bool {
    guard holds(wide.ports, narrow.ports) else { return false }
    switch (wide.host, narrow.host) {
    case (.any, _): return true
    case (.domain(let wide), .domain(let narrow)):
        return narrow == wide || narrow.hasSuffix(".\(wide)")
    case (.domain(let wide), .glob(let narrow)):
        return holdsDomain(".\(wide)", narrow.pattern)
    case (.block(let wide), .block(let narrow)):
        return wide.prefixLength <= narrow.prefixLength && wide.contains(narrow.base)
    default: return wide.host == narrow.host
    }
}

private func holds(_ wide: PortRange?, _ narrow: PortRange?) -> Bool {
    guard let wide else { return true }
    guard let narrow else { return false }
    return wide.ports.contains(narrow.ports.lowerBound)
        && wide.ports.contains(narrow.ports.upperBound)
}

/// Whether `.example.com` covers `www.example.com`, `.sub.example.com` or `*.example.com`.
private func holdsDomain(_ wide: String, _ narrow: String) -> Bool {
    guard wide.hasPrefix("."), !wide.contains("*"), !wide.contains("?") else { return false }
    return narrow == wide.dropFirst() || narrow.hasSuffix(wide)
}
