/// How an environment is opened.
package struct EnvironmentOptions: Sendable {
    /// What a commit waits for.
    package enum Durability: Sendable {
        /// Data and meta page are on the disk before a commit returns.
        case full
        /// The data is on the disk before a commit returns, the meta page is left to the next sync.
        ///
        /// lmdb.h, `MDB_NOMETASYNC`: "This optimization maintains database integrity, but a system
        /// crash may undo the last committed transaction."
        case dataOnly
    }

    /// Bound of the file, rounded down to whole pages; 0 takes the size that the file itself names.
    package var mapSize: UInt64
    package var maximumDatabases: UInt32
    /// Slots for read transactions, over all processes; only the first process to open decides.
    package var maximumReaders: UInt32
    package var isReadOnly: Bool
    package var durability: Durability
    /// Whether the kernel reads ahead of page faults in the map.
    package var readsAhead: Bool
    /// Whether nobody else may commit while it is open; a commit that is not its own makes it unsound.
    package var isSoleWriter: Bool
    /// Told once when damage is found, from then on nothing is read or written any more.
    ///
    /// On the thread that found it, maybe inside its transaction: it must note it and return.
    package var damageObserver: (@Sendable (LMDBError) -> Void)?

    package init(
        mapSize: UInt64 = 0, maximumDatabases: UInt32 = 8, maximumReaders: UInt32 = 126,
        isReadOnly: Bool = false, durability: Durability = .full, readsAhead: Bool = true,
        isSoleWriter: Bool = false,
        damageObserver: (@Sendable (LMDBError) -> Void)? = nil
    ) {
        self.mapSize = mapSize
        self.maximumDatabases = maximumDatabases
        self.maximumReaders = maximumReaders
        self.isReadOnly = isReadOnly
        self.durability = durability
        self.readsAhead = readsAhead
        self.isSoleWriter = isSoleWriter
        self.damageObserver = damageObserver
    }
}

/// A named database inside an environment; valid for as long as that is open.
package struct Database: Hashable, Sendable {
    let handle: UInt32
    /// Its key in the database of names.
    let name: [UInt8]
    /// The commit that made it, where that was while it was opened; otherwise 0.
    let since: UInt64

    init(handle: UInt32, name: String, since: UInt64 = 0) {
        self.handle = handle
        self.name = Array(name.utf8)
        self.since = since
    }

    /// LMDB's own database of free pages, to be counted, never to be written.
    package static let freePages = Database(handle: 0, name: "")
    /// The database that holds the names of the others.
    static let names = Database(handle: 1, name: "")

    package static func == (left: Database, right: Database) -> Bool {
        left.handle == right.handle
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.handle)
    }
}

/// How much a database holds, in entries and pages.
package struct DatabaseStatistics: Sendable, Equatable {
    package var pageSize: UInt64 = 0
    package var depth: UInt64 = 0
    package var branchPages: UInt64 = 0
    package var leafPages: UInt64 = 0
    package var overflowPages: UInt64 = 0
    package var entries: UInt64 = 0

    package init() {}

    init(_ tree: TreeRecord, pageSize: Int) {
        self.pageSize = UInt64(pageSize)
        self.depth = UInt64(tree.depth)
        self.branchPages = tree.branchPages
        self.leafPages = tree.leafPages
        self.overflowPages = tree.overflowPages
        self.entries = tree.entries
    }

    /// All pages of the database.
    package var pages: UInt64 { self.branchPages &+ self.leafPages &+ self.overflowPages }
}

/// How large an environment is.
package struct EnvironmentInformation: Sendable, Equatable {
    package var mapSize: UInt64 = 0
    /// The highest page number in use, or ever used: the file reaches up to it.
    package var lastPage: UInt64 = 0
    package var lastTransaction: UInt64 = 0
    package var maximumReaders: UInt32 = 0
    package var readers: UInt32 = 0

    package init() {}
}
