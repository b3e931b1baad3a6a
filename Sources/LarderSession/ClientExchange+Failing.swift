import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What the failure of another client's fetch means for one that waited for it: what this one has in
/// the store may be another response than that one's.
extension ClientExchange {
    /// The failure as a fetch of this client's own would have met it.
    func own(_ failure: ExchangeFailure) -> ExchangeFailure {
        guard let upstream = failure.upstream else { return failure }
        var own = ExchangeFailure(upstream)
        if failure.party == .origin, let object = self.validated,
            StaleOnError.demandsError(object.head, configuration: self.policy) != nil
        {
            own.status = .gatewayTimeout
        }
        return own
    }

    /// The stored response that stands in for it, by the client's own directives (RFC 9111 §4.2.4).
    func standIn(for failure: ExchangeFailure) -> Filling.Stored? {
        guard failure.party != .client, let object = self.validated,
            let reason = StaleOnError.permits(
                object.head, request: self.request, hasAnswered: false,
                now: self.session.clock.now(), configuration: self.policy,
                policy: self.cachePolicy)
        else { return nil }
        self.session.live.reasons.add(reason)
        return Filling.Stored(
            object: object, isValidated: false, status: nil, reason: reason,
            failure: ProxyStatus(
                error: failure.error?.rawValue, nextHop: failure.nextHop ?? self.request.uri.host,
                details: failure.detail))
    }

    /// The stored response that a fetch of this client's own would validate.
    private var validated: StoredObject? {
        let objects = self.state.withLock { $0.stored }
        let heads = objects.map { self.session.judged($0.head, at: self.request.uri) }
        let verdict = Reuse.decide(
            request: self.request, candidates: heads, now: self.session.clock.now(),
            configuration: self.policy, policy: self.cachePolicy)
        guard case .validate(let index, _, _) = verdict, objects.indices.contains(index),
            self.covers(objects[index])
        else { return nil }
        var object = objects[index]
        object.head = heads[index]
        return object
    }
}
