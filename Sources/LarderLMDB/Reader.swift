import CLMDB
import Synchronization

/// The roots of one snapshot, from the meta page of the commit that made it.
struct Snapshot {
    var transaction: UInt64
    var meta: MetaRecord
}

/// A read transaction of LMDB's, and what this process knows of the snapshot it stands on.
///
/// LMDB's part in a reader is the slot that keeps writers from the snapshot's pages; the pages
/// themselves are read by ``TreePages``.
@safe final class Reader {
    /// Invariant: in one hand at a time, the transaction's that runs on it or the idle list's.
    let handle: OpaquePointer
    let map: PageMap
    let soundness: Soundness
    private var snapshot: Snapshot?
    /// The records of the trees that were looked up, by the database's handle.
    private var trees: [TreeRecord?] = []
    private var copies: PageCopies?

    init(handle: OpaquePointer, map: PageMap, soundness: Soundness) {
        unsafe self.handle = handle
        self.map = map
        self.soundness = soundness
    }

    /// How often a snapshot is taken anew because writers passed it by meanwhile.
    private static let attempts = 100

    /// Finds the roots of the snapshot that LMDB has just taken.
    ///
    /// LMDB reads them from the meta page `txnid & 1` and tells nobody, so they are read there
    /// again. The commit after the next writes over that page, and begins to only when the next one
    /// has been announced to readers. So the roots are good if no later commit shows in the other
    /// meta page, or if LMDB, asked again, still names the same transaction.
    func begin() throws(LMDBError) {
        var before: (transaction: UInt64, roots: Roots)?
        for _ in 0..<Self.attempts {
            let transaction = UInt64(unsafe mdb_txn_id(self.handle))
            // Nothing was committed since: all that is known still holds.
            if let known = self.snapshot, known.transaction == transaction { return }
            self.trees = []
            self.snapshot = nil
            if let before, before.transaction == transaction {
                return try self.take(before.roots, transaction)
            }
            let roots = Self.roots(of: transaction, self.map)
            if !roots.mayBeChanging { return try self.take(roots, transaction) }
            before = (transaction, roots)
            unsafe mdb_txn_reset(self.handle)
            try unsafe LMDBError.check(mdb_txn_renew(self.handle), "mdb_txn_renew")
        }
        // A commit between each two instructions of ours: the metas are not what LMDB takes them
        // for.
        throw self.soundness.lose(LMDBError(.meta, page: 0))
    }

    private func take(_ roots: Roots, _ transaction: UInt64) throws(LMDBError) {
        switch roots.meta {
        case .success(let meta): self.snapshot = Snapshot(transaction: transaction, meta: meta)
        case .failure(let failure):
            guard case .damaged(_, let damage) = failure else { return }
            throw self.soundness.lose(LMDBError(damage, page: transaction & 1))
        }
    }

    /// What a look at the meta pages found.
    struct Roots {
        var meta: Result<MetaRecord, TreeFailure>
        /// A later commit shows, so that the meta page may have been changing while it was read.
        var mayBeChanging: Bool
    }

    /// The roots that the commit `transaction` made.
    static func roots(of transaction: UInt64, _ map: PageMap) -> Roots {
        do throws(TreeFailure) {
            let meta = try Self.meta(transaction & 1, map)
            // Whoever writes over that page has written the other one before.
            atomicMemoryFence(ordering: .acquiring)
            let other = try Self.meta(~transaction & 1, map)
            let mayBeChanging = other.map { $0.transaction > transaction } ?? true
            var damage: PageDamage?
            if let meta, meta.transaction == transaction, meta.pageSize == map.pageSize {
                damage = meta.objection
                if damage == nil {
                    return Roots(meta: .success(meta), mayBeChanging: mayBeChanging)
                }
            }
            return Roots(
                meta: .failure(.damaged(page: transaction & 1, damage ?? .meta)),
                mayBeChanging: mayBeChanging)
        } catch {
            return Roots(meta: .failure(error), mayBeChanging: false)
        }
    }

    private static func meta(_ number: UInt64, _ map: PageMap) throws(TreeFailure) -> MetaRecord? {
        let page = try unsafe map.bytes(
            ofPage: number, count: PageFormat.metaSize, lastPage: 1)
        return unsafe MetaRecord(page.span, number: number)
    }

    /// What the snapshot's meta page says; nil before ``begin()``.
    var meta: MetaRecord? { self.snapshot?.meta }

    /// The commit that made the snapshot.
    var transaction: UInt64 { self.snapshot?.transaction ?? 0 }

    var namesRoot: UInt64 { self.snapshot?.meta.names.root ?? PageFormat.noPage }

    func pages(_ waiting: Waiting) -> TreePages {
        TreePages(
            map: self.map, lastPage: self.snapshot?.meta.lastPage ?? 0, waiting: waiting,
            copies: waiting == .forbidden ? self.takeCopies() : nil)
    }

    /// Room for copies that no walk uses; what was copied before may be of another snapshot.
    private func takeCopies() -> PageCopies {
        var copies = self.copies
        self.copies = nil
        if !isKnownUniquelyReferenced(&copies) { copies = nil }
        let room = copies ?? PageCopies(pageSize: self.map.pageSize)
        room.forget()
        self.copies = room
        return room
    }

    /// The record of a database's tree; throws `.notFound` where the snapshot has none.
    @inline(__always)
    func tree(_ database: Database, _ waiting: Waiting) throws(TreeFailure) -> TreeRecord? {
        let place = Int(database.handle)
        if place < self.trees.count, let known = self.trees[place] { return known }
        let tree: TreeRecord?
        switch database {
        case .freePages: tree = self.snapshot?.meta.free
        case .names: tree = self.snapshot?.meta.names
        default: tree = try self.namedTree(database, waiting)
        }
        // Taken out to be changed: lent, the property would be checked at each use of it.
        var trees = self.trees
        self.trees = []
        while trees.count <= place { trees.append(nil) }
        trees[place] = tree
        self.trees = trees
        return tree
    }

    private func namedTree(
        _ database: Database, _ waiting: Waiting
    ) throws(TreeFailure) -> TreeRecord? {
        guard let meta = self.snapshot?.meta else { return nil }
        let pages = self.pages(waiting)
        return try pages.namedTree(database.name.span, in: meta.names)
    }

    /// Turns what a walk found into what callers see; damage makes the environment unsound.
    func error(page: UInt64, _ damage: PageDamage) -> LMDBError {
        self.soundness.lose(LMDBError(damage, page: page))
    }
}

extension TreePages {
    /// The record that the tree of names holds under `name`; nil where it holds none.
    func namedTree(
        _ name: borrowing Span<UInt8>, in names: TreeRecord
    ) throws(TreeFailure) -> TreeRecord? {
        guard let found = try self.find(name, in: names), found.isFound else { return nil }
        let page = try unsafe self.page(found.leaf, isLeaf: true)
        let bytes = unsafe page.span
        let header = try self.header(bytes, found.leaf, isLeaf: true)
        let node = try self.node(bytes, header, found.index, isLeaf: true)
        guard node.flags == PageFormat.subDatabase,
            node.valueCount == UInt64(PageFormat.recordSize),
            let record = TreeRecord(bytes, at: node.valueStart),
            record.isSane(lastPage: self.lastPage)
        else { throw .damaged(page: found.leaf, .record) }
        return record
    }
}
