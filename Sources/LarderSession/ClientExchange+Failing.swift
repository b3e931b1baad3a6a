import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What becomes of one that waited for another client's fetch, of which it can have nothing: what this
/// one has in the store may be another response than that one's.
extension ClientExchange {
    /// That fetch has failed.
    func filling(
        failed failure: ExchangeFailure, _ forward: CacheStatus.Forward,
        because asked: PolicyReason?
    ) {
        guard let upstream = failure.upstream else {
            return self.fail(failure, leads: false, forward: forward, because: asked)
        }
        let object = self.validated
        if let object, let stored = self.standIn(object, for: upstream) {
            return self.serve(stored, leads: false, forward: forward, because: asked)
        }
        // As a fetch of this client's own would have met it.
        let own = ExchangeFailure(
            upstream, validating: object?.head, configuration: self.policy)
        self.fail(own, leads: false, forward: forward, because: asked)
    }

    /// What that fetch has brought is not for this client: make one of its own.
    func fetchAlone() {
        let (objects, validating) = self.revalidating
        self.lead(objects, validating, isEntered: false)
    }

    /// One of those who wait asks the origin as well, and the others wait for that.
    ///
    /// An origin that does not answer one request may answer the next. Once: where that one is as slow, it
    /// is waited for.
    func fillingIsSlow() {
        self.state.withLock { $0.hasWaited = true }
        if self.looked.count < Self.mostLooks { return self.lookAgain() }
        let (objects, validating) = self.revalidating
        self.enter(
            Filling(key: self.key, window: self.configuration.window), objects, validating)
    }

    /// The stored response that stands in for it, by the client's own directives (RFC 9111 §4.2.4).
    private func standIn(_ object: StoredObject, for failure: UpstreamFailure) -> Filling.Stored? {
        guard failure.party != .client,
            let reason = StaleOnError.permits(
                object.head, request: self.request, hasAnswered: false,
                now: self.session.clock.now(), configuration: self.policy,
                policy: self.cachePolicy)
        else { return nil }
        self.session.live.reasons.add(reason)
        return Filling.Stored(object, because: reason, for: failure, at: self.request.uri)
    }

    /// The stored response that a fetch of this client's own would validate, where that is of use.
    private var validated: StoredObject? {
        let (objects, index) = self.revalidating
        guard let index, self.covers(objects[index]) else { return nil }
        return objects[index]
    }

    /// What was found in the store, by what has been invalidated by now, and which of it a fetch of
    /// this client's own would validate.
    private var revalidating: (objects: [StoredObject], index: Int?) {
        var objects = self.state.withLock { $0.stored }
        for index in objects.indices {
            objects[index] = self.session.judged(objects[index], at: self.request.uri)
        }
        let verdict = Reuse.decide(
            request: self.request, candidates: objects.map(\.head),
            now: self.session.clock.now(), configuration: self.policy, policy: self.cachePolicy)
        guard case .validate(let index, _, _) = verdict, objects.indices.contains(index) else {
            return (objects, nil)
        }
        return (objects, index)
    }
}
