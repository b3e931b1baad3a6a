package import LarderHTTP

/// How many cookies a jar keeps and for how long (RFC 6265bis §5.5, §6.1).
package struct CookieLimits: Sendable, Hashable {
    /// Cookies of one domain.
    package var perDomain: Int
    package var total: Int
    /// No cookie lives longer than this after it was set, whatever it says.
    package var lifetime: Duration

    package init(
        perDomain: Int = 50, total: Int = 3000, lifetime: Duration = .seconds(400 * 86_400)
    ) {
        self.perDomain = max(1, perDomain)
        self.total = max(1, total)
        self.lifetime = lifetime
    }
}

/// What happened in a jar, in order: what a storage must do to hold the same.
///
/// Moments of last access are not among them: they change with every request, and matter only to
/// eviction.
package enum CookieChange: Sendable, Equatable {
    /// A new cookie, or one in place of that of the same identity.
    case stored(Cookie)
    case removed(Cookie.Identity)
}

/// What became of one cookie that was offered to a jar.
package struct CookieOutcome: Sendable, Equatable {
    /// The rule that kept it out; nil where it was taken, also when its date deleted it.
    package let refusal: CookieRefusal?
    /// The cookie's own change, if any, then evictions.
    package let changes: [CookieChange]
    /// What was stored was there already, the same in everything but the moment of its last use.
    package let isRepetition: Bool

    package init(refusal: CookieRefusal?, changes: [CookieChange], isRepetition: Bool = false) {
        self.refusal = refusal
        self.changes = changes
        self.isRepetition = isRepetition
    }

    /// The changes that make a difference to who looks at the jar.
    package var differences: ArraySlice<CookieChange> {
        self.isRepetition ? self.changes.dropFirst() : self.changes[...]
    }

    /// Whether a cookie went into the jar; what follows its own change was evicted for it.
    package var isStored: Bool {
        if case .stored = self.changes.first { return true }
        return false
    }

    static func refused(_ refusal: CookieRefusal) -> CookieOutcome {
        CookieOutcome(refusal: refusal, changes: [])
    }
}

/// A cookie store (RFC 6265bis §5.7): a value; time and requests go in, cookies and changes out.
///
/// Cookies lie by domain, in the order in which they were created, so that a request looks only at
/// its host and the names above it.
package struct CookieJar: Sendable {
    package var acceptPolicy: CookieAcceptPolicy
    package private(set) var limits: CookieLimits
    package let suffixes: any PublicSuffixes

    /// By domain; no array is empty.
    var domains: [String: [Cookie]] = [:]
    package internal(set) var count = 0

    package init(
        acceptPolicy: CookieAcceptPolicy = .always, limits: CookieLimits = CookieLimits(),
        suffixes: any PublicSuffixes
    ) {
        self.acceptPolicy = acceptPolicy
        self.limits = limits
        self.suffixes = suffixes
    }

    /// Puts back what a storage held, at a start.
    ///
    /// - Returns: what must leave the storage: what has expired, breaks a rule of §5.7, or is too
    ///   much.
    package mutating func restore(_ cookies: [Cookie], at now: Timestamp) -> [CookieChange] {
        var changes: [CookieChange] = []
        for cookie in cookies.sorted(by: { $0.creation < $1.creation }) {
            if cookie.isExpired(at: now) || CookieRules.broken(by: cookie, self.suffixes) != nil {
                changes.append(.removed(cookie.identity))
                continue
            }
            self.insert(cookie)
        }
        return changes + self.evict(at: now)
    }

    /// Sets other limits, and removes what is too much by them.
    package mutating func setLimits(
        _ limits: CookieLimits, at now: Timestamp
    ) -> [CookieChange] {
        self.limits = limits
        return self.evict(at: now)
    }

    /// All cookies that have not expired, by domain, then as they were created.
    package func all(at now: Timestamp) -> [Cookie] {
        self.domains.keys.sorted().flatMap { domain in
            (self.domains[domain] ?? []).filter { !$0.isExpired(at: now) }
        }
    }

    package subscript(identity: Cookie.Identity) -> Cookie? {
        self.domains[identity.domain]?.first { $0.identity == identity }
    }

    /// Whether any cookie ends with the session.
    package var holdsSessionCookies: Bool {
        self.domains.values.contains { cookies in cookies.contains { !$0.isPersistent } }
    }

    // MARK: Removing

    /// Removes the cookies for which `isRemoved` says so.
    @discardableResult
    package mutating func remove(where isRemoved: (Cookie) -> Bool) -> [CookieChange] {
        var changes: [CookieChange] = []
        for domain in self.domains.keys.sorted() {
            guard let cookies = self.domains[domain] else { continue }
            let kept = cookies.filter { !isRemoved($0) }
            guard kept.count < cookies.count else { continue }
            changes += cookies.filter(isRemoved).map { .removed($0.identity) }
            self.count -= cookies.count - kept.count
            self.domains[domain] = kept.isEmpty ? nil : kept
        }
        return changes
    }

    @discardableResult
    package mutating func remove(_ identity: Cookie.Identity) -> [CookieChange] {
        guard var cookies = self.domains[identity.domain],
            let index = cookies.firstIndex(where: { $0.identity == identity })
        else { return [] }
        cookies.remove(at: index)
        self.count -= 1
        self.domains[identity.domain] = cookies.isEmpty ? nil : cookies
        return [.removed(identity)]
    }

    /// Removes what was stored at `moment` or later, also in the place of an older one.
    @discardableResult
    package mutating func removeCookies(since moment: Timestamp) -> [CookieChange] {
        self.remove { $0.stored >= moment }
    }

    /// Removes what has expired, as §5.7 demands at some time.
    @discardableResult
    package mutating func removeExpired(at now: Timestamp) -> [CookieChange] {
        self.remove { $0.isExpired(at: now) }
    }

    /// Removes the cookies of the session, at its end.
    @discardableResult
    package mutating func endSession() -> [CookieChange] {
        self.remove { !$0.isPersistent }
    }
}
