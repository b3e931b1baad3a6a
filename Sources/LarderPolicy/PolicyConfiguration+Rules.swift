package import LarderHTTP

extension PolicyConfiguration {
    /// The rule that speaks for the URI that this configuration was resolved for; nil where none
    /// does, and before.
    package var rule: CacheRule? {
        guard let index = self.matchedRule, self.rules.indices.contains(index) else { return nil }
        return self.rules[index]
    }

    /// The configuration for one exchange: the first rule that fits is picked, once.
    ///
    /// Costs nothing where there are no rules.
    package func resolved(for uri: TargetURI) -> PolicyConfiguration {
        guard !self.rules.isEmpty else { return self }
        let subject = RuleSubject(uri)
        var resolved = self.unresolved
        resolved.matchedRule = self.rules.firstIndex { $0.matches(subject) }
        return resolved
    }

    /// The configuration for the URI of a key under which something is stored.
    package func resolved(forKey key: CacheKey) -> PolicyConfiguration {
        guard !self.rules.isEmpty, let uri = TargetURI(text: key.parts.uri) else {
            return self.unresolved
        }
        return self.resolved(for: uri)
    }

    /// The configuration as if no rule fitted: what the response and the session alone would have.
    package var unresolved: PolicyConfiguration {
        var plain = self
        plain.matchedRule = nil
        return plain
    }

    /// What the rule sets aside; empty where there is no rule.
    var ignored: CacheRule.Ignored {
        guard self.matchedRule != nil else { return [] }
        return self.rule?.ignored ?? []
    }

    /// How long after its freshness a response may stand in for an origin that fails.
    var grace: Duration {
        guard self.matchedRule != nil else { return self.staleIfErrorGrace }
        return self.rule?.staleIfErrorGrace ?? self.staleIfErrorGrace
    }

    /// How long a response may stand in for an origin that gives no answer at all; what a cache
    /// rule says of failures holds for that too.
    var graceWithoutAnswer: Duration {
        if self.matchedRule != nil, let ruled = self.rule?.staleIfErrorGrace { return ruled }
        return max(self.staleIfErrorGrace, self.unreachableGrace)
    }

    /// The freshness lifetime of an error that gives none; nil where errors are not to be kept.
    ///
    /// 401 and 407 are about one client's credentials: kept for others they would refuse those who
    /// have some. What else is about a request must be named by its very status.
    func negativeLifetime(of status: StatusCode) -> Duration? {
        guard status.rawValue >= 400, status.rawValue != 401, status.rawValue != 407 else {
            return nil
        }
        let found =
            self.rule?.negative.first { $0.speaks(of: status) }
            ?? self.negative.first { $0.speaks(of: status) }
        guard let lifetime = found?.lifetime, lifetime > .zero else { return nil }
        return lifetime
    }

    /// Whether settings give such a response a lifetime that it does not have of its own.
    func givesLifetime(to status: StatusCode) -> Bool {
        if self.negativeLifetime(of: status) != nil { return true }
        guard let rule = self.rule, status.isLasting else { return false }
        return max(rule.minimum ?? .zero, rule.lifetime ?? .zero) > .zero
    }

    /// The lifetime after the rule and the negative lifetimes have spoken.
    func overriding(
        _ lifetime: Duration, _ source: LifetimeSource, of head: StoredHead
    ) -> (Duration, LifetimeSource) {
        let status = head.status
        var (lifetime, source) = (lifetime, source)
        let isTold = source != .none && source != .heuristic
        if !isTold, let negative = self.negativeLifetime(of: status) {
            (lifetime, source) = (negative, .negative)
        }
        guard let rule = self.rule else { return (lifetime, source) }
        // One client's cookies must not last longer than the origin meant them to.
        if status.isLasting, !head.fields.has(.setCookie) {
            if !isTold, let given = rule.lifetime { (lifetime, source) = (given, .ruleLifetime) }
            if let minimum = rule.minimum, minimum > lifetime {
                (lifetime, source) = (minimum, .ruleMinimum)
            }
        }
        if let maximum = rule.maximum, maximum < lifetime {
            (lifetime, source) = (maximum, .ruleMaximum)
        }
        return (lifetime, source)
    }
}
