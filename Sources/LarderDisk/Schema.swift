import LarderLMDB

/// The databases of a cache file.
///
/// | name | key | value |
/// | --- | --- | --- |
/// | `meta` | `state` | ``StoreMeta`` |
/// | `meta` | `search` | nothing; there once a key that leaves the query out has been stored |
/// | `objects` | hash of the cache key, complement of the id | ``ObjectRecord`` |
/// | `segments` | id, index | ``Segment`` |
/// | `queue` | number, the oldest first | key in `objects` |
/// | `pending` | id of a body that is being written | nothing |
/// | `garbage` | id of a body that is being deleted | nothing |
///
/// A body belongs to a record in `objects`, or is named in `pending` or `garbage`: none is lost,
/// whenever the process dies.
struct Schema: Sendable {
    var meta: Database
    var objects: Database
    var segments: Database
    var queue: Database
    var pending: Database
    var garbage: Database

    static let names = ["meta", "objects", "segments", "queue", "pending", "garbage"]

    /// Opens the databases; throws `.notFound` where one is missing and not to be made.
    init(_ environment: Environment, creating: Bool) throws(LMDBError) {
        let opened = try environment.openDatabases(Self.names, creating: creating)
        guard opened.count == Self.names.count else {
            throw LMDBError(.notFound, operation: "mdb_dbi_open")
        }
        self.meta = opened[0]
        self.objects = opened[1]
        self.segments = opened[2]
        self.queue = opened[3]
        self.pending = opened[4]
        self.garbage = opened[5]
    }

    var all: [Database] {
        [self.meta, self.objects, self.segments, self.queue, self.pending, self.garbage]
    }

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
