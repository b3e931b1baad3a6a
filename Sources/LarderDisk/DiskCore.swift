import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// What store, sinks, readers and the writer share.
///
/// Everything in it is fixed, atomic or behind a lock that is held for a few lines; the file itself
/// is changed, and exchanged for another, by the writer's thread alone.
final class DiskCore: Sendable {
    private struct Tables {
        var sinks: [ObjectIdentifier: OpenSink] = [:]
        /// Which bytes of partial responses are on their way.
        var claims: [ObjectID: [ObjectIdentifier: Range<UInt64>]] = [:]
        /// Keys with responses that are whole and about to be committed.
        var landings: [CacheKey: KeyLandings] = [:]
    }

    private struct OpenSink {
        let state: SinkState
        /// Its number among the landings of its key; nil where it is none.
        var landing: UInt64?
    }

    let configuration: DiskConfiguration
    let files: DiskFiles
    /// The seed of key hashes, one for all files that take each other's place: keys made before
    /// stay good.
    let seed: UInt64
    let marks: DiskMarks
    let rules: EvictionRules
    /// Responses that were evicted, or turned away at first sight, not long ago.
    let ghosts: Mutex<GhostTable>
    /// How long the steps took that took back room.
    let reclaimTimes = ReclaimTimes()
    let mailbox: WriteMailbox
    let reads: ReadPool
    let uses = UsageTable()
    let records = DecodedRecords()
    let keys: StoredKeys
    let counts = ReadCounters()
    let groups: GroupTable
    let clock: @Sendable () -> Timestamp
    let report: @Sendable (DiskEvent) -> Void
    /// Refuses a second writing process for as long as it lives.
    let writerLock: WriterLock
    /// Uses since it was opened; the file has those of all processes.
    let hits = Atomic<UInt64>(0)
    /// What earlier processes counted.
    private let formerEvictions: UInt64
    // These count on from what earlier processes counted.
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
    let compactions = CompactionQueue()
    let walks = Mutex(WalksUnderWay())
    private let lastID: Atomic<UInt64>
    private let current: Mutex<CacheFile>
    /// The name of the file in use is being given to the one that takes its place.
    let isExchanging = Atomic(false)
    private let tables = Mutex(Tables())
    /// Held for a few lines, and never together with another lock.
    let entries = Mutex(EntryVisibility())
    let health: Mutex<DiskHealth>
    private let published: Mutex<StoreStatistics>

    init(
        opened: OpenedCache, configuration: DiskConfiguration, writerLock: WriterLock,
        clock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (DiskEvent) -> Void
    ) throws(LMDBError) {
        self.configuration = configuration
        self.files = opened.files
        self.current = Mutex(
            CacheFile(opened, residentBound: configuration.residentBound.bytes))
        self.health = Mutex(DiskHealth(firstPause: configuration.retryInterval))
        self.seed = opened.meta.seed
        self.keys = StoredKeys(fewest: configuration.fewestKeys)
        self.groups = GroupTable(opened.groups)
        self.formerEvictions = opened.meta.evictions
        self.holdsSearch = Atomic(opened.holdsSearch)
        self.failures = Atomic(opened.meta.failures)
        self.damaged = Atomic(opened.meta.damaged)
        self.lastID = Atomic(opened.meta.nextID &- 1)
        self.marks = DiskMarks(capacityPages: opened.capacityPages, configuration)
        self.rules = EvictionRules(capacity: configuration.capacity)
        self.ghosts = Mutex(opened.ghosts)
        self.mailbox = try WriteMailbox(
            limit: configuration.outstanding.clamped, urgentHaste: configuration.batchLimit)
        opened.environment.readsAtRandom()
        self.reads = try ReadPool(threads: configuration.readerThreads)
        self.writerLock = writerLock
        self.clock = clock
        self.report = report
        self.published = Mutex(opened.statistics)
    }

    // MARK: The file

    /// The file that is in use now.
    ///
    /// A step takes it once. One that takes it twice may see two files; their databases have the same
    /// handles, because they are opened in the same order.
    var file: CacheFile { self.current.withLock { $0 } }

    var environment: Environment { self.file.environment }
    var schema: Schema { self.file.schema }
    var residency: Residency { self.file.residency }

    /// Goes on with another file.
    ///
    /// The writer's thread alone calls it, between two transactions.
    func exchange(_ opened: OpenedCache) {
        let file = CacheFile(opened, residentBound: self.configuration.residentBound.bytes)
        // The old one may be closed when it is released: not with the lock held.
        let old = self.current.withLock { current in
            defer { current = file }
            return current
        }
        withExtendedLifetime(old) {}
        self.keys.fileExchanged()
    }

    // MARK: Names

