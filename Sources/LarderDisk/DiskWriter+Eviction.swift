import LarderLMDB
import LarderPolicy
import LarderStore

/// Eviction: what the rules let go of, taken from the oldest ends of the queues.
extension DiskWriter {
    /// Lets go of what the rules say, from the oldest ends of the queues on.
    func evict(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction,
        downTo aim: UInt64, isUrgent: Bool, _ budget: inout ReclaimBudget
    ) throws(LMDBError) -> Int {
        var progress = 0
        var starts: [EvictionRules.Queue: [UInt8]] = [:]
        while budget.goesOn(after: progress) {
            let pages = try transaction.reading.pagesInUse(self.core.schema.all)
            if pages <= aim &+ attempt.owedPages { break }
            let small = try self.totals(of: .small, attempt, transaction)
            let main = try self.totals(of: .main, attempt, transaction)
            guard var queue = self.core.rules.next(small: small, main: main) else { break }
            var head = try self.head(
                of: queue, from: &starts[queue, default: []], &budget, transaction)
            // The time may have gone by on the way there.
            if head == nil, progress == 0 || !budget.isSpent {
                // All of it is being read.
                queue = queue == .small ? .main : .small
                head = try self.head(
                    of: queue, from: &starts[queue, default: []], &budget, transaction)
            }
            guard let head else { break }
            try self.judge(
                head, in: queue,
                typical: (small.bytes &+ main.bytes) / max(1, small.count &+ main.count),
                isUrgent: isUrgent, &attempt, transaction, &budget)
            progress += 1
        }
        return progress
    }

    /// Moves the oldest entry of a queue on, or out.
    private func judge(
        _ head: (place: [UInt8], entry: QueueEntry?), in queue: EvictionRules.Queue,
        typical: UInt64, isUrgent: Bool, _ attempt: inout Attempt,
        _ transaction: borrowing WriteTransaction, _ budget: inout ReclaimBudget
    ) throws(LMDBError) {
        let place = NumberKey.number(head.place.span)
        guard let entry = head.entry, let place,
            let facts = try self.standingFacts(entry.key, transaction),
            facts.sequence == place, facts.standing.queue == queue
        else {
            return try self.dropFromQueue(head, in: queue, &attempt, transaction)
        }
        let key = entry.key
        let use = self.core.uses.use(of: key.id)
        var standing = facts.standing
        if let use { standing.used(use.count) }
        let verdict = attempt.kept.verdict(
            after: self.core.rules.judge(standing, size: facts.charge, typical: typical),
            of: queue, isUrgent: isUrgent)
        switch verdict {
        case .evict(let isRemembered):
            budget.pages -= facts.segmentCount > Self.smallBody ? 0 : facts.bodyPages
            try self.remove(key, known: facts, &attempt, transaction)
            attempt.meta.evictions &+= 1
            guard isRemembered else { return }
            attempt.evicted.append((facts.fingerprint, facts.charge))
            attempt.meta.ghostClock &+= facts.charge
        case .keep(let standing):
            guard var record = try self.record(key, transaction) else {
                return try self.dropFromQueue(head, in: queue, &attempt, transaction)
            }
            try self.dequeue(
                key, at: place, in: queue, charge: record.charge, &attempt, transaction)
            record.standing = standing
            // Uses that are noted and not flushed yet would count a second time: they go along.
            if let use {
                record.hits &+= use.count
                record.lastUsed = max(record.lastUsed, use.last)
                attempt.meta.hits &+= use.count
                self.core.uses.forget(key.id)
            }
            try self.enqueue(key, &record, &attempt, transaction)
        }
    }

    /// Drops a place in a queue that names nothing, or not what is there; a damaged record goes, too.
    ///
    /// Bodies of damaged records are counted until this, as only the queue knows their length.
    private func dropFromQueue(
        _ head: (place: [UInt8], entry: QueueEntry?), in queue: EvictionRules.Queue,
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        if let entry = head.entry, let place = NumberKey.number(head.place.span) {
            // A record that can be read has its own place.
            let isDamaged = try self.record(entry.key, transaction) == nil
            if isDamaged { try self.remove(entry.key, &attempt, transaction) }
            let charge = try self.dequeue(
                entry.key, at: place, in: queue, charge: nil, &attempt, transaction)
            if let charge, isDamaged { self.uncount(charge, &attempt) }
        } else {
            try transaction.delete(self.core.schema.database(of: queue), head.place.span)
        }
    }
}
