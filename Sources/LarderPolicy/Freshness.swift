package import LarderHTTP

/// Where a freshness lifetime comes from (RFC 9111 §4.2.1).
package enum LifetimeSource: String, Sendable, Codable, CaseIterable {
    case sMaxage = "s-maxage"
    case maxAge = "max-age"
    case expires
    case heuristic
    /// A cache rule raised it.
    case ruleMinimum = "rule-minimum"
    /// A cache rule lowered it.
    case ruleMaximum = "rule-maximum"
    /// A cache rule gave it where the response has none.
    case ruleLifetime = "rule-lifetime"
    /// Negative caching: the settings gave it to an error that has none.
    case negative
    /// Nothing gives one: the response is stale from the start.
    case none
}

/// How fresh a stored response is at one moment (RFC 9111 §4.2).
package struct Freshness: Sendable, Equatable {
    /// Never negative.
    package let lifetime: Duration
    package let source: LifetimeSource
    /// `current_age` of §4.2.3; never negative.
    package let currentAge: Duration

    package init(lifetime: Duration, source: LifetimeSource, currentAge: Duration) {
        self.lifetime = lifetime
        self.source = source
        self.currentAge = currentAge
    }

    /// What is left of the lifetime; negative by how long the response has been stale.
    package var remaining: Duration { self.lifetime - self.currentAge }

    /// `freshness_lifetime > current_age` (§4.2).
    package var isFresh: Bool { self.lifetime > self.currentAge }

    /// How long the response has been stale; zero while it is fresh.
    package var staleness: Duration { max(.zero, self.currentAge - self.lifetime) }

    /// The freshness of a stored response.
    package static func of(
        _ head: StoredHead, at now: Timestamp, configuration: PolicyConfiguration
    ) -> Freshness {
        let directives = ResponseDirectives.of(head, configuration: configuration)
        return self.of(head, directives, at: now, configuration: configuration)
    }

    /// The freshness of a stored response whose directives have been read already.
    static func of(
        _ head: StoredHead, _ directives: ResponseDirectives, at now: Timestamp,
        configuration: PolicyConfiguration
    ) -> Freshness {
        let date = head.facts.date
        let (told, teller) = self.lifetime(
            of: head, directives, date: date ?? head.responseTime, configuration: configuration)
        let (lifetime, source) = configuration.overriding(told, teller, of: head)
        return Freshness(
            lifetime: max(.zero, lifetime), source: source,
            currentAge: AgeArithmetic.of(head, at: now).currentAge)
    }

    // MARK: Lifetime

    /// `freshness_lifetime` (§4.2.1): the first of `s-maxage` (shared only), `max-age`, `Expires`
    /// and the heuristic that applies.
    private static func lifetime(
        of head: StoredHead, _ directives: ResponseDirectives, date: Timestamp,
        configuration: PolicyConfiguration
    ) -> (Duration, LifetimeSource) {
        if configuration.kind == .shared, let sMaxage = directives.control.sMaxage {
            return (sMaxage, .sMaxage)
        }
        if let maxAge = directives.control.maxAge { return (maxAge, .maxAge) }
        if directives.readsExpires {
            switch head.facts.expiry {
            case .absent: break
            case .past: return (.zero, .expires)
            case .at(let moment): return (moment - date, .expires)
            }
        }
        guard head.status.isHeuristicallyCacheable || directives.control.isPublic else {
            return (.zero, .none)
        }
        return self.heuristic(head, date: date, configuration: configuration)
    }

    /// A part of the time that the representation had gone unchanged (§4.2.2), bounded.
    private static func heuristic(
        _ head: StoredHead, date: Timestamp, configuration: PolicyConfiguration
    ) -> (Duration, LifetimeSource) {
        guard let modified = head.facts.lastModified, modified < date else {
            return (.zero, .none)
        }
        let unchanged = Double((date - modified).inMicroseconds)
        let bound = Double(configuration.heuristicMaximum.inMicroseconds)
        let part = unchanged * configuration.heuristicFraction
        // A fraction from the settings may be absurd; the conversion must not trap on it.
        guard !part.isNaN, let whole = Int64(exactly: max(0, min(bound, part)).rounded(.down))
        else { return (.zero, .none) }
        return (.microseconds(whole), .heuristic)
    }

    // MARK: Age

    /// `age_value`: the first member of the first `Age`; zero where it is no number (§5.1).
    static func ageValue(_ fields: Fields) -> Duration {
        for line in fields.lines where line.known == .age {
            var members = ListMembers(fields.value(of: line))
            return members.next().flatMap { DeltaSeconds.parse($0) } ?? .zero
        }
        return .zero
    }
}
