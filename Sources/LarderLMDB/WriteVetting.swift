import CLMDB
import Synchronization

/// Looks at the pages that LMDB will look at in a write transaction, before it does.
///
/// A page is looked at whole, once: LMDB reads nodes that no search comes to when it splits and
/// balances. What later commits of this process write is LMDB's own and needs no look. What anyone
/// else wrote does: after a commit of another process all is looked at anew, as at the beginning, and
/// so it is where the file was written to past LMDB, which is asked before each step and the commit.
/// What is written between that look and LMDB's own, some microseconds later, is not seen.
///
/// Of the working tree only the pages that are not dirty can be damaged. They are those of the last
/// commit, so this walks the committed tree: a key whose committed leaf is untouched is still
/// there; one whose leaf was touched is in a dirty page, because LMDB dirties both pages of every
/// move and merge. Which committed pages can stand *beside* a dirty one is the affair of
/// ``BalanceAccount``.
@safe final class WriteVetting: PageVisitor, @unchecked Sendable {
    // Invariant: used by the thread that has LMDB's write transaction, which is one at a time.
    private let map: PageMap
    private let soundness: Soundness
    /// Pages that were found sound, or written since.
    private var vetted = PageBits(lastPage: 0)
    /// The commit after which ``vetted`` holds.
    private var knownTransaction: UInt64?
    /// Free pages of the commit ``freeTransaction``, as long as that is the last: none may be used.
    private var free: PageBits?
    private var freeTransaction: UInt64?
    /// Pages that a walk through a whole tree has come to.
    private var seen: PageBits?
    private var meta: MetaRecord?
    private var kind = TreeKind.plain
    private let hasFailed = Atomic<Bool>(false)
    /// When the last commit of this process was written.
    private let committed = Mutex<FileStamp?>(nil)
    /// When the file was last written to, as far as the transaction knows.
    private var known: FileStamp?
    /// The transaction has changed something.
    private var isDirty = false
    /// What is known of each database in this transaction, by its handle.
    private var trees: [UInt32: (record: TreeRecord, account: BalanceAccount)] = [:]

    init(_ map: PageMap, _ soundness: Soundness) {
        self.map = map
        self.soundness = soundness
    }

    /// Whether LMDB's transaction may only be left alone, cursors and all.
    var mustAbandon: Bool { self.soundness.mustAbandon }

    // MARK: Transactions

    /// Looks at the meta page, and where it is time at all of the free tree.
    @unsafe func begin(_ handle: OpaquePointer) throws(LMDBError) {
        self.begin(nil)
        // The number of a write transaction is that of the commit which it may become.
        let transaction = UInt64(unsafe mdb_txn_id(handle)) &- 1
        self.known = self.map.askStamp()
        if self.known != self.committed.withLock({ $0 }) { self.knownTransaction = nil }
        // The number of a commit that failed can be another process's now.
        if self.hasFailed.exchange(false, ordering: .acquiringAndReleasing) {
            self.knownTransaction = nil
        }
        try self.vet { () throws(TreeFailure) in
            let meta = try Reader.roots(of: transaction, self.map).meta.get()
            self.meta = meta
            if self.knownTransaction != transaction {
                self.vetted = PageBits(lastPage: meta.lastPage)
                try self.vetFreeTree(meta, transaction)
                self.knownTransaction = transaction
                self.freeTransaction = transaction
            }
            if self.freeTransaction != transaction { self.free = nil }
            self.vetted.grow(lastPage: meta.lastPage)
        }
    }

    /// Begins for a transaction of LMDB's that changes nothing, on the snapshot of `meta`.
    func begin(_ meta: MetaRecord?) {
        self.trees.removeAll(keepingCapacity: true)
        self.isDirty = false
        self.meta = meta
        self.vetted.grow(lastPage: meta?.lastPage ?? 0)
    }

