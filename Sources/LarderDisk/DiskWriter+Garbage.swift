import LarderLMDB
import LarderStore
import Synchronization

/// Bodies that belong to nobody any more: deleted bit by bit, in the steps of taking back room.
extension DiskWriter {
    func collectGarbage(
        _ transaction: borrowing WriteTransaction, _ budget: inout ReclaimBudget
    ) throws(LMDBError) -> Int {
        let schema = self.core.schema
        var deleted = 0
        for id in try self.ids(in: schema.garbage, transaction) {
            if budget.isSpent { break }
            // A look-up with a snapshot from before its removal may be about to hold it: it gets it
            // before this, or not at all.
            if !self.core.entries.withLock({ $0.leaves(id) }) { continue }
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

    func ids(
        in database: Database, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> [ObjectID] {
        try transaction.reading.withCursor(database) { (cursor) throws(LMDBError) in
            var ids: [ObjectID] = []
            let visit = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                if let number = NumberKey.number(key) { ids.append(ObjectID(rawValue: number)) }
                return ids.count < Self.stepSize
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
            while goesOn, !budget.isSpent {
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
        _ id: ObjectID, _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let key = NumberKey.bytes(id.rawValue)
        if try transaction.delete(self.core.schema.pending, key.span) {
            try transaction.put(self.core.schema.garbage, key.span, Span())
        }
    }
}
