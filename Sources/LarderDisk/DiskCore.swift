import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// What store, sinks, readers and the writer share.
///
/// Everything in it is fixed, atomic or behind a lock that is held for a few lines; the file itself
/// is changed by the writer's thread alone.
final class DiskCore: Sendable {
    private struct Tables {
        /// How many readers each body has: none of its segments is deleted before they are gone.
        var readers: [ObjectID: Int] = [:]
        var sinks: [ObjectIdentifier: SinkState] = [:]
        /// Which bytes of partial responses are on their way.
        var claims: [ObjectID: [ObjectIdentifier: Range<UInt64>]] = [:]
        /// Keys with responses that are whole and about to be committed.
        var landings: [CacheKey: Landings] = [:]
        /// Entries that are gone for lookups, though the disk could not be told yet.
        var hidden: Set<ObjectID> = []
    }

    /// The last commits of the responses of one key, and the lookups that wait for them.
    private struct Landings {
        var sinks: Set<ObjectIdentifier> = []
        var lookups: [@Sendable () -> Void] = []
    }

    private struct Health {
        var failedUntil: Timestamp?
        var isReported = false
    }

    let configuration: DiskConfiguration
    let files: DiskFiles
    let environment: Environment
    let residency: Residency
    let schema: Schema
    let seed: UInt64
    let marks: DiskMarks
    let rules: EvictionRules
    /// Responses that were evicted, or turned away at first sight, not long ago.
    let ghosts: Mutex<GhostTable>
    /// How long the steps took that took back room in transactions of their own.
    let reclaimTimes = ReclaimTimes()
    let mailbox: WriteMailbox
    let reads: ReadPool
    let uses = UsageTable()
    let groups: GroupTable
    let clock: @Sendable () -> Timestamp
    let report: @Sendable (DiskEvent) -> Void
    /// Refuses a second writing process for as long as it lives.
    let writerLock: WriterLock
    // These count on from what earlier processes counted.
    let hits: Atomic<UInt64>
    let failures: Atomic<UInt64>
    let damaged: Atomic<UInt64>
    let closing = Mutex(ClosingState())
    /// The writer has looked for room to take back, and may have found a reader in its way.
    let hasReclaimed = Atomic(false)
    /// Something may be stored under keys that leave the query out.
    ///
    /// Set when the first such response begins to be stored, and never taken back. Few origins send
    /// `No-Vary-Search`, and every miss asks for such a key: without one it need not wait for a
    /// thread that reads.
    let holdsSearch: Atomic<Bool>
    private let lastID: Atomic<UInt64>
    private let tables = Mutex(Tables())
    private let health = Mutex(Health())
    private let published: Mutex<StoreStatistics>

    init(
        opened: OpenedCache, configuration: DiskConfiguration, writerLock: WriterLock,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) throws(LMDBError) {
        self.configuration = configuration
        self.files = opened.files
        self.environment = opened.environment
        self.residency = Residency(
            opened.environment, bound: configuration.residentBound.bytes)
        self.schema = opened.schema
        self.seed = opened.meta.seed
        self.groups = GroupTable(opened.groups)
        self.hits = Atomic(opened.meta.hits)
        self.holdsSearch = Atomic(opened.holdsSearch)
        self.failures = Atomic(opened.meta.failures)
        self.damaged = Atomic(opened.meta.damaged)
        self.lastID = Atomic(opened.meta.nextID &- 1)
        self.marks = DiskMarks(
            capacityPages: opened.capacityPages,
            batchPages: UInt64(configuration.batchLimit) / 4096 + 1)
        self.rules = EvictionRules(capacity: configuration.capacity)
        self.ghosts = Mutex(opened.ghosts)
        self.mailbox = try WriteMailbox(limit: configuration.outstanding.clamped)
        self.reads = try ReadPool(threads: configuration.readerThreads)
        self.writerLock = writerLock
        self.clock = clock
        self.report = report
        self.published = Mutex(opened.statistics)
    }

    // MARK: Names

    func newID() -> ObjectID {
        ObjectID(rawValue: self.lastID.add(1, ordering: .relaxed).newValue)
    }

    /// No id at or above it was given out yet.
    var nextID: UInt64 { self.lastID.load(ordering: .relaxed) &+ 1 }

    func objectKey(_ id: ObjectID, of key: CacheKey) -> ObjectKey {
        ObjectKey(hash: Checksum.key(key.bytes, seed: self.seed), id: id)
    }

    // MARK: Readers, sinks, hidden entries

    func beginReading(_ id: ObjectID) {
        self.tables.withLock { $0.readers[id, default: 0] += 1 }
    }

    func endReading(_ id: ObjectID) {
        let isLast = self.tables.withLock { tables in
            let count = (tables.readers[id] ?? 1) - 1
            tables.readers[id] = count > 0 ? count : nil
            return count <= 0
        }
        // Garbage may have waited for this. Where the writer has not looked for any since, it need
        // not be woken: it looks after each batch.
        if isLast, self.hasReclaimed.exchange(false, ordering: .sequentiallyConsistent) {
            self.mailbox.nudge()
        }
    }

    func isBeingRead(_ id: ObjectID) -> Bool {
        self.tables.withLock { $0.readers[id] != nil }
    }

    func sinkBegan(_ sink: SinkState) {
        self.tables.withLock { $0.sinks[ObjectIdentifier(sink)] = sink }
    }

