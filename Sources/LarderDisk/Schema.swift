import LarderLMDB
import LarderStore

/// The databases of a cache file.
///
/// | name | key | value |
/// | --- | --- | --- |
/// | `meta` | `state` | ``StoreMeta`` |
/// | `meta` | `search` | nothing; there once a key that leaves the query out has been stored |
/// | `objects` | hash of the cache key, complement of the id | ``ObjectRecord`` |
/// | `segments` | id, index | ``Segment`` |
/// | `queue` | number, the oldest first: the small queue of eviction | ``QueueEntry`` |
/// | `main` | the same for the main queue | ``QueueEntry`` |
/// | `ghosts` | number | a chunk of the `GhostTable` on a page of its own, behind its checksum |
/// | `pending` | id of a body that is being written | nothing |
/// | `garbage` | id of a body that is being deleted | nothing |
///
/// The first format had neither `main` nor `ghosts`, and nothing else that differs: what it holds is
/// taken over as it lies, all of it in the small queue. A larder of that time sets a file of this
/// format aside, as its number is another.
///
/// A body belongs to a record in `objects`, or is named in `pending` or `garbage`: none is lost,
/// whenever the process dies.
///
/// A class: each look-up asks for it, and copied it would be nine references.
final class Schema: Sendable {
    let meta: Database
    let objects: Database
    let segments: Database
    let queue: Database
    let pending: Database
    let garbage: Database
    let main: Database
    let ghosts: Database
    /// All of them, once each.
    let all: [Database]

    private static let formerNames = ["meta", "objects", "segments", "queue", "pending", "garbage"]
    static let names = Schema.formerNames + ["main", "ghosts"]

    /// Opens the databases; throws `.notFound` where one is missing and not to be made.
    ///
    /// A file of the first format may lack two of them. A process that only looks gets `queue` in
    /// their place, which holds all that there is of queues; one that writes makes them.
    convenience init(_ environment: Environment, creating: Bool) throws(LMDBError) {
        try self.init(Self.open(environment, creating: creating))
    }

    private static func open(
        _ environment: Environment, creating: Bool
    ) throws(LMDBError) -> [Database] {
        do throws(LMDBError) {
            return try environment.openDatabases(Self.names, creating: creating)
        } catch {
            guard error.code == .notFound, !creating else { throw error }
            let opened = try environment.openDatabases(Self.formerNames, creating: false)
            let former = try Schema(opened)
            let meta = try environment.read { (transaction) throws(LMDBError) in
                try former.readMeta(transaction)
            }
            guard meta?.format == StoreMeta.formerFormat else { throw error }
            if environment.options.isReadOnly { return opened }
            return try environment.openDatabases(Self.names, creating: true)
        }
    }

    private init(_ opened: [Database]) throws(LMDBError) {
        guard opened.count >= Self.formerNames.count else {
            throw LMDBError(.notFound, operation: "mdb_dbi_open")
        }
        self.all = opened
        self.meta = opened[0]
        self.objects = opened[1]
        self.segments = opened[2]
        self.queue = opened[3]
        self.pending = opened[4]
        self.garbage = opened[5]
        self.main = opened.count == Self.names.count ? opened[6] : opened[3]
        self.ghosts = opened.count == Self.names.count ? opened[7] : opened[3]
    }

    /// The database of a queue of eviction.
    func database(of queue: EvictionRules.Queue) -> Database {
        switch queue {
        case .small: self.queue
        case .main: self.main
        }
    }

    /// The queues that the file has: one in the first format.
    var queues: [EvictionRules.Queue] { self.main == self.queue ? [.small] : [.small, .main] }

    /// What the store remembers of itself; nil where that is missing or not to be understood.
    func readMeta(_ transaction: borrowing ReadTransaction) throws(LMDBError) -> StoreMeta? {
        let key = StoreMeta.key
        let found = try transaction.get(self.meta, key.span) { StoreMeta($0) }
        return found ?? nil
    }

    private static let searchKey = Array("search".utf8)

    /// Whether anything was ever stored under a key that leaves the query out.
    func holdsSearch(_ transaction: borrowing ReadTransaction) throws(LMDBError) -> Bool {
        try transaction.contains(self.meta, Self.searchKey.span)
    }

    func noteSearch(_ transaction: borrowing WriteTransaction) throws(LMDBError) {
        try transaction.put(self.meta, Self.searchKey.span, Span())
    }

    func writeMeta(
        _ meta: StoreMeta, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) {
        let key = StoreMeta.key
        try transaction.put(self.meta, key.span, meta.encoded().span)
    }
}