    func newID() -> ObjectID {
        ObjectID(rawValue: self.lastID.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// No id at or above it was given out yet.
    var nextID: UInt64 { self.lastID.load(ordering: .relaxed) &+ 1 }

    func objectKey(_ id: ObjectID, of key: CacheKey) -> ObjectKey {
        ObjectKey(hash: Checksum.key(key.bytes, seed: self.seed), id: id)
    }

    // MARK: Sinks

    func sinkBegan(_ sink: SinkState) {
        self.tables.withLock { $0.sinks[ObjectIdentifier(sink)] = OpenSink(state: sink) }
    }

    /// Notes a sink that adds bytes to a response; false, and nothing is done, where another one is
    /// just about to add some of them.
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
            tables.sinks[ObjectIdentifier(sink)] = OpenSink(state: sink)
            return true
        }
    }

    /// - Returns: the lookups that waited for it; to be run when its observer knows.
    func sinkEnded(_ sink: SinkState) -> [@Sendable () -> Void] {
        self.tables.withLock { tables in
            let ended = tables.sinks.removeValue(forKey: ObjectIdentifier(sink))
            Self.release(sink, &tables)
            guard let number = ended?.landing,
                var landings = tables.landings.removeValue(forKey: sink.key)
            else { return [] }
            let lookups = landings.end(number)
            if !landings.isOver { tables.landings[sink.key] = landings }
            return lookups
        }
    }

    /// The body of a response is whole: lookups of its key wait from now on until it is visible, or
    /// will not be.
    ///
    /// A client that has read the last byte may ask again at once, long before the commit.
    func landingBegan(_ sink: SinkState) {
        self.tables.withLock { tables in
            // It may have ended already, with the store.
            guard var open = tables.sinks[ObjectIdentifier(sink)], open.landing == nil else {
                return
            }
            open.landing = tables.landings[sink.key, default: KeyLandings()].begin()
            tables.sinks[ObjectIdentifier(sink)] = open
        }
    }

    /// Runs `lookup` when all that is landing of `key` now has landed: false, and not at all, where
    /// nothing is, or where that would take too long.
    func waitsForLanding(of key: CacheKey, _ lookup: @escaping @Sendable () -> Void) -> Bool {
        let waits = self.tables.withLock { tables in
            // Asked here: the writer says so before it takes out those that wait.
            guard !self.compactions.isRunning, tables.landings[key] != nil else { return false }
            tables.landings[key]?.wait(lookup)
            return true
        }
        if waits { self.mailbox.hurry() }
        return waits
    }

    /// Whether a lookup of the key would wait for something to land.
    func isLanding(_ key: CacheKey) -> Bool {
        !self.compactions.isRunning && self.tables.withLock { $0.landings[key] != nil }
    }

    /// The commit of a response that is landing has been posted: a lookup that came before could not
    /// yet hurry it.
    func landingPosted(_ sink: SinkState) {
        let isAwaited = self.tables.withLock { $0.landings[sink.key]?.isAwaited == true }
        if isAwaited { self.mailbox.hurry() }
    }

    /// Takes out all lookups that wait for something to land: it will take long.
    func takeWaitingLookups() -> [@Sendable () -> Void] {
        self.tables.withLock { tables in
            var lookups: [@Sendable () -> Void] = []
            for key in tables.landings.keys {
                lookups += tables.landings[key]?.takeAll() ?? []
            }
            return lookups
        }
    }

    /// Lets other sinks add the bytes that this one would have added, or has.
    func releaseClaim(of sink: SinkState) {
        guard sink.isAddition else { return }
        self.tables.withLock { Self.release(sink, &$0) }
    }

    private static func release(_ sink: SinkState, _ tables: inout Tables) {
        guard sink.isAddition, var claims = tables.claims[sink.id] else { return }
        claims.removeValue(forKey: ObjectIdentifier(sink))
        tables.claims[sink.id] = claims.isEmpty ? nil : claims
    }

    /// Takes out all sinks that have not ended.
    func openSinks() -> [SinkState] {
        self.tables.withLock { $0.sinks.values.map(\.state) }
    }

    // MARK: Statistics

    func publish(_ change: (inout StoreStatistics) -> Void) {
        self.published.withLock { change(&$0) }
    }

    /// Whether the file is larger than the capacity, as far as was published.
    var isOversized: Bool {
        self.published.withLock { $0.fileBytes } > self.configuration.capacity.bytes
    }

    var statistics: StoreStatistics {
        var statistics = self.published.withLock { $0 }
        statistics.storeFailures = self.failures.load(ordering: .relaxed)
        statistics.damaged = self.damaged.load(ordering: .relaxed)
        statistics.disk?.hits = self.hits.load(ordering: .relaxed)
        if let all = statistics.disk?.evictions {
            statistics.disk?.evictions = all > self.formerEvictions ? all - self.formerEvictions : 0
        }
        return statistics
    }
}
