import CLMDB
import Glibc
import Synchronization

extension Environment {
    /// How large it is.
    package func information() throws(LMDBError) -> EnvironmentInformation {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        var raw = unsafe MDB_envinfo()
        try unsafe LMDBError.check(mdb_env_info(self.handle, &raw), "mdb_env_info")
        var information = EnvironmentInformation()
        information.mapSize = unsafe UInt64(raw.me_mapsize)
        information.lastPage = unsafe UInt64(raw.me_last_pgno)
        information.lastTransaction = unsafe UInt64(raw.me_last_txnid)
        information.maximumReaders = unsafe raw.me_maxreaders
        information.readers = unsafe raw.me_numreaders
        return information
    }

    /// The size of the file now, in bytes.
    package func fileSize() throws(LMDBError) -> UInt64 {
        var status = stat()
        try self.withDescriptor { descriptor in unsafe fstat(descriptor, &status) }
        return UInt64(clamping: status.st_size)
    }

    /// Makes the file reach to its last page, where the last pages of a transaction were given
    /// free before they were ever written.
    ///
    /// So a file that is shorter than its own account is known to be cut short. Only for who alone
    /// writes, between two transactions: what another writer added meanwhile would be cut off.
    package func extendFileToLastPage() throws(LMDBError) {
        let statistics = try self.statistics()
        let last = try self.information().lastPage
        let (needed, overflow) = (last &+ 1).multipliedReportingOverflow(by: statistics.pageSize)
        if overflow { return }
        guard try self.fileSize() < needed else { return }
        try self.vetting.writing { () throws(LMDBError) in
            try self.withDescriptor { descriptor in
                ftruncate(descriptor, off_t(clamping: needed))
            }
        }
    }

    private func withDescriptor(_ body: (Int32) -> Int32) throws(LMDBError) {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        let descriptor = try unsafe Self.descriptor(of: self.handle)
        if body(descriptor) != 0 { throw LMDBError(returnCode: errno, operation: "fstat") }
    }

    private func statistics() throws(LMDBError) -> DatabaseStatistics {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        var raw = MDB_stat()
        try unsafe LMDBError.check(mdb_env_stat(self.handle, &raw), "mdb_env_stat")
        return DatabaseStatistics(raw)
    }

    /// Brings all that was committed to the disk, and waits for it.
    package func synchronize() throws(LMDBError) {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        // Before: what is committed meanwhile may come too late for it.
        self.owesMetaPage.store(false, ordering: .sequentiallyConsistent)
        let code = unsafe mdb_env_sync(self.handle, 1)
        self.note(code)
        if code != MDB_SUCCESS { self.owesMetaPage.store(true, ordering: .sequentiallyConsistent) }
        try LMDBError.check(code, "mdb_env_sync")
    }

    /// Whether power that fails now would undo nothing that was committed.
    ///
    /// With ``EnvironmentOptions/Durability/dataOnly`` it may undo the last commit, until another one,
    /// or ``synchronize()``, has brought that to the disk. Says no of a file that was just opened.
    package var isOnDisk: Bool { !self.owesMetaPage.load(ordering: .sequentiallyConsistent) }

    /// Frees the slots of readers whose process died; returns how many.
    ///
    /// lmdb.h: "Stale reader transactions left behind by an aborted program cause further writes to
    /// grow the database quickly".
    @discardableResult
    package func clearStaleReaders() throws(LMDBError) -> Int {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        var dead: Int32 = 0
        try unsafe LMDBError.check(mdb_reader_check(self.handle, &dead), "mdb_reader_check")
        return Int(dead)
    }

    /// Takes over the map size that another process gave to the file.
    ///
    /// lmdb.h: "This function may only be called if no transactions are active in this process", so
    /// only for an environment that one thread uses; idle transactions are given up first.
    package func adoptMapSize() throws(LMDBError) {
        _ = try self.beginUse(takesIdle: false)
        defer { self.endUse() }
        self.takeIdleReaders().forEach { $0.abort() }
        try unsafe LMDBError.check(mdb_env_set_mapsize(self.handle, 0), "mdb_env_set_mapsize")
        try self.map.move(to: MapFinder.map(of: self.identity))
    }
}