    /// To be called before the transaction `number` is committed, while nobody else can write.
    ///
    /// One that changed nothing does not become a commit, and its number will be another's. Any
    /// other has LMDB write to the tree of names and to that of free pages.
    func willCommit(_ number: UInt64) throws(LMDBError) {
        guard self.isDirty else { return }
        try self.vet { () throws(TreeFailure) in
            guard try self.hasForgotten(), let meta = self.meta else { return }
            self.kind = .names
            var cursor = TreeCursor(self.pages(), meta.names)
            var isThere = try cursor.first()
            while isThere { isThere = try cursor.next() }
        }
        self.knownTransaction = number
    }

    /// To be called after a commit, by which time others may write.
    func commitSucceeded() {
        let stamp = self.map.askStamp()
        self.committed.withLock { $0 = stamp }
    }

    /// Forgets which pages are sound where somebody has written to the file since the last look, and
    /// looks at what LMDB may read at any step.
    ///
    /// LMDB itself may have written, to pages that were free (`mdb_page_spill`): then it is in vain.
    ///
    /// - Returns: whether it did.
    private func hasForgotten() throws(TreeFailure) -> Bool {
        let stamp = self.map.askStamp()
        guard stamp != self.known, let meta = self.meta else { return false }
        self.known = stamp
        self.vetted = PageBits(lastPage: meta.lastPage)
        try self.vetFreeTree(meta, meta.transaction)
        self.freeTransaction = meta.transaction
        return true
    }

    /// To be called when a commit failed, by which time others may write.
    func commitFailed() {
        self.hasFailed.store(true, ordering: .releasing)
    }

    /// LMDB takes page numbers from this tree and believes them: all of it is read.
    private func vetFreeTree(_ meta: MetaRecord, _ transaction: UInt64) throws(TreeFailure) {
        // What was free after an earlier commit may be in use by now.
        self.free = nil
        var free = PageBits(lastPage: meta.lastPage)
        let check = PageCheck(pageSize: self.map.pageSize, lastPage: meta.lastPage)
        self.kind = .free
        self.seen = PageBits(lastPage: meta.lastPage)
        defer { self.seen = nil }
        var cursor = TreeCursor(self.pages(meta), meta.free)
        var isThere = try cursor.first()
        while isThere {
            let damage = try cursor.withEntry { (key, list) throws(LMDBError) -> PageDamage? in
                guard let freed = key.number(at: 0, as: UInt64.self), freed <= transaction else {
                    return PageDamage.freeList
                }
                return check.damage(ofFreeList: list) { free.insert($0) ? nil : .freeList }
            }
            if case .success(let damage?) = damage {
                throw .damaged(page: cursor.way.last?.page ?? meta.free.root, damage)
            }
            isThere = try cursor.next()
        }
        if let root = [meta.free.root, meta.names.root].first(where: free.contains) {
            throw .damaged(page: root, .freeAndUsed)
        }
        self.free = free
    }

    // MARK: Keys

    /// To be called before LMDB looks for `key`.
    func willGet(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let record = try self.record(of: database)
        try self.vetStep { () throws(TreeFailure) in
            _ = try self.path(to: key, in: record)
        }
    }

    /// To be called before LMDB puts `key`; the node that it replaces may be the larger.
    func willPut(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let record = try self.record(of: database)
        try self.vetStep { () throws(TreeFailure) in
            let cursor = try self.path(to: key, in: record)
            guard let leaf = cursor.way.last else { return }
            self.trees[database.handle]?.account.willReplace(
                in: leaf.page, bytes: try self.weight(of: leaf).node)
        }
    }

    /// To be called before LMDB deletes `key`, which may move nodes between pages.
    func willDelete(_ database: Database, _ key: Span<UInt8>) throws(LMDBError) {
        let record = try self.record(of: database)
        try self.vetStep { () throws(TreeFailure) in
            let cursor = try self.path(to: key, in: record)
            guard let leaf = cursor.way.last, let known = self.trees[database.handle] else {
                return
            }
            let (removed, used) = try self.weight(of: leaf)
            var account = known.account
            let reach = account.willDelete(
                from: leaf.page, bytes: removed, used: used, nodes: leaf.count)
            self.trees[database.handle] = (record, account)
            try self.vetNeighbours(of: cursor, reach, account)
        }
    }

