import CLMDB

/// What is to be called before a step of LMDB's, and after it.
extension WriteVetting {
    /// To be called before LMDB looks for `key`.
    func willGet(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let known = try self.known(database)
        try self.vetStep { () throws(TreeFailure) in
            _ = try self.find(key, in: known.record)
        }
    }

    /// To be called before LMDB puts `key`; the node that it replaces may be the larger.
    func willPut(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let known = try self.known(database)
        try self.vetStep { () throws(TreeFailure) in
            guard let (leaf, bytes) = try self.find(key, in: known.record) else { return }
            known.account.willReplace(in: leaf, bytes: bytes)
        }
    }

    /// To be called before LMDB deletes `key`, which may move nodes between pages.
    func willDelete(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let known = try self.known(database)
        try self.vetStep { () throws(TreeFailure) in
            let cursor = try self.path(to: key, in: known.record)
            guard let leaf = cursor.way.last else { return }
            let (removed, used) = try self.weight(of: leaf)
            let reach = known.account.willDelete(
                from: leaf.page, bytes: removed, used: used, nodes: leaf.count)
            guard let look = known.looksAround(cursor.way, reach: reach) else { return }
            try self.vetNeighbours(of: cursor, look, known.account)
        }
    }

    /// To be called before LMDB's cursor moves from `key` to the entry after it, or to the first
    /// that is not below `key`.
    func willMove(
        _ database: Database, past key: Span<UInt8>
    ) throws(LMDBError) {
        let known = try self.known(database)
        try self.vetStep { () throws(TreeFailure) in
            let cursor = try self.path(to: key, in: known.record)
            guard let leaf = cursor.way.last else { return }
            let staysInside = leaf.index + 1 < leaf.count
            if staysInside, !known.account.isTouched(leaf.page) { return }
            guard let look = known.looksAhead(of: cursor.way) else { return }
            try self.vetLeaves(beside: cursor, by: 1, look)
        }
    }

    /// To be called before LMDB's cursor moves to the first entry, or the last.
    func willMoveToEdge(_ database: Database, isFirst: Bool) throws(LMDBError) {
        let known = try self.known(database)
        try self.vetStep { () throws(TreeFailure) in
            self.kind = .plain
            var cursor = TreeCursor(self.pages(), known.record)
            guard try isFirst ? cursor.first() : cursor.last() else { return }
            try self.vetLeaves(beside: cursor, by: isFirst ? 1 : -1, known.account.reach)
        }
    }

    /// To be called after LMDB changed a database, with what it says of its size.
    func changed(_ database: Database, _ statistics: MDB_stat, key: Span<UInt8>) {
        self.isDirty = true
        guard let known = self.tree(database) else { return }
        let isSplit = known.account.changed(
            leafPages: UInt64(statistics.ms_leaf_pages),
            branchPages: UInt64(statistics.ms_branch_pages))
        if isSplit, let leaf = try? self.pages().find(key, in: known.record)?.leaf {
            known.account.wasSplit(leaf)
        }
    }

    /// The record of the database's committed tree, the way to it vetted.
    ///
    /// LMDB reads it on the first use in a transaction, and writes over it at the commit.
    func record(of database: Database) throws(LMDBError) -> TreeRecord {
        try self.known(database).record
    }

    private func known(_ database: Database) throws(LMDBError) -> KnownTree {
        if let known = self.tree(database) { return known }
        return try self.vet { () throws(TreeFailure) in
            guard let meta = self.meta else { throw .damaged(page: 0, .meta) }
            self.kind = .names
            let record =
                switch database {
                case .freePages: meta.free
                case .names: meta.names
                // One that was made in this very transaction has no committed pages.
                default:
                    try self.pages().namedTree(database.name.span, in: meta.names) ?? .empty
                }
            let known = KnownTree(record, pageSize: self.map.pageSize)
            self.note(known, of: database)
            return known
        }
    }

    private func tree(_ database: Database) -> KnownTree? {
        let trees = self.trees
        let index = Int(database.handle)
        return index < trees.count ? trees[index] : nil
    }

    private func note(_ tree: KnownTree, of database: Database) {
        var trees = exchange(&self.trees, with: [])
        // LMDB's handles are small numbers, given one after the other.
        while trees.count <= Int(database.handle) { trees.append(nil) }
        trees[Int(database.handle)] = tree
        self.trees = trees
    }

    /// To be called before LMDB looks up a database's name; false where there is none yet.
    func willOpen(_ name: String) throws(LMDBError) -> Bool {
        try self.vet { () throws(TreeFailure) -> Bool in
            guard let meta = self.meta else { throw .damaged(page: 0, .meta) }
            self.kind = .names
            let key = Array(name.utf8)
            let record = try self.pages().namedTree(key.span, in: meta.names)
            // LMDB will make it, or refuse.
            if record == nil { self.isDirty = true }
            return record != nil
        }
    }
}
