import LarderHTTP
import LarderLMDB
import LarderStore

/// A cache file, found sound or newly made, and opened for writing.
///
/// What it costs does not depend on what the file holds: two meta pages, the roots, the state, and
/// the invalidations of groups and the ghosts of eviction, which are bounded in number.
struct OpenedCache {
    var files: DiskFiles
    var environment: Environment
    var schema: Schema
    var meta: StoreMeta
    var groups: GroupInvalidations<KeyHash>
    var ghosts: GhostTable
    /// Something may be stored under keys that leave the query out.
    var holdsSearch: Bool
    var statistics = StoreStatistics()
    var capacityPages: UInt64

    /// LMDB's pages are the operating system's; the file's own size of page is what counts.
    private static let usualPageSize: UInt64 = 4096

    /// Opens the file; where that cannot be used, sets it aside and makes a new one.
    static func open(
        _ files: DiskFiles, _ configuration: DiskConfiguration, now: Timestamp,
        _ report: (DiskEvent) -> Void
    ) throws(StoreError) -> OpenedCache {
        do throws(LMDBError) {
            if let reason = try Self.objection(files, configuration) {
                report(.setAside(name: try files.setAside(second: now.seconds), reason: reason))
            } else if let size = files.dataSize, size > configuration.capacity.bytes {
                try files.discard()
                report(
                    .discarded(
                        reason: "\(size) bytes, and the capacity is "
                            + "\(configuration.capacity.bytes)"))
            }
            if let opened = try Self.openSound(files, configuration, now) { return opened }
            let reason = "not a cache of format \(StoreMeta.format)"
            report(.setAside(name: try files.setAside(second: now.seconds), reason: reason))
            guard let opened = try Self.openSound(files, configuration, now) else {
                throw LMDBError(.corrupted, operation: "open")
            }
            return opened
        } catch {
            throw StoreError(error, path: files.data)
        }
    }

    /// What speaks against giving the file to LMDB; nil where nothing does.
    private static func objection(
        _ files: DiskFiles, _ configuration: DiskConfiguration
    ) throws(LMDBError) -> String? {
        // A file that this process has open is not to be touched, not even to look at it.
        if Environment.shared(path: files.data) != nil {
            throw LMDBError(.alreadyOpen, operation: "open")
        }
        guard case .unsound(let reason) = try FileHeader.check(path: files.data) else { return nil }
        return reason
    }

    /// nil where the file is LMDB's, but not one of this format.
    private static func openSound(
        _ files: DiskFiles, _ configuration: DiskConfiguration, _ now: Timestamp
    ) throws(LMDBError) -> OpenedCache? {
        let capacity = configuration.capacity.bytes / Self.usualPageSize * Self.usualPageSize
        // Read-ahead stays on: a segment is sixteen pages side by side, and with MDB_NORDAHEAD the
        // kernel would fetch them one fault at a time.
        let options = EnvironmentOptions(
            mapSize: capacity, maximumReaders: configuration.maximumReaders,
            durability: .dataOnly)
        let environment: Environment
        do throws(LMDBError) {
            environment = try Environment.open(path: files.data, options: options)
        } catch {
            switch error.code {
            case .notLMDB, .corrupted, .versionMismatch: return nil
            default: throw error
            }
        }
        do throws(LMDBError) {
            let isNew = try environment.information().lastTransaction == 0
            let schema = try Schema(environment, creating: isNew)
            if isNew {
                try environment.write { (transaction) throws(LMDBError) in
                    try schema.writeMeta(
                        StoreMeta(seed: UInt64.random(in: .min ... .max)), transaction)
                }
            }
            try environment.clearStaleReaders()
            try Self.migrate(environment, schema)
            let opened = try Self.describe(environment, schema, files, capacity, now)
            if opened == nil { environment.close() }
            return opened
        } catch {
            environment.close()
            switch error.code {
            case .notFound, .corrupted, .versionMismatch: return nil
            default: throw error
            }
        }
    }

    /// Takes over a file of the former format, in one small transaction: see ``Schema``.
    private static func migrate(
        _ environment: Environment, _ schema: Schema
    ) throws(LMDBError) {
        let former = try environment.read { (transaction) throws(LMDBError) in
            try schema.readMeta(transaction)
        }
        guard var meta = former, meta.format == StoreMeta.formerFormat else { return }
        try environment.write { (transaction) throws(LMDBError) in
            meta.migrate(entries: try transaction.reading.statistics(of: schema.queue).entries)
            try schema.writeMeta(meta, transaction)
        }
    }

    private static func describe(
        _ environment: Environment, _ schema: Schema, _ files: DiskFiles, _ capacity: UInt64,
        _ now: Timestamp
    ) throws(LMDBError) -> OpenedCache? {
        try environment.read { (transaction) throws(LMDBError) in
            guard let meta = try schema.readMeta(transaction) else { return nil }
            let objects = try transaction.statistics(of: schema.objects)
            let pageSize = max(512, objects.pageSize)
            var opened = OpenedCache(
                files: files, environment: environment, schema: schema, meta: meta,
                groups: try schema.readGroups(transaction, now: now),
                ghosts: try schema.readGhosts(
                    transaction, capacity: ByteCount(capacity), clock: meta.ghostClock),
                holdsSearch: try schema.holdsSearch(transaction),
                capacityPages: capacity / pageSize)
            var disk = StoreStatistics.Tier()
            disk.objects = objects.entries
            disk.bytes = try transaction.pagesInUse(schema.all) &* pageSize
            disk.capacity = capacity
            disk.evictions = meta.evictions
            opened.statistics.disk = disk
            opened.statistics.fileBytes = try environment.fileSize()
            return opened
        }
    }
}
