import CLMDB

/// A place in a database, in the order of its keys' bytes.
///
/// Each movement lends the entry that it comes to; nil says that there is none.
@safe package struct Cursor: ~Copyable {
    /// Invariant: alive for as long as this value is lent, and used by one thread at a time.
    private let handle: OpaquePointer

    init(handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    /// Moves to the first entry whose key is not below `key`.
    package func seek<R>(
        atOrAfter key: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        // An empty key is not one: MDB_BAD_VALSIZE. It means "from the beginning" here.
        if key.isEmpty { return try self.first(body) }
        var found = unsafe MDB_val()
        var value = unsafe MDB_val()
        let code = unsafe withBorrowedValue(key) { key in
            unsafe found = key
            return unsafe mdb_cursor_get(self.handle, &found, &value, MDB_SET_RANGE)
        }
        return try unsafe self.finish(code, found, value, body)
    }

    package func first<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.move(MDB_FIRST, body)
    }

    package func last<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.move(MDB_LAST, body)
    }

    /// Moves on by one; after a deletion, to the entry that followed the deleted one.
    package func next<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.move(MDB_NEXT, body)
    }

    /// Deletes the entry that the cursor is at; throws in a read transaction.
    package func delete() throws(LMDBError) {
        try unsafe LMDBError.check(mdb_cursor_del(self.handle, 0), "mdb_cursor_del")
    }

    private func move<R>(
        _ operation: MDB_cursor_op,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        var key = unsafe MDB_val()
        var value = unsafe MDB_val()
        let code = unsafe mdb_cursor_get(self.handle, &key, &value, operation)
        return try unsafe self.finish(code, key, value, body)
    }

    @unsafe private func finish<R>(
        _ code: Int32, _ key: MDB_val, _ value: MDB_val,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        if code == MDB_NOTFOUND { return nil }
        try LMDBError.check(code, "mdb_cursor_get")
        return try unsafe lend(key) { (key) throws(LMDBError) in
            try unsafe lend(value) { (value) throws(LMDBError) in
                try body(key, value)
            }
        }
    }
}
