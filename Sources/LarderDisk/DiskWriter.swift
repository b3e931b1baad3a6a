import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// The one writer of a cache file; lives on its own thread.
///
/// ```
/// recover ─▶ (batch │ reclaim step │ flush of uses │ upkeep │ gather │ wait)* ─▶ end
/// ```
///
/// A batch is whatever commands wait, up to a bound in bytes and time: under load many share one
/// commit, alone one goes at once. Where they come one after the other, more of them gather before
/// the next batch (``CommitPacing``), unless somebody waits for what one of them brings about.
///
/// What survives. *The process dies (kill -9):* everything committed; a commit is in the kernel's
/// page cache before it is reported. *Power fails:* the state of the last commit or of the one
/// before it, whole. lmdb.h, `MDB_NOMETASYNC`: "omit the metadata flush. Defer that until the system
/// flushes files to disk, or next non-MDB_RDONLY commit or mdb_env_sync(). This optimization
/// maintains database integrity, but a system crash may undo the last committed transaction." The
/// order is: pages of n, fdatasync, meta of n; pages of n+1, fdatasync (which also brings meta of n),
/// meta of n+1. Where no commit follows, another fdatasync brings meta of n (``IdleUpkeep``). Pages
/// that n−1 frees are written over by n+1 at the earliest, so the snapshot that the meta page on the
/// disk names is intact at every instant. What was being written and never committed is found in
/// `pending` at the next start, or once the disk writes again where it does not then.
///
/// An fdatasync that fails may have lost the meta page of the commit before, and no later one would
/// report it again (fsync(2) tells of each failure once). So the first commit after a failure is
/// followed by mdb_env_sync: its own meta page is on the disk before another transaction writes over
/// pages that an older one needs.
///
/// No commit is further from the last than the longest pause, `batchTime` and one command, while
/// anything is written: a stream of small pieces does not keep a transaction open.
struct DiskWriter {
    /// What one transaction changed, to be taken over when it is committed.
    struct Attempt {
        /// A new response, its place in the queue taken.
        ///
        /// A class, so that they are put in order without being copied.
        final class Arrival {
            let key: ObjectKey
            let record: ObjectRecord

            init(_ key: ObjectKey, _ record: ObjectRecord) {
                self.key = key
                self.record = record
            }
        }

        var meta: StoreMeta
        var pages: UInt64 = 0
        /// What `objects` holds at its end.
        var objects: DatabaseStatistics?
        var hasGarbage = false
        var cost = 0
        /// Whether ghosts may be written with it: a part of them wants four pages side by side.
        var writesGhosts = true
        /// Whether a response, or a part of one, was stored.
        var hasStored = false
        /// Pages that its commands write, at most.
        var writtenPages: UInt64 = 0
        /// Sinks that had to give way for want of room.
        var refused: UInt64 = 0
        /// What of the small queue was evicted, and what it counted; to be remembered.
        var evicted: [(fingerprint: UInt64, size: UInt64)] = []
        /// What came back while it was remembered.
        var returned: [UInt64] = []
        /// What of the main queue was kept.
        var kept: KeptInARow
        /// Whether chunks of the ghosts were written.
        var hasGhosts = false
        /// What was achieved in taking back room; nil where it was not tried.
        var reclaimed: Int?
        /// Pages of bodies that were deleted together with their records.
        var deletedPages = 0
        /// When it began.
        let began = ContinuousClock.now
        /// Pages of bodies that became garbage: still in use, but not for long.
        var owedPages: UInt64 = 0
        var removed: [ObjectID] = []
        /// New responses whose bodies are written, and whose records are not yet.
        var arrivals: [Arrival] = []
        var effects: [Effect] = []
        /// Sinks that this ends without success.
        var left: Set<ObjectIdentifier> = []
        /// What failed batches should have removed and this one has.
        var removals = RemovalDebts()
        /// Invalidations of groups that were written.
        var groups = GroupTable.Unwritten()

        init(meta: StoreMeta, kept: KeptInARow) {
            self.meta = meta
            self.kept = kept
        }
    }

    /// What is told to others after the commit.
    enum Effect {
        case written(SinkState, UInt64)
        case ended(SinkState, SinkOutcome)
        /// What is stored of the response that a sink adds to is not what was written.
        case damaged(SinkState, String)
        case removed(Int, @Sendable (Int) -> Void)
        case reached(@Sendable () -> Void)
        case givenUp(CacheFile, @Sendable (Bool) -> Void)
        /// All that is stored is to go.
        case removesAll(RemovalWalk)
    }

