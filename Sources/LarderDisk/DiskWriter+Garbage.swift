import LarderLMDB
import LarderStore

/// Bodies that belong to nobody any more: deleted bit by bit, in the steps of taking back room.
extension DiskWriter {
    func collectGarbage(
        _ transaction: borrowing WriteTransaction, _ budget: inout ReclaimBudget
    ) throws(LMDBError) -> Int {
        let schema = self.core.schema
        var deleted = 0
        for id in try self.ids(in: schema.garbage, passesHeld: true, transaction) {
            guard budget.goesOn(after: deleted) else { break }
            // A look-up with a snapshot from before its removal may be about to hold it: it gets it
            // before this, or not at all.
            if !self.core.leaves(id) { continue }
            let (count, isEnd) = try self.deleteSegments(of: id, &budget, transaction)
            deleted += count
            if isEnd {
                try transaction.delete(schema.garbage, NumberKey.bytes(id.rawValue).span)
                budget.entries -= 1
                deleted += 1
            }
        }
        return deleted
    }

    /// Up to ``stepSize`` ids, the oldest first.
    ///
    /// - Parameter passesHeld: those that are held do not count, but there is a bound to how many of
    ///   them are looked at.
    func ids(
        in database: Database, passesHeld: Bool = false,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> [ObjectID] {
        try transaction.reading.withCursor(database) { (cursor) throws(LMDBError) in
            var ids: [ObjectID] = []
            var looked = 0
            let visit = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                looked += 1
                if let id = NumberKey.number(key).map({ ObjectID(rawValue: $0) }),
                    !passesHeld || !self.core.isInTheWay(id)
                {
                    ids.append(id)
                }
                return ids.count < Self.stepSize && looked < Self.stepSize * 16
            }
            var goesOn = try cursor.first(visit) ?? false
            while goesOn { goesOn = try cursor.next(visit) ?? false }
            return ids
        }
    }

    func deleteSegments(
        of id: ObjectID, _ budget: inout ReclaimBudget,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> (count: Int, isEnd: Bool) {
        try transaction.reading.withCursor(self.core.schema.segments) {
            (cursor) throws(LMDBError) in
            var pages = 0
            let isOurs = { (key: Span<UInt8>, value: Span<UInt8>) -> Bool in
                pages = Segment.pages(ofPayload: value.count - Segment.headerSize)
                return SegmentKey(key)?.id == id
            }
            var count = 0
            let start = SegmentKey(id: id, index: 0).bytes
            var goesOn = try cursor.seek(atOrAfter: start.span, isOurs) ?? false
            while goesOn, budget.goesOn(after: count) {
                try cursor.delete()
                budget.pages -= max(1, pages)
                count += 1
                goesOn = try cursor.next(isOurs) ?? false
            }
            return (count, !goesOn)
        }
    }

    /// What was written for a sink that came to nothing becomes garbage.
    func discardPending(
        _ id: ObjectID, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let key = NumberKey.bytes(id.rawValue)
        if try transaction.delete(self.core.schema.pending, key.span) {
            try transaction.put(self.core.schema.garbage, key.span, Span())
        }
    }
}
