import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

// A file in trouble: set aside, replaced or opened again, while the store goes on.
//
// What was being stored ends: a part of it lies in the old file. What is stored is gone with the old
// file, or there as before with one that is opened again; ids are never used again, so that what the
// memory tier knows of the old file names nothing in the new one.
extension DiskWriter {
    /// Sees to the file, where there is trouble; whether there is one to write to.
    ///
    /// - Parameter isClosing: nothing more is stored: what is gone stays so, and what only others
    ///   cannot read is written to its end.
    mutating func hasUsableFile(isClosing: Bool = false) -> Bool {
        let action: FileMending.Action
        if self.mending.trouble == nil {
            guard let trouble = self.core.file.trouble else { return true }
            if isClosing, trouble == .unlisted { return true }
            for sink in self.core.openSinks() { sink.end(.abandoned(.storeFailed)) }
            action = self.mending.found(trouble, at: self.core.clock())
        } else {
            action = self.mending.due(at: self.core.clock())
        }
        switch action {
        case .nothing: break
        case .mend where isClosing: break
        case .goWithout(let trouble):
            var error = self.core.storeError(trouble.error)
            error.remedy = "it is tried again by itself; where this comes again, look at the disk"
            self.mending.failed(until: self.core.pause(error))
        case .mend(let trouble):
            do throws(StoreError) {
                let isNew = try self.mend(trouble)
                self.mending.mended(byNewFile: isNew, at: self.core.clock())
                self.core.mended()
            } catch {
                self.mending.failed(until: self.core.pause(error))
            }
        }
        return self.mending.trouble == nil
    }

    /// A turn without a file: all that is asked for fails.
    mutating func turnWithoutFile(_ look: WriteMailbox.Look) -> Bool {
        self.acknowledgeDeferred()
        if look.hasCommands {
            var batch: [WriteCommand] = []
            while batch.count < 256, let command = self.core.mailbox.take() {
                batch.append(command)
            }
            let error = self.mending.trouble?.error
            self.fail(batch, error ?? LMDBError(.closed, operation: "write"))
            self.core.mailbox.release(batch.reduce(0) { $0 + $1.bytes })
            return true
        }
        if look.isClosed { return false }
        if look.usesDue != nil {
            self.core.mailbox.usesTaken()
            self.core.uses.clear()
        }
        self.failCompactions(self.core.compactions.take(), .failed)
        // What is owed waits for the file, and whoever stores next makes it mended.
        self.removals.due = nil
        self.forgetPlans()
        self.setAlarm()
        self.core.mailbox.wait()
        return true
    }

    func failCompactions(_ requests: [CompactionRequest], _ code: StoreError.Code) {
        let error = StoreError(
            code, path: self.core.files.data, cause: "there is no cache file to write to now",
            remedy: "see the log for the reason, and try again later")
        for request in requests { request.completion(.failure(error)) }
    }

    /// - Returns: whether it was by a new file.
    private mutating func mend(_ trouble: FileTrouble) throws(StoreError) -> Bool {
        if try self.core.writerLock.renew(self.core.files) {
            // Another process has removed what it could not take out of the file.
            self.removals.debts.isTooMuch = true
            self.recordInLockFile()
        }
        do throws(LMDBError) {
            switch trouble {
            case .damaged(let error):
                try self.replaceFile(because: error.description)
            case .gone:
                try self.replaceFile(because: "another file lay in the place of the one in use")
            case .panicked(let error):
                if !self.removals.debts.isTooMuch, try self.reopenFile(error) { return false }
                try self.replaceFile(because: error.description)
            case .lockedOut, .unlisted:
                return try self.resume()
            }
        } catch {
            throw self.core.storeError(error)
        }
        return true
    }

    // MARK: A new file

    /// A new file takes the place of the old one, which gets a name that is said if it is there.
    private mutating func replaceFile(because reason: String) throws(LMDBError) {
        let core = self.core
        let files = core.files
        let meta = self.emptyMeta
        var isThere = false
        let opened = try OpenedCache.make(
            files, core.configuration, meta: meta, now: core.clock()
        ) { () throws(LMDBError) in isThere = try self.takeAway(because: reason) }
        core.exchange(opened)
        self.begin(meta)
        if !isThere { core.report(.lost(reason: "it was deleted while it was in use")) }
    }

