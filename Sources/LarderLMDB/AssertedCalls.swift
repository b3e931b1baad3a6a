import CLMDB

/// LMDB's calls that look at pages: a failed assertion of LMDB's is an error and not the end.
///
/// This is the last line: what LMDB sees was vetted before. After ``assertionFailed`` the
/// transaction may only be left alone, with the environment.
enum AssertedCalls {
    static let assertionFailed = Int32(LARDER_ASSERTION_FAILED)

    @unsafe static func prepare(_ environment: OpaquePointer) -> Int32 {
        unsafe larder_catch_assertions(environment)
    }

    @unsafe static func get(
        _ transaction: OpaquePointer, _ database: Database, _ key: inout MDB_val,
        _ value: inout MDB_val
    ) -> Int32 {
        unsafe larder_get(transaction, database.handle, &key, &value)
    }

    @unsafe static func put(
        _ transaction: OpaquePointer, _ database: Database, _ key: inout MDB_val,
        _ value: inout MDB_val, flags: Int32
    ) -> Int32 {
        unsafe larder_put(transaction, database.handle, &key, &value, UInt32(flags))
    }

    @unsafe static func delete(
        _ transaction: OpaquePointer, _ database: Database, _ key: inout MDB_val
    ) -> Int32 {
        unsafe larder_del(transaction, database.handle, &key)
    }

    @unsafe static func move(
        _ cursor: OpaquePointer, _ key: inout MDB_val, _ value: inout MDB_val,
        _ operation: MDB_cursor_op
    ) -> Int32 {
        unsafe larder_cursor_get(cursor, &key, &value, operation)
    }

    @unsafe static func delete(at cursor: OpaquePointer) -> Int32 {
        unsafe larder_cursor_del(cursor)
    }

    @unsafe static func commit(_ transaction: OpaquePointer) -> Int32 {
        unsafe larder_commit(transaction)
    }

    @unsafe static func openDatabase(
        _ transaction: OpaquePointer, _ name: String, creating: Bool, _ database: inout UInt32
    ) -> Int32 {
        unsafe larder_dbi_open(transaction, name, creating ? UInt32(MDB_CREATE) : 0, &database)
    }
}
