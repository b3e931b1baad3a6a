import LarderHTTP

extension CookieJar {
    /// Removes what is too much, in the order of RFC 6265bis §5.7.
    ///
    /// First what has expired; then, in domains that hold too many, cookies that are not secure,
    /// then any; then any anywhere. Among equals goes what was not used for longest.
    ///
    /// - Parameter domain: the only one that has grown; nil to look at all.
    mutating func evict(at now: Timestamp, from domain: String? = nil) -> [CookieChange] {
        var changes: [CookieChange] = []
        let grown = domain.map { [$0] } ?? self.domains.keys.sorted()
        for domain in grown where (self.domains[domain]?.count ?? 0) > self.limits.perDomain {
            changes += self.shrink(domain, at: now)
        }
        if self.count > self.limits.total {
            changes += self.removeExpired(at: now)
            changes += self.removeLeastUsed(self.count - self.limits.total)
        }
        return changes
    }

    private mutating func shrink(_ domain: String, at now: Timestamp) -> [CookieChange] {
        let cookies = self.domains[domain] ?? []
        let ranked = cookies.indices.sorted {
            Self.rank(cookies[$0], at: now) < Self.rank(cookies[$1], at: now)
        }
        // All that has expired goes, and more only while there are too many.
        let expired = cookies.count { $0.isExpired(at: now) }
        let leaving = Set(ranked.prefix(max(expired, cookies.count - self.limits.perDomain)))
        let kept = cookies.indices.filter { !leaving.contains($0) }
        self.count -= leaving.count
        self.domains[domain] = kept.map { cookies[$0] }
        return leaving.sorted().map { .removed(cookies[$0].identity) }
    }

    /// The smallest goes first.
    private static func rank(_ cookie: Cookie, at now: Timestamp) -> (Int, Timestamp, Timestamp) {
        let order = cookie.isExpired(at: now) ? 0 : cookie.isSecure ? 2 : 1
        return (order, cookie.lastAccess, cookie.creation)
    }

    private mutating func removeLeastUsed(_ excess: Int) -> [CookieChange] {
        guard excess > 0 else { return [] }
        let leaving = self.domains.keys.sorted().flatMap { self.domains[$0] ?? [] }
            .sorted { ($0.lastAccess, $0.creation) < ($1.lastAccess, $1.creation) }
            .prefix(excess)
        let identities = Set(leaving.map(\.identity))
        return self.remove { identities.contains($0.identity) }
    }
}
