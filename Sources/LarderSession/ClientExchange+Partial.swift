import LarderHTTP
import LarderPolicy
import LarderStore

/// Answers from responses that are stored in part.
extension ClientExchange {
    private func plan(_ object: StoredObject) -> AnswerPlan {
        AnswerPlan.make(self.request, from: object.head, bodyLength: object.bodyLength)
    }

    /// Whether a stored response has all that is asked for.
    func covers(_ object: StoredObject) -> Bool {
        if object.head.extent == nil { return true }
        if case .stored = self.plan(object) { return true }
        return false
    }

    /// What is missing of a stored part that answers the request but for that.
    func splicing(_ objects: [StoredObject], _ index: Int?) -> Fetch.Splicing? {
        guard let index, objects.indices.contains(index), self.body == nil,
            case .splice(let splice) = self.plan(objects[index])
        else { return nil }
        return Fetch.Splicing(splice: splice, object: objects[index])
    }

    /// Answers with what is stored and what comes in, put together.
    func splice(
        _ spliced: Filling.Spliced, reader: FillingReader, leads: Bool,
        forward: CacheStatus.Forward, because reason: PolicyReason?
    ) {
        let now = self.session.clock.now()
        let freshness = Freshness.of(spliced.object.head, at: now, configuration: self.policy)
        var status = CacheStatus(
            forward: forward, forwardStatus: spliced.status,
            ttl: CacheStatus.ttl(of: freshness.remaining), stored: spliced.isStored,
            collapsed: !leads, detail: reason?.rawValue)
        status.key = self.shownKey
        let stored = StoredExchangeAnswer.make(
            spliced, reader: reader, leads: leads,
            opener: GapFetch.opener(
                self.session, self.request, self.snapshot, spliced.object),
            now: now, status: status, age: freshness.currentAge,
            configuration: self.configuration)
        self.session.store.noteUse(spliced.object.id, of: spliced.object.key, at: now)
        if leads { self.session.live.forwarded.add() } else { self.session.live.collapsed.add() }
        self.session.live.bytesFromStore.add(stored.bodyBytes)
        self.note(stored.answer, at: now, because: reason, storage: nil)
        self.answer(stored.answer)
    }
}

extension StoredHead {
    /// The head as if nothing were missing: for what is asked of it beside its bytes.
    var whole: StoredHead {
        var head = self
        head.extent = nil
        return head
    }
}
