import LarderHTTP

// The order is that of RFC 6265bis §5.7: first what has expired; then, in domains that hold too
// many, cookies that are not secure, then any; then any anywhere. Among equals goes what was not
// used for longest.

extension CookieJar {
    /// Removes what is too much, in all domains and in the whole jar.
    mutating func evict(at now: Timestamp) -> [CookieChange] {
        var changes: [CookieChange] = []
        for domain in self.domains.keys.sorted() {
            changes += self.shrink(domain, at: now)
        }
        return changes + self.shrink(at: now)
    }

    /// Removes what is too much in one domain.
    mutating func shrink(_ domain: String, at now: Timestamp) -> [CookieChange] {
        guard let cookies = self.domains[domain], cookies.count > self.limits.perDomain else {
            return []
        }
        let expired = cookies.count { $0.isExpired(at: now) }
        let excess = max(expired, cookies.count - self.limits.perDomain)
        if excess == 1, let first = Self.first(of: cookies, at: now) {
            // As a line of a response adds one, this is nearly every time.
            self.domains[domain]?.remove(at: first)
            self.count -= 1
            return [.removed(cookies[first].identity)]
        }
        let ranked = cookies.indices.sorted {
            Self.rank(cookies[$0], at: now) < Self.rank(cookies[$1], at: now)
        }
        // All that has expired goes, and more only while there are too many.
        let leaving = Set(ranked.prefix(excess))
        self.count -= leaving.count
        self.domains[domain] = cookies.indices.filter { !leaving.contains($0) }.map { cookies[$0] }
        return leaving.sorted().map { .removed(cookies[$0].identity) }
    }

    /// Removes what is too much in the whole jar.
    ///
    /// It looks at all cookies, so it is for the end of a response, not for each of its lines.
    mutating func shrink(at now: Timestamp) -> [CookieChange] {
        guard self.count > self.limits.total else { return [] }
        let changes = self.removeExpired(at: now)
        return changes + self.removeLeastUsed(self.count - self.limits.total)
    }

    private static func first(of cookies: [Cookie], at now: Timestamp) -> Int? {
        cookies.indices.min { self.rank(cookies[$0], at: now) < self.rank(cookies[$1], at: now) }
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
