import LarderLMDB
import LarderStore
import Synchronization

// Taking back room: garbage, eviction, what a dead process left. Each step is one small transaction.
extension DiskWriter {
    /// Segments that one step deletes at most, and entries that it looks at.
    private static let stepSize = 256
    /// A body of so few segments is deleted together with its record.
    private static let smallBody: UInt32 = 4
    private static let urgentSteps = 64

    /// Bodies that a process left unfinished become garbage.
    mutating func recover() {
        var isDone = false
        while !isDone {
            do throws(LMDBError) {
                let (attempt, count) = try self.core.environment.write {
                    (transaction) throws(LMDBError) in
                    var attempt = Attempt(meta: self.meta)
                    let ids = try self.ids(in: self.core.schema.pending, transaction)
                    for id in ids { try self.discardPending(id, &attempt, transaction) }
                    try self.finish(&attempt, transaction)
                    return (attempt, ids.count)
                }
                self.takeOver(attempt)
                isDone = count < Self.stepSize
            } catch {
                // They stay where they are until the next start.
                self.core.failed(error)
                isDone = true
            }
        }
    }

    /// Takes back some room.
    mutating func reclaimStep() {
        let progress = self.reclaim(downTo: self.core.policy.lowPages, isUrgent: false)
        if progress == 0 { self.isStuck = true }
    }

    /// Makes room where there is none: with luck the batch that failed fits then.
    ///
    /// A run of sixteen pages may be missing though the number of free pages would do, so it frees
    /// some in any case; but not where half of the file is free, and a reader must be what keeps
    /// LMDB from using it: a reader that is stopped must not cost the whole cache. The empty
    /// transactions at the end are for LMDB, which uses again what the last but one has freed.
    mutating func makeRoom() {
        // A reader that died holds back all pages freed since.
        _ = try? self.core.environment.clearStaleReaders()
        let policy = self.core.policy
        guard self.pages > policy.capacityPages / 2 else { return }
        let aim = min(policy.lowPages, self.pages &- min(self.pages, policy.capacityPages / 20))
        for _ in 0..<Self.urgentSteps {
            if self.reclaim(downTo: aim, isUrgent: true) == 0 || self.pages <= aim { break }
        }
        for _ in 0..<2 {
            do throws(LMDBError) {
                try self.core.environment.write { (transaction) throws(LMDBError) in
                    try self.core.schema.writeMeta(self.meta, transaction)
                }
            } catch {
                return self.core.failed(error)
            }
        }
    }

    /// One step; returns how much it achieved: segments and entries.
    ///
    /// Nothing is evicted while there is garbage to collect: it may be room enough.
    private mutating func reclaim(downTo aim: UInt64, isUrgent: Bool) -> Int {
        // Before it looks at the readers: the last one to go looks at this after it has gone.
        self.core.hasReclaimed.store(true, ordering: .sequentiallyConsistent)
        do throws(LMDBError) {
            let (attempt, progress) = try self.core.environment.write {
                (transaction) throws(LMDBError) in
                var attempt = Attempt(meta: self.meta)
                var progress = try self.collectGarbage(transaction)
                if self.isEvicting || isUrgent, progress < Self.stepSize {
                    progress += try self.evict(
                        &attempt, transaction, downTo: aim, isUrgent: isUrgent)
                }
                try self.finish(&attempt, transaction)
                return (attempt, progress)
            }
            self.takeOver(attempt)
            return progress
        } catch {
            self.core.failed(error)
            return 0
        }
    }

    // MARK: Garbage

