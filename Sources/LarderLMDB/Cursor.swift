import CLMDB

/// A place in a database, in the order of its keys' bytes.
///
/// Each movement lends the entry that it comes to; nil says that there is none.
@safe package struct Cursor: ~Copyable {
    private let movement: any CursorMovement

    /// A cursor over a snapshot.
    init(_ reader: Reader, _ database: Database) {
        self.movement = SnapshotCursor(reader, database)
    }

    /// A cursor of LMDB's in a write transaction.
    init(_ working: WorkingCursor) {
        self.movement = working
    }

    /// Moves to the first entry whose key is not below `key`.
    package func seek<R>(
        atOrAfter key: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        // LMDB has no empty key. It means "from the beginning" here.
        if key.isEmpty { return try self.first(body) }
        return try self.movement.move(.atOrAfter, key, body)
    }

    package func first<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.movement.move(.first, Span(), body)
    }

    package func last<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.movement.move(.last, Span(), body)
    }

    /// Moves on by one; after a deletion, to the entry that followed the deleted one.
    package func next<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        try self.movement.move(.next, Span(), body)
    }

    /// Deletes the entry that the cursor is at; throws in a read transaction.
    package func delete() throws(LMDBError) {
        try self.movement.delete()
    }
}

/// Where a cursor is asked to go.
enum CursorStep {
    case first
    case last
    case next
    case atOrAfter
}

/// What moves a ``Cursor``: Larder's own walk in a snapshot, LMDB's in a write transaction.
protocol CursorMovement: AnyObject {
    func move<R>(
        _ step: CursorStep, _ target: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R?

    func delete() throws(LMDBError)
}

/// A cursor over a snapshot.
final class SnapshotCursor: CursorMovement {
    private let reader: Reader
    private let database: Database
    /// nil before the first movement.
    private var cursor: TreeCursor?

    init(_ reader: Reader, _ database: Database) {
        self.reader = reader
        self.database = database
    }

    func move<R>(
        _ step: CursorStep, _ target: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        let result: Result<R, LMDBError>?
        do throws(TreeFailure) {
            result = try self.entry(step, target, body)
        } catch {
            // It waits.
            guard case .damaged(let page, let damage) = error else { return nil }
            throw self.reader.error(page: page, damage)
        }
        return try result?.get()
    }

    private func entry<R>(
        _ step: CursorStep, _ target: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(TreeFailure) -> Result<R, LMDBError>? {
        var isNew = false
        if self.cursor == nil {
            let tree = try self.reader.existingTree(self.database, .allowed)
            self.cursor = TreeCursor(self.reader.pages(.allowed), tree)
            isNew = true
        }
        let isThere =
            switch step {
            case .first: try self.cursor?.first()
            case .last: try self.cursor?.last()
            // As in LMDB, a cursor that was nowhere begins at the beginning.
            case .next: isNew ? try self.cursor?.first() : try self.cursor?.next()
            case .atOrAfter: try self.cursor?.seek(target)
            }
        guard isThere == true else { return nil }
        return try self.cursor?.withEntry(body)
    }

    func delete() throws(LMDBError) {
        throw LMDBError(.permissionDenied, operation: "mdb_cursor_del")
    }
}
