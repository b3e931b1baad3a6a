import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Where a response goes in the store, and what it makes unusable there.
extension Fetch {
    /// What an unsafe request has made unusable (RFC 9111 §4.4, RFC 9875 §3).
    func invalidate(by response: ResponseHead, now: Timestamp) {
        let request = self.order.request
        let changed = self.state.withLock { $0.connection.changed }
        // As nearly all are: then nothing is changed.
        if changed.isEmpty, request.method.isSafe { return }
        let partition = self.session.partition
        let uris = Invalidation.uris(request: request, response: response)
        let all = uris + changed.filter { !uris.contains($0) }
        for uri in all {
            let key = CacheKey(method: .get, uri: uri, partition: partition)
            self.invalidateGroups(of: key, at: uri, now: now)
            if uri == request.uri { self.removeOwn(key) } else { self.remove(key, beside: all) }
        }
        for group in CacheGroups.invalidated(by: response, to: request) {
            self.session.store.noteInvalidation(
                ofGroup: CacheGroups.name(of: group, at: request.uri, partition: partition),
                at: now)
        }
    }

    /// Removes what is stored for another URI than the target of the request.
    ///
    /// What queries of its path share goes with the target, where that is of the same path: removed once
    /// more, it would seem to be somebody else's doing, and the answer could not be stored for them.
    private func remove(_ key: CacheKey, beside changed: [TargetURI]) {
        let request = self.order.request
        let own = CacheKey(method: .get, uri: request.uri, partition: self.session.partition)
        guard changed.contains(request.uri), key.withoutSearch == own.withoutSearch else {
            return self.session.remove(key)
        }
        self.session.removeAlone(key)
    }

    /// Removes what is stored for the target of the request.
    ///
    /// The answer to this very request may be stored for later GETs: it comes after what it has just
    /// removed. But not where something else has changed the target since the request was sent: which
    /// of the two the origin did last nobody knows.
    private func removeOwn(_ key: CacheKey) {
        let begun = self.state.withLock { $0.removals }
        let removals = self.session.remove(key, begun: begun)
        self.state.withLock { $0.removals = removals }
    }

    /// What shares a group with what is invalidated is invalidated too, as RFC 9875 §2.2.1 allows.
    private func invalidateGroups(of key: CacheKey, at uri: TargetURI, now: Timestamp) {
        let session = self.session
        let keys = session.store.mayHoldWithoutSearch ? [key, key.withoutSearch] : [key]
        for key in keys {
            session.find(key, for: uri) { found in
                for group in Set(found.usable.flatMap { CacheGroups.of($0.head) }) {
                    session.store.noteInvalidation(
                        ofGroup: CacheGroups.name(
                            of: group, at: uri, partition: session.partition),
                        at: now)
                }
            }
        }
    }

    /// Replaces the head of a stored response by what a validation made of it, or drops the response
    /// where the validation says that it must not be kept.
    ///
    /// What was made invalid since the request was sent stays that.
    ///
    /// - Parameter spared: a filling that brings another response.
    func keep(_ object: StoredObject, but spared: Filling? = nil) {
        if Storability.forbidsKeeping(object.head.fields, configuration: self.policy) == nil {
            let begun = self.state.withLock { $0.removals }
            self.session.store.update(object.id, of: object.key, head: object.head, begun: begun)
            self.session.fillings.retire(object.key, but: spared)
        } else {
            self.drop(object.key, object.id, but: spared)
        }
    }

    /// Removes a stored response, and has nobody join what brought it.
    ///
    /// - Parameter spared: a filling that brings another response.
    func drop(_ key: CacheKey, _ id: ObjectID, but spared: Filling? = nil) {
        self.session.store.remove(key, ids: [id], nil)
        self.session.fillings.retire(key, but: spared)
    }