    private func collectGarbage(
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Int {
        let schema = self.core.schema
        var deleted = 0
        for id in try self.ids(in: schema.garbage, transaction) {
            if deleted >= Self.stepSize { break }
            if self.core.isBeingRead(id) { continue }
            let (count, isEnd) = try self.deleteSegments(
                of: id, limit: Self.stepSize - deleted, transaction)
            deleted += count
            if isEnd {
                try transaction.delete(schema.garbage, NumberKey.bytes(id.rawValue).span)
                deleted += 1
            }
        }
        return deleted
    }

    private func ids(
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

    private func deleteSegments(
        of id: ObjectID, limit: Int, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> (count: Int, isEnd: Bool) {
        try transaction.reading.withCursor(self.core.schema.segments) {
            (cursor) throws(LMDBError) in
            let isOurs = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                SegmentKey(key)?.id == id
            }
            var count = 0
            let start = SegmentKey(id: id, index: 0).bytes
            var goesOn = try cursor.seek(atOrAfter: start.span, isOurs) ?? false
            while goesOn, count < limit {
                try cursor.delete()
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

    // MARK: Entries

    /// Makes an entry invisible and its segments garbage; false where there is none.
    @discardableResult
    func remove(
        _ key: ObjectKey, _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> Bool {
        let schema = self.core.schema
        let record = try self.record(key, transaction)
        attempt.removed.append(key.id)
        guard try transaction.delete(schema.objects, key.bytes.span) else { return false }
        attempt.cost += 4096
        let garbageKey = NumberKey.bytes(key.id.rawValue)
        guard let record else {
            // Its place in the queue is not known; eviction will come upon it.
            try transaction.put(schema.garbage, garbageKey.span, Span())
            return true
        }
        attempt.meta.bodyBytes &-= min(attempt.meta.bodyBytes, record.storedBytes)
        try transaction.delete(schema.queue, NumberKey.bytes(record.sequence).span)
        // LMDB notes the pages that a transaction frees in one value, which needs a run of pages
        // itself: so no transaction frees very many.
        if record.segmentCount > Self.smallBody || attempt.deletedSegments >= Self.stepSize
            || self.core.isBeingRead(key.id)
        {
            try transaction.put(schema.garbage, garbageKey.span, Span())
            attempt.owedPages &+= UInt64(record.segmentCount) &* Segment.pages
        } else if record.segmentCount > 0 {
            let (count, isEnd) = try self.deleteSegments(
                of: key.id, limit: Self.stepSize, transaction)
            attempt.deletedSegments += count
            // Additions that came to nothing may have left more than the record knows of.
            if !isEnd { try transaction.put(schema.garbage, garbageKey.span, Span()) }
        }
        return true
    }

    /// Lets go of what the policy says, from the head of the queue on.
    private func evict(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction,
        downTo aim: UInt64, isUrgent: Bool
    ) throws(LMDBError) -> Int {
        let schema = self.core.schema
        let policy = self.core.policy
        var progress = 0
        for _ in 0..<Self.stepSize where progress < Self.stepSize {
            let pages = try transaction.reading.pagesInUse(schema.all)
            if pages <= aim &+ attempt.owedPages { break }
            guard let (place, key) = try self.headOfQueue(transaction) else { break }
            guard let key, var record = try self.record(key, transaction) else {
                try transaction.delete(schema.queue, NumberKey.bytes(place).span)
                if let key { try self.remove(key, &attempt, transaction) }
                progress += 1
                continue
            }
            let candidate = EvictionCandidate(
                bodyLength: record.storedBytes, hits: record.hits,
                wasUsed: record.wasUsed || self.core.uses.use(of: key.id) != nil,
                isBeingRead: self.core.isBeingRead(key.id))
            switch policy.judge(candidate, isUrgent: isUrgent) {
            case .evict:
                progress += 1 + Int(min(record.segmentCount, Self.smallBody))
                try self.remove(key, &attempt, transaction)
                attempt.meta.evictions &+= 1
            case .keep:
                if !candidate.isBeingRead { progress += 1 }
                try self.requeue(key, &record, from: place, &attempt, transaction)
            }
        }
        return progress
    }

    /// The oldest place in the queue, and whose it is; no key where the entry is damaged.
    private func headOfQueue(
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> (UInt64, ObjectKey?)? {
        try transaction.reading.withCursor(self.core.schema.queue) { (cursor) throws(LMDBError) in
            try cursor.first { key, value in (NumberKey.number(key) ?? 0, ObjectKey(value)) }
        }
    }

    private func requeue(
        _ key: ObjectKey, _ record: inout ObjectRecord, from place: UInt64,
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let schema = self.core.schema
        // Uses that are noted and not flushed yet will set the mark again: take them along now.
        if let use = self.core.uses.use(of: key.id) {
            record.hits &+= use.count
            record.lastUsed = max(record.lastUsed, use.last)
            attempt.meta.hits &+= use.count
            self.core.uses.forget(key.id)
        }
        record.wasUsed = false
        record.sequence = attempt.meta.nextSequence
        attempt.meta.nextSequence &+= 1
        try transaction.delete(schema.queue, NumberKey.bytes(place).span)
        try transaction.put(schema.objects, key.bytes.span, record.encoded().span)
        try transaction.put(
            schema.queue, NumberKey.bytes(record.sequence).span, key.bytes.span)
    }
}
