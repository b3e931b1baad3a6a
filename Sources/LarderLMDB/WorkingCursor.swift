import CLMDB

/// LMDB's own cursor in a write transaction.
@safe final class WorkingCursor: CursorMovement {
    /// Invariant: alive for as long as this object is lent, and used by one thread at a time.
    private let handle: OpaquePointer

    init(handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    func move<R>(
        _ step: CursorStep, _ target: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        var found = unsafe MDB_val()
        var value = unsafe MDB_val()
        let code = unsafe withBorrowedValue(target) { target in
            if step == .atOrAfter { unsafe found = target }
            return unsafe mdb_cursor_get(self.handle, &found, &value, Self.operation(step))
        }
        if code == MDB_NOTFOUND { return nil }
        try LMDBError.check(code, "mdb_cursor_get")
        return try unsafe lend(found) { (key) throws(LMDBError) in
            try unsafe lend(value) { (value) throws(LMDBError) in
                try body(key, value)
            }
        }
    }

    func delete() throws(LMDBError) {
        try unsafe LMDBError.check(mdb_cursor_del(self.handle, 0), "mdb_cursor_del")
    }

    private static func operation(_ step: CursorStep) -> MDB_cursor_op {
        switch step {
        case .first: MDB_FIRST
        case .last: MDB_LAST
        case .next: MDB_NEXT
        case .atOrAfter: MDB_SET_RANGE
        }
    }
}