    /// Begins to store a response whose head has just come.
    ///
    /// - Parameter stored: what it may take the place of.
    func beginStoring(
        _ head: StoredHead, length: UInt64?, among stored: [StoredObject]
    ) -> (any ObjectSink)? {
        let (key, head) = Storability.place(
            head, for: self.order.request, partition: self.session.partition,
            lookedUp: self.order.key, configuration: self.policy)
        let ids = self.replaced(by: head, under: key, among: stored)
        let outdated = self.outdated(by: head, under: key, among: stored)
        // Held until the new one has come, they would take room that it needs.
        for object in stored where ids.contains(object.id) { object.body.letGo() }
        let removals = self.state.withLock { state in
            state.outdated = outdated
            return state.removals
        }
        let storing = Storing(
            head, for: key, range: head.extent?.ranges.first, length: length, from: self.filling)
        guard let gate = self.order.gate else {
            return self.beginning(storing) {
                self.session.store.store(
                    head, for: key, length: length, replacing: ids, begun: removals,
                    observer: self)
            }
        }
        let relay = SinkRelay(self)
        var gated: GatedSink?
        let sink = self.beginning(storing) {
            let sink = self.session.store.store(
                head, for: key, length: length, replacing: ids, begun: removals, observer: relay)
            gated = sink.map {
                GatedSink(
                    $0, relay: relay, limit: gate.largestBody ?? 0, isHeld: gate.decides)
            }
            return gated
        }
        if let gated, sink != nil, gate.decides {
            gate.storing(
                offers: HeldStoring(
                    storing, replacing: ids, removals: removals, sink: gated))
        }
        return sink
    }

    /// Stores what a 304 says that another variant's content is, too, as the answer to this request
    /// (RFC 9111 §4.1): the next one like it is a hit.
    ///
    /// The content is copied: the two may be updated, and removed, apart. Not where it is long: a request
    /// that costs its client nothing would have it written anew each time.
    ///
    /// - Parameter object: the other variant, with the head of this one.
    /// - Returns: what copies the content; nil: nothing is stored.
    func storeVariant(_ object: StoredObject, now: Timestamp) -> (() -> Void)? {
        let request = self.answered(self.order.request)
        // What a door decides about, it is shown as a response.
        guard object.bodyLength <= Self.longestCopy, self.order.gate == nil,
            !self.state.withLock({ $0.connection.isForThisClient }),
            Storability.judge(
                request: request,
                response: ResponseHead(status: object.head.status, fields: object.head.fields),
                bodyLength: .known(object.bodyLength), now: now, configuration: self.policy)
                == .storable
        else { return nil }
        let (key, head) = Storability.place(
            object.head, for: self.order.request, partition: self.session.partition,
            lookedUp: self.order.key, configuration: self.policy)
        let session = self.session
        // Its content has been in the store before: what was removed since then must not come back.
        let removals = self.order.removals ?? self.state.withLock { $0.removals }
        let storing = Storing(rearranging: head, of: key)
        session.storings.begin(storing)
        let end = { @Sendable in
            session.storings.end(storing)
            storing.release()
        }
        let copy = BodyCopy(length: object.bodyLength, isWhole: true) { outcome in
            switch outcome {
            case .visible: session.live.stored.add()
            case .abandoned: session.live.storesAbandoned.add()
            }
            end()
        }
        let sink = session.store.store(
            head, for: key, length: object.bodyLength,
            replacing: self.replaced(by: head, under: key, among: self.order.stored),
            begun: removals, observer: copy)
        guard let sink else {
            end()
            return nil
        }
        return { copy.begin(from: object.body.reader(range: 0..<object.bodyLength), into: sink) }
    }

    /// Bytes of a content that is copied for another variant.
    private static let longestCopy: UInt64 = 16 << 20

    /// Whether a door lets nothing in that is like this response, storable as it is.
    ///
    /// Only what is successful, what is not too long, and no part where whole responses are decided
    /// about.
    func isTurnedAway(_ head: ResponseHead, _ bodyLength: BodyLength) -> Bool {
        guard let gate = self.order.gate else { return false }
        guard head.status.isSuccessful, let largest = gate.largestBody else { return true }
        if head.status == .partialContent, gate.decides { return true }
        if case .known(let length) = bodyLength { return length > largest }
        return false
    }