    /// To be called before LMDB's cursor moves from `key` to the entry after it, or to the first
    /// that is not below `key`.
    func willMove(
        _ database: Database, past key: Span<UInt8>
    ) throws(LMDBError) {
        let record = try self.record(of: database)
        try self.vetStep { () throws(TreeFailure) in
            let cursor = try self.path(to: key, in: record)
            guard let leaf = cursor.way.last, let known = self.trees[database.handle] else {
                return
            }
            let staysInside = leaf.index + 1 < leaf.count
            if staysInside, !known.account.isTouched(leaf.page) { return }
            try self.vetLeaves(beside: cursor, by: 1, known.account.reach)
        }
    }

    /// To be called before LMDB's cursor moves to the first entry, or the last.
    func willMoveToEdge(_ database: Database, isFirst: Bool) throws(LMDBError) {
        let record = try self.record(of: database)
        try self.vetStep { () throws(TreeFailure) in
            self.kind = .plain
            var cursor = TreeCursor(self.pages(), record)
            guard try isFirst ? cursor.first() : cursor.last() else { return }
            guard let known = self.trees[database.handle] else { return }
            try self.vetLeaves(beside: cursor, by: isFirst ? 1 : -1, known.account.reach)
        }
    }

    /// To be called after LMDB changed a database, with what it says of its size.
    func changed(_ database: Database, _ statistics: MDB_stat, key: Span<UInt8>) {
        self.isDirty = true
        guard let known = self.trees[database.handle] else { return }
        var account = known.account
        let isSplit = account.changed(
            leafPages: UInt64(statistics.ms_leaf_pages),
            branchPages: UInt64(statistics.ms_branch_pages))
        if isSplit, let leaf = try? self.pages().find(key, in: known.record)?.leaf {
            account.wasSplit(leaf)
        }
        self.trees[database.handle] = (known.record, account)
    }

    /// The record of the database's committed tree, the way to it vetted.
    ///
    /// LMDB reads it on the first use in a transaction, and writes over it at the commit.
    func record(of database: Database) throws(LMDBError) -> TreeRecord {
        if let known = self.trees[database.handle] { return known.record }
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
            self.trees[database.handle] = (record, BalanceAccount(record, self.map.pageSize))
            return record
        }
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

    /// Throws the error for a return code of LMDB's other than success; one that speaks of damage
    /// makes the environment unsound.
    func check(_ returnCode: Int32, _ operation: StaticString) throws(LMDBError) {
        if returnCode == MDB_SUCCESS { return }
        let error = LMDBError(returnCode: returnCode, operation: operation)
        guard error.code == .corrupted else { throw error }
        if returnCode == AssertedCalls.assertionFailed { self.soundness.noteAssertion() }
        throw self.soundness.lose(error)
    }

    /// Lends what LMDB points to, where that lies in the file or in a dirty page.
    @unsafe func lend<R>(
        _ value: MDB_val, _ body: (Span<UInt8>) throws(LMDBError) -> R
    ) throws(LMDBError) -> R {
        if let start = unsafe value.mv_data {
            try self.vet { () throws(TreeFailure) in
                try self.map.check(
                    address: UInt(bitPattern: start), count: unsafe value.mv_size)
            }
        }
        return try unsafe LarderLMDB.lend(value, body)
    }

    // MARK: Walks

    /// Runs a look at pages; damage makes the environment unsound.
    private func vet<R>(_ body: () throws(TreeFailure) -> R) throws(LMDBError) -> R {
        do throws(TreeFailure) {
            return try body()
        } catch {
            guard case .damaged(let page, let damage) = error else {
                throw LMDBError(.other, operation: "vet")
            }
            throw self.soundness.lose(LMDBError(damage, page: page))
        }
    }

    /// Runs a look at pages before a step of LMDB's.
    private func vetStep<R>(_ body: () throws(TreeFailure) -> R) throws(LMDBError) -> R {
        try self.vet { () throws(TreeFailure) in
            _ = try self.hasForgotten()
            return try body()
        }
    }

    private func pages(_ meta: MetaRecord? = nil) -> TreePages {
        TreePages(
            map: self.map, lastPage: (meta ?? self.meta)?.lastPage ?? 0, waiting: .allowed,
            visitor: self)
    }

