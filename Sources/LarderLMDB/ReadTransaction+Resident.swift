/// Where a value lies in the file.
package enum ValuePlace: Sendable, Equatable {
    case absent
    /// Some page on the way to it is not in memory.
    case notResident
    /// `length` bytes from `offset` on, for as long as the transaction lasts.
    case at(offset: UInt64, length: Int)
}

extension ReadTransaction {
    /// Where the value of `key` lies; the value itself is not touched.
    ///
    /// For ``read(at:into:waits:)``. Throws `.badTransaction` in a write transaction, which has
    /// values that are not in the file yet.
    package func place(
        _ database: Database, _ key: Span<UInt8>, mayWait: Bool
    ) throws(LMDBError) -> ValuePlace {
        guard let reader = self.reader else {
            throw LMDBError(.badTransaction, operation: "place")
        }
        return try reader.place(database, key, mayWait ? .allowed : .forbidden)
    }

    /// Reads bytes of the file, not by the map: nothing of it becomes resident in this process, and
    /// an error of the disk is thrown as `.inputOutput`.
    ///
    /// - Returns: how many bytes, fewer than wanted only at the end of the file; nil where it would
    ///   have to wait for the disk and must not.
    package func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, waits: Bool
    ) throws(LMDBError) -> Int? {
        try unsafe self.map.read(at: offset, into: buffer, waits: waits)
    }

    /// Lends the entries from the first key on that is not below `key`, until `body` returns false.
    ///
    /// - Returns: false where `body` ended it, true where the entries did; nil where the next one
    ///   is not in memory, whatever was lent before.
    package func forEachResident(
        _ database: Database, from key: Span<UInt8>,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool
    ) throws(LMDBError) -> Bool? {
        guard let reader = self.reader else {
            throw LMDBError(.badTransaction, operation: "forEachResident")
        }
        do throws(TreeFailure) {
            let tree = try reader.existingTree(database, .forbidden)
            var cursor = TreeCursor(reader.pages(.forbidden), tree)
            var isThere = key.isEmpty ? try cursor.first() : try cursor.seek(key)
            while isThere {
                let entry = try cursor.withEntry { (key, value) throws(LMDBError) in
                    body(key, value)
                }
                if case .success(false) = entry { return false }
                isThere = try cursor.next()
            }
            return true
        } catch {
            guard case .damaged(let page, let damage) = error else { return nil }
            throw reader.error(page: page, damage)
        }
    }
}

extension Reader {
    /// Lends the value of `key`, found without LMDB; waits for the disk.
    func get<R>(
        _ database: Database, _ key: Span<UInt8>,
        _ body: (Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R? {
        let result: Result<R, LMDBError>
        do throws(TreeFailure) {
            let tree = try self.existingTree(database, .allowed)
            let pages = self.pages(.allowed)
            guard let found = try pages.find(key, in: tree), found.isFound else { return nil }
            result = try pages.withEntry(ofLeaf: found.leaf, at: found.index) {
                (_, value) throws(LMDBError) in try body(value)
            }
        } catch {
            guard case .damaged(let page, let damage) = error else {
                throw LMDBError(.other, operation: "get")
            }
            throw self.error(page: page, damage)
        }
        return try result.get()
    }

    func place(
        _ database: Database, _ key: Span<UInt8>, _ waiting: Waiting
    ) throws(LMDBError) -> ValuePlace {
        do throws(TreeFailure) {
            let tree = try self.existingTree(database, waiting)
            let pages = self.pages(waiting)
            guard let found = try pages.find(key, in: tree), found.isFound else { return .absent }
            return try pages.place(ofLeaf: found.leaf, at: found.index)
        } catch {
            guard case .damaged(let page, let damage) = error else { return .notResident }
            throw self.error(page: page, damage)
        }
    }

    func statistics(of database: Database) throws(LMDBError) -> DatabaseStatistics {
        do throws(TreeFailure) {
            return DatabaseStatistics(
                try self.existingTree(database, .allowed), pageSize: self.map.pageSize)
        } catch {
            guard case .damaged(let page, let damage) = error else { return DatabaseStatistics() }
            throw self.error(page: page, damage)
        }
    }

    /// The record of a database that was opened, so that every later snapshot has it, too; in one
    /// that was taken before it was made it is empty.
    func existingTree(
        _ database: Database, _ waiting: Waiting
    ) throws(TreeFailure) -> TreeRecord {
        guard let tree = try self.tree(database, waiting) else {
            if self.transaction < database.since { return .empty }
            throw .damaged(page: self.namesRoot, .record)
        }
        return tree
    }
}