    /// The same for a sink that adds bytes to a response; false, and nothing is done, where another
    /// one is just about to add some of them.
    ///
    /// Segments are written before it is certain that they are wanted. So no two sinks may write
    /// the same bytes, of which the file could have those of the one that came to nothing. Once a
    /// sink has posted its last command, what others post comes behind it, and finds what has
    /// become of it.
    func additionBegan(_ sink: SinkState, claiming range: Range<UInt64>) -> Bool {
        self.tables.withLock { tables in
            let others = tables.claims[sink.id] ?? [:]
            if others.values.contains(where: { $0.overlaps(range) }) { return false }
            tables.claims[sink.id, default: [:]][ObjectIdentifier(sink)] = range
            tables.sinks[ObjectIdentifier(sink)] = sink
            return true
        }
    }

    /// - Returns: the lookups that waited for it; to be run when its observer knows.
    func sinkEnded(_ sink: SinkState) -> [@Sendable () -> Void] {
        self.tables.withLock { tables in
            tables.sinks.removeValue(forKey: ObjectIdentifier(sink))
            Self.release(sink, &tables)
            guard var landings = tables.landings[sink.key],
                landings.sinks.remove(ObjectIdentifier(sink)) != nil
            else { return [] }
            tables.landings[sink.key] = landings.sinks.isEmpty ? nil : landings
            return landings.sinks.isEmpty ? landings.lookups : []
        }
    }

    /// The body of a response is whole: lookups of its key wait from now on until it is visible, or
    /// will not be.
    ///
    /// A client that has read the last byte may ask again at once, long before the commit.
    func landingBegan(_ sink: SinkState) {
        self.tables.withLock { tables in
            // It may have ended already, with the store.
            guard tables.sinks[ObjectIdentifier(sink)] != nil else { return }
            tables.landings[sink.key, default: Landings()].sinks.insert(ObjectIdentifier(sink))
        }
    }

    /// Runs `lookup` when nothing of `key` is landing any more: false, and not at all, where nothing
    /// is.
    func waitsForLanding(of key: CacheKey, _ lookup: @escaping @Sendable () -> Void) -> Bool {
        self.tables.withLock { tables in
            guard tables.landings[key] != nil else { return false }
            tables.landings[key]?.lookups.append(lookup)
            return true
        }
    }

    /// Lets other sinks add the bytes that this one would have added, or has.
    func releaseClaim(of sink: SinkState) {
        self.tables.withLock { Self.release(sink, &$0) }
    }

    private static func release(_ sink: SinkState, _ tables: inout Tables) {
        guard var claims = tables.claims[sink.id] else { return }
        claims.removeValue(forKey: ObjectIdentifier(sink))
        tables.claims[sink.id] = claims.isEmpty ? nil : claims
    }

    /// Takes out all sinks that have not ended.
    func openSinks() -> [SinkState] {
        self.tables.withLock { Array($0.sinks.values) }
    }

    func hide(_ ids: some Sequence<ObjectID>) {
        self.tables.withLock { $0.hidden.formUnion(ids) }
    }

    func unhide(_ ids: [ObjectID]) {
        self.tables.withLock { tables in
            if !tables.hidden.isEmpty { tables.hidden.subtract(ids) }
        }
    }

    func isHidden(_ id: ObjectID) -> Bool {
        self.tables.withLock { !$0.hidden.isEmpty && $0.hidden.contains(id) }
    }

    // MARK: Health

    /// Whether it is worth while to store something now.
    func isHealthy(at now: Timestamp) -> Bool {
        self.health.withLock { health in health.failedUntil.map { now >= $0 } ?? true }
    }

    /// The disk failed: nothing is stored for a while, and it is said once.
    func failed(_ error: LMDBError) {
        self.failures.add(1, ordering: .relaxed)
        let until = self.clock() + self.configuration.retryInterval
        let isFirst = self.health.withLock { health in
            health.failedUntil = until
            defer { health.isReported = true }
            return !health.isReported
        }
        if isFirst { self.report(.failed(StoreError(error, path: self.files.data))) }
    }

    /// Something was stored: the disk works again, if that was asked after the pause.
    ///
    /// What was on its way already when it failed proves nothing, and would make it say so in turns.
    func worked() {
        let now = self.clock()
        let hadFailed = self.health.withLock { health in
            guard let until = health.failedUntil, now >= until else { return false }
            defer { health = Health() }
            return health.isReported
        }
        if hadFailed { self.report(.recovered) }
    }

    /// Drops an entry that is not what was written, counts it and says it.
    func dropDamaged(_ id: ObjectID, key: CacheKey, reason: String) {
        let isFirst = self.tables.withLock { $0.hidden.insert(id).inserted }
        guard isFirst else { return }
        self.damaged.add(1, ordering: .relaxed)
        self.report(.damaged(key: key, reason: reason))
        self.mailbox.post(.removeExactly([self.objectKey(id, of: key)], nil))
    }

    /// The same for a record that does not even give its key.
    func dropDamaged(_ key: ObjectKey, reason: String) {
        let isFirst = self.tables.withLock { $0.hidden.insert(key.id).inserted }
        guard isFirst else { return }
        self.damaged.add(1, ordering: .relaxed)
        self.report(.damaged(key: nil, reason: reason))
        self.mailbox.post(.removeExactly([key], nil))
    }

    // MARK: Statistics

    func publish(_ change: (inout StoreStatistics) -> Void) {
        self.published.withLock { change(&$0) }
    }

    var statistics: StoreStatistics {
        var statistics = self.published.withLock { $0 }
        statistics.storeFailures = self.failures.load(ordering: .relaxed)
        statistics.damaged = self.damaged.load(ordering: .relaxed)
        statistics.disk?.hits = self.hits.load(ordering: .relaxed)
        return statistics
    }
}
