import LarderLMDB

/// Batches: the commands that wait, in one transaction.
extension DiskWriter {
    /// How long a batch takes commands: then readers see them, and room can be made.
    private static let batchTime = Duration.milliseconds(25)
    /// How often room is made for a batch that finds none.
    private static let roomRounds = 4
    /// How long it is not said again that the file system is full.
    private static let tellingPause = Duration.seconds(3600)
    /// Pages of the trees that a commit touches apart from those of its commands.
    private static let pathsOfCommit = 16

    mutating func runBatch() {
        let began = ContinuousClock.now
        var batch: [WriteCommand] = []
        var result = self.attempt(&batch, takesMore: true)
        var rounds = 0
        var lack: LMDBError?
        while case .failure(let error) = result, rounds < Self.roomRounds, error.lacksRoom {
            // Room can be made inside the file, whether its bound or the disk's is reached.
            if error.code == .mapFull, rounds == 0 { self.noteMapFull() }
            if error.code == .noSpace { lack = error }
            self.makeRoom(round: rounds, isDiskFull: error.code == .noSpace)
            result = self.attempt(&batch, takesMore: false, writesGhosts: false)
            rounds += 1
        }
        if case .failure(let error) = result, error.lacksRoom, self.giveUpStoring(&batch, error) {
            result = self.attempt(&batch, takesMore: false, writesGhosts: false)
        }
        var isStuck = false
        switch result {
        case .success(let attempt):
            let wasEvicting = self.isEvicting
            self.takeOver(attempt)
            isStuck =
                attempt.isInVain && self.isEvicting == wasEvicting
                && self.core.hasBodiesInTheWay
            self.fragmentation.wrote(UInt64(clamping: attempt.cost / Segment.pageSize))
            // Paths of the trees are copied by each commit, in the midst of the bodies' pages.
            self.core.residency.touched(values: Self.pathsOfCommit + batch.count, bytes: 0)
            let isOnDisk = self.paySync()
            // Before anybody is told: who was may end the process.
            self.noteSteady(hasCommitted: true)
            if attempt.hasStored {
                self.core.worked()
                if let lack { self.tellOfFullDisk(lack, at: began) }
            }
            self.removalsCommitted(attempt.removals, isCertain: isOnDisk)
            self.run(attempt.effects)
        case .failure(let error):
            // A transaction that could not even begin has taken nothing: it would be tried again
            // and again, and whoever waits would wait for as long as the disk fails.
            if batch.isEmpty {
                while let command = self.core.mailbox.take() { batch.append(command) }
            }
            self.owesSync = true
            if error.lacksRoom { self.core.failed(error) } else { self.writingFailed(error) }
            self.fail(batch, error)
            if let limit = self.removals.acknowledgeBy, limit <= .now { self.acknowledgeDeferred() }
            self.retryRemovals()
        }
        self.core.mailbox.release(batch.reduce(0) { $0 + $1.bytes })
        self.isStuck = isStuck
        self.pacing.ended(commands: batch.count, began: began, at: .now)
    }

    /// Says that the file cannot grow, and that something was stored for all that: a cache smaller than it
    /// may be would not be seen otherwise.
    private mutating func tellOfFullDisk(
        _ error: LMDBError, at now: ContinuousClock.Instant
    ) {
        if let told = self.toldOfFullDisk, now - told < Self.tellingPause { return }
        self.toldOfFullDisk = now
        self.core.report(.full(self.core.storeError(error)))
    }

    /// Ends what a batch without room wanted to store, so that the rest of it may find some: that wants
    /// single pages, and few; false where either is nothing.
    ///
    /// A removal that was acknowledged costs the whole cache if the process ends before it is done,
    /// and that the cache is full is no fault of the disk's.
    private mutating func giveUpStoring(_ batch: inout [WriteCommand], _ error: LMDBError) -> Bool {
        let storing = batch.filter(\.stores)
        guard !storing.isEmpty, storing.count < batch.count else { return false }
        batch.removeAll(where: \.stores)
        self.owesSync = true
        self.core.failed(error)
        self.fail(storing, error)
        self.core.mailbox.release(storing.reduce(0) { $0 + $1.bytes })
        return true
    }

    /// Brings the commit that follows a failure to the disk; whether it is there, or need not be.
    private mutating func paySync() -> Bool {
        guard self.owesSync else { return true }
        do throws(LMDBError) {
            try self.core.environment.synchronize()
            self.owesSync = false
            return true
        } catch {
            self.writingFailed(error)
            return false
        }
    }

    private func attempt(
        _ batch: inout [WriteCommand], takesMore: Bool, writesGhosts: Bool = true
    ) -> Result<Attempt, LMDBError> {
        let started = ContinuousClock.now
        let limit = self.core.configuration.batchLimit
        do throws(LMDBError) {
            let (attempt, _) = try self.attempt { (attempt, transaction) throws(LMDBError) in
                // A part of them wants four pages side by side.
                attempt.writesGhosts = writesGhosts
                for command in batch { try self.apply(command, &attempt, transaction) }
                // At least one, however long it took to begin.
                while takesMore, attempt.cost < limit, batch.last?.endsBatch != true,
                    batch.isEmpty || ContinuousClock.now - started < Self.batchTime,
                    let command = self.core.mailbox.take()
                {
                    batch.append(command)
                    try self.apply(command, &attempt, transaction)
                }
                try self.enterArrivals(&attempt, transaction)
                if takesMore, self.mayReclaim {
                    // In the same transaction: one wait for the disk instead of two.
                    attempt.reclaimed = try self.reclaim(
                        &attempt, transaction, downTo: self.marks.lowPages, isUrgent: false)
                }
                try self.removePending(&attempt, transaction)
            }
            return .success(attempt)
        } catch {
            return .failure(error)
        }
    }

    private func removePending(
        _ attempt: inout Attempt, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let part = self.removals.debts.part
        for key in part.entries { try self.remove(key, &attempt, transaction) }
        for (key, bound) in part.keys {
            for entry in try self.objectKeys(of: key, nil, transaction) where entry.id < bound {
                try self.remove(entry, &attempt, transaction)
            }
        }
        for id in part.garbage { try self.discardPending(id, transaction) }
        attempt.removals = part
        attempt.groups = self.core.groups.unwritten
        try self.core.schema.writeGroups(attempt.groups, transaction)
    }

    private mutating func run(_ effects: [Effect]) {
        for effect in effects {
            switch effect {
            case .written(let sink, let offset): sink.wrote(upTo: offset)
            case .ended(let sink, let outcome): sink.end(outcome)
            case .damaged(let sink, let reason):
                self.core.dropDamaged(sink.id, key: sink.key, reason: reason)
            case .removed(let count, let completion): completion(count)
            case .reached(let completion): completion()
            case .givenUp(let file, let completion): completion(self.giveUp(file))
            case .removesAll(let walk): self.removeAll(walk)
            }
        }
    }
}

extension DiskWriter.Attempt {
    /// Whether it wanted room back and found none, and has made no garbage since.
    fileprivate var isInVain: Bool { self.reclaimed == 0 && self.removals.isNothing }
}