    /// The way to `key` in the committed tree, and the overflow pages of its value.
    private func path(
        to key: borrowing Span<UInt8>, in record: TreeRecord
    ) throws(TreeFailure) -> TreeCursor {
        self.kind = .plain
        var cursor = TreeCursor(self.pages(), record)
        guard try cursor.search(key), let leaf = cursor.way.last else { return cursor }
        try self.vetValue(of: leaf)
        return cursor
    }

    /// LMDB frees as many pages as the first one's header says, and lends what the node says.
    private func vetValue(of leaf: TreeCursor.Step) throws(TreeFailure) {
        let pages = self.pages()
        let page = try unsafe pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try pages.header(bytes, leaf.page, isLeaf: true)
        let node = try pages.node(bytes, header, leaf.index, isLeaf: true)
        guard node.isBig else { return }
        _ = try unsafe pages.overflow(node, bytes, inLeaf: leaf.page)
        let first = node.firstOverflowPage(bytes)
        if self.free?.contains(first) == true { throw .damaged(page: first, .freeAndUsed) }
    }

    /// Bytes of the node that the way ends at, if there is one, and of all nodes of its page.
    private func weight(of leaf: TreeCursor.Step) throws(TreeFailure) -> (node: Int, page: Int) {
        let pages = self.pages()
        let page = try unsafe pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try pages.header(bytes, leaf.page, isLeaf: true)
        let used = header.used(pageSize: self.map.pageSize)
        guard leaf.index < leaf.count else { return (0, used) }
        let node = try pages.node(bytes, header, leaf.index, isLeaf: true)
        return (node.size(isLeaf: true) + 2, used)
    }

    /// The pages that LMDB may look at when it balances the tree around a leaf.
    private func vetNeighbours(
        of cursor: borrowing TreeCursor, _ reach: Int, _ account: BalanceAccount
    ) throws(TreeFailure) {
        guard reach > 0 else { return }
        try self.vetLeaves(beside: cursor, by: -1, reach)
        try self.vetLeaves(beside: cursor, by: 1, reach)
        var level = cursor.way.count - 2
        while level > 0 {
            guard account.mayBalanceBranch(nodes: cursor.way[level].count) else { return }
            // To give a branch page another first child LMDB looks for the lowest key below it
            // (mdb_page_search_lowest): all the way down.
            var own = cursor.copy()
            own.end(atLevel: level)
            try own.descendToFirst()
            for step in [-1, 1] {
                var beside = cursor.copy()
                for _ in 0..<account.branchReach {
                    guard try beside.step(atLevel: level, by: step) else { break }
                    var below = beside.copy()
                    try below.descendToFirst()
                }
            }
            level -= 1
        }
    }

    /// More leaves than this are not looked at on either side.
    private static let farthest = 256

    private func vetLeaves(
        beside cursor: borrowing TreeCursor, by step: Int, _ reach: Int
    ) throws(TreeFailure) {
        var beside = cursor.copy()
        let level = cursor.way.count - 1
        var left = reach
        var total = 0
        while left > 0, total < Self.farthest, try beside.step(atLevel: level, by: step),
            let leaf = beside.way.last
        {
            total += 1
            // A leaf that is nearly empty as it is may vanish at once, and does not count.
            let used = try self.weight(of: leaf).page
            if used * 4 >= self.map.pageSize { left -= 1 }
        }
    }

    // MARK: Pages

    func arrived(
        at number: UInt64, _ page: borrowing Span<UInt8>, isLeaf: Bool
    ) throws(TreeFailure) {
        if self.seen?.insert(number) == false { throw .damaged(page: number, .usedTwice) }
        if self.vetted.contains(number) { return }
        let lastPage = self.meta?.lastPage ?? 0
        let check = PageCheck(pageSize: self.map.pageSize, lastPage: lastPage)
        let damage = check.damage(of: page, number: number, isLeaf: isLeaf, kind: self.kind)
        if let damage { throw .damaged(page: number, damage) }
        if self.free?.contains(number) == true { throw .damaged(page: number, .freeAndUsed) }
        self.vetted.insert(number)
    }
}
