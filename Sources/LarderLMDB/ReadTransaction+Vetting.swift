extension ReadTransaction {
    /// Looks at all pages of all trees, as LMDB will when it copies them.
    ///
    /// Of values on overflow pages only the first page. Throws `.badTransaction` in a write
    /// transaction.
    func vetAll() throws(LMDBError) {
        guard let reader = self.reader, let meta = reader.meta else {
            throw LMDBError(.badTransaction, operation: "vet")
        }
        do throws(TreeFailure) {
            try TreeVetting(reader.map, meta).run()
        } catch {
            guard case .damaged(let page, let damage) = error else { return }
            throw reader.error(page: page, damage)
        }
    }
}

/// A walk through all trees of a snapshot that looks at each page whole.
private final class TreeVetting: PageVisitor {
    private let map: PageMap
    private let meta: MetaRecord
    private let check: PageCheck
    private var kind = TreeKind.free
    private var seen: PageBits

    init(_ map: PageMap, _ meta: MetaRecord) {
        self.map = map
        self.meta = meta
        self.check = PageCheck(pageSize: map.pageSize, lastPage: meta.lastPage)
        self.seen = PageBits(lastPage: meta.lastPage)
    }

    func run() throws(TreeFailure) {
        // LMDB counts the free pages by their lists.
        self.kind = .free
        var isSound = true
        var free = PageBits(lastPage: self.meta.lastPage)
        try self.walk(self.meta.free) { list in
            let damage = self.check.damage(ofFreeList: list) { free.insert($0) ? nil : .freeList }
            if damage != nil { isSound = false }
        }
        guard isSound else { throw .damaged(page: self.meta.free.root, .freeList) }
        self.kind = .names
        var records: [TreeRecord] = []
        try self.walk(self.meta.names) { value in
            if let record = TreeRecord(value, at: 0) { records.append(record) }
        }
        self.kind = .plain
        for record in records { try self.walk(record) { _ in } }
    }

    private func walk(
        _ tree: TreeRecord, _ body: (Span<UInt8>) -> Void
    ) throws(TreeFailure) {
        var cursor = TreeCursor(
            TreePages(
                map: self.map, lastPage: self.meta.lastPage, waiting: .allowed, visitor: self),
            tree)
        var isThere = try cursor.first()
        while isThere {
            _ = try cursor.withEntry { (_, value) throws(LMDBError) in body(value) }
            isThere = try cursor.next()
        }
    }

    func arrived(
        at number: UInt64, _ page: borrowing Span<UInt8>, isLeaf: Bool
    ) throws(TreeFailure) {
        guard self.seen.insert(number) else { throw .damaged(page: number, .usedTwice) }
        let damage = self.check.damage(of: page, number: number, isLeaf: isLeaf, kind: self.kind)
        if let damage { throw .damaged(page: number, damage) }
    }
}
