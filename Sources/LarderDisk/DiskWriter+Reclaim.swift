import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

// Taking back room: garbage, eviction, what a dead process left. Each step is one small transaction.
extension DiskWriter {
    /// Ids of garbage or of unfinished bodies that one step looks at.
    static let stepSize = 256
    /// A body of so few segments is deleted together with its record.
    static let smallBody: UInt32 = 4
    private static let urgentSteps = 64

    /// Bodies that a process left unfinished become garbage, at once or when the disk writes again.
    mutating func recover() {
        self.owesRecovery = true
        while self.owesRecovery {
            do throws(LMDBError) {
                let (attempt, isMore) = try self.attempt {
                    (_, transaction) throws(LMDBError) in
                    // By the time that it succeeds others may be on their way.
                    let wanted = Set(self.core.openSinks().map(\.id))
                    let ids = try self.ids(in: self.core.schema.pending, transaction)
                    let left = ids.filter { !wanted.contains($0) }
                    for id in left { try self.discardPending(id, transaction) }
                    return ids.count == Self.stepSize && !left.isEmpty
                }
                self.takeOver(attempt)
                self.owesRecovery = isMore
            } catch {
                return self.writingFailed(error)
            }
        }
    }

    /// Something failed that no room can be made for: none is taken back either before the disk is
    /// tried again.
    ///
    /// Else each step would fail at once, and the next one after it.
    mutating func writingFailed(_ error: LMDBError) {
        self.core.failed(error)
        // Against a full file taking back is the cure.
        if error.code == .mapFull { return }
        self.reclaimDue =
            .now + max(self.core.configuration.retryInterval, self.core.pauseLeft)
    }

    /// Takes back some room.
    mutating func reclaimStep() {
        if self.owesRecovery {
            self.recover()
            guard self.owesRecovery, self.reclaimDue == nil else {
                self.isStuck = self.owesRecovery
                return
            }
            // It found no room in the file, for which others must go first.
        }
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
    /// - Parameters:
    ///   - round: how often it was tried for the same batch before: each time it frees more.
    ///   - isDiskFull: the file cannot grow, however far from its own bound it is.
    mutating func makeRoom(round: Int, isDiskFull: Bool) {
        // A reader that died holds back all pages freed since.
        _ = try? self.core.environment.clearStaleReaders()
        let marks = self.core.marks
        var bound = marks.capacityPages
        if isDiskFull, let last = try? self.core.environment.information().lastPage {
            bound = min(bound, last &+ 1)
        }
        if self.pages > bound / 2 {
            let some = min(max(1, bound / 20), marks.batchPages * 16) << UInt64(max(0, round))
            let aim = min(marks.lowPages, self.pages - min(self.pages, some))
            for isUrgent in [false, true] where self.pages > aim {
                for _ in 0..<Self.urgentSteps {
                    let progress = self.reclaim(downTo: aim, isUrgent: isUrgent, bound: bound)
                    if progress == 0 || self.pages <= aim { break }
                }
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

    /// Pages that there is room for: more than the capacity where the file was larger when it was opened,
    /// and is to become smaller.
    var roomPages: UInt64 {
        let capacity = self.core.marks.capacityPages
        guard self.isOversized, let information = try? self.core.environment.information() else {
            return capacity
        }
        return max(capacity, information.mapSize / UInt64(Segment.pageSize))
    }

    /// One step; returns how much it achieved: segments and entries.
    ///
    /// At least one of them where there is any, whatever the time: none means that there is none.
    private mutating func reclaim(
        downTo aim: UInt64, isUrgent: Bool, bound: UInt64? = nil
    ) -> Int {
        var result = self.reclaimed(
            downTo: aim, isUrgent: isUrgent, bound: bound, writesGhosts: true)
        if case .failure(let error) = result, error.lacksRoom {
            // What was to make room found none itself. Without the ghosts it wants single pages alone.
            if error.code == .mapFull { self.noteMapFull() }
            result = self.reclaimed(
                downTo: aim, isUrgent: isUrgent, bound: bound, writesGhosts: false)
        }
        switch result {
        case .success(let progress): return progress
        // That the file is full is no failure of the disk.
        case .failure(let error) where error.code == .mapFull: return 0
        case .failure(let error):
            self.writingFailed(error)
            return 0
        }
    }

    private mutating func reclaimed(
        downTo aim: UInt64, isUrgent: Bool, bound: UInt64?, writesGhosts: Bool
    ) -> Result<Int, LMDBError> {
        do throws(LMDBError) {
            let (attempt, progress) = try self.attempt {
                (attempt, transaction) throws(LMDBError) in
                attempt.writesGhosts = writesGhosts
                return try self.reclaim(
                    &attempt, transaction, downTo: aim, isUrgent: isUrgent, bound: bound)
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
    ///
    /// - Parameter bound: the pages that there is room for now, where some must be made whatever the
    ///   marks say.
    func reclaim(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction, downTo aim: UInt64,
        isUrgent: Bool, bound: UInt64? = nil
    ) throws(LMDBError) -> Int {
        let started = ContinuousClock.now
        defer { self.core.reclaimTimes.note(ContinuousClock.now - started) }
        // Before it looks at the readers: the last one to go looks at this after it has gone.
        self.core.hasReclaimed.store(true, ordering: .sequentiallyConsistent)
        let used = self.pages &+ attempt.writtenPages
        let capacity = bound ?? self.roomPages
        // What a large batch has taken must be given back with it.
        var budget = ReclaimBudget(
            free: capacity - min(capacity, used),
            deadline: started + max(self.core.configuration.reclaimTime, started - attempt.began))
        let collected = try self.collectGarbage(transaction, &budget)
        // What took all of the time was garbage, and there may be more.
        guard self.isEvicting || bound != nil, budget.goesOn(after: collected) else {
            return collected
        }
        return try collected
            + self.evict(&attempt, transaction, downTo: aim, isUrgent: isUrgent, &budget)
    }
}
