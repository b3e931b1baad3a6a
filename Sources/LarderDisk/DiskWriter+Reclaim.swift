import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

// Taking back room: garbage, eviction, what a dead process left. Each step is one small transaction.
extension DiskWriter {
    /// Ids of garbage or of unfinished bodies that one step looks at.
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
        let progress = self.reclaim(downTo: self.marks.lowPages, isUrgent: false)
        if progress == 0 { self.isStuck = true }
    }

    /// The map is full: more must be free from now on, so that runs of pages are found.
    mutating func noteMapFull() {
        let marks = self.core.marks
        self.fragmentation.foundNoRun(
            free: marks.capacityPages - min(self.pages, marks.capacityPages),
            least: marks.reserve)
        if self.pages > self.marks.highPages { self.isEvicting = true }
    }

    /// Makes room where there is none: with luck the batch that failed fits then.
    ///
    /// A run of sixteen pages may be missing though the number of free pages would do, so it frees
    /// some in any case, by the rules first and by age alone where those keep all; but not where half
    /// of the file is free, and a reader must be what keeps LMDB from using it: a reader that is
    /// stopped must not cost the whole cache. The room for later batches is made ahead of them. The
    /// empty transactions at the end are for LMDB, which uses again what the last but one has freed.
    ///
    /// - Parameter round: how often it was tried for the same batch before: each time it frees more.
    mutating func makeRoom(round: Int) {
        // A reader that died holds back all pages freed since.
        _ = try? self.core.environment.clearStaleReaders()
        let marks = self.core.marks
        guard self.pages > marks.capacityPages / 2 else { return }
        let some = min(marks.capacityPages / 20, marks.batchPages * 16) << UInt64(max(0, round))
        let aim = min(marks.lowPages, self.pages - min(self.pages, some))
        for isUrgent in [false, true] where self.pages > aim {
            for _ in 0..<Self.urgentSteps {
                let progress = self.reclaim(
                    downTo: aim, isUrgent: isUrgent, isMakingRoom: true)
                if progress == 0 || self.pages <= aim { break }
            }
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
    private mutating func reclaim(
        downTo aim: UInt64, isUrgent: Bool, isMakingRoom: Bool = false
    ) -> Int {
        let result = self.reclaimed(
            downTo: aim, isUrgent: isUrgent, isMakingRoom: isMakingRoom, writesGhosts: true)
        switch result {
        case .success(let progress): return progress
        case .failure(let error) where error.code == .mapFull:
            // What was to make room found none itself: it is no failure of the disk. Without the
            // ghosts it wants single pages alone.
            self.noteMapFull()
            let again = self.reclaimed(
                downTo: aim, isUrgent: isUrgent, isMakingRoom: isMakingRoom, writesGhosts: false)
            return (try? again.get()) ?? 0
        case .failure(let error):
            self.core.failed(error)
            return 0
        }
    }

    private mutating func reclaimed(
        downTo aim: UInt64, isUrgent: Bool, isMakingRoom: Bool, writesGhosts: Bool
    ) -> Result<Int, LMDBError> {
        do throws(LMDBError) {
            let (attempt, progress) = try self.core.environment.write {
                (transaction) throws(LMDBError) in
                var attempt = Attempt(meta: self.meta)
                attempt.writesGhosts = writesGhosts
                let progress = try self.reclaim(
                    &attempt, transaction, downTo: aim, isUrgent: isUrgent,
                    isMakingRoom: isMakingRoom)
                try self.finish(&attempt, transaction)
                return (attempt, progress)
            }
            self.takeOver(attempt)
            return .success(progress)
        } catch {
            return .failure(error)
        }
    }

    /// What a step does, as a part of any transaction.
    ///
    /// Nothing is evicted while there is garbage to collect: it may be room enough.
    func reclaim(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction, downTo aim: UInt64,
        isUrgent: Bool, isMakingRoom: Bool = false
    ) throws(LMDBError) -> Int {
        let started = ContinuousClock.now
        defer { self.core.reclaimTimes.note(ContinuousClock.now - started) }
        // Before it looks at the readers: the last one to go looks at this after it has gone.
        self.core.hasReclaimed.store(true, ordering: .sequentiallyConsistent)
        let used = self.pages &+ attempt.writtenPages
        let capacity = self.core.marks.capacityPages
        var budget = ReclaimBudget(
            free: capacity - min(capacity, used), deadline: .now + ReclaimBudget.time)
        var progress = try self.collectGarbage(transaction, &budget)
        if self.isEvicting || isMakingRoom {
            progress += try self.evict(
                &attempt, transaction, downTo: aim, isUrgent: isUrgent, &budget)
        }
        return progress
    }

    // MARK: Garbage

    private func collectGarbage(
        _ transaction: borrowing WriteTransaction, _ budget: inout ReclaimBudget
    ) throws(LMDBError) -> Int {
        let schema = self.core.schema
        var deleted = 0
        for id in try self.ids(in: schema.garbage, transaction) {
            if budget.isSpent { break }
            if self.core.isBeingRead(id) { continue }
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
        of id: ObjectID, _ budget: inout ReclaimBudget,
        _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> (count: Int, isEnd: Bool) {
        try transaction.reading.withCursor(self.core.schema.segments) {
            (cursor) throws(LMDBError) in
            let isOurs = { (key: Span<UInt8>, _: Span<UInt8>) -> Bool in
                SegmentKey(key)?.id == id
            }
            var count = 0
            let start = SegmentKey(id: id, index: 0).bytes
            var goesOn = try cursor.seek(atOrAfter: start.span, isOurs) ?? false
            while goesOn, !budget.isSpent {
                try cursor.delete()
                budget.segments -= 1
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
        let place = try transaction.reading.get(schema.objects, key.bytes.span) {
            ObjectRecord.supposedPlace($0)
        }
        attempt.removed.append(key.id)
        guard try transaction.delete(schema.objects, key.bytes.span) else { return false }
        attempt.cost += 4096
        let garbageKey = NumberKey.bytes(key.id.rawValue)
        guard let record else {
            try self.dequeueDamaged(key, at: place ?? nil, &attempt, transaction)
            try transaction.put(schema.garbage, garbageKey.span, Span())
            return true
        }
        attempt.meta.bodyBytes &-= min(attempt.meta.bodyBytes, record.storedBytes)
        try self.dequeue(
            key, at: record.sequence, in: record.standing.queue, charge: record.charge, &attempt,
            transaction)
        // LMDB notes the pages that a transaction frees in one value, which needs a run of pages
        // itself: so no transaction frees very many.
        var budget = ReclaimBudget(
            free: self.core.marks.capacityPages, deadline: .now + ReclaimBudget.time)
        if record.segmentCount > Self.smallBody || attempt.deletedSegments >= budget.segments
            || self.core.isBeingRead(key.id)
        {
            try transaction.put(schema.garbage, garbageKey.span, Span())
            attempt.owedPages &+= UInt64(record.segmentCount) &* Segment.pages
        } else if record.segmentCount > 0 {
            let (count, isEnd) = try self.deleteSegments(of: key.id, &budget, transaction)
            attempt.deletedSegments += count
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

    /// Lets go of what the rules say, from the oldest ends of the queues on.
    private func evict(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction,
        downTo aim: UInt64, isUrgent: Bool, _ budget: inout ReclaimBudget
    ) throws(LMDBError) -> Int {
        var progress = 0
        var starts: [EvictionRules.Queue: [UInt8]] = [:]
        while !budget.isSpent {
            let pages = try transaction.reading.pagesInUse(self.core.schema.all)
            if pages <= aim &+ attempt.owedPages { break }
            let small = try self.totals(of: .small, attempt, transaction)
            let main = try self.totals(of: .main, attempt, transaction)
            guard var queue = self.core.rules.next(small: small, main: main) else { break }
            var head = try self.head(
                of: queue, from: &starts[queue, default: []], &budget, transaction)
            if head == nil, !budget.isSpent {
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
            var record = try self.record(entry.key, transaction),
            record.sequence == place, record.standing.queue == queue
        else {
            return try self.dropFromQueue(head, in: queue, &attempt, transaction)
        }
        let key = entry.key
        let use = self.core.uses.use(of: key.id)
        if let use { record.standing.used(use.count) }
        let verdict: EvictionRules.Verdict =
            isUrgent
            ? .evict(isRemembered: queue == .small)
            : self.core.rules.judge(record.standing, size: record.charge, typical: typical)
        switch verdict {
        case .evict(let isRemembered):
            budget.segments -= Int(min(record.segmentCount, Self.smallBody))
            try self.remove(key, &attempt, transaction)
            attempt.meta.evictions &+= 1
            guard isRemembered else { return }
            let fingerprint = Checksum.fingerprint(of: key.hash, record.head.varyingFields)
            attempt.evicted.append((fingerprint, record.charge))
            attempt.meta.ghostClock &+= record.charge
        case .keep(let standing):
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

    /// The body of a damaged record counts no more.
    private func uncount(_ charge: UInt64, _ attempt: inout Attempt) {
        let bytes = charge &- min(charge, ObjectRecord.overhead)
        attempt.meta.bodyBytes &-= min(attempt.meta.bodyBytes, bytes)
    }
}