    let core: DiskCore
    var meta: StoreMeta
    var pages: UInt64 = 0
    var hasGarbage = true
    var isEvicting = false
    var kept = KeptInARow()
    /// Nothing could be reclaimed last time: wait for a change.
    var isStuck = false
    /// The disk refused to write: nothing that can wait is written before.
    var reclaimDue: ContinuousClock.Instant?
    /// What a process left unfinished is still there.
    var owesRecovery = false
    var upkeep = IdleUpkeep()
    /// What must be free beyond the least, as experience shows.
    var fragmentation: FragmentationReserve
    var removals = PendingRemovals()
    var mending = FileMending()
    /// The file is larger than the capacity.
    var isOversized: Bool
    /// When it is tried again to make it smaller.
    var shrinkNotBefore: Timestamp?
    var hasToldNoShrinking = false
    /// When it was last told that the file system is full.
    var toldOfFullDisk: ContinuousClock.Instant?
    /// A commit has failed: what of the last ones is on the disk is not certain.
    var owesSync = false
    var pacing: CommitPacing
    /// When the file is taken for one that does not end the process.
    private var steadyDue: ContinuousClock.Instant?
    /// When uses of responses whose uses were written are written again.
    var useRoundEnd = ContinuousClock.now + Self.useRound

    private static let steadyTime = Duration.seconds(10)
    /// How often the uses of one response are written.
    static let useRound = Duration.seconds(60)
    /// Steps of reclaiming that go before a batch where room is short.
    private static let criticalSteps = 8

    init(core: DiskCore, meta: StoreMeta) {
        self.core = core
        self.meta = meta
        self.pacing = CommitPacing(fixed: core.configuration.pause)
        self.isOversized = core.isOversized
        self.fragmentation = FragmentationReserve(capacityPages: core.marks.capacityPages)
    }

    /// The file is another one, without holes.
    mutating func forgetFragmentation() {
        self.fragmentation = FragmentationReserve(capacityPages: self.core.marks.capacityPages)
    }

    /// When eviction begins and ends now.
    var marks: DiskMarks {
        var marks = self.core.marks
        marks.learned = self.fragmentation.pages
        return marks
    }

    /// Runs until the mailbox is closed and empty; then says the end to all sinks.
    mutating func run() {
        let steadyDue = ContinuousClock.now + Self.steadyTime
        self.steadyDue = steadyDue
        self.setAlarm()
        // Nothing is taken for empty that is not known to be.
        if let disk = self.core.statistics.disk { self.learnKeys(holding: disk.objects) }
        self.recover()
        while self.turn() {}
        let trouble = self.core.file.trouble
        let isUsable = self.mending.trouble == nil && (trouble == nil || trouble == .unlisted)
        if isUsable {
            self.removals.due = nil
            while self.isOwing, self.removals.due == nil { self.runBatch() }
            self.core.uses.beginRound()
            while self.core.uses.hasDue, self.flushUses() {}
        }
        self.acknowledgeDeferred()
        for sink in self.core.openSinks() { sink.end(.abandoned(.closing)) }
        self.failCompactions(self.core.compactions.close(), .closed)
        // It may be possible by now to write down what could not be.
        if self.removals.debts.isRecorded { self.recordInLockFile() }
        self.oweWalks()
        guard isUsable else { return }
        self.saveGhosts()
        do throws(LMDBError) {
            // The meta page of the last commit, which no other commit will bring to the disk.
            try self.core.environment.synchronize()
        } catch {
            self.core.failed(error)
        }
        self.core.writerLock.note(.closed)
    }

    /// Does the next thing, or waits for one; false when it is over.
    private mutating func turn() -> Bool {
        let look = self.core.mailbox.look()
        self.noteSteady()
        guard self.hasUsableFile(isClosing: look.isClosed) else {
            return self.turnWithoutFile(look)
        }
        if !look.isClosed, self.compactIfWanted() { return true }
        if look.hasCommands, !look.isUrgent, !look.isClosed, let moment = self.pacing.notBefore,
            moment > .now
        {
            self.core.mailbox.gather(until: moment)
        } else if look.hasCommands {
            // One batch comes after them in any case: what does not fit is refused there.
            var steps = 0
            while self.mayReclaim, !look.isClosed, steps < Self.criticalSteps,
                self.pages > self.marks.criticalPages
            {
                self.reclaimStep()
                steps += 1
            }
            self.runBatch()
            if let due = look.usesDue, due <= ContinuousClock.now { self.flushSomeUses() }
        } else if self.isOwing, !look.isClosed, self.removals.due ?? .now <= .now {
            self.runBatch()
        } else if self.mayReclaim, !look.isClosed {
            self.reclaimStep()
        } else if look.isClosed {
            return false
        } else if let due = look.usesDue, due <= ContinuousClock.now {
            self.flushSomeUses()
        } else if !self.keepUp() {
            self.setAlarm()
            self.core.mailbox.wait()
            self.isStuck = false
        }
        return true
    }

    /// The file has been open for a while, or what was asked for is committed, and nothing happened to
    /// the process.
    ///
    /// Also where nothing was stored: a program that is over soon, each of whose answers came from the
    /// cache, ends as it should, once its last call was done. What the writer does of itself with a file
    /// that was just opened does not count.
    mutating func noteSteady(hasCommitted: Bool = false) {
        guard let due = self.steadyDue, hasCommitted || due <= ContinuousClock.now else { return }
        self.steadyDue = nil
        self.setAlarm()
        self.core.writerLock.note(.steady)
    }

