package import LarderHTTP
package import LarderPolicy
import NIOCore
import Synchronization

/// The memory tier: whole responses, ready to be written.
///
/// Cut by key hash into parts, each with its own lock, so that threads seldom meet; nothing is
/// called back with a lock held, and every completion comes before its method returns. Which
/// entries stay is for `EvictionPolicy` to say; what they cost, for `MemoryCost`.
package final class MemoryStore: ObjectStore {
    /// One part: a class, because an array cannot hold a lock.
    private final class Part: Sendable {
        let shard: Mutex<MemoryShard>

        init(_ shard: MemoryShard) {
            self.shard = Mutex(shard)
        }
    }

    /// A removal by predicate: applies to everything asked for before its mark.
    struct Sweep: Sendable {
        let mark: UInt64
        let selection: KeySelection
    }

    private struct Sweeps {
        var last: [Sweep] = []
        /// The latest mark of those forgotten.
        var floor: UInt64 = 0
        /// Sweeps that the lower tier has not finished yet.
        var active: [Sweep] = []
    }

    /// Ids of this tier have the highest bit set: a lower tier numbers from 0 and never gets there.
    static let idBase: UInt64 = 1 << 63

    /// Removals of keys that all parts together tell from each other.
    ///
    /// What began before the oldest of them is not stored, whatever its key: a long fetch must not meet
    /// that because of a thousand unsafe requests for other things.
    private static let removalsKept = 16_384

    private let current: Mutex<MemoryConfiguration>
    private let parts: [Part]
    private let ids = Atomic<UInt64>(0)
    private let marks = Atomic<UInt64>(0)
    private let sweeps = Mutex(Sweeps())
    /// Something was stored, or found below, under a key without its query.
    private let holdsWithoutSearch = Atomic(false)
    /// By the hash of their names, which the process seeds anew.
    private let groups = Mutex(GroupInvalidations<Int>())

    package init(_ configuration: MemoryConfiguration) {
        self.current = Mutex(configuration)
        let count = UInt64(configuration.shardCount)
        let removalsKept = Self.removalsKept / max(1, configuration.shardCount)
        self.parts = (0..<count).map { _ in
            Part(
                MemoryShard(
                    capacity: ByteCount(configuration.capacity.bytes / count),
                    variantsPerKey: configuration.variantsPerKey, removalsKept: removalsKept))
        }
    }

    /// What bounds it now.
    package var configuration: MemoryConfiguration { self.current.withLock { $0 } }

    /// Bounds it anew, while it is in use; what no longer fits leaves before this returns.
    ///
    /// The number of its parts stays what it was.
    package func resize(to capacity: ByteCount, maximumObject: ByteCount) {
        self.current.withLock { current in
            current.capacity = capacity
            current.maximumObject = maximumObject
        }
        let share = ByteCount(capacity.bytes / UInt64(max(1, self.parts.count)))
        for part in self.parts { part.shard.withLock { $0.resize(to: share) } }
    }

    /// The largest body that a part with its share of the capacity can take, in bytes.
    ///
    /// `ByteBuffer` counts with 32 bits: never above 1 GiB.
    package var largestBody: UInt64 { self.largestBody(within: self.configuration) }

    private func largestBody(within configuration: MemoryConfiguration) -> UInt64 {
        min(
            configuration.maximumObject.bytes,
            configuration.capacity.bytes / UInt64(max(1, self.parts.count)), 1 << 30)
    }

    // MARK: For the tiers

    /// The part of `key`, locked for the length of `body`, which must call nothing outside.
    func withShard<R: Sendable>(
        of key: HashedKey, _ body: (inout MemoryShard) -> R
    ) -> R {
        self.parts[self.part(of: key)].shard.withLock { shard in body(&shard) }
    }

    /// The count of parts is a power of two.
    func part(of key: HashedKey) -> Int { key.hashed & (self.parts.count - 1) }

    /// Notes a use of what has the mark, unless anything under its key has changed since.
    func use(
        _ mark: ResidentMark, at time: Timestamp
    ) -> (object: StoredObject, isHit: Bool, lowerID: ObjectID?)? {
        guard self.parts.indices.contains(mark.part) else { return nil }
        return self.parts[mark.part].shard.withLock {
            $0.use(mark.slot, revision: mark.revision, at: time)
        }
    }

    func newID() -> ObjectID {
        let serial = self.ids.add(1, ordering: .relaxed).newValue
        return ObjectID(rawValue: Self.idBase | serial)
    }

    /// The next place in the order of removals; taken with the part's lock held, so that no mark
    /// taken later belongs to a removal that came earlier.
    func newMark() -> UInt64 {
        self.marks.add(1, ordering: .sequentiallyConsistent).newValue
    }

    /// Runs `body` on the part of `key`, locked, unless the key was removed after `begun`.
    ///
    /// This is the one step in which a response becomes visible. A removal either has left its
    /// mark, and is seen here, or finds what `body` puts in.
    func admit<R: Sendable>(
        _ key: HashedKey, begun: RemovalMark, _ body: (inout MemoryShard) -> R
    ) -> Admission<R> {
        while true {
            let sweeps = self.sweeps.withLock { $0 }
            if sweeps.floor > begun.rawValue { return .refused(.removed) }
            let later = sweeps.last.filter { $0.mark > begun.rawValue }
            if later.contains(where: { $0.selection.contains(key.key) }) {
                return .refused(.removed)
            }
            let seen = max(begun.rawValue, sweeps.last.last?.mark ?? 0)
            // nil: a sweep that we have not asked has come to this part meanwhile.
            let admission: Admission<R>? = self.withShard(of: key) { shard in
                if shard.isClosed { return .refused(.closing) }
                if shard.sweptMark > seen { return nil }
                guard shard.removals.isUntouched(key.hashed, since: begun.rawValue) else {
                    return .refused(.removed)
                }
                return .admitted(body(&shard))
            }
            if let admission { return admission }
        }
    }

    /// Removes a selection from memory, in bounded steps, and dooms what is about to land.
    ///
    /// - Parameters:
    ///   - removal: gets the number removed here of which the lower tier has no copy, and waits for
    ///     the landings.
    func sweep(_ selection: KeySelection, _ removal: PendingRemoval) {
        let mark = self.sweeps.withLock { sweeps in
            let mark = self.newMark()
            sweeps.last.append(Sweep(mark: mark, selection: selection))
            if sweeps.last.count > 16 { sweeps.floor = sweeps.last.removeFirst().mark }
            return mark
        }
        for part in self.parts {
            let landings = part.shard.withLock { shard in
                shard.sweptMark = max(shard.sweptMark, mark)
                return shard.lower.landings
            }
            let doomed = landings.all.filter { selection.contains($0.key.key) }.map(\.ticket)
            part.shard.withLock { $0.lower.landings.doom(doomed, for: removal) }
            var start = 0
            while let next = self.sweepStep(part, from: start, mark, selection, removal) {
                start = next
            }
        }
    }

    /// One step of a sweep: 256 slots from `start`; the next start, or nil at the end.
    private func sweepStep(
        _ part: Part, from start: Int, _ mark: UInt64, _ selection: KeySelection,
        _ removal: PendingRemoval
    ) -> Int? {
        let (found, count) = part.shard.withLock { shard in
            let range = start..<min(start + 256, max(start, shard.slotCount))
            return (range.compactMap { shard.entry(at: $0)?.object.name }, shard.slotCount)
        }
        let doomed = found.filter { selection.contains($0.key) }
        if !doomed.isEmpty {
            let removed = part.shard.withLock { shard in
                doomed.count { name in
                    let key = HashedKey(name.key)
                    guard let entry = shard.remove(name.id, of: key) else { return false }
                    shard.changes.note(key.hashed, at: mark)
                    return entry.lowerID == nil && !entry.isLanding
                }
            }
            removal.add(removed)
        }
        return start + 256 < count ? start + 256 : nil
    }

    /// Whether a removal by predicate after `begun` covers `key`.
    func isSwept(_ key: CacheKey, since begun: RemovalMark) -> Bool {
        let sweeps = self.sweeps.withLock { $0 }
        return sweeps.floor > begun.rawValue
            || sweeps.last.contains { $0.mark > begun.rawValue && $0.selection.contains(key) }
    }

    /// Whether there certainly was no removal by predicate after `begun`, of whatever keys, and none is
    /// under way in the lower tier.
    func hasNoSweeps(since begun: RemovalMark) -> Bool {
        self.sweeps.withLock { sweeps in
            sweeps.active.isEmpty && sweeps.floor <= begun.rawValue
                && (sweeps.last.last?.mark ?? 0) <= begun.rawValue
        }
    }

    /// A removal by predicate begins in the lower tier; gives the mark that ends it.
    func beganSweepBelow(_ selection: KeySelection) -> UInt64 {
        self.sweeps.withLock { sweeps in
            let mark = self.newMark()
            sweeps.active.append(Sweep(mark: mark, selection: selection))
            return mark
        }
    }

    func endedSweepBelow(_ mark: UInt64) {
        self.sweeps.withLock { sweeps in sweeps.active.removeAll { $0.mark == mark } }
    }

    /// Whether a removal by predicate that covers `key` is under way in the lower tier.
    func isBeingSweptBelow(_ key: CacheKey) -> Bool {
        self.sweeps.withLock { $0.active }.contains { $0.selection.contains(key) }
    }

    // MARK: ObjectStore

    /// Always an answer: what is not here is nowhere.
    package func lookupResident(_ key: CacheKey) -> [StoredObject]? {
        let key = HashedKey(key)
        return self.withShard(of: key) { $0.objects(of: key) }
    }

    package func lookup(
        _ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void
    ) {
        let key = HashedKey(key)
        completion(self.withShard(of: key) { $0.objects(of: key) })
    }

    /// How many slots one step looks at with a part's lock held.
    private static let slotsPerStep = 128

    package func residentObjects(from place: ResidentPlace) -> ResidentPage {
        guard self.parts.indices.contains(place.part), place.slot >= 0 else {
            return ResidentPage()
        }
        let start = place.slot
        let (found, count) = self.parts[place.part].shard.withLock { shard in
            let count = shard.slotCount
            let end = count - start > Self.slotsPerStep ? start + Self.slotsPerStep : count
            let found = start < end ? (start..<end).compactMap { shard.entry(at: $0) } : []
            return (found, count)
        }
        var next: ResidentPlace?
        if count - start > Self.slotsPerStep {
            next = ResidentPlace(part: place.part, slot: start + Self.slotsPerStep)
        } else if place.part + 1 < self.parts.count {
            next = ResidentPlace(part: place.part + 1)
        }
        return ResidentPage(objects: found.map { ResidentObject($0) }, next: next)
    }

    package func residentObjects(of key: CacheKey) -> [ResidentObject] {
        let key = HashedKey(key)
        return self.withShard(of: key) { $0.entries(of: key) }.map { ResidentObject($0) }
    }

    package func removalMark() -> RemovalMark {
        RemovalMark(rawValue: self.marks.load(ordering: .sequentiallyConsistent))
    }

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
        self.willHold(key)
        if let extent = head.extent {
            return self.storePart(
                head, extent, for: key, length: length, replacing: replacing, begun: begun,
                observer: observer)
        }
        guard self.mayTake(length) else { return nil }
        return MemorySink(
            self, .new(head, replacing: replacing), HashedKey(key), start: 0, length: length,
            begun: begun, observer)
    }

    package var mayHoldWithoutSearch: Bool {
        self.holdsWithoutSearch.load(ordering: .acquiring)
    }

    /// Notes that a response may come to lie under a key.
    func willHold(_ key: CacheKey) {
        guard key.leavesOutSearch, !self.mayHoldWithoutSearch else { return }
        self.holdsWithoutSearch.store(true, ordering: .releasing)
    }

    /// Whether a body of this length, or of unknown length, may be kept.
    func mayTake(_ length: UInt64?) -> Bool { self.limit(for: length) != nil }

    /// How many bytes a body of this length, or of unknown length, may come to; nil where it may not be
    /// kept.
    func limit(for length: UInt64?) -> UInt64? {
        // Read once: each time takes a lock.
        let configuration = self.configuration
        let largest = self.largestBody(within: configuration)
        return configuration.capacity > .zero && (length ?? 0) <= largest ? largest : nil
    }

    package func noteInvalidation(ofGroup name: [UInt8], at time: Timestamp) {
        let hash = name.hashValue
        self.groups.withLock { _ = $0.note(hash, at: time) }
    }

    package func groupInvalidation(of name: [UInt8]) -> Timestamp? {
        let hash = name.hashValue
        return self.groups.withLock { $0.time(of: hash) }
    }

    package func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {
        let key = HashedKey(key)
        self.withShard(of: key) { shard in _ = shard.use(id, of: key, at: time) }
    }

    package func statistics() -> StoreStatistics {
        var statistics = StoreStatistics()
        statistics.memory.capacity = self.configuration.capacity.bytes
        for part in self.parts {
            let (count, bytes, evictions, hits) = part.shard.withLock {
                ($0.count, $0.bytes, $0.evictions, $0.hits)
            }
            statistics.memory.objects += UInt64(count)
            statistics.memory.bytes += bytes
            statistics.memory.evictions &+= evictions
            statistics.memory.hits &+= hits
        }
        return statistics
    }

    package func close(_ completion: @escaping @Sendable () -> Void) {
        for part in self.parts { part.shard.withLock { $0.close() } }
        completion()
    }
}

/// What came of the attempt to make a response visible.
enum Admission<R: Sendable>: Sendable {
    case admitted(R)
    case refused(SinkAbandonment)
}

extension ResidentObject {
    fileprivate init(_ entry: MemoryEntry) {
        self.init(
            object: entry.object, lowerID: entry.lowerID,
            isLanding: entry.isLanding && entry.lowerID == nil)
    }
}

extension StoredObject {
    fileprivate var name: (id: ObjectID, key: CacheKey) { (self.id, self.key) }
}
