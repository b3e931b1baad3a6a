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
    let map: PageMap
    private let soundness: Soundness
    /// Pages that were found sound, or written since.
    ///
    /// Taken out to be changed and put back, as others here: while a property is lent to a function,
    /// each use of it has to be checked at run time.
    private var vetted = PageBits()
    /// The commit after which ``vetted`` holds.
    private var knownTransaction: UInt64?
    /// Free pages of the commit ``freeTransaction``, as long as that is the last: none may be used.
    private(set) var free: PageBits?
    private var freeTransaction: UInt64?
    /// Pages that a walk through a whole tree has come to.
    private var seen: PageBits?
    private(set) var meta: MetaRecord?
    var kind = TreeKind.plain
    private let hasFailed = Atomic<Bool>(false)
    /// Whether nobody else may commit.
    private let isSole: Bool
    /// The last commit of this process's, or the one that it began with.
    private var ownTransaction: UInt64?
    /// The commit that this process has begun last; what became of it shows with the next.
    private var begunTransaction: UInt64?
    /// How many it has begun.
    private(set) var begunCount: UInt64 = 0
    /// Which of them was the last to fail.
    private let failedCount = Atomic<UInt64>(0)
    /// When the last commit of this process was written, or the file found as it is since.
    private let committed = Mutex<FileStamp?>(nil)
    /// When the file was last written to, as far as the transaction knows.
    private var known: FileStamp?
    /// The transaction has changed something.
    var isDirty = false
    /// What is known of each database in this transaction, at the place of its handle.
    var trees: [KnownTree?] = []

    init(_ map: PageMap, _ soundness: Soundness, isSole: Bool) {
        self.map = map
        self.soundness = soundness
        self.isSole = isSole
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
        let roots = Reader.roots(of: transaction, self.map)
        try self.checkIsOwn(transaction, isLast: !roots.mayBeChanging)
        try self.vet { () throws(TreeFailure) in
            let meta = try roots.meta.get()
            self.meta = meta
            if self.knownTransaction != transaction {
                self.vetted = PageBits(lastPage: meta.lastPage)
                try self.vetFreeTree(meta, transaction)
                self.knownTransaction = transaction
                self.freeTransaction = transaction
            }
            if self.freeTransaction != transaction { self.free = nil }
            self.makeRoom(lastPage: meta.lastPage)
        }
    }

    /// Throws where the last commit may be nobody else's, and is neither this process's nor what that
    /// began with.
    ///
    /// - Parameter isLast: the file has none after it. Who uses another table of readers counts by that.
    private func checkIsOwn(_ transaction: UInt64, isLast: Bool) throws(LMDBError) {
        guard self.isSole else { return }
        if self.failedCount.load(ordering: .acquiring) == self.begunCount {
            self.begunTransaction = nil
        }
        // What it begins with is what others have left: who was killed while it committed may have
        // left a meta page and not counted it.
        if let own = self.ownTransaction {
            // One that wrote nothing in the end has left its number to the next.
            guard transaction == own || transaction == self.begunTransaction, isLast else {
                throw self.soundness.lose(
                    LMDBError(.corrupted, operation: "another process has written to it"))
            }
        }
        self.ownTransaction = transaction
        self.begunTransaction = nil
    }

    /// Begins for a transaction of LMDB's that changes nothing, on the snapshot of `meta`.
    func begin(_ meta: MetaRecord?) {
        var trees = exchange(&self.trees, with: [])
        trees.removeAll(keepingCapacity: true)
        self.trees = trees
        self.isDirty = false
        self.meta = meta
        self.makeRoom(lastPage: meta?.lastPage ?? 0)
    }

    private func makeRoom(lastPage: UInt64) {
        var vetted = exchange(&self.vetted, with: PageBits())
        vetted.grow(lastPage: lastPage)
        self.vetted = vetted
    }

    /// To be called before the transaction `number` is committed, while nobody else can write.
    ///
    /// One that changed nothing does not become a commit, and its number will be another's; what was
    /// written to the file since it was last looked at was not written by it. Any other has LMDB write
    /// to the tree of names and to that of free pages.
    func willCommit(_ number: UInt64) throws(LMDBError) {
        guard self.isDirty else {
            let known = self.known
            return self.committed.withLock { $0 = known }
        }
        try self.vet { () throws(TreeFailure) in
            guard try self.hasForgotten(), let meta = self.meta else { return }
            self.kind = .names
            var cursor = TreeCursor(self.pages(), meta.names)
            var isThere = try cursor.first()
            while isThere { isThere = try cursor.next() }
        }
        self.knownTransaction = number
        self.begunTransaction = number
        self.begunCount += 1
    }

    /// To be called after a commit that wrote something, by which time others may write.
    func commitSucceeded() {
        let stamp = self.map.askStamp()
        self.committed.withLock { $0 = stamp }
    }

    /// Whether nobody has written to the file since the last commit of this process.
    var isFileUnchanged: Bool { self.map.askStamp() == self.committed.withLock { $0 } }

    /// Runs a write of this process's that changes no page: what was known stays known.
    func writing(_ body: () throws(LMDBError) -> Void) throws(LMDBError) {
        let isUnchanged = self.isFileUnchanged
        try body()
        if isUnchanged { self.commitSucceeded() }
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
        for tree in self.trees { tree?.forgetLooks() }
        try self.vetFreeTree(meta, meta.transaction)
        self.freeTransaction = meta.transaction
        return true
    }

    /// To be called when a commit failed, by which time others may write.
    ///
    /// - Parameter count: ``begunCount`` as it was when it began.
    func commitFailed(_ count: UInt64) {
        self.failedCount.store(count, ordering: .releasing)
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

    // MARK: Looks

    /// Runs a look at pages; damage makes the environment unsound.
    func vet<R>(_ body: () throws(TreeFailure) -> R) throws(LMDBError) -> R {
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
    func vetStep<R>(_ body: () throws(TreeFailure) -> R) throws(LMDBError) -> R {
        try self.vet { () throws(TreeFailure) in
            _ = try self.hasForgotten()
            return try body()
        }
    }

    func pages(_ meta: MetaRecord? = nil) -> TreePages {
        TreePages(
            map: self.map, lastPage: (meta ?? self.meta)?.lastPage ?? 0, waiting: .allowed,
            visitor: self)
    }

    // MARK: Pages

    func arrived(
        at number: UInt64, _ page: borrowing Span<UInt8>, isLeaf: Bool
    ) throws(TreeFailure) {
        if var seen = exchange(&self.seen, with: nil) {
            let isNew = seen.insert(number)
            self.seen = seen
            if !isNew { throw .damaged(page: number, .usedTwice) }
        }
        if self.vetted.contains(number) { return }
        let lastPage = self.meta?.lastPage ?? 0
        let check = PageCheck(pageSize: self.map.pageSize, lastPage: lastPage)
        let damage = check.damage(of: page, number: number, isLeaf: isLeaf, kind: self.kind)
        if let damage { throw .damaged(page: number, damage) }
        if self.free?.contains(number) == true { throw .damaged(page: number, .freeAndUsed) }
        var vetted = exchange(&self.vetted, with: PageBits())
        vetted.insert(number)
        self.vetted = vetted
    }
}
