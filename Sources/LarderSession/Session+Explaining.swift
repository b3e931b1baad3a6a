package import LarderHTTP
package import LarderPolicy
import LarderStore

extension Session {
    /// The last exchanges about a URI, whatever their method, the last one first.
    ///
    /// Walks through all that is remembered: for people who ask.
    package func recentExchanges(for uri: TargetURI, limit: Int) -> [RecentExchange] {
        let wanted = CacheKey(method: .get, uri: uri).parts.uri
        return self.recent.last(limit) { $0.key.parts.uri == wanted }
    }

    /// What the session would do by itself about a request that goes to its origin now, before the
    /// origin says anything; uses nothing up.
    package func foreseenActs(for request: Request) -> [SessionAct] {
        self.conduct?.foreseen(for: request) ?? []
    }

    /// Explains what would happen to a request now; asks no origin, and uses nothing up.
    ///
    /// - Parameters:
    ///   - cachePolicy: what the request says itself; nil: nothing, so that the session's holds.
    ///   - completion: gets the explanation, and the lengths of the contents that are stored; called
    ///     once, here or on a thread of the store's; must not block.
    package func explain(
        _ request: Request, cachePolicy: RequestCachePolicy? = nil,
        _ completion: @escaping @Sendable (Explanation, [UInt64]) -> Void
    ) {
        let now = self.clock.now()
        let request =
            self.conduct?.prepared(request, permits: nil, isSent: false, at: now) ?? request
        let configuration = self.configuration
        let policy = configuration.policy.resolved(for: request.uri)
        let cachePolicy = cachePolicy ?? configuration.cachePolicy
        let key = CacheKey(method: .get, uri: request.uri, partition: self.partition)
        let explain = { @Sendable (objects: [StoredObject]) in
            let lengths = objects.map(\.bodyLength)
            let explanation = Explanation(
                request: request, candidates: objects.map(\.head), bodyLengths: lengths, now: now,
                configuration: policy, policy: cachePolicy)
            return (explanation, lengths)
        }
        // In the steps of an exchange: what is stored for several queries is looked at only where
        // the target itself has nothing to serve.
        self.find(key, for: request.uri) { found in
            let first = explain(found.usable)
            guard first.0.verdict.mayGainByMore, policy.honoursNoVarySearch else {
                return completion(first.0, first.1)
            }
            self.find(key.withoutSearch, for: request.uri) { more in
                let both = explain(found.usable + more.usable)
                completion(both.0, both.1)
            }
        }
    }
}
