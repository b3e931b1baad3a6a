import CLMDB
import Glibc
import Synchronization

/// An open LMDB file: a memory map that many threads and processes read while one writes.
///
/// ```
/// open ─▶ read* │ write* ─▶ close ─▶ (last transaction under way ends) ─▶ unmapped
/// ```
///
/// One process opens one file once: a second `open` throws `.alreadyOpen`, and
/// ``shared(path:)`` gives the environment that exists. Any thread may use it. `close` may be
/// called at any time: what begins after it throws `.closed`, what is under way ends first.
@safe package final class Environment: Sendable {
    /// What transactions and closing share.
    private struct Usage {
        var transactions = 0
        var isClosed = false
        /// Read transactions that were reset and can be renewed.
        var idle = IdleTransactions()
        var databases: [String: Database] = [:]
    }

    /// Handles of reset read transactions; only ever touched by the one that took them out.
    @safe struct IdleTransactions: @unchecked Sendable {
        // Invariant: a handle in here is in no one else's hands; LMDB lets any thread renew it
        // under MDB_NOTLS.
        var handles: [OpaquePointer] = unsafe []

        /// Gives their slots back.
        mutating func abort() {
            while let transaction = unsafe self.handles.popLast() {
                unsafe mdb_txn_abort(transaction)
            }
        }
    }

    /// The handle of the C library.
    ///
    /// Invariant: set once, used only between the counting of `Usage.transactions` up and down, and
    /// freed when that is zero for good. An MDB_env may be used by all threads of a process.
    nonisolated(unsafe) let handle: OpaquePointer
    private let identity: FileIdentity
    /// Where the file is mapped.
    let map: MapFinder
    /// How long write transactions took.
    package let writeTimes = WriteTimes()
    private let usage = Mutex(Usage())
    package let path: String
    package let options: EnvironmentOptions

    private init(
        handle: OpaquePointer, identity: FileIdentity, path: String, options: EnvironmentOptions
    ) {
        unsafe self.handle = handle
        self.identity = identity
        self.map = MapFinder(inode: identity.inode)
        self.path = path
        self.options = options
    }

    deinit {
        self.close()
    }

    // MARK: Opening and closing

    /// Opens the file at `path`, and makes it (mode 0600) unless that is to be read only.
    ///
    /// The file must be an LMDB file or empty: LMDB may crash on others, so whoever cannot be sure
    /// calls ``FileHeader/check(path:)`` first.
    package static func open(
        path: String, options: EnvironmentOptions
    ) throws(LMDBError) -> Environment {
        if !options.isReadOnly { try Self.makeFile(path) }
        let identity = try FileIdentity(path: path)
        try EnvironmentRegistry.reserve(identity)
        do throws(LMDBError) {
            let handle = try unsafe Self.openHandle(path, options)
            let environment = unsafe Environment(
                handle: handle, identity: identity, path: path, options: options)
            EnvironmentRegistry.register(environment, as: identity)
            return environment
        } catch {
            EnvironmentRegistry.release(identity)
            throw error
        }
    }

    /// The environment that this process has open for the file at `path`, if any.
    package static func shared(path: String) -> Environment? {
        guard let identity = try? FileIdentity(path: path) else { return nil }
        return EnvironmentRegistry.environment(for: identity)
    }

    /// Makes an empty file, so that it has an inode by which to take its place in the registry.
    private static func makeFile(_ path: String) throws(LMDBError) {
        var status = stat()
        if unsafe stat(path, &status) == 0 { return }
        let descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw LMDBError(returnCode: errno, operation: "open") }
        _ = Glibc.close(descriptor)
    }

    private static func openHandle(
        _ path: String, _ options: EnvironmentOptions
    ) throws(LMDBError) -> OpaquePointer {
        var created: OpaquePointer?
        try unsafe LMDBError.check(mdb_env_create(&created), "mdb_env_create")
        guard let handle = unsafe created else {
            throw LMDBError(.noMemory, operation: "mdb_env_create")
        }
        // MDB_NOTLS: read transactions belong to no thread, so that a reset one can be renewed by
        // whichever reader comes next.
        var flags = UInt32(MDB_NOSUBDIR | MDB_NOTLS)
        if options.isReadOnly { flags |= UInt32(MDB_RDONLY) }
        if options.durability == .dataOnly { flags |= UInt32(MDB_NOMETASYNC) }
        if !options.readsAhead { flags |= UInt32(MDB_NORDAHEAD) }
        do throws(LMDBError) {
            if options.mapSize > 0 {
                try unsafe LMDBError.check(
                    mdb_env_set_mapsize(handle, Int(clamping: options.mapSize)),
                    "mdb_env_set_mapsize")
            }
            try unsafe LMDBError.check(
                mdb_env_set_maxdbs(handle, options.maximumDatabases), "mdb_env_set_maxdbs")
            try unsafe LMDBError.check(
                mdb_env_set_maxreaders(handle, options.maximumReaders), "mdb_env_set_maxreaders")
            try unsafe LMDBError.check(
                mdb_env_open(handle, path, flags, 0o600), "mdb_env_open")
        } catch {
            // "If this function fails, mdb_env_close() must be called to discard the MDB_env
            // handle."
            unsafe mdb_env_close(handle)
            throw error
        }
        return unsafe handle
    }

    /// Ends the use of the file; harmless when repeated.
    package func close() {
        let isIdle = self.usage.withLock { usage in
            if usage.isClosed { return false }
            usage.isClosed = true
            return usage.transactions == 0
        }
        if isIdle { self.unmap() }
    }

    /// lmdb.h: "All transactions, databases, and cursors must already be closed before calling this
    /// function." Called by whoever saw the last of them end after the closing.
    private func unmap() {
        var idle = self.usage.withLock { usage in
            let idle = usage.idle
            usage.idle = IdleTransactions()
            return idle
        }
        idle.abort()
        unsafe mdb_env_close(self.handle)
        EnvironmentRegistry.release(self.identity)
    }

    func beginUse(takesIdle: Bool) throws(LMDBError) -> IdleTransactions {
        let taken: IdleTransactions? = self.usage.withLock { usage in
            if usage.isClosed { return nil }
            usage.transactions += 1
            var taken = IdleTransactions()
            if takesIdle, let last = unsafe usage.idle.handles.popLast() {
                unsafe taken.handles = [last]
            }
            return taken
        }
        guard let taken else { throw LMDBError(.closed, operation: "begin") }
        return taken
    }

    func endUse(returning idle: IdleTransactions = IdleTransactions()) {
        let isLast = self.usage.withLock { usage in
            unsafe usage.idle.handles.append(contentsOf: idle.handles)
            usage.transactions -= 1
            return usage.isClosed && usage.transactions == 0
        }
        if isLast { self.unmap() }
    }

    // MARK: Transactions

    /// Runs `body` on a snapshot of all databases.
    ///
    /// Keep it short, on a thread that may wait for the disk: "Read transactions prevent reuse of
    /// pages freed by newer write transactions, thus the database can grow quickly" (lmdb.h).
    package func read<R>(
        _ body: (borrowing ReadTransaction) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
        let idle = try self.beginUse(takesIdle: true)
        let begun: IdleTransactions
        do throws(LMDBError) {
            begun = try self.beginReading(idle)
        } catch {
            self.endUse()
            throw error
        }
        guard let handle = unsafe begun.handles.first else {
            self.endUse()
            throw LMDBError(.other, operation: "mdb_txn_begin")
        }
        defer {
            unsafe mdb_txn_reset(handle)
            self.endUse(returning: begun)
        }
        return try body(unsafe ReadTransaction(handle: handle))
    }

    private func beginReading(_ idle: IdleTransactions) throws(LMDBError) -> IdleTransactions {
        if let handle = unsafe idle.handles.first {
            let code = unsafe mdb_txn_renew(handle)
            if code == MDB_SUCCESS { return idle }
            unsafe mdb_txn_abort(handle)
            throw LMDBError(returnCode: code, operation: "mdb_txn_renew")
        }
        var created: OpaquePointer?
        try unsafe LMDBError.check(
            mdb_txn_begin(self.handle, nil, UInt32(MDB_RDONLY), &created), "mdb_txn_begin")
        var begun = IdleTransactions()
        if let created = unsafe created { unsafe begun.handles = [created] }
        return begun
    }

    /// Runs `body` in the one write transaction, and commits when it returns; a throw aborts.
    ///
    /// Waits until no other thread or process writes. The body runs on the calling thread, and what
    /// it changes is seen by transactions that begin after the return.
    package func write<R>(
        _ body: (borrowing WriteTransaction) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
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
            result = try body(unsafe WriteTransaction(handle: handle))
        } catch {
            unsafe mdb_txn_abort(handle)
            if error.code == .mapFull { self.writeTimes.noteWithoutRoom() }
            throw error
        }
        committing = ContinuousClock.now
        // "The transaction handle is freed" by a commit, also by one that fails.
        let code = unsafe mdb_txn_commit(handle)
        if code == MDB_MAP_FULL { self.writeTimes.noteWithoutRoom() }
        try LMDBError.check(code, "mdb_txn_commit")
        return result
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
        for name in names {
            var database: UInt32 = 0
            let code = unsafe mdb_dbi_open(
                transaction, name, creating ? UInt32(MDB_CREATE) : 0, &database)
            guard code == MDB_SUCCESS else {
                unsafe mdb_txn_abort(transaction)
                throw LMDBError(returnCode: code, operation: "mdb_dbi_open")
            }
            opened[name] = Database(handle: database)
        }
        // "The database handle will be private to the current transaction until the transaction is
        // successfully committed": so a transaction that only read commits, too.
        try unsafe LMDBError.check(mdb_txn_commit(transaction), "mdb_txn_commit")
        self.usage.withLock { usage in
            usage.databases.merge(opened) { _, new in new }
        }
        return names.compactMap { opened[$0] }
    }
}
