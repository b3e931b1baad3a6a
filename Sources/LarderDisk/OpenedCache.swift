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
    /// Pages in use.
    var pages: UInt64

    /// After so many processes in a row that ended soon after opening a file, all of its trees are
    /// looked at; the usual opening does not depend on what the file holds.
    private static let suspicion = 3
    /// How many such processes are no chance, though the looks at it found nothing.
    ///
    /// Many: a program that signals end before it has asked for anything looks the same. Not endless:
    /// what a look does not see, and ends the process nevertheless, would do so for ever.
    private static let earlyEndLimit = 32

    /// Opens the file; where that cannot be used, sets it aside and makes a new one.
    ///
    /// - Parameters:
    ///   - lock: has what the holder before left, and gets the mark of an opening when it comes to it.
    ///   - mayGoOn: asked now and then while the file is looked at whole, which may take long; where it
    ///     answers false, the opening ends with `.cancelled`.
    static func open(
        _ files: DiskFiles, _ configuration: DiskConfiguration, lock: WriterLock, now: Timestamp,
        mayGoOn: () -> Bool, _ report: (DiskEvent) -> Void
    ) throws(StoreError) -> OpenedCache {
        do throws(LMDBError) {
            // A file that this process has open is not to be touched, not even to look at it.
            if Environment.shared(path: files.data) != nil {
                throw LMDBError(.alreadyOpen, operation: "open")
            }
            files.removeNext()
            if lock.wasOwed {
                try Self.discard(files, report)
                lock.forgetEarlyEnds()
            } else if let reason = try Self.objection(files, lock.earlyEnds, mayGoOn: mayGoOn) {
                try Self.setAside(files, reason, now, report)
            }
            try lock.noteOpening()
            if let opened = try Self.openSound(files, configuration, now) { return opened }
            try Self.setAside(files, "not a cache of format \(StoreMeta.format)", now, report)
            guard let opened = try Self.openSound(files, configuration, now) else {
                throw LMDBError(.corrupted, operation: "a new file cannot be read back")
            }
            return opened
        } catch {
            throw StoreError(error, path: files.data)
        }
    }

    private static func setAside(
        _ files: DiskFiles, _ reason: String, _ now: Timestamp, _ report: (DiskEvent) -> Void
    ) throws(LMDBError) {
        let name = try files.setAside(second: now.seconds) { aside in
            report(.asideRemoved(name: aside.name, bytes: aside.bytes))
        }
        files.removeReaderTable()
        report(.setAside(name: name, reason: reason))
    }

    /// Takes a file away that serves what was removed: a removal that was acknowledged is a promise, and
    /// what is stored can be fetched again.
    ///
    /// It is not damaged, so that nobody need look at it. Kept by another name, it would take the room
    /// for want of which the disk may have refused.
    private static func discard(
        _ files: DiskFiles, _ report: (DiskEvent) -> Void
    ) throws(LMDBError) {
        guard files.dataSize ?? 0 > 0 else { return }
        try files.removeData()
        files.removeReaderTable()
        report(
            .discarded(
                reason: "responses were removed that could not be taken out of it"))
    }

    /// What speaks against giving the file to LMDB; nil where nothing does.
    private static func objection(
        _ files: DiskFiles, _ earlyEnds: Int, mayGoOn: () -> Bool = { true }
    ) throws(LMDBError) -> String? {
        switch try FileHeader.check(path: files.data) {
        case .absent, .sound: break
        case .unsound(let reason): return reason
        case .short(let reason):
            if try !Self.structure(of: files, mayGoOn).isSound { return reason }
        }
        guard earlyEnds >= Self.suspicion, files.dataSize ?? 0 > 0 else { return nil }
        if earlyEnds >= Self.earlyEndLimit {
            return "\(earlyEnds) processes in a row ended soon after opening it"
        }
        let found = try Self.structure(of: files, mayGoOn)
        return found.isSound ? nil : "\(found.problemCount) of its pages are damaged"
    }

    private static func structure(
        of files: DiskFiles, _ mayGoOn: () -> Bool
    ) throws(LMDBError) -> FileReport {
        try FileStructure.check(path: files.data) { (_, _) throws(LMDBError) in
            if !mayGoOn() { throw LMDBError(.cancelled, operation: "look at the whole file") }
        }
    }

    /// Opens the file once more that the store had open before; nil where it is not sound any more,
    /// or another one.
    static func reopen(
        _ files: DiskFiles, _ configuration: DiskConfiguration, seed: UInt64, now: Timestamp
    ) throws(LMDBError) -> OpenedCache? {
        guard try Self.objection(files, 0) == nil, files.dataSize ?? 0 > 0,
            let opened = try Self.openSound(files, configuration, now)
        else { return nil }
        if opened.meta.seed == seed { return opened }
        opened.environment.close()
        return nil
    }

    /// Makes an empty file that is to become the data file (``DiskFiles/installNext()``).
    ///
    /// - Parameters:
    ///   - meta: what it begins with; nil where it is to be filled.
    ///   - mapSize: its bound, where that is not the capacity.
    static func makeNext(
        _ files: DiskFiles, _ configuration: DiskConfiguration, meta: StoreMeta?,
        mapSize: UInt64 = 0
    ) throws(LMDBError) -> (Environment, Schema) {
        files.removeNext()
        let environment = try Environment.open(
            path: files.next, options: Self.options(configuration, mapSize: mapSize))
        do throws(LMDBError) {
            let schema = try Schema(environment, creating: true)
            if let meta {
                try environment.write { (transaction) throws(LMDBError) in
                    try schema.writeMeta(meta, transaction)
                }
            }
            return (environment, schema)
        } catch {
            environment.close()
            files.removeNext()
            throw error
        }
    }

    private static func options(
        _ configuration: DiskConfiguration, mapSize: UInt64
    ) -> EnvironmentOptions {
        // Read-ahead stays on: a segment is sixteen pages side by side, and with MDB_NORDAHEAD the
        // kernel would fetch them one fault at a time.
        EnvironmentOptions(
            mapSize: max(mapSize, Self.capacity(configuration)),
            maximumReaders: configuration.maximumReaders, durability: .dataOnly,
            isSoleWriter: true)
    }

    /// The capacity in whole pages.
    static func capacity(_ configuration: DiskConfiguration) -> UInt64 {
        Self.wholePages(configuration.capacity.bytes)
    }

    private static func wholePages(_ bytes: UInt64) -> UInt64 {
        bytes - bytes % UInt64(Segment.pageSize)
    }

    /// The bound for a file that is larger than the capacity: what it has, and room for the
    /// transactions that make it smaller.
    private static func boundToShrink(_ files: DiskFiles, _ capacity: UInt64) -> UInt64 {
        guard let size = files.dataSize, size > capacity else { return capacity }
        let room = max(4 << 20, size / 16)
        let (bound, overflow) = size.addingReportingOverflow(room)
        return overflow ? size : Self.wholePages(bound)
    }

    /// Makes a new data file, which has its name no sooner than it is whole: whoever looks at the
    /// cache meanwhile, or finds what a dead process left, never sees a file without its state.
    ///
    /// - Parameter takesAway: makes room for it, as late as can be.
    static func make(
        _ files: DiskFiles, _ configuration: DiskConfiguration, meta: StoreMeta, now: Timestamp,
        takesAway: () throws(LMDBError) -> Void = {}
    ) throws(LMDBError) -> OpenedCache {
        let (environment, schema) = try Self.makeNext(files, configuration, meta: meta)
        do throws(LMDBError) {
            let opened = try Self.describe(
                environment, schema, files, Self.capacity(configuration), now)
            guard let opened else {
                throw LMDBError(.corrupted, operation: "a new file cannot be read back")
            }
            try environment.synchronize()
            try files.installNext(takesAway: takesAway)
            return opened
        } catch {
            environment.close()
            files.removeNext()
            throw error
        }
    }

    /// nil where the file is LMDB's, but not one of this format.
    private static func openSound(
        _ files: DiskFiles, _ configuration: DiskConfiguration, _ now: Timestamp
    ) throws(LMDBError) -> OpenedCache? {
        let capacity = Self.capacity(configuration)
        if files.dataSize ?? 0 == 0 { return try Self.makeFirst(files, configuration, now) }
        let options = Self.options(
            configuration, mapSize: Self.boundToShrink(files, capacity))
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
            if try environment.information().lastTransaction == 0 {
                // Its maker ended before anything was in it.
                environment.close()
                return try Self.makeFirst(files, configuration, now)
            }
            let schema = try Schema(environment, creating: false)
            try environment.clearStaleReaders()
            // Its last writer may have been killed before it did.
            try environment.extendFileToLastPage()
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

    private static func makeFirst(
        _ files: DiskFiles, _ configuration: DiskConfiguration, _ now: Timestamp
    ) throws(LMDBError) -> OpenedCache {
        let meta = StoreMeta(seed: UInt64.random(in: .min ... .max))
        return try Self.make(files, configuration, meta: meta, now: now)
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

    /// Reads what a store must know of a file that is open.
    static func describe(
        _ environment: Environment, _ schema: Schema, _ files: DiskFiles, _ capacity: UInt64,
        _ now: Timestamp
    ) throws(LMDBError) -> OpenedCache? {
        try environment.read { (transaction) throws(LMDBError) in
            guard let meta = try schema.readMeta(transaction) else { return nil }
            let objects = try transaction.statistics(of: schema.objects)
            let pageSize = max(512, objects.pageSize)
            let pages = try transaction.pagesInUse(schema.all)
            var opened = OpenedCache(
                files: files, environment: environment, schema: schema, meta: meta,
                groups: try schema.readGroups(transaction, now: now),
                ghosts: try schema.readGhosts(
                    transaction, capacity: ByteCount(capacity), clock: meta.ghostClock),
                holdsSearch: try schema.holdsSearch(transaction),
                capacityPages: capacity / pageSize, pages: pages)
            var disk = StoreStatistics.Tier()
            disk.objects = objects.entries
            disk.bytes = pages &* pageSize
            disk.capacity = capacity
            disk.evictions = meta.evictions
            opened.statistics.disk = disk
            opened.statistics.fileBytes = try environment.fileSize()
            return opened
        }
    }
}
