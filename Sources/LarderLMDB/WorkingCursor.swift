import CLMDB

/// LMDB's own cursor in a write transaction.
///
/// The pages that it comes to are vetted before.
@safe final class WorkingCursor: CursorMovement {
    /// Invariant: both alive for as long as this object is lent, and used by one thread at a time.
    private let handle: OpaquePointer
    private let transaction: OpaquePointer
    private let database: Database
    private let vetting: WriteVetting
    /// The key that it came to last, deleted meanwhile or not; nil before the first movement.
    private var position: [UInt8]?

    @unsafe init(
        handle: OpaquePointer, transaction: OpaquePointer, _ database: Database,
        _ vetting: WriteVetting
    ) {
        unsafe self.handle = handle
        unsafe self.transaction = transaction
        self.database = database
        self.vetting = vetting
    }

    func move<R>(
        _ step: CursorStep, _ target: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.vet(step, target)
        var found = unsafe MDB_val()
        var value = unsafe MDB_val()
        let code = unsafe withBorrowedValue(target) { target in
            if step == .atOrAfter { unsafe found = target }
            return unsafe AssertedCalls.move(
                self.handle, &found, &value, Self.operation(step))
        }
        if code == MDB_NOTFOUND { return nil }
        try self.vetting.check(code, "mdb_cursor_get")
        return try unsafe self.vetting.lend(found) { (key) throws(LMDBError) in
            var position = self.position ?? []
            self.position = nil
            position.removeAll(keepingCapacity: true)
            for index in key.indices { position.append(key[index]) }
            self.position = position
            return try unsafe self.vetting.lend(value) { (value) throws(LMDBError) in
                try body(key, value)
            }
        }
    }

    private func vet(_ step: CursorStep, _ target: Span<UInt8>) throws(LMDBError) {
        switch step {
        case .first: try self.vetting.willMoveToEdge(self.database, isFirst: true)
        case .last: try self.vetting.willMoveToEdge(self.database, isFirst: false)
        case .atOrAfter: try self.vetting.willMove(self.database, past: target)
        case .next:
            guard let position = self.position else {
                return try self.vetting.willMoveToEdge(self.database, isFirst: true)
            }
            try self.vetting.willMove(self.database, past: position.span)
        }
    }

    func delete() throws(LMDBError) {
        guard let position = self.position else {
            throw LMDBError(.notFound, operation: "mdb_cursor_del")
        }
        try self.vetting.willDelete(self.database, position.span)
        // Behind the last node of a leaf it moves on to the next leaf.
        try self.vetting.willMove(self.database, past: position.span)
        try unsafe self.vetting.check(
            AssertedCalls.delete(at: self.handle), "mdb_cursor_del")
        var statistics = MDB_stat()
        try unsafe LMDBError.check(
            mdb_stat(self.transaction, self.database.handle, &statistics), "mdb_stat")
        self.vetting.changed(self.database, statistics, key: position.span)
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