    /// Ends waits where there is something to do for which nobody calls.
    func setAlarm() {
        let moments = [self.steadyDue, self.removals.due, self.reclaimDue, self.upkeep.due]
        self.core.mailbox.wake(at: moments.compactMap { $0 }.min())
    }

    /// Whether there is room to take back; and if there was none last time, whether a reader has gone
    /// since.
    ///
    /// A disk that refused to write is left alone for a while.
    var mayReclaim: Bool {
        if let due = self.reclaimDue, due > .now { return false }
        return (self.isEvicting || self.hasGarbage || self.owesRecovery)
            && (!self.isStuck || !self.core.hasReclaimed.load(ordering: .sequentiallyConsistent))
    }

    // MARK: Transactions

    /// Makes one transaction; where it fails, all is as before.
    func attempt<R>(
        _ body: (inout Attempt, borrowing WriteTransaction) throws(LMDBError) -> R
    ) throws(LMDBError) -> (Attempt, R) {
        do throws(LMDBError) {
            return try self.core.environment.write { (transaction) throws(LMDBError) in
                var attempt = Attempt(meta: self.meta, kept: self.kept)
                let result = try body(&attempt, transaction)
                try self.finish(&attempt, transaction)
                return (attempt, result)
            }
        } catch {
            self.core.entries.withLock { $0.stays() }
            throw error
        }
    }

    /// The last steps of every transaction of the writer's.
    private func finish(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        attempt.meta.nextID = self.core.nextID
        attempt.meta.damaged = self.core.damaged.load(ordering: .relaxed)
        attempt.meta.failures = self.core.failures.load(ordering: .relaxed)
        let schema = self.core.schema
        if attempt.writesGhosts { try self.writeGhosts(&attempt, transaction) }
        for queue in [EvictionRules.Queue.small, .main]
        where try self.totals(of: queue, attempt, transaction).count == 0 {
            // What a file of the first format said may have been wrong by damaged entries.
            attempt.meta[queue] = 0
        }
        // With nothing else to write and nothing new to say, the commit costs no wait for the disk.
        if transaction.hasChanged || attempt.meta.saysMore(than: self.meta) {
            try schema.writeMeta(attempt.meta, transaction)
        }
        attempt.pages = try transaction.reading.pagesInUse(schema.all)
        attempt.objects = try transaction.reading.statistics(of: schema.objects)
        attempt.hasGarbage = try transaction.reading.statistics(of: schema.garbage).entries > 0
    }

    /// A transaction is committed: its view of things holds from now on.
    mutating func takeOver(_ attempt: Attempt) {
        self.meta = attempt.meta
        self.kept = attempt.kept
        self.pages = attempt.pages
        self.hasGarbage = attempt.hasGarbage
        self.reclaimDue = nil
        if self.pages > self.marks.highPages { self.isEvicting = true }
        if self.pages <= self.marks.lowPages { self.isEvicting = false }
        if attempt.refused > 0 {
            self.core.failures.wrappingAdd(attempt.refused, ordering: .relaxed)
        }
        self.core.ghosts.withLock { ghosts in
            for fingerprint in attempt.returned { _ = ghosts.take(fingerprint) }
            for (fingerprint, size) in attempt.evicted { ghosts.insert(fingerprint, size: size) }
            if attempt.hasGhosts { ghosts.chunksWritten() }
        }
        for id in attempt.removed { self.core.uses.forget(id) }
        self.core.entries.withLock { $0.removed(attempt.removed) }
        if !attempt.groups.isEmpty { self.core.groups.wrote(attempt.groups) }
        self.publish(objects: attempt.objects)
    }

    /// Tells others how large the file is now, and what it holds.
    ///
    /// - Parameter known: what `objects` holds; nil: read now.
    mutating func publish(objects known: DatabaseStatistics? = nil) {
        let file = self.core.file
        let environment = file.environment
        let schema = file.schema
        self.checkNames(of: file)
        self.upkeep.committed(try? environment.information().lastPage)
        self.lookForReaders(at: .now)
        // A file that stays shorter than its account would look cut short at the next start; that
        // it could not be made longer is no failure of what was committed.
        try? environment.extendFileToLastPage()
        let size = try? environment.fileSize()
        var objects = known
        if objects == nil {
            objects = try? environment.read { (transaction) throws(LMDBError) in
                try transaction.statistics(of: schema.objects)
            }
        }
        if let objects { self.learnKeys(holding: objects.entries) }
        let pages = self.pages
        let meta = self.meta
        self.core.publish { statistics in
            if let size { statistics.fileBytes = size }
            if let objects {
                statistics.disk?.objects = objects.entries
                statistics.disk?.bytes = pages &* objects.pageSize
            }
            statistics.disk?.evictions = meta.evictions
        }
        self.isOversized = self.core.isOversized
    }
}
