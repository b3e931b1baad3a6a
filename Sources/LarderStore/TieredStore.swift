package import LarderHTTP
package import LarderPolicy
import NIOCore
import Synchronization

/// Memory above and, where there is one, a lower tier on disk, seen as one store.
///
/// **Ids.** A response has the id that memory gave it as long as memory holds it, and answers to
/// that of the lower tier too; after its eviction the lower tier's alone is shown, and the other
/// is still understood. Ids of a lower tier must lie below 2^63.
///
/// **When memory alone answers.** `lookupResident` answers when memory is known to hold every
/// variant of the key that the lower tier holds: when a lookup found there nothing that memory has
/// not, and nothing went there since but by way of memory, nothing left memory that is there.
/// That the lower tier has *nothing* of a key is remembered too, for the last keys asked for.
/// What the lower tier drops by itself is of no harm: memory then holds more than it.
///
/// **One step.** A response is visible from `commit` on if memory took it, else when the lower tier
/// shows it; what it replaces vanishes at the same moment, from answers of the lower tier too,
/// where it is hidden until it is gone. The same holds for removals: while one is under way, lookups do
/// not see what the lower tier may still show.
///
/// **A removal and a response on its way.** A removal of a whole key, or by predicate, takes a
/// mark; a response whose own mark (`removalMark()` when its request was sent) is older does not
/// become visible. One that is on its way from `commit` to the lower tier is removed there again
/// when it arrives, and the removal ends no sooner.
///
/// **Partial content** lies in the lower tier alone, where there is one: so a key of which it has some
/// is never known to be all in memory. Memory takes a response up when it is complete.
///
/// The lower tier must take up its calls in the order in which they were made.
package final class TieredStore: ObjectStore {
    let memory: MemoryStore
    let disk: (any ObjectStore)?
    /// The lower tier where it may not be open, so that it has nothing that could be removed there.
    private let absent: (any AbsentTier)?
    /// Uses of what memory holds that were told to the disk as well: not hits of the disk.
    private let usesForwarded = Atomic<UInt64>(0)

    package init(memory: MemoryStore, disk: (any ObjectStore)?) {
        self.memory = memory
        self.disk = disk
        self.absent = disk as? any AbsentTier
    }

    /// Delays `completion` until the removal is noted for a lower tier that is not open; returns it
    /// unchanged where that cannot be.
    func afterNoting(
        _ completion: @escaping @Sendable (Int) -> Void
    ) -> @Sendable (Int) -> Void {
        guard let absent = self.absent else { return completion }
        return { removed in absent.willAnswerRemoval { completion(removed) } }
    }

    package var unkeptRemoval: UnkeptRemoval? { self.disk?.unkeptRemoval }

    // MARK: Finding

    package func lookupResident(_ key: CacheKey) -> [StoredObject]? {
        guard self.disk != nil else { return self.memory.lookupResident(key) }
        let key = HashedKey(key)
        return self.memory.withShard(of: key) { $0.completeObjects(of: key) }
    }

    package var mayHoldWithoutSearch: Bool {
        self.memory.mayHoldWithoutSearch || self.disk?.mayHoldWithoutSearch == true
    }

    package func lookup(
        _ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void
    ) {
        guard let disk = self.disk else { return self.memory.lookup(key, completion) }
        let mark = self.memory.removalMark()
        let hashed = HashedKey(key)
        if let known = self.beganAskingBelow(hashed) { return completion(known) }
        disk.ask(for: key) { answer in
            completion(self.merged(answer, into: hashed, asked: mark))
        }
    }

    package func lookupInPlace(_ key: CacheKey) -> [StoredObject]? {
        guard let disk = self.disk else { return self.memory.lookupResident(key) }
        let mark = self.memory.removalMark()
        let hashed = HashedKey(key)
        if let known = self.beganAskingBelow(hashed) { return known }
        guard let found = disk.lookupInPlace(key) else {
            self.memory.withShard(of: hashed) { _ = $0.lower.endedAsking(hashed.hashed) }
            return nil
        }
        return self.merged(StoreAnswer(found), into: hashed, asked: mark)
    }

    /// All that may be found of a key, where memory has that; nil, and noted is that the lower tier is
    /// being asked, where it has not.
    private func beganAskingBelow(_ key: HashedKey) -> [StoredObject]? {
        let isSwept = self.memory.isBeingSweptBelow(key.key)
        return self.memory.withShard(of: key) { shard in
            if isSwept || shard.isComplete(key) || shard.lower.purging[key.hashed] != nil {
                return shard.objects(of: key)
            }
            shard.lower.beganAsking(key.hashed)
            return nil
        }
    }

    /// What memory has now and, of what the lower tier found, what memory has not.
    ///
    /// What came with its body is taken up at once: no one reads that body, so there is no other
    /// moment for it.
    private func merged(
        _ answer: StoreAnswer, into key: HashedKey, asked mark: RemovalMark
    ) -> [StoredObject] {
        let found = answer.objects
        if !found.isEmpty { self.memory.willHold(key.key) }
        let swept = self.memory.isSwept(key.key, since: mark)
        let bodies = found.map { self.bodyToKeep(of: $0) }
        return self.memory.withShard(of: key) { shard in
            let isUntainted = shard.lower.endedAsking(key.hashed)
            // Removed since: what was found may be gone, and what is new is in memory.
            if swept || !shard.removals.isUntouched(key.hashed, since: mark.rawValue) {
                return shard.objects(of: key)
            }
            let below = Self.below(found, key, shard)
            let tellsAll =
                answer.isCertain && isUntainted && !shard.lower.landings.contains(key)
            let lookup = LowerLookup(mark: mark, found: tellsAll ? found.map(\.id) : nil)
            // A removal by predicate that has been here since may have been for this key.
            let isSwept = shard.sweptMark > mark.rawValue
            for (index, body) in bodies.enumerated() where !isSwept {
                guard let body, let object = below.first(where: { $0.id == found[index].id })
                else { continue }
                Self.takeUp(object, body, key, lookup, awaitsUse: true, &shard)
            }
            let missing = below.filtered { shard.entry($0.id, of: key) == nil }
            if tellsAll, missing.isEmpty { shard.setComplete(true, key) }
            let objects = shard.objects(of: key)
            if missing.isEmpty { return objects }
            let promoted = missing.map { self.promoting($0, lookup) }
            if objects.isEmpty, promoted.count == 1 { return promoted }
            return (objects + promoted).sorted { $0.precedes($1) }
        }
    }

    /// The responses found in the lower tier that may be shown and are not in memory.
    private static func below(
        _ found: [StoredObject], _ key: HashedKey, _ shard: borrowing MemoryShard
    ) -> [StoredObject] {
        let entries = shard.entries(of: key)
        let shown = found.filtered { object in
            let isKnown = entries.contains {
                $0.isNamed(object.id) || ($0.isLanding && $0.object.isCopy(of: object))
            }
            return !isKnown && shard.lower.mayShow(object, of: key)
        }
        if shard.lower.heads.isEmpty { return shown }
        return shown.map { object in
            var object = object
            if var head = shard.lower.heads[object.id] {
                // How much is stored the lower tier knows.
                head.extent = object.head.extent
                object.head = head
            }
            return object
        }
    }

    // MARK: Promotion

    /// The body that memory would keep of an object that was found with it; nil where none was, or it
    /// is not for memory.
    ///
    /// A body that was read along with what stands before it on the disk may lie in storage of twice its
    /// size: what is kept is a copy then.
    private func bodyToKeep(of object: StoredObject) -> ByteBuffer? {
        guard object.head.extent == nil, self.memory.mayTake(object.bodyLength) else { return nil }
        if object.bodyLength == 0 { return ByteBuffer() }
        guard let body = object.body.resident else { return nil }
        guard body.storageCapacity > body.readableBytes + body.readableBytes / 4 else {
            return body
        }
        var copy = ByteBufferAllocator().buffer(capacity: body.readableBytes)
        copy.writeImmutableBuffer(body)
        return copy
    }

    /// Whether a reader of the whole body shall keep a copy.
    ///
    /// Not if it is in memory, or another one is at it. What began so ends with
    /// ``endedPromoting(_:)``.
    func beganPromoting(_ object: StoredObject) -> Bool {
        let key = HashedKey(object.key)
        return self.memory.withShard(of: key) { shard in
            shard.entry(object.id, of: key) == nil
                && shard.lower.promoting.insert(object.id).inserted
        }
    }

    func endedPromoting(_ object: StoredObject) {
        self.memory.withShard(of: HashedKey(object.key)) { shard in
            _ = shard.lower.promoting.remove(object.id)
        }
    }

    /// The object with a body that comes up to memory when it has been read whole.
    private func promoting(_ object: StoredObject, _ lookup: LowerLookup) -> StoredObject {
        guard object.head.extent == nil, self.memory.mayTake(object.bodyLength),
            object.body.resident == nil
        else { return object }
        var object = object
        object.body = PromotingBody(object, store: self, lookup)
        return object
    }

    /// Takes up a body that a client has read whole, unless anything of its key was stored,
    /// freshened or removed since it was looked up.
    func promote(_ object: StoredObject, _ lookup: LowerLookup) {
        let key = HashedKey(object.key)
        guard let body = object.body.resident else { return }
        _ = self.memory.admit(key, begun: lookup.mark) { shard in
            Self.takeUp(object, body, key, lookup, awaitsUse: false, &shard)
        }
    }

    private static func takeUp(
        _ object: StoredObject, _ body: ByteBuffer, _ key: HashedKey, _ lookup: LowerLookup,
        awaitsUse: Bool, _ shard: inout MemoryShard
    ) {
        guard !shard.isClosed,
            shard.changes.isUntouched(key.hashed, since: lookup.mark.rawValue),
            shard.lower.mayShow(object, of: key), shard.entry(object.id, of: key) == nil
        else { return }
        var object = object
        object.tier = .memory
        object.body = MemoryBody(body, trailers: object.trailers)
        var entry = MemoryEntry(object: object, lowerID: object.id)
        entry.awaitsUse = awaitsUse
        guard shard.insert(entry, key) else { return }
        if let found = lookup.found,
            found.allSatisfy({ shard.entry($0, of: key) != nil })
        {
            shard.setComplete(true, key)
        }
    }

    // MARK: Storing

    package func residentObjects(from place: ResidentPlace) -> ResidentPage {
        self.memory.residentObjects(from: place)
    }

    package func residentObjects(of key: CacheKey) -> [ResidentObject] {
        self.memory.residentObjects(of: key)
    }

    package var largestBody: UInt64 { max(self.memory.largestBody, self.disk?.largestBody ?? 0) }

    package func removalMark() -> RemovalMark { self.memory.removalMark() }

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        self.store(
            head, for: key, length: length, replacing: replacing, begun: self.removalMark(),
            observer: observer)
    }

    package func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard let disk = self.disk else {
            return self.memory.store(
                head, for: key, length: length, replacing: replacing, begun: begun,
                observer: observer)
        }
        self.memory.willHold(key)
        let hashed = HashedKey(key)
        let lowerIDs = self.memory.withShard(of: hashed) { shard in
            replacing.compactMap { Self.lowerID($0, hashed, shard) }
        }
        let limit = head.extent == nil ? self.memory.limit(for: length) : nil
        let core = TieredSinkCore(
            self,
            TieredSinkCore.Response(
                head: head, key: hashed, replacing: replacing, passedOn: lowerIDs, begun: begun),
            collecting: limit.map { CollectedBody(length: length, limit: $0) },
            length: length, observer)
        let lower =
            head.staysInMemory
            ? nil
            : disk.store(
                head, for: key, length: length, replacing: lowerIDs, observer: core)
        return core.opened(lower) ? TieredSink(core) : nil
    }

    /// The id of a response in the lower tier; nil where it certainly has no copy there, or where
    /// that is no longer known.
    static func lowerID(
        _ id: ObjectID, _ key: HashedKey, _ shard: borrowing MemoryShard
    ) -> ObjectID? {
        if let entry = shard.entry(id, of: key) { return entry.lowerID }
        if id.rawValue < MemoryStore.idBase { return id }
        guard case .lower(let lowerID) = shard.lower.aliases.meaning(of: id) else { return nil }
        return lowerID
    }

    // MARK: Use and state

    package func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        let hashed = HashedKey(key)
        let (isHit, lowerID) = self.memory.withShard(of: hashed) {
            shard -> (Bool, ObjectID?) in
            let use = shard.use(id, of: hashed, at: time)
            return use.isHere ? (use.isHit, use.lowerID) : (false, Self.lowerID(id, hashed, shard))
        }
        if let lowerID { self.tellUse(of: lowerID, key, isHit: isHit, at: time) }
    }

    /// - Parameter isHit: it is one of memory's, and not of the disk's.
    func tellUse(of lowerID: ObjectID, _ key: CacheKey, isHit: Bool, at time: Timestamp) {
        guard let disk = self.disk else { return }
        if isHit { self.usesForwarded.add(1, ordering: .relaxed) }
        disk.noteUse(lowerID, of: key, at: time)
    }

    /// Noted in both: a lower tier need not keep any.
    package func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {
        self.memory.noteInvalidation(ofGroup: name, at: time)
        self.disk?.noteInvalidation(ofGroup: name, at: time)
    }

    package func groupInvalidation(of name: [UInt8]) -> Timestamp? {
        let upper = self.memory.groupInvalidation(of: name)
        guard let lower = self.disk?.groupInvalidation(of: name) else { return upper }
        return max(lower, upper ?? lower)
    }

    package func statistics() -> StoreStatistics {
        let upper = self.memory.statistics()
        guard let disk = self.disk else { return upper }
        // Read first: a use counted there is then counted here too, or not yet there.
        let forwarded = self.usesForwarded.load(ordering: .relaxed)
        var statistics = disk.statistics()
        statistics.memory = upper.memory
        if let hits = statistics.disk?.hits {
            statistics.disk?.hits = hits > forwarded ? hits - forwarded : 0
        }
        return statistics
    }

    package func flush(_ completion: @escaping @Sendable () -> Void) {
        guard let disk = self.disk else { return completion() }
        disk.flush(completion)
    }

    package func close(_ completion: @escaping @Sendable () -> Void) {
        self.memory.close {
            guard let disk = self.disk else { return completion() }
            disk.close(completion)
        }
    }
}

/// What a promotion must know of the lookup that found its object in the lower tier.
struct LowerLookup: Sendable {
    /// From before the lookup.
    let mark: RemovalMark
    /// All that the lower tier had of the key; nil where that is not certain.
    let found: [ObjectID]?
}

extension Array {
    /// The elements that satisfy a predicate; where all do, as mostly here, the array itself.
    fileprivate func filtered(_ isKept: (Element) -> Bool) -> [Element] {
        self.allSatisfy(isKept) ? self : self.filter(isKept)
    }
}
