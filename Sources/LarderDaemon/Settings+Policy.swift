package import LarderConfig
import LarderHTTP
package import LarderPolicy

// The settings that say how a cache behaves, as policy takes them.

extension LoadedSettings {
    /// The rules that a session's cache follows, cache rules and presets included.
    package func policy(of session: SessionSettings) -> PolicyConfiguration {
        var policy = session.policy
        policy.rules = self.cacheRules
            .filter { $0.rule.sessions.isEmpty || $0.rule.sessions.contains(session.name) }
            .map { CacheRule($0) }
        return policy
    }
}

extension SessionSettings {
    /// The rules that the session's cache follows, without cache rules.
    package var policy: PolicyConfiguration {
        var policy = PolicyConfiguration(
            // What belongs to one principal is a private cache, whatever the whole is.
            kind: self.cache.isShared && self.principals == .none ? .shared : .private,
            heuristicFraction: self.freshness.heuristicFraction.value,
            heuristicMaximum: self.freshness.heuristicMaximum.duration,
            semanticVary: self.cache.semanticVary, maximumVariants: self.cache.variants,
            staleIfErrorGrace: self.freshness.staleIfError.duration,
            honoursStaleWhileRevalidate: self.freshness.staleWhileRevalidate,
            targetedFields: self.freshness.targetedFields.map { FieldName($0.text) },
            storesSetCookie: self.cache.storesSetCookie, storesPost: self.cache.storesPost,
            ftpLifetime: self.freshness.ftp.duration)
        policy.unreachableGrace = self.freshness.staleIfUnreachable.duration
        policy.honoursNoVarySearch = self.cache.noVarySearch
        policy.negative = self.freshness.negative.map { NegativeLifetime($0) }
        return policy
    }
}

extension RequestCachePolicy {
    package init(_ word: CachePolicyWord) {
        self =
            switch word {
            case .useProtocol: .useProtocol
            case .reloadIgnoringLocal: .reloadIgnoringLocal
            case .reloadIgnoringAll: .reloadIgnoringAll
            case .returnCacheElseLoad: .returnCacheElseLoad
            case .returnCacheDontLoad: .returnCacheDontLoad
            case .reloadRevalidating: .reloadRevalidating
            }
    }
}

extension CacheRule {
    /// - Parameter located: as it stands in the file of settings or of a preset.
    package init(_ located: LocatedRule) {
        let rule = located.rule
        self.init(
            name: located.name, place: "\(located.file):\(located.line)",
            hosts: rule.hosts.map { LarderPolicy.HostPattern($0.host, ports: $0.ports?.ports) },
            paths: rule.paths.map { Wildcard($0.pattern) }, minimum: rule.minimum?.duration,
            maximum: rule.maximum?.duration, lifetime: rule.lifetime?.duration,
            ignored: rule.ignore.reduce(into: []) { $0.formUnion(Ignored($1)) },
            negative: rule.negative.map { NegativeLifetime($0) },
            staleIfErrorGrace: rule.staleIfError?.duration, forbidsStoring: rule.store == .never)
    }
}

extension CacheRule.Ignored {
    init(_ word: CacheRuleSettings.Ignored) {
        self =
            switch word {
            case .noStore: .noStore
            case .isPrivate: .isPrivate
            case .noCache: .noCache
            case .mustRevalidate: .mustRevalidate
            case .maxAge: .maxAge
            case .sMaxage: .sMaxage
            case .expires: .expires
            case .vary: .vary
            case .reload: .reload
            case .setCookie: .setCookie
            case .authorization: .authorization
            }
    }
}

extension NegativeLifetime {
    init(_ setting: StatusLifetime) {
        self.init(setting.statuses, setting.lifetime.duration)
    }
}
