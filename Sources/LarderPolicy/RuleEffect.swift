package import LarderHTTP

/// One thing that a cache rule, or the settings of negative caching, changed about one response.
///
/// For the explanation: a rule that fits and changes nothing has no effects.
package struct RuleEffect: Sendable, Equatable {
    package enum Change: Sendable, Equatable {
        /// A directive or field that was there and was set aside; exactly one bit.
        case ignored(CacheRule.Ignored)
        /// The freshness lifetime, and what it would have been.
        case lifetime(Duration, LifetimeSource, insteadOf: Duration)
        /// The grace when the origin fails, and what it would have been.
        case grace(Duration, insteadOf: Duration)
        /// Nothing is stored, whatever the response says.
        case storesNothing
    }

    /// The rule's name; empty where the session's own setting spoke.
    package let rule: String
    /// Where the rule is written, `larder.yaml:12`; empty where that is unknown.
    package let place: String
    package let change: Change

    /// The reason that stands for it in `Cache-Status`, the log and the counters.
    package var reason: PolicyReason {
        switch self.change {
        case .ignored: .ruleIgnored
        case .lifetime(_, .negative, _): .negativeLifetime
        case .lifetime(_, .ruleMaximum, _): .ruleMaximum
        case .lifetime(_, .ruleLifetime, _): .ruleLifetime
        case .lifetime: .ruleMinimum
        case .grace: .graceOnError
        case .storesNothing: .ruleStoresNothing
        }
    }
}

extension RuleEffect: CustomStringConvertible {
    /// In a line: `cache rule "releases" (larder.yaml:12): ignores no-store`.
    package var description: String {
        let place = self.place.isEmpty ? "" : " (\(self.place))"
        let speaker = self.rule.isEmpty ? "settings" : "cache rule \"\(self.rule)\"\(place)"
        switch self.change {
        case .ignored(let what): return "\(speaker): ignores \(what.names.joined(separator: ", "))"
        case .lifetime(let now, let source, let before):
            return "\(speaker): \(source.rawValue), fresh for \(now.inSeconds) s "
                + "instead of \(before.inSeconds) s"
        case .grace(let now, let before):
            return "\(speaker): stale-if-error \(now.inSeconds) s instead of \(before.inSeconds) s"
        case .storesNothing: return "\(speaker): stores nothing"
        }
    }
}

extension CacheRule.Ignored {
    /// Every bit, with its word in the settings.
    package static let words: [(word: String, bit: CacheRule.Ignored)] = [
        ("no-store", .noStore), ("private", .isPrivate), ("no-cache", .noCache),
        ("must-revalidate", .mustRevalidate), ("max-age", .maxAge), ("s-maxage", .sMaxage),
        ("expires", .expires), ("vary", .vary), ("reload", .reload), ("set-cookie", .setCookie),
        ("authorization", .authorization),
    ]

    /// The words of the bits that are set.
    package var names: [String] {
        Self.words.filter { self.contains($0.bit) }.map(\.word)
    }
}

extension PolicyConfiguration {
    /// What rule and negative caching change about a stored response, or one that would be.
    ///
    /// - Parameter request: whose directives and credentials count, too; nil: only the response's.
    package func ruleEffects(on head: StoredHead, request: Request? = nil) -> [RuleEffect] {
        guard self.rule != nil || !self.negative.isEmpty else { return [] }
        var changes: [RuleEffect.Change] = []
        if self.rule?.forbidsStoring == true { changes.append(.storesNothing) }
        for (_, bit) in CacheRule.Ignored.words
        where self.present(head.fields, request).contains(bit) { changes.append(.ignored(bit)) }
        let now = Freshness.of(head, at: head.responseTime, configuration: self)
        var plain = self.unresolved
        plain.negative = []
        let before = Freshness.of(head, at: head.responseTime, configuration: plain)
        if now.source.isFromSettings, now.lifetime != before.lifetime {
            changes.append(.lifetime(now.lifetime, now.source, insteadOf: before.lifetime))
        }
        if self.grace != plain.grace {
            changes.append(.grace(self.grace, insteadOf: plain.grace))
        }
        return changes.map { self.effect($0, of: head.status) }
    }

    /// The reason that stands for what settings changed about a response that is served fresh; nil
    /// where it is what HTTP alone says.
    package func override(
        of head: StoredHead, _ freshness: Freshness, request: Request
    ) -> PolicyReason? {
        guard freshness.source.isFromSettings || !self.ignored.isEmpty else { return nil }
        return self.ruleEffects(on: head, request: request).first?.reason
    }

    private func effect(_ change: RuleEffect.Change, of status: StatusCode) -> RuleEffect {
        var rule = self.rule
        if case .lifetime(_, .negative, _) = change,
            rule?.negative.contains(where: { $0.speaks(of: status) }) != true
        {
            rule = nil
        }
        return RuleEffect(rule: rule?.name ?? "", place: rule?.place ?? "", change: change)
    }

    /// What the rule sets aside of what is really there.
    private func present(_ fields: Fields, _ request: Request?) -> CacheRule.Ignored {
        let ignored = self.ignored
        guard !ignored.isEmpty else { return [] }
        let told = ResponseDirectives(fields, configuration: self.unresolved)
        let control = told.control
        var present: CacheRule.Ignored = []
        if control.noStore { present.insert(.noStore) }
        if control.isPrivate { present.insert(.isPrivate) }
        if control.noCache { present.insert(.noCache) }
        if control.mustRevalidate || control.proxyRevalidate { present.insert(.mustRevalidate) }
        if control.maxAge != nil { present.insert(.maxAge) }
        if control.sMaxage != nil { present.insert(.sMaxage) }
        if told.targetedField == nil, fields.has(.expires) { present.insert(.expires) }
        if fields.has(.vary) { present.insert(.vary) }
        if fields.has(.setCookie) { present.insert(.setCookie) }
        if let request {
            let asked = CacheControl(request: request.fields)
            if asked.noCache || asked.maxAge != nil || asked.minFresh != nil {
                present.insert(.reload)
            }
            if request.bearsCredentials, !control.allowsSharingWithCredentials {
                present.insert(.authorization)
            }
        }
        return present.intersection(ignored)
    }
}

extension LifetimeSource {
    /// The lifetime was given by settings, not by the response.
    package var isFromSettings: Bool {
        switch self {
        case .ruleMinimum, .ruleMaximum, .ruleLifetime, .negative: true
        case .sMaxage, .maxAge, .expires, .heuristic, .none: false
        }
    }
}
