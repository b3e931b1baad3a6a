import LarderHTTP

/// What a request cache policy and a cache rule make of the verdict that HTTP gives.
extension Reuse {
    static func verdict(
        under policy: RequestCachePolicy, _ request: Request, _ asked: CacheControl,
        _ candidates: [StoredHead], _ now: Timestamp, _ configuration: PolicyConfiguration
    ) -> ReuseVerdict {
        guard configuration.rule?.forbidsStoring != true else {
            return policy == .returnCacheDontLoad
                ? .refuse(because: .returnCacheDontLoad)
                : .fetch(forward: .bypass, because: .ruleStoresNothing)
        }
        if policy == .useProtocol {
            return self.verdict(request, asked, candidates, now, configuration)
        }
        var asked = asked
        // Whoever set such a policy knows of it, and speaks for the client's software, too.
        if policy == .returnCacheElseLoad || policy == .returnCacheDontLoad {
            asked.noStore = false
        }
        let told = self.verdict(request, asked, candidates, now, configuration)
        switch policy {
        case .useProtocol: return told
        case .reloadIgnoringLocal: return self.reloading(told, because: .reloadIgnoringLocal)
        case .reloadIgnoringAll: return self.reloading(told, because: .reloadIgnoringAll)
        case .reloadRevalidating: return self.revalidating(told)
        case .returnCacheElseLoad:
            return self.returning(
                told, candidates, now, configuration, because: .returnCacheElseLoad)
        case .returnCacheDontLoad:
            let returned = self.returning(
                told, candidates, now, configuration, because: .returnCacheDontLoad)
            if case .serve = returned { return returned }
            return .refuse(because: .returnCacheDontLoad)
        }
    }

    /// Nothing stored is read; a request that no cache answers keeps its own reason.
    private static func reloading(
        _ told: ReuseVerdict, because reason: PolicyReason
    ) -> ReuseVerdict {
        switch told {
        case .serve, .validate: .fetch(forward: .bypass, because: reason)
        case .fetch(.uriMiss, _), .fetch(.varyMiss, _), .fetch(.miss, _), .fetch(.partial, _):
            .fetch(forward: .bypass, because: reason)
        case .fetch, .refuse: told
        }
    }

    private static func revalidating(_ told: ReuseVerdict) -> ReuseVerdict {
        guard case .serve(let index, _, _, _) = told else { return told }
        return .validate(index: index, forward: .request, because: .reloadRevalidating)
    }

    /// What is stored is used where HTTP would ask the origin first.
    ///
    /// What is not there cannot be used: a range that is stored in part only.
    static func returning(
        _ told: ReuseVerdict, _ candidates: [StoredHead], _ now: Timestamp,
        _ configuration: PolicyConfiguration, because reason: PolicyReason
    ) -> ReuseVerdict {
        switch told {
        // What is not there cannot be returned.
        case .validate(_, .partial, _): return told
        // Not only old, but known to be wrong: better nothing else than it, but first the origin.
        case .validate(_, _, .invalidated) where reason == .returnCacheElseLoad: return told
        case .validate(let index, _, _):
            guard candidates.indices.contains(index) else { return told }
            let freshness = Freshness.of(
                candidates[index], at: now, configuration: configuration)
            return .serve(
                index: index, freshness: freshness, stale: reason, revalidateInBackground: false)
        case .serve(let index, let freshness, _?, true):
            // The origin is not asked, not even behind the client's back.
            return .serve(
                index: index, freshness: freshness, stale: reason, revalidateInBackground: false)
        case .serve, .fetch, .refuse: return told
        }
    }
}
