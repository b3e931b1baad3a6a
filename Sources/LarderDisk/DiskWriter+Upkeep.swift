import LarderLMDB

// What nobody asks for: to look after the names of the file, its last commit and its readers.
extension DiskWriter {
    /// Notes where a name does not lead any more to what is in use.
    ///
    /// Whoever deleted or replaced the file did not mean what is stored from now on. A lock without a
    /// name keeps nobody out, so it is made anew where nobody else has it; and by another table of
    /// readers others would look for the last commit in vain, which takes the file for damaged.
    mutating func checkNames(of file: CacheFile) {
        let files = self.core.files
        let environment = file.environment
        if (try? environment.isFile(at: files.data)) == false {
            _ = file.note(.gone)
            return
        }
        switch self.core.writerLock.keep(files) {
        case .kept: break
        case .keptOwing: self.giveUp()
        case .lost: _ = file.note(.lockedOut)
        }
        if (try? environment.isReaderTable(at: files.readerTable)) == false {
            _ = file.note(.unlisted)
        }
    }

    /// Does what is due where nothing else is to be done; false where nothing is.
    mutating func keepUp() -> Bool {
        let now = ContinuousClock.now
        // The pause is over, and there was nothing to take back.
        if let due = self.reclaimDue, due <= now { self.reclaimDue = nil }
        self.lookForReaders(at: now)
        if let due = self.reclaimDue {
            self.upkeep.synchronizingFailed(until: due)
            return false
        }
        let environment = self.core.environment
        guard self.upkeep.synchronizes(isOnDisk: environment.isOnDisk, at: now) else {
            return false
        }
        do throws(LMDBError) {
            // What a failure may have lost is written once more by the next transaction.
            if self.owesSync { try environment.write { (_) throws(LMDBError) in } }
            try environment.synchronize()
            self.owesSync = false
        } catch {
            self.owesSync = true
            self.writingFailed(error)
            if let due = self.reclaimDue { self.upkeep.synchronizingFailed(until: due) }
        }
        return true
    }

    /// Forgets readers whose process died, where they may have made the file grow.
    mutating func lookForReaders(at now: ContinuousClock.Instant) {
        guard self.upkeep.looksForReaders(at: now) else { return }
        _ = try? self.core.environment.clearStaleReaders()
    }

    /// There is no file to see to, or another one; left in the past, what was due would end every
    /// wait at once.
    mutating func forgetPlans() {
        self.reclaimDue = nil
        self.upkeep.forget()
    }
}
