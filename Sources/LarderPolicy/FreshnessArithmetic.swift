package import LarderHTTP

/// How a stored response's freshness comes about, with all its numbers (RFC 9111 §4.2).
package struct FreshnessArithmetic: Sendable, Equatable {
    package let freshness: Freshness
    /// What the lifetime was made from, for people: `Cache-Control: max-age=60`.
    package let lifetimeSource: String
    /// Where the rule of the lifetime is written.
    package let lifetimeSection: String
    package let requestTime: Timestamp
    package let responseTime: Timestamp
    package let now: Timestamp
    package let age: AgeArithmetic

    /// Reckons by the functions that decide on reuse.
    package static func of(
        _ head: StoredHead, at now: Timestamp, configuration: PolicyConfiguration
    ) -> FreshnessArithmetic {
        let directives = ResponseDirectives.of(head, configuration: configuration)
        let freshness = Freshness.of(head, directives, at: now, configuration: configuration)
        return FreshnessArithmetic(
            freshness: freshness,
            lifetimeSource: self.words(for: freshness, head, directives, configuration),
            lifetimeSection: self.section(of: freshness.source, head, configuration),
            requestTime: head.requestTime,
            responseTime: head.responseTime, now: now, age: AgeArithmetic.of(head, at: now))
    }

    private static func words(
        for freshness: Freshness, _ head: StoredHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> String {
        let field = directives.targetedField?.lowercased ?? "Cache-Control"
        switch freshness.source {
        case .sMaxage: return "\(field): s-maxage=\(freshness.lifetime.inSeconds)"
        case .maxAge: return "\(field): max-age=\(freshness.lifetime.inSeconds)"
        case .expires:
            return head.fields.date(.expires, now: head.responseTime) == nil
                ? "Expires, which is no date and so has passed" : "Expires less Date"
        case .heuristic:
            let share = configuration.heuristicFraction * 100
            // A fraction that is no sensible number is shown as it is.
            let percent = Int(exactly: share.rounded()).map(String.init) ?? "\(share)"
            return "\(percent) % of Date less Last-Modified, at most "
                + "\(configuration.heuristicMaximum.inSeconds) s"
        case .ruleMinimum, .ruleMaximum, .ruleLifetime:
            return self.words(for: configuration.rule, freshness.source.rawValue)
        case .negative where self.isByRule(head, configuration):
            return self.words(for: configuration.rule, "negative for status \(head.status)")
        case .negative: return "freshness.negative for status \(head.status)"
        case .none: return "nothing gives one"
        }
    }

    private static func words(for rule: CacheRule?, _ what: String) -> String {
        guard let rule else { return what }
        let place = rule.place.isEmpty ? "" : " (\(rule.place))"
        return "cache rule \"\(rule.name)\"\(place), \(what)"
    }

    private static func section(
        of source: LifetimeSource, _ head: StoredHead, _ configuration: PolicyConfiguration
    ) -> String {
        source == .negative && self.isByRule(head, configuration)
            ? PolicyReason.ruleLifetime.section : source.section
    }

    /// Whether a cache rule says for how long an error is kept, and not the session.
    private static func isByRule(_ head: StoredHead, _ configuration: PolicyConfiguration) -> Bool {
        configuration.rule?.negative.contains { $0.speaks(of: head.status) } ?? false
    }
}

extension LifetimeSource {
    /// Where the rule is written.
    package var section: String {
        switch self {
        case .sMaxage: "RFC 9111 §5.2.2.10"
        case .maxAge: "RFC 9111 §5.2.2.1"
        case .expires: "RFC 9111 §5.3"
        case .heuristic: "RFC 9111 §4.2.2"
        case .ruleMinimum, .ruleMaximum, .ruleLifetime: PolicyReason.ruleMinimum.section
        case .negative: PolicyReason.negativeLifetime.section
        case .none: "RFC 9111 §4.2.1"
        }
    }
}