    /// Makes room for a new file; false where nothing was there.
    private func takeAway(because reason: String) throws(LMDBError) -> Bool {
        let files = self.core.files
        guard files.dataSize != nil else { return false }
        let name = try files.setAside(second: self.core.clock().seconds) { aside in
            self.core.report(.asideRemoved(name: aside.name, bytes: aside.bytes))
        }
        self.core.report(.setAside(name: name, reason: reason))
        return true
    }

    /// What a new file that holds nothing begins with: counters go on, and ids are never used again.
    var emptyMeta: StoreMeta {
        var meta = self.meta
        meta.nextID = self.core.nextID
        meta.bodyBytes = 0
        meta.smallBytes = 0
        meta.mainBytes = 0
        return meta
    }

    /// Goes on with a new file that holds nothing, which has just taken the place of another.
    mutating func begin(_ meta: StoreMeta) {
        let core = self.core
        // What is owed, hidden or noted concerns what is gone.
        core.entries.withLock { $0.removedAll() }
        core.uses.clear()
        self.removals.debts = RemovalDebts()
        // Nothing is due any more: left in the past, it would end every wait at once.
        self.removals.due = nil
        self.forgetPlans()
        self.owesRecovery = false
        self.setAlarm()
        core.writerLock.note(owes: false)
        self.runDeferred()
        // Invalidations of groups hold for what is stored from now on, too: written with a batch.
        core.groups.forgetWritten()
        core.ghosts.withLock { $0.forgetWritten() }
        self.meta = meta
        self.forgetFragmentation()
        self.pages = 0
        self.hasGarbage = false
        self.isEvicting = false
        self.isStuck = false
        self.publish()
    }

    // MARK: The same file

    /// Goes on with a file that may be as it was left; whether a new one had to take its place.
    private mutating func resume() throws(LMDBError) -> Bool {
        let files = self.core.files
        guard (try? self.core.environment.isFile(at: files.data)) != false else {
            try self.replaceFile(because: "another file lay in the place of the one in use")
            return true
        }
        do throws(LMDBError) {
            // It begins with a look at whose the last commit is.
            try self.core.environment.write { (_) throws(LMDBError) in }
        } catch {
            if case .damaged? = FileTrouble(error) {
                try self.replaceFile(because: error.description)
                return true
            }
            // Else by a try before this one, which somebody's reading held up.
            if error.code != .closed { throw error }
        }
        // A table that lay there meanwhile knows neither of our readers nor of our commits.
        if (try? self.core.environment.isReaderTable(at: files.readerTable)) == false {
            files.removeReaderTable()
        }
        if !self.removals.debts.isTooMuch,
            try self.reopenFile(LMDBError(.panic, operation: "reopen"))
        {
            return false
        }
        try self.replaceFile(because: "it could not be opened again")
        return true
    }

    /// How long those who read are waited for: they read in short steps, where the disk is not slow.
    private static let readersPatience = Duration.seconds(1)

    /// Opens the file again; false where it is not fit for that.
    ///
    /// Throws `error` while readers are still at the old environment, which keeps its place until they
    /// have ended: lmdb.h forbids to open a file twice in one process.
    private mutating func reopenFile(_ error: LMDBError) throws(LMDBError) -> Bool {
        let core = self.core
        let bell = try Doorbell()
        core.environment.close { bell.ring() }
        bell.wait(limit: Self.readersPatience)
        let opened: OpenedCache?
        do throws(LMDBError) {
            opened = try OpenedCache.reopen(
                core.files, core.configuration, seed: core.seed, now: core.clock())
        } catch {
            throw error.code == .alreadyOpen
                ? LMDBError(.panic, number: error.number, operation: "reopen") : error
        }
        guard let opened else { return false }
        core.exchange(opened)
        self.meta = opened.meta
        self.isStuck = false
        // What was being stored has ended; what it wrote is garbage.
        self.recover()
        return true
    }
}
