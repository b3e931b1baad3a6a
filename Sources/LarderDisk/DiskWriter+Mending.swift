import LarderLMDB
import LarderPolicy
import LarderStore

// Taking out what a verification has found. Each thing is looked at once more, in the transaction that
// takes it out: what has changed meanwhile is left alone.
extension DiskWriter {
    /// Returns what was still so and is no longer.
    func mend(
        _ damage: [DiskDamage], _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> [DiskDamage] {
        var mended: [DiskDamage] = []
        for one in damage.sumsFirst where try self.mend(one, &attempt, transaction) {
            mended.append(one)
        }
        return mended
    }

    private func mend(
        _ damage: DiskDamage, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        switch damage.kind {
        case .record, .misplaced, .segment, .named:
            guard try self.isStill(damage, transaction) else { return false }
            return try self.remove(damage.objectKey, &attempt, transaction)
        case .unqueued:
            return try self.requeue(damage.objectKey, &attempt, transaction)
        case .stray:
            return try self.removeStray(at: damage.number, &attempt, transaction)
        case .orphan:
            // That no entry has it, nothing could change: ids are given out once.
            guard try !schema.isNamed(damage.objectID, transaction.reading),
                try schema.hasSegments(damage.objectID, transaction.reading)
            else { return false }
            try transaction.put(schema.garbage, NumberKey.bytes(damage.id).span, Span())
            return true
        case .sum:
            // Two who found the same would else correct it twice.
            guard attempt.meta.bodyBytes == damage.low else { return false }
            attempt.meta.bodyBytes &+= damage.number
            return true
        }
    }

    /// Whether an entry is as bad as it was found.
    private func isStill(
        _ damage: DiskDamage, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        let key = damage.objectKey
        let record: ObjectRecord
        switch try schema.judgedRecord(key, transaction.reading) {
        case nil: return false
        case .failure?: return damage.kind == .record
        case .success(let found)?: record = found
        }
        switch damage.kind {
        case .misplaced: return Checksum.key(record.key.bytes, seed: self.core.seed) != key.hash
        case .named: return try schema.isNamed(key.id, transaction.reading)
        case .segment:
            guard let index = UInt32(exactly: damage.number) else { return false }
            return try schema.problem(
                inSegment: index, of: key.id, record.extent, transaction.reading) != nil
        case .record, .unqueued, .stray, .orphan, .sum: return false
        }
    }

    /// Gives up a place that no entry has, in whichever queue it is.
    private func removeStray(
        at number: UInt64, _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        let place = NumberKey.bytes(number)
        for queue in EvictionRules.Queue.allCases {
            let database = schema.database(of: queue)
            let found = try transaction.reading.get(database, place.span) { QueueEntry($0) }
            guard let entry = found,
                try schema.isStray(place: number, in: queue, of: entry?.key, transaction.reading)
            else { continue }
            let charge = entry?.charge ?? 0
            attempt.meta[queue] &-= min(attempt.meta[queue], charge)
            return try transaction.delete(database, place.span)
        }
        return false
    }

    /// Gives an entry without a place in the queue one at its end.
    private func requeue(
        _ key: ObjectKey, _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        guard case .success(var record)? = try schema.judgedRecord(key, transaction.reading),
            try !schema.isQueued(key, record, transaction.reading)
        else { return false }
        try self.enqueue(key, &record, &attempt, transaction)
        return true
    }
}

extension DiskStore {
    /// Takes out what a verification of this file has found, where it is still so.
    ///
    /// - Parameter completion: gets what was taken out, once that is committed; called on a thread of
    ///   the store's, must not block.
    package func mend(
        _ damage: [DiskDamage], _ completion: @escaping @Sendable ([DiskDamage]) -> Void
    ) {
        if self.core.mailbox.post(.mend(damage, completion)) != .accepted { completion([]) }
    }
}
