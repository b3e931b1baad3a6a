import CLMDB
import Synchronization

extension Environment {
    /// Runs `body` on a snapshot of all databases.
    ///
    /// Keep it short, on a thread that may wait for the disk: "Read transactions prevent reuse of
    /// pages freed by newer write transactions, thus the database can grow quickly" (lmdb.h).
    package func read<R>(
        _ body: (borrowing ReadTransaction) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
        try self.checkMap()
        let idle = try self.beginUse(takesIdle: true)
        let reader: Reader
        do throws(LMDBError) {
            reader = try self.beginReading(idle?.reader)
        } catch {
            self.endUse()
            throw error
        }
        defer {
            unsafe mdb_txn_reset(reader.handle)
            self.endUse(returning: IdleReader(reader: reader))
        }
        let result = try body(ReadTransaction(reader))
        // What was read may have been zeros in place of what the disk would not give.
        try self.checkMap()
        return result
    }

    private func beginReading(_ idle: Reader?) throws(LMDBError) -> Reader {
        let reader: Reader
        if let idle {
            let code = unsafe mdb_txn_renew(idle.handle)
            guard code == MDB_SUCCESS else {
                unsafe mdb_txn_abort(idle.handle)
                throw LMDBError(returnCode: code, operation: "mdb_txn_renew")
            }
            reader = idle
        } else {
            reader = try self.makeReaderInTime()
        }
        do throws(LMDBError) {
            try reader.begin()
        } catch {
            unsafe mdb_txn_abort(reader.handle)
            throw error
        }
        return reader
    }

    /// A new reader, where there is no slot also in the place of one whose process died.
    private func makeReaderInTime() throws(LMDBError) -> Reader {
        do throws(LMDBError) {
            return try self.makeReader()
        } catch {
            guard error.code == .readersFull, try self.clearStaleReaders() > 0 else { throw error }
            return try self.makeReader()
        }
    }

    private func makeReader() throws(LMDBError) -> Reader {
        var created: OpaquePointer?
        try unsafe LMDBError.check(
            mdb_txn_begin(self.handle, nil, UInt32(MDB_RDONLY), &created), "mdb_txn_begin")
        guard let handle = unsafe created else {
            throw LMDBError(.other, operation: "mdb_txn_begin")
        }
        return unsafe Reader(handle: handle, map: self.map, soundness: self.soundness)
    }

    /// Runs `body` in the one write transaction, and commits when it returns; a throw aborts.
    ///
    /// Waits until no other thread or process writes. The body runs on the calling thread, and what
    /// it changes is seen by transactions that begin after the return.
    package func write<R>(
        _ body: (borrowing WriteTransaction) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
        try self.checkMap()
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        var created: OpaquePointer?
        try unsafe LMDBError.check(mdb_txn_begin(self.handle, nil, 0, &created), "mdb_txn_begin")
        guard let handle = unsafe created else {
            throw LMDBError(.other, operation: "mdb_txn_begin")
        }
        let result: R
        let started = ContinuousClock.now
        var committing: ContinuousClock.Instant?
        defer {
            let ended = ContinuousClock.now
            self.writeTimes.note(
                transaction: ended - started, commit: committing.map { ended - $0 })
        }
        do throws(LMDBError) {
            // No one else writes while the transaction lasts.
            try self.settle()
            try unsafe self.vetting.begin(handle)
            result = try body(unsafe WriteTransaction(handle: handle, self.map, self.vetting))
            // What was read may have been zeros in place of what the disk would not give.
            try self.checkMap()
        } catch {
            // After an assertion of LMDB's the transaction can only be left where it is.
            if !self.soundness.mustAbandon { unsafe mdb_txn_abort(handle) }
            if error.code == .mapFull { self.writeTimes.noteWithoutRoom() }
            throw self.explained(error)
        }
        committing = ContinuousClock.now
        try unsafe self.commit(handle)
        return result
    }

    @unsafe private func commit(_ handle: OpaquePointer) throws(LMDBError) {
        // Once it is committed the next writer may be at work.
        do throws(LMDBError) {
            try self.vetting.willCommit(UInt64(unsafe mdb_txn_id(handle)))
        } catch {
            unsafe mdb_txn_abort(handle)
            throw error
        }
        let writes = self.vetting.isDirty
        let count = self.vetting.begunCount
        // "The transaction handle is freed" by a commit, also by one that fails.
        let code = unsafe AssertedCalls.commit(handle)
        self.note(code)
        if code == MDB_MAP_FULL { self.writeTimes.noteWithoutRoom() }
        if code != MDB_SUCCESS {
            self.vetting.commitFailed(count)
        } else if writes {
            self.vetting.commitSucceeded()
            self.map.committed()
            if self.options.durability == .dataOnly {
                self.owesMetaPage.store(true, ordering: .sequentiallyConsistent)
            }
        }
        try self.vetting.check(self.explained(code), "mdb_txn_commit")
    }

    // MARK: Databases

    /// Opens these databases, in this order; where `creating`, those are made that do not exist.
    ///
    /// lmdb.h, `mdb_dbi_open`: "This function must not be called from multiple concurrent
    /// transactions in the same process." So call it once after opening; later calls for the same
    /// names are answered from memory.
    package func openDatabases(
        _ names: [String], creating: Bool
    ) throws(LMDBError) -> [Database] {
        let known = self.usage.withLock { usage in names.compactMap { usage.databases[$0] } }
        if known.count == names.count { return known }
        try self.checkMap()
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        let flags = self.options.isReadOnly ? UInt32(MDB_RDONLY) : 0
        var created: OpaquePointer?
        try unsafe LMDBError.check(
            mdb_txn_begin(self.handle, nil, flags, &created), "mdb_txn_begin")
        guard let transaction = unsafe created else {
            throw LMDBError(.other, operation: "mdb_txn_begin")
        }
        var opened: [String: Database] = [:]
        do throws(LMDBError) {
            try unsafe self.beginVetting(transaction)
            for name in names {
                var database: UInt32 = 0
                let isThere = try self.vetting.willOpen(name)
                try unsafe self.vetting.check(
                    AssertedCalls.openDatabase(
                        transaction, name, creating: creating, &database), "mdb_dbi_open")
                opened[name] = Database(
                    handle: database, name: name,
                    since: isThere ? 0 : UInt64(unsafe mdb_txn_id(transaction)))
            }
        } catch {
            if !self.soundness.mustAbandon { unsafe mdb_txn_abort(transaction) }
            throw error
        }
        // "The database handle will be private to the current transaction until the transaction is
        // successfully committed": so a transaction that only read commits, too.
        try unsafe self.commit(transaction)
        self.usage.withLock { usage in
            usage.databases.merge(opened) { _, new in new }
        }
        return names.compactMap { opened[$0] }
    }

    @unsafe private func beginVetting(_ transaction: OpaquePointer) throws(LMDBError) {
        guard self.options.isReadOnly else { return try unsafe self.vetting.begin(transaction) }
        let reader = unsafe Reader(
            handle: transaction, map: self.map, soundness: self.soundness)
        try reader.begin()
        self.vetting.begin(reader.meta)
    }

    /// Throws where part of the map could not be read, now or ever.
    func checkMap() throws(LMDBError) {
        try self.soundness.check()
        guard self.map.hasFaulted else { return }
        throw self.soundness.lose(
            LMDBError(.corrupted, operation: "the map: \(PageDamage.unreadable.rawValue)"))
    }
}
