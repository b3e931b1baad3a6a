import LarderLMDB
import LarderStore

/// The removal of entries, with their place in a queue and what the totals say of them.
extension DiskWriter {
    /// Makes an entry invisible and its segments garbage; false where there is none.
    ///
    /// - Parameter known: what its record says, where that was read in this transaction.
    @discardableResult
    func remove(
        _ key: ObjectKey, known: StandingFacts? = nil, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        let facts: StandingFacts? =
            if let known { known } else { try self.standingFacts(key, transaction) }
        let garbageKey = NumberKey.bytes(key.id.rawValue)
        attempt.removed.append(key.id)
        guard let facts else {
            let place = try transaction.reading.get(schema.objects, key.bytes.span) {
                ObjectRecord.supposedPlace($0)
            }
            guard try transaction.delete(schema.objects, key.bytes.span) else { return false }
            attempt.cost += Segment.pageSize
            try self.dequeueDamaged(key, at: place ?? nil, &attempt, transaction)
            try transaction.put(schema.garbage, garbageKey.span, Span())
            return true
        }
        guard try transaction.delete(schema.objects, key.bytes.span) else { return false }
        attempt.cost += Segment.pageSize
        attempt.meta.bodyBytes &-= min(attempt.meta.bodyBytes, facts.storedBytes)
        try self.dequeue(
            key, at: facts.sequence, in: facts.standing.queue, charge: facts.charge, &attempt,
            transaction)
        // LMDB notes the pages that a transaction frees in one value, which needs a run of pages
        // itself: so no transaction frees very many.
        var budget = ReclaimBudget(
            free: self.core.marks.capacityPages,
            deadline: .now + self.core.configuration.reclaimTime)
        if facts.segmentCount > Self.smallBody || attempt.deletedPages >= budget.pages
            || !self.core.leaves(key.id)
        {
            try transaction.put(schema.garbage, garbageKey.span, Span())
            attempt.owedPages &+= UInt64(facts.segmentCount) &* Segment.pages
        } else if facts.segmentCount > 0 {
            let before = budget.pages
            let (_, isEnd) = try self.deleteSegments(of: key.id, &budget, transaction)
            attempt.deletedPages += before - budget.pages
            // Additions that came to nothing may have left more than the record knows of.
            if !isEnd { try transaction.put(schema.garbage, garbageKey.span, Span()) }
        }
        return true
    }

    /// Takes an entry whose record is damaged from its queue, if what the record says of its place is
    /// right; else eviction will come upon it there.
    private func dequeueDamaged(
        _ key: ObjectKey, at place: UInt64?, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        guard let place else { return }
        for queue in [EvictionRules.Queue.small, .main] {
            let charge = try self.dequeue(
                key, at: place, in: queue, charge: nil, &attempt, transaction)
            if let charge { return self.uncount(charge, &attempt) }
        }
    }

    /// The body of a damaged record counts no more.
    func uncount(_ charge: UInt64, _ attempt: inout Attempt) {
        let bytes = charge &- min(charge, ObjectRecord.overhead)
        attempt.meta.bodyBytes &-= min(attempt.meta.bodyBytes, bytes)
    }
}
