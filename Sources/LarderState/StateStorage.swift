import Glibc
import LarderHTTP
import LarderLMDB

/// The LMDB file of a state: two databases, `meta` and `records`, and nothing in clear but
/// ``StateMeta``.
///
/// A commit is on the disk when it returns. lmdb.h: without `MDB_NOSYNC` and `MDB_NOMETASYNC`, whose
/// descriptions say what they give up, `mdb_txn_commit` writes the pages, waits for fdatasync(2), and
/// writes the meta page through a descriptor that was opened with `O_DSYNC`. Here commits are few and
/// small, and what they hold cannot be fetched again.
///
/// The file reaches to the end of its map from the start, as a hole. Its last pages may be given free
/// before they were ever written; a process that was killed right then would otherwise leave a
/// file that looks cut short.
struct StateStorage {
    let environment: Environment
    let meta: Database
    let records: Database
    let mapSize: UInt64

    private static let names = ["meta", "records"]
    private static let initialSize: UInt64 = 16 << 20

    /// Makes an empty file, replacing none, and leaves it closed.
    static func make(_ path: String, meta: StateMeta) throws(LMDBError) {
        let environment = try Environment.open(path: path, options: Self.options(initialSize))
        defer { environment.close() }
        let databases = try environment.openDatabases(Self.names, creating: true)
        let (name, description) = (StateMeta.key, meta.encoded())
        try environment.write { (transaction) throws(LMDBError) in
            guard let database = databases.first else { return }
            try transaction.put(database, name.span, description.span)
        }
    }

    /// Opens a file that was looked at; throws `.notFound` or `.corrupted` where it is no state.
    ///
    /// - Parameter room: how large it should be able to grow at least.
    static func open(_ path: String, room: UInt64 = 0) throws(LMDBError) -> StateStorage {
        let size = try Self.extend(path, to: room)
        let environment = try Environment.open(path: path, options: Self.options(size))
        do throws(LMDBError) {
            let databases = try environment.openDatabases(Self.names, creating: false)
            guard databases.count == 2 else {
                throw LMDBError(.corrupted, operation: "a database is missing")
            }
            return StateStorage(
                environment: environment, meta: databases[0], records: databases[1], mapSize: size)
        } catch {
            environment.close()
            throw error
        }
    }

    private static func options(_ size: UInt64) -> EnvironmentOptions {
        EnvironmentOptions(
            mapSize: size, maximumDatabases: 4, maximumReaders: 16, durability: .full,
            readsAhead: false)
    }

    /// Makes the file as long as its map is going to be; only while nobody has it open.
    private static func extend(_ path: String, to room: UInt64) throws(LMDBError) -> UInt64 {
        let descriptor = try OwnPlace.open(path, O_RDWR)
        defer { _ = close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        let now = UInt64(clamping: status.st_size)
        let size = max(now, room, Self.initialSize) / 4096 * 4096
        guard size > now else { return size }
        guard ftruncate(descriptor, off_t(clamping: size)) == 0, fsync(descriptor) == 0 else {
            throw LMDBError(returnCode: errno, operation: "ftruncate")
        }
        return size
    }

    // MARK: Reading

    func readMeta() throws(LMDBError) -> StateMeta.Finding? {
        let name = StateMeta.key
        return try self.environment.read { (transaction) throws(LMDBError) in
            try transaction.get(self.meta, name.span) { StateMeta.decode(Self.copy($0)) }
        }
    }

    /// A record as it lies there.
    struct Sealed {
        var key: [UInt8]
        var value: [UInt8]
    }

    /// All records whose key begins with `prefix`, in the order of their keys.
    func all(_ prefix: [UInt8] = []) throws(LMDBError) -> [Sealed] {
        try self.environment.read { (transaction) throws(LMDBError) in
            try self.all(prefix, transaction)
        }
    }

    func all(
        _ prefix: [UInt8], _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> [Sealed] {
        try transaction.withCursor(self.records) { (cursor) throws(LMDBError) in
            var found: [Sealed] = []
            var entry = try cursor.seek(atOrAfter: prefix.span) { (key, value) in
                Sealed(key: Self.copy(key), value: Self.copy(value))
            }
            while let sealed = entry, sealed.key.starts(with: prefix) {
                found.append(sealed)
                entry = try cursor.next { (key, value) in
                    Sealed(key: Self.copy(key), value: Self.copy(value))
                }
            }
            return found
        }
    }

    /// Whether the first record at or after `prefix` begins with it.
    func holds(
        _ prefix: [UInt8], _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Bool {
        try transaction.withCursor(self.records) { (cursor) throws(LMDBError) in
            let key = try cursor.seek(atOrAfter: prefix.span) { (key, _) in Self.copy(key) }
            return key?.starts(with: prefix) ?? false
        }
    }

    private static func copy(_ bytes: Span<UInt8>) -> [UInt8] {
        unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
    }
}
