import CLMDB

/// A snapshot of all databases, for as long as the closure runs that it was lent to.
///
/// Bytes are lent as spans that lie in the map itself; they end with the closure. In a write
/// transaction they also end with the next change.
///
/// Snapshots are read without LMDB, which trusts its pages; only in a write transaction, whose
/// pages are in LMDB's hands, it is LMDB that reads. Damage that is found throws `.corrupted`, and
/// the environment refuses every transaction from then on.
@safe package struct ReadTransaction: ~Copyable {
    /// Invariant: alive for as long as this value is lent, and used by one thread at a time.
    let handle: OpaquePointer
    private let view: View
    let map: PageMap

    private enum View {
        case snapshot(Reader)
        /// A write transaction's.
        case working(WriteVetting)
    }

    @unsafe init(handle: OpaquePointer, _ map: PageMap, _ vetting: WriteVetting) {
        unsafe self.handle = handle
        self.view = .working(vetting)
        self.map = map
    }

    init(_ reader: Reader) {
        unsafe self.handle = reader.handle
        self.view = .snapshot(reader)
        self.map = reader.map
    }

    /// The snapshot; nil in a write transaction.
    var reader: Reader? {
        guard case .snapshot(let reader) = self.view else { return nil }
        return reader
    }

    /// Lends the value of `key` to `body`; nil where there is none.
    package func get<R>(
        _ database: Database, _ key: Span<UInt8>,
        _ body: (Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        switch self.view {
        case .snapshot(let reader):
            return try reader.get(database, key, body)
        case .working(let vetting):
            // LMDB has no empty key, and none that is longer.
            if key.isEmpty || key.count > PageFormat.maximumKeySize { return nil }
            try vetting.willGet(database, key)
            var value = unsafe MDB_val()
            let code = unsafe withBorrowedValue(key) { key in
                unsafe AssertedCalls.get(self.handle, database, &key, &value)
            }
            if code == MDB_NOTFOUND { return nil }
            try vetting.check(code, "mdb_get")
            return try unsafe vetting.lend(value, body)
        }
    }

    /// Whether there is a value for `key`.
    package func contains(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) -> Bool {
        try self.get(database, key) { _ in true } ?? false
    }

    /// How much a database holds; costs nothing.
    package func statistics(of database: Database) throws(LMDBError) -> DatabaseStatistics {
        switch self.view {
        case .snapshot(let reader): return try reader.statistics(of: database)
        case .working(let vetting): _ = try vetting.record(of: database)
        }
        var raw = MDB_stat()
        try unsafe LMDBError.check(mdb_stat(self.handle, database.handle, &raw), "mdb_stat")
        return DatabaseStatistics(raw)
    }

    /// Pages in use: those of `databases`, LMDB's own two trees, and the two meta pages.
    ///
    /// What the file holds beyond them is free and will be used again.
    package func pagesInUse(_ databases: [Database]) throws(LMDBError) -> UInt64 {
        var pages: UInt64 = 2
        for database in databases { pages &+= try self.statistics(of: database).pages }
        pages &+= try self.statistics(of: .freePages).pages
        pages &+= try self.statistics(of: .names).pages
        return pages
    }

    /// Lends a cursor over `database` to `body`.
    package func withCursor<R>(
        _ database: Database, _ body: (borrowing Cursor) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
        let vetting: WriteVetting
        switch self.view {
        case .snapshot(let reader): return try body(Cursor(reader, database))
        case .working(let working): vetting = working
        }
        // Opening a cursor looks up the database's record.
        _ = try vetting.record(of: database)
        var created: OpaquePointer?
        try unsafe LMDBError.check(
            mdb_cursor_open(self.handle, database.handle, &created), "mdb_cursor_open")
        guard let handle = unsafe created else {
            throw LMDBError(.noMemory, operation: "mdb_cursor_open")
        }
        // "A cursor in a write-transaction can be closed before its transaction ends, and will
        // otherwise be closed when its transaction ends"; one of a read transaction "must be closed
        // explicitly". After an assertion the transaction's list of cursors may lead to frames that
        // were jumped out of, and closing walks along it.
        defer { if !vetting.mustAbandon { unsafe mdb_cursor_close(handle) } }
        return try body(
            Cursor(
                unsafe WorkingCursor(
                    handle: handle, transaction: self.handle, database, vetting)))
    }
}

/// The one transaction that can change databases; commits when its closure returns.
@safe package struct WriteTransaction: ~Copyable {
    /// Reads as this transaction sees the databases, its own changes included.
    package let reading: ReadTransaction
    private let vetting: WriteVetting

    @unsafe init(handle: OpaquePointer, _ map: PageMap, _ vetting: WriteVetting) {
        self.reading = unsafe ReadTransaction(handle: handle, map, vetting)
        self.vetting = vetting
    }

    /// Whether it has changed anything: a commit of one that has not writes nothing, and waits for
    /// nothing.
    package var hasChanged: Bool { self.vetting.isDirty }

    /// Sets the value of `key`.
    package func put(
        _ database: Database, _ key: Span<UInt8>, _ value: Span<UInt8>
    ) throws(LMDBError) {
        try self.vetting.willPut(database, key)
        let code = unsafe withBorrowedValue(key) { key in
            unsafe withBorrowedValue(value) { value in
                unsafe AssertedCalls.put(self.reading.handle, database, &key, &value, flags: 0)
            }
        }
        try self.finish(code, "mdb_put", database, key)
    }

    /// Sets the value of `key` to `count` bytes that `fill` writes where they will lie.
    ///
    /// `MDB_RESERVE`: "reserve space for data of the given size, but don't copy the given data.
    /// Instead, return a pointer to the reserved space, which the caller can fill in later - before
    /// the next update operation or the transaction ends." What `fill` leaves out is whatever lay
    /// there before: it must write every byte.
    package func put(
        _ database: Database, _ key: Span<UInt8>, reserving count: Int,
        _ fill: (inout MutableSpan<UInt8>) -> Void
    ) throws(LMDBError) {
        try self.vetting.willPut(database, key)
        var value = unsafe MDB_val(mv_size: max(0, count), mv_data: nil)
        let code = unsafe withBorrowedValue(key) { key in
            unsafe AssertedCalls.put(
                self.reading.handle, database, &key, &value, flags: MDB_RESERVE)
        }
        try self.finish(code, "mdb_put", database, key)
        guard let start = unsafe value.mv_data, count > 0 else { return }
        let bytes = unsafe UnsafeMutableBufferPointer(
            start: start.assumingMemoryBound(to: UInt8.self), count: count)
        var span = unsafe bytes.mutableSpan
        fill(&span)
    }

    /// Removes `key`; false where it was not there.
    @discardableResult
    package func delete(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) -> Bool {
        try self.vetting.willDelete(database, key)
        let code = unsafe withBorrowedValue(key) { key in
            unsafe AssertedCalls.delete(self.reading.handle, database, &key)
        }
        if code == MDB_NOTFOUND { return false }
        try self.finish(code, "mdb_del", database, key)
        return true
    }

    private func finish(
        _ code: Int32, _ operation: StaticString, _ database: Database, _ key: Span<UInt8>
    ) throws(LMDBError) {
        try self.vetting.check(code, operation)
        var statistics = MDB_stat()
        try unsafe LMDBError.check(
            mdb_stat(self.reading.handle, database.handle, &statistics), "mdb_stat")
        self.vetting.changed(database, statistics, key: key)
    }
}

extension DatabaseStatistics {
    init(_ raw: MDB_stat) {
        self.init()
        self.pageSize = UInt64(raw.ms_psize)
        self.depth = UInt64(raw.ms_depth)
        self.branchPages = UInt64(raw.ms_branch_pages)
        self.leafPages = UInt64(raw.ms_leaf_pages)
        self.overflowPages = UInt64(raw.ms_overflow_pages)
        self.entries = UInt64(raw.ms_entries)
    }
}

/// Lends `bytes` to a C call, which does not write to them.
@unsafe func withBorrowedValue<R>(_ bytes: Span<UInt8>, _ body: (inout MDB_val) -> R) -> R {
    unsafe bytes.withUnsafeBufferPointer { buffer in
        var value = unsafe MDB_val(
            mv_size: buffer.count,
            mv_data: UnsafeMutableRawPointer(mutating: UnsafeRawPointer(buffer.baseAddress)))
        return unsafe body(&value)
    }
}

/// Lends what LMDB points to; the caller's transaction keeps it in place meanwhile.
@unsafe func lend<R>(
    _ value: MDB_val, _ body: (Span<UInt8>) throws(LMDBError) -> R
) throws(LMDBError) -> R {
    let start = unsafe UnsafePointer(value.mv_data?.assumingMemoryBound(to: UInt8.self))
    let buffer = unsafe UnsafeBufferPointer(start: start, count: start == nil ? 0 : value.mv_size)
    return try body(unsafe buffer.span)
}