    /// Begins the store's part; it may end before it is known to have begun.
    func beginning(
        _ storing: Storing, _ begin: () -> (any ObjectSink)?
    ) -> (any ObjectSink)? {
        self.state.withLock { state in
            state.storing = storing
            state.turnedAway = nil
            state.sinkIsOver = false
            state.isRelayingStored = true
        }
        self.session.storings.begin(storing)
        if let sink = begin() {
            // The store may have turned it away at once; then all is told already.
            return self.state.withLock { $0.turnedAway } == nil ? sink : nil
        }
        self.state.withLock { state in
            state.storing = nil
            state.sinkIsOver = true
            state.isRelayingStored = false
        }
        self.session.storings.end(storing)
        storing.release()
        return nil
    }

    /// Why the store does not take a response of this length, where a rule of its own speaks from that.
    func refusal(of length: UInt64?) -> PolicyReason? {
        // What it heard while it asked was counted there.
        if let turnedAway = self.state.withLock({ $0.turnedAway }) { return turnedAway }
        let largest = self.session.store.largestBody
        // Where there is no room for anything, that is no matter of length.
        guard let length, largest > 0, length > largest else { return nil }
        self.session.live.storesAbandoned.add()
        self.session.live.reasons.add(.tooLarge)
        return .tooLarge
    }

    /// What a new response makes unusable beside its own place.
    ///
    /// A URI's responses lie under the exact target or, where `No-Vary-Search` says so, under that without
    /// its query, and the origin may change its mind. Of those suitable the most recent is to be used
    /// (RFC 9111 §4).
    private func outdated(
        by head: StoredHead, under key: CacheKey, among stored: [StoredObject]
    ) -> [StoredName] {
        let beside = stored.filter { $0.key != key && self.isOfTarget($0) }
        if beside.isEmpty { return [] }
        return Variance.replaced(
            by: head, to: self.order.request, among: beside.map(\.head), configuration: self.policy
        ).map { StoredName(key: beside[$0].key, id: beside[$0].id) }
    }

    /// Whether a stored response is the answer to this very target: that to another query may be this one's
    /// no longer, but is still that one's.
    func isOfTarget(_ object: StoredObject) -> Bool {
        !object.key.leavesOutSearch
            || object.head.pathAndQuery == self.order.request.uri.pathAndQuery
    }

    /// Whose place a new response takes: those that its request would have selected, and where
    /// responses to several queries lie, the oldest beyond the bound.
    private func replaced(
        by head: StoredHead, under key: CacheKey, among stored: [StoredObject]
    ) -> [ObjectID] {
        let stored = stored.filter { $0.key == key }
        var ids = Variance.replaced(
            by: head, to: self.order.request, among: stored.map(\.head), configuration: self.policy
        ).map { stored[$0].id }
        guard key.leavesOutSearch else { return ids }
        let neighbours = self.order.neighbours.filter { $0.key == key }
            .sorted { $0.head.responseTime < $1.head.responseTime }
        let kept = neighbours.count + stored.count - ids.count
        ids += neighbours.prefix(max(0, kept - max(1, self.policy.maximumVariants) + 1)).map(\.id)
        return ids
    }
}

extension SinkAbandonment {
    /// The store would not have it: the answer itself may be as good as any.
    var isStores: Bool {
        switch self {
        case .tooLarge, .noSpace, .storeFailed, .tooSlow, .seenOnce, .largeSeenOnce: true
        case .byWriter, .closing, .removed, .contradictory, .tooScattered: false
        }
    }

    /// The rule of the store that speaks from it; nil where it is no rule's.
    var policyReason: PolicyReason? {
        switch self {
        case .seenOnce: .seenOnce
        case .largeSeenOnce: .largeSeenOnce
        case .tooLarge: .tooLarge
        case .byWriter, .noSpace, .storeFailed, .tooSlow, .closing, .removed,
            .contradictory, .tooScattered:
            nil
        }
    }
}
