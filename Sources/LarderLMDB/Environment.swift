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
    struct Usage {
        var transactions = 0
        var isClosed = false
        /// Nothing of the file is in use any more.
        var isUnmapped = false
        /// Who waits for that.
        var closers: [@Sendable () -> Void] = []
        /// Read transactions that were reset and can be renewed.
        var idle: [IdleReader] = []
        var databases: [String: Database] = [:]
        /// Failures after which the disk may lack the meta page of the last commit for good; how
        /// the last process ended is the first.
        var failures: UInt64 = 1
        /// How many of them were there before it was last brought to the disk.
        var settledFailures: UInt64 = 0
    }

    /// A reader that nobody uses.
    @safe struct IdleReader: @unchecked Sendable {
        // Invariant: it is in no one else's hands; LMDB lets any thread renew it under MDB_NOTLS.
        let reader: Reader

        /// Gives its slot back.
        func abort() {
            unsafe mdb_txn_abort(self.reader.handle)
        }
    }

    /// The handle of the C library.
    ///
    /// Invariant: set once, used only between the counting of `Usage.transactions` up and down, and
    /// freed when that is zero for good. An MDB_env may be used by all threads of a process.
    nonisolated(unsafe) let handle: OpaquePointer
    let identity: FileIdentity
    /// The table of readers; nil where that cannot be told.
    let tableIdentity: FileIdentity?
    /// The file as it is mapped.
    let map: PageMap
    /// Whether the file can still be believed.
    let soundness: Soundness
    /// What LMDB's one write transaction has looked at for it.
    let vetting: WriteVetting
    /// How long write transactions took.
    package let writeTimes = WriteTimes()
    let usage = Mutex(Usage())
    /// The meta page of the last commit may be in the kernel's memory alone: how the last process left
    /// it is not known.
    let owesMetaPage = Atomic(true)
    package let path: String
    package let options: EnvironmentOptions

    private init(
        handle: OpaquePointer, map: PageMap, identity: FileIdentity, table: FileIdentity?,
        path: String, options: EnvironmentOptions
    ) {
        unsafe self.handle = handle
        self.identity = identity
        self.tableIdentity = table
        self.map = map
        self.soundness = Soundness(observer: options.damageObserver)
        self.vetting = WriteVetting(map, self.soundness, isSole: options.isSoleWriter)
        self.path = path
        self.options = options
    }

    deinit {
        self.close()
    }

    // MARK: Opening and closing

    /// Opens the file at `path`, and makes it (mode 0600) unless that is to be read only.
    ///
    /// The file must be an LMDB file or empty, or `.corrupted` is thrown; whether its roots are
    /// sound, and it is whole, ``FileHeader/check(path:)`` tells beforehand. Readers whose process
    /// died are forgotten where it is opened for writing. Throws `.exchanged` where another file was
    /// given the name meanwhile.
    ///
    /// - Parameter willMap: called once the file is known, before LMDB opens it by its name.
    package static func open(
        path: String, options: EnvironmentOptions, willMap: () -> Void = {}
    ) throws(LMDBError) -> Environment {
        try OwnPlace.check(path)
        try OwnPlace.check(path + "-lock")
        if !options.isReadOnly { try Self.makeFile(path) }
        // Until the place is given up again where the opening fails: a file that is deleted meanwhile
        // keeps its inode, and no new one finds the place taken. LMDB locks the table of readers and
        // not the file, so that closing this gives up no lock.
        let held = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        defer { if held >= 0 { _ = Glibc.close(held) } }
        let identity = try FileIdentity(path: path)
        try EnvironmentRegistry.reserve(identity)
        do throws(LMDBError) {
            try FileHeader.checkMetas(path: path)
            try Self.reserveReaderTable(of: path, readers: options.maximumReaders)
            willMap()
            let handle = try unsafe Self.openHandle(path, options)
            let table = try? FileIdentity(path: path + "-lock")
            let map: PageMap
            do throws(LMDBError) {
                guard try unsafe Self.identity(of: handle) == identity else {
                    throw LMDBError(.exchanged, operation: "open")
                }
                map = try unsafe PageMap(handle, identity, lock: table)
            } catch {
                unsafe mdb_env_close(handle)
                throw error
            }
            let environment = unsafe Environment(
                handle: handle, map: map, identity: identity, table: table, path: path,
                options: options)
            EnvironmentRegistry.register(environment, as: identity)
            if !options.isReadOnly { _ = try? environment.clearStaleReaders() }
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
        if unsafe lstat(path, &status) == 0 { return }
        _ = Glibc.close(try OwnPlace.open(path, O_RDWR | O_CREAT))
    }

    /// Gives LMDB's table of readers its place on the disk: it is written through a map, where a
    /// disk that is full is no error but a SIGBUS.
    ///
    /// A table that is there keeps its size, which other processes have mapped. Only while this
    /// process does not use it: to close a descriptor gives up the locks of the others (fcntl(2)).
    private static func reserveReaderTable(
        of path: String, readers: UInt32
    ) throws(LMDBError) {
        try OwnPlace.make(path + "-lock", forOwnerOf: path)
        let descriptor = unsafe Glibc.open(
            path + "-lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        // LMDB knows when it can do without, and what to say.
        guard descriptor >= 0 else { return }
        defer { _ = Glibc.close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        // As mdb_env_setup_locks has it: a header of two cache lines, and one for each reader.
        let size =
            status.st_size > 0
            ? status.st_size : 128 + 64 * off_t(min(max(1, readers), 1 << 16))
        guard size <= 1 << 24 else { return }
        // posix_fallocate(3) would write zeros where a file system knows no other way, also over what
        // another process has just written there.
        while fallocate(descriptor, 0, 0, size) != 0 {
            switch errno {
            case EINTR: continue
            case ENOSPC, EDQUOT: throw LMDBError(returnCode: errno, operation: "fallocate")
            default: return
            }
        }
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
            try unsafe LMDBError.check(AssertedCalls.prepare(handle), "mdb_env_set_assert")
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
            try unsafe Self.keepFromChildren(handle)
        } catch {
            // "If this function fails, mdb_env_close() must be called to discard the MDB_env
            // handle."
            unsafe mdb_env_close(handle)
            throw error
        }
        return unsafe handle
    }

    /// The descriptor by which LMDB has opened the file.
    @unsafe static func descriptor(
        of handle: OpaquePointer
    ) throws(LMDBError) -> Int32 {
        var descriptor: Int32 = -1
        try unsafe LMDBError.check(mdb_env_get_fd(handle, &descriptor), "mdb_env_get_fd")
        return descriptor
    }

    /// Closes the file where a child begins another program.
    ///
    /// LMDB 0.9 opens with `O_CLOEXEC` whatever it opens but the file itself.
    @unsafe private static func keepFromChildren(
        _ handle: OpaquePointer
    ) throws(LMDBError) {
        let descriptor = try unsafe Self.descriptor(of: handle)
        let flags = fcntl(descriptor, F_GETFD)
        guard flags >= 0, fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fcntl")
        }
    }

    /// Which file LMDB has opened.
    @unsafe private static func identity(
        of handle: OpaquePointer
    ) throws(LMDBError) -> FileIdentity {
        let descriptor = try unsafe Self.descriptor(of: handle)
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        return FileIdentity(status)
    }

    /// Ends the use of the file; harmless when repeated.
    ///
    /// - Parameter completion: called when the last transaction has ended and the file is let go of, on
    ///   the thread that ends it; at once where it is.
    package func close(_ completion: (@Sendable () -> Void)? = nil) {
        let (isIdle, isUnmapped) = self.usage.withLock { usage in
            if let completion, !usage.isUnmapped { usage.closers.append(completion) }
            if usage.isClosed { return (false, usage.isUnmapped) }
            usage.isClosed = true
            return (usage.transactions == 0, false)
        }
        if isIdle { self.unmap() }
        if isUnmapped { completion?() }
    }

    /// lmdb.h: "All transactions, databases, and cursors must already be closed before calling this
    /// function." Called by whoever saw the last of them end after the closing.
    private func unmap() {
        // Left in the middle of something it keeps its memory, and its file its place in the
        // registry: freeing either could do harm.
        if !self.soundness.mustAbandon { self.letGoOfFile() }
        let closers = self.usage.withLock { usage in
            usage.isUnmapped = true
            defer { usage.closers = [] }
            return usage.closers
        }
        for closer in closers { closer() }
    }

    private func letGoOfFile() {
        self.takeIdleReaders().forEach { $0.abort() }
        self.map.release()
        let held = self.heldFile()
        unsafe mdb_env_close(self.handle)
        EnvironmentRegistry.release(self.identity)
        if held >= 0 { _ = Glibc.close(held) }
    }

    /// Another descriptor of the file; -1 where there is none to be had.
    ///
    /// A file that was deleted gives its inode away with its last descriptor. Without this one, a new
    /// file that gets it would find its place in the registry taken. It has none of LMDB's locks, which
    /// are on the table of readers: to close it gives up none.
    private func heldFile() -> Int32 {
        guard let descriptor = try? unsafe Self.descriptor(of: self.handle) else { return -1 }
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    }

    /// Keeps the environment from being closed; throws where it was.
    ///
    /// Each must be followed by one ``endUse(returning:)``. Gives an idle reader if there is one
    /// and it is wanted.
    func beginUse(takesIdle: Bool) throws(LMDBError) -> IdleReader? {
        let (isOpen, idle) = self.usage.withLock { usage in
            if usage.isClosed { return (false, nil as IdleReader?) }
            usage.transactions += 1
            return (true, takesIdle ? usage.idle.popLast() : nil)
        }
        guard isOpen else { throw LMDBError(.closed, operation: "begin") }
        return idle
    }

    func endUse(returning idle: IdleReader? = nil) {
        let surplus = self.usage.withLock { usage -> IdleReader? in
            guard let idle else { return nil }
            if usage.idle.count >= self.mostIdle { return idle }
            usage.idle.append(idle)
            return nil
        }
        // Before the end of the use, after which the environment may be gone.
        surplus?.abort()
        let isLast = self.usage.withLock { usage in
            usage.transactions -= 1
            return usage.isClosed && usage.transactions == 0
        }
        if isLast { self.unmap() }
    }

    /// Idle readers keep their slots, of which other processes want some.
    private var mostIdle: Int { max(1, Int(self.options.maximumReaders) / 2) }

    func takeIdleReaders() -> [IdleReader] {
        self.usage.withLock { usage in
            let idle = usage.idle
            usage.idle = []
            return idle
        }
    }

    /// Remembers where a call failed that writes: what it left on the disk is not known then.
    func note(_ code: Int32) {
        if code != MDB_SUCCESS { self.usage.withLock { $0.failures &+= 1 } }
    }

    /// Makes sure that the last commit is on the disk where a failure has left that open.
    func settle() throws(LMDBError) {
        guard self.options.durability == .dataOnly else { return }
        let (failures, settled) = self.usage.withLock { ($0.failures, $0.settledFailures) }
        if failures == settled { return }
        try self.anchor()
        self.owesMetaPage.store(false, ordering: .sequentiallyConsistent)
        // Not one that was noted meanwhile: of two calls that synchronise at the same time the kernel
        // tells an error of either to one alone.
        self.usage.withLock { $0.settledFailures = failures }
    }

    /// The damage for which the environment refuses every transaction; nil as long as it is sound.
    package var damage: LMDBError? { self.soundness.damage }
}
