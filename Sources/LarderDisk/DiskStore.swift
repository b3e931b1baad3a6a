package import LarderHTTP
import LarderLMDB
package import LarderPolicy
package import LarderStore
package import NIOCore
import Synchronization

/// The disk tier: stored responses in one LMDB file, bounded in size.
///
/// ```
/// open ─▶ (lookup │ store │ update │ remove │ noteUse)* ─▶ close
/// ```
///
/// No call waits for the disk. Writing is the business of one thread; what is in the page cache is
/// read where it is asked for, and what is not is read by a few others.
/// A store that is released without `close` closes itself.
package final class DiskStore: ObjectStore {
    let core: DiskCore

    private init(core: DiskCore) {
        self.core = core
    }

    deinit {
        // The writer ends the rest.
        _ = self.core.mailbox.close()
    }

    /// Opens the cache in a directory, and makes both where they do not exist.
    ///
    /// Waits for a few reads of the disk, whatever the cache holds. Throws where another process
    /// writes to it, and where the directory cannot be used; a file that cannot be used is set aside
    /// instead.
    ///
    /// - Parameters:
    ///   - clock: gives the time; called on any thread.
    ///   - mayGoOn: asked now and then while a file is looked at whole that several processes did not
    ///     outlive, which takes as long as reading it; where it answers false, the opening ends with
    ///     `.cancelled`.
    ///   - report: hears what a person should know; called on any thread, must not block.
    package static func open(
        _ configuration: DiskConfiguration, clock: @escaping @Sendable () -> Timestamp,
        mayGoOn: () -> Bool = { true },
        report: @escaping @Sendable (DiskEvent) -> Void
    ) throws(StoreError) -> DiskStore {
        let files = DiskFiles(directory: configuration.directory)
        guard configuration.capacity >= DiskConfiguration.minimumCapacity else {
            throw StoreError(
                .invalidConfiguration, path: files.directory,
                cause: "a capacity of \(configuration.capacity) is too small",
                remedy: "give it at least \(DiskConfiguration.minimumCapacity)")
        }
        do throws(LMDBError) {
            try files.makeDirectory()
        } catch {
            throw StoreError(error, path: files.directory)
        }
        let lock = try WriterLock.acquire(files)
        let opened: OpenedCache
        do throws(StoreError) {
            opened = try OpenedCache.open(
                files, configuration, lock: lock, now: clock(), mayGoOn: mayGoOn, report)
        } catch {
            lock.withdraw()
            throw error
        }
        lock.note(owes: false)
        do throws(LMDBError) {
            let core = try DiskCore(
                opened: opened, configuration: configuration, writerLock: lock, clock: clock,
                report: report)
            try Self.startWriter(core, meta: opened.meta)
            return DiskStore(core: core)
        } catch {
            opened.environment.close()
            // What was owed is settled by now.
            if !lock.wasOwed { lock.withdraw() }
            throw StoreError(error, path: files.data)
        }
    }

    private static func startWriter(_ core: DiskCore, meta: StoreMeta) throws(LMDBError) {
        do throws(NamedThread.Failure) {
            try NamedThread.start("larder-write") {
                var writer = DiskWriter(core: core, meta: meta)
                writer.run()
                core.writerEnded()
            }
        } catch {
            core.reads.stop {}
            throw LMDBError(error)
        }
    }

    // MARK: Finding

    /// Always nil: only the disk knows.
    package func lookupResident(_ key: CacheKey) -> [StoredObject]? { nil }

    package func lookupInPlace(_ key: CacheKey) -> [StoredObject]? {
        if key.leavesOutSearch || self.core.isLanding(key) { return nil }
        return self.core.lacks(key) ? [] : self.core.findInPlace(key)
    }

    package func bodyAgain(at place: FoundPlace, of key: CacheKey) -> ByteBuffer? {
        if key.leavesOutSearch || self.core.isLanding(key) { return nil }
        return self.core.bodyAgain(at: place, of: key)
    }

    package var mayHoldWithoutSearch: Bool {
        self.core.holdsSearch.load(ordering: .sequentiallyConsistent)
    }

    /// Waits for a response of this key that is being committed: what was told to be stored is found.
    ///
    /// `completion` is called before it returns where all that it takes is in the page cache and
    /// nothing is being committed, else on one of the reading threads.
    package func lookup(
        _ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void
    ) {
        self.ask(for: key) { completion($0.objects) }
    }

    package func ask(
        for key: CacheKey, _ completion: @escaping @Sendable (StoreAnswer) -> Void
    ) {
        let core = self.core
        if key.leavesOutSearch, !core.holdsSearch.load(ordering: .sequentiallyConsistent) {
            return completion(StoreAnswer([]))
        }
        let lookup = { @Sendable in
            if !core.reads.submit(for: .lookup, { completion(core.find(key)) }) {
                completion(.unknown)
            }
        }
        if core.waitsForLanding(of: key, lookup) { return }
        if core.lacks(key) { return completion(StoreAnswer([])) }
        if let found = core.findInPlace(key) { return completion(StoreAnswer(found)) }
        lookup()
    }

    package func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        self.core.hits.wrappingAdd(1, ordering: .relaxed)
        // Mostly, and then its key, which is hashed for it, is not needed.
        if self.core.uses.noteAgain(id, at: time) { return }
        if self.core.uses.note(self.core.objectKey(id, of: key), at: time) {
            self.core.mailbox.usesAreDue(
                at: ContinuousClock.now + self.core.configuration.useFlushInterval)
        }
    }

    // MARK: Changing

    /// The largest record; LMDB would take more, but nothing sensible is so large.
    private static let recordLimit = 1 << 20

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard !head.staysInMemory,
            (head.extent?.bodyLength ?? length ?? 0) <= self.core.configuration.objectLimit,
            key.bytes.count + head.bytes < Self.recordLimit, self.mayStore
        else { return nil }
        if key.leavesOutSearch {
            self.core.holdsSearch.store(true, ordering: .sequentiallyConsistent)
        }
        var range = 0..<(length ?? 0)
        if let extent = head.extent {
            guard extent.ranges.count == 1, let only = extent.ranges.first,
                length == nil || length == only.upperBound - only.lowerBound
            else { return nil }
            range = only
        }
        // Who counts on finding it after a restart asks for it to be stored, and not for a guess.
        let admission =
            observer.awaitsLowest
            ? SinkAdmission(verdict: .admit(below: nil))
            : self.admission(of: head, for: key, length: length, replacing: replacing)
        let state = SinkState(
            id: self.core.newID(), key: key, role: .new(head, replacing: replacing),
            start: range.lowerBound,
            expected: head.extent == nil ? length : range.upperBound - range.lowerBound,
            admission: admission, observer: observer, core: self.core)
        self.core.sinkBegan(state)
        if case .refuse(let reason) = admission.verdict { state.turnAway(reason) }
        return DiskSink(state: state)
    }

    package var largestBody: UInt64 { self.core.configuration.objectLimit }

    /// What the rules say to a new response.
    private func admission(
        of head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID]
    ) -> SinkAdmission {
        let rules = self.core.configuration.admission
        guard rules.isSelective else { return SinkAdmission(verdict: .admit(below: nil)) }
        let hash = Checksum.key(key.bytes, seed: self.core.seed)
        let fingerprint = Checksum.fingerprint(of: hash, head.varyingFields)
        let isKnown =
            !replacing.isEmpty || self.core.ghosts.withLock { $0.contains(fingerprint) }
        let whole = head.extent.map { $0.completeLength } ?? length
        return SinkAdmission(
            verdict: rules.judge(length: whole, isKnown: isKnown), fingerprint: fingerprint)
    }

    private var mayStore: Bool {
        self.core.isHealthy(at: self.core.clock()) && !self.core.mailbox.look().isClosed
    }

    /// Whether the response is there and takes the bytes, only the disk knows: the sink ends with
    /// `.abandoned` where it does not.
    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let limit = self.core.configuration.objectLimit
        guard offset <= limit, length ?? 0 <= limit - offset,
            offset + (length ?? 0) <= completeLength ?? limit, completeLength ?? 0 <= limit,
            self.mayStore, !self.core.isHidden(id, of: key)
        else { return nil }
        let state = SinkState(
            id: id, key: key, role: .addition(completeLength: completeLength), start: offset,
            expected: length, observer: observer, core: self.core)
        let claim = offset..<(length.map { offset + $0 } ?? .max)
        guard self.core.additionBegan(state, claiming: claim) else { return nil }
        return DiskSink(state: state)
    }

    package func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        let name = self.core.objectKey(id, of: key)
        switch self.core.mailbox.post(.update(name, head, written: written)) {
        case .accepted: return
        case .full: self.core.dropOutdated(name, isPromised: head.isInvalidated)
        case .closed: break
        }
        written?()
    }

    package func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {
        let hash = Checksum.key(name, seed: self.core.seed)
        if self.core.groups.note(hash, at: time) { self.core.mailbox.post(.groups) }
    }

    package func groupInvalidation(of name: [UInt8]) -> Timestamp? {
        self.core.groups.time(of: Checksum.key(name, seed: self.core.seed))
    }

    package func remove(
        _ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?
    ) {
        if self.core.mailbox.post(.remove(key, ids: ids, completion)) != .accepted {
            self.core.walks.withLock { $0.lost() }
            completion?(0)
        }
    }

    package var unkeptRemoval: UnkeptRemoval? {
        self.core.unkeptRemoval.map { UnkeptRemoval($0) }
    }

    package func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        RemovalWalk(core: self.core, selection, completion).start()
    }

    /// Waits for what is being committed.
    ///
    /// Who asks wants them removed: where the file cannot be read, it is given up.
    package func names(
        storedSince time: Timestamp,
        _ completion: @escaping @Sendable ([StoredName]) -> Void
    ) {
        NameWalk(core: self.core, time: time, givesUp: true) { completion($0 ?? []) }.start()
    }

    /// The names of all that is stored; nil where the file cannot be read, which stays as it is.
    ///
    /// Waits for what is being committed.
    package func allNames(_ completion: @escaping @Sendable ([StoredName]?) -> Void) {
        NameWalk(
            core: self.core, time: Timestamp(microseconds: .min), givesUp: false, completion
        ).start()
    }

    /// Calls back once all that was asked for before is committed, or has failed.
    package func flush(_ completion: @escaping @Sendable () -> Void) {
        if self.core.mailbox.post(.barrier(completion)) != .accepted { completion() }
    }

    /// Writes all that is stored into a new file without holes, which takes the place of the old one.
    ///
    /// Lookups and readers go on meanwhile; what is being stored waits, and is given up where that
    /// exceeds the bound of what may wait. Needs as much room on the disk as is in use. Where the
    /// process dies, the old file or the new one is there, whole.
    ///
    /// - Parameters:
    ///   - progress: bytes copied, and of how many at most; called on the writer's thread, must not
    ///     block.
    ///   - completion: the sizes of the file before and after.
    package func compact(
        progress: @escaping @Sendable (UInt64, UInt64) -> Void = { _, _ in },
        completion: @escaping @Sendable (Result<CompactionReport, StoreError>) -> Void
    ) {
        let request = CompactionRequest(progress: progress, completion: completion)
        if self.core.compactions.add(request) { return self.core.mailbox.nudge() }
        completion(
            .failure(
                StoreError(
                    LMDBError(.closed, operation: "compact"), path: self.core.files.data)))
    }

    package func statistics() -> StoreStatistics { self.core.statistics }

    /// The same for all files of which one took the other's place while it was open, and for those alone:
    /// an id names the same in them, or nothing.
    package var lineage: UInt64 { self.core.seed }

    /// How reading has been done since the store was opened.
    package var readCounts: ReadCounts { self.core.counts.now }
    /// How many steps of taking back room took less than 64 µs, 128 µs and so on, their commits not
    /// counted.
    package var reclaimTimes: [UInt64] { self.core.reclaimTimes.histogram }

    package func close(_ completion: @escaping @Sendable () -> Void) {
        self.core.whenClosed(completion)
        _ = self.core.mailbox.close()
    }
}
