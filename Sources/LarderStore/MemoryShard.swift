import LarderHTTP
import LarderPolicy

/// One part of the memory tier: entries, their index, their eviction.
///
/// A value, kept in a lock.
///
/// It also keeps what the two tiers must know of each other about these keys (`lower`), because
/// both must change in one step.
struct MemoryShard: Sendable {
    typealias Slot = EvictionPolicy.Slot

    /// The variants of one key.
    private struct Variants {
        /// Most recent response first.
        var slots: [Slot]
        /// Whether the lower tier has no variant but those here.
        var isComplete: Bool
    }

    private let variantsPerKey: Int
    private var index: [HashedKey: Variants] = [:]
    /// By slot.
    private var entries: [MemoryEntry?] = []
    private var policy: EvictionPolicy
    private var victims: [Slot] = []
    /// The last revision that was given.
    private var revision: UInt64 = 0

    /// Keys removed as a whole.
    var removals: MarkLog
    /// Keys of which anything was removed, replaced or freshened.
    var changes = MarkLog()
    /// Keys of which a response was made invalid.
    var invalidations = MarkLog()
    /// The latest removal by predicate that has reached this part.
    var sweptMark: UInt64 = 0
    var isClosed = false
    var lower = LowerView()
    private(set) var evictions: UInt64 = 0
    private(set) var hits: UInt64 = 0

    /// - Parameter removalsKept: how many removals of keys are told from each other.
    init(capacity: ByteCount, variantsPerKey: Int, removalsKept: Int) {
        self.variantsPerKey = variantsPerKey
        self.removals = MarkLog(limit: removalsKept)
        self.policy = EvictionPolicy(capacity: Self.net(capacity))
    }

    /// What is remembered of evicted entries is paid for by those that are there.
    private static func net(_ capacity: ByteCount) -> ByteCount {
        ByteCount(capacity.bytes - min(capacity.bytes, GhostTable.bytes(for: capacity)))
    }

    var bytes: UInt64 { self.policy.bytes }
    var count: Int { self.policy.count }
    /// One above the largest slot there ever was.
    var slotCount: Int { self.entries.count }

    // MARK: Finding

    /// All variants, most recent first.
    func objects(of key: HashedKey) -> [StoredObject] {
        guard let variants = self.index[key] else { return [] }
        return self.objects(in: variants.slots)
    }

    /// All variants where they are certainly all there is in both tiers; nil where they may not be.
    func completeObjects(of key: HashedKey) -> [StoredObject]? {
        guard let variants = self.index[key] else {
            return self.lower.absent.contains(key.hashed) ? [] : nil
        }
        return variants.isComplete ? self.objects(in: variants.slots) : nil
    }

    private func objects(in slots: [Slot]) -> [StoredObject] {
        var objects: [StoredObject] = []
        objects.reserveCapacity(slots.count)
        for slot in slots {
            if let object = self.entries[slot.index]?.object { objects.append(object) }
        }
        return objects
    }

    func entries(of key: HashedKey) -> [MemoryEntry] {
        guard let slots = self.index[key]?.slots else { return [] }
        return slots.compactMap { self.entries[$0.index] }
    }

    func entry(_ id: ObjectID, of key: HashedKey) -> MemoryEntry? {
        self.slot(of: id, key).flatMap { self.entries[$0.index] }
    }

    /// The entry in this slot, if there is one.
    func entry(at index: Int) -> MemoryEntry? {
        index < self.entries.count ? self.entries[index] : nil
    }

    private func slot(of id: ObjectID, _ key: HashedKey) -> Slot? {
        self.index[key]?.slots.first { self.entries[$0.index]?.isNamed(id) == true }
    }

    /// Whether what is here is certainly all there is in both tiers.
    func isComplete(_ key: HashedKey) -> Bool {
        self.index[key]?.isComplete ?? self.lower.absent.contains(key.hashed)
    }

    /// Whether lookups would show of a key what a place names, with the heads that it has and nothing
    /// else, where the lower tier finds the same, and the key was not removed since `mark`.
    func showsLower(_ place: FoundPlace, of key: HashedKey, since mark: RemovalMark) -> Bool {
        self.index[key] == nil && !self.lower.absent.contains(key.hashed)
            && self.removals.isUntouched(key.hashed, since: mark.rawValue)
            && self.lower.changesNothing(of: place, key)
    }

    /// Notes that the lower tier has no variants but those here, or that it may.
    mutating func setComplete(_ isComplete: Bool, _ key: HashedKey) {
        if self.index[key] != nil {
            self.index[key]?.isComplete = isComplete
            self.changed(key)
        } else if isComplete {
            self.lower.absent.insert(key.hashed)
        } else {
            self.lower.absent.remove(key.hashed)
        }
    }

    // MARK: Changing

    /// Takes an entry in, in the place of those that it replaces; false, and nothing is changed,
    /// where it is larger than this part.
    mutating func insert(
        _ entry: MemoryEntry, _ key: HashedKey, replacing: [ObjectID] = []
    ) -> Bool {
        let cost = MemoryCost.of(entry.object)
        guard cost <= self.policy.capacity.bytes, self.policy.capacity > .zero else {
            return false
        }
        for id in replacing { _ = self.remove(id, of: key) }
        let slot = self.policy.insert(
            Self.fingerprint(entry, key), size: cost, victims: &self.victims)
        // A victim may have had the slot that the new entry gets.
        self.settleVictims()
        guard let slot else { return false }
        while self.entries.count <= slot.index { self.entries.append(nil) }
        self.entries[slot.index] = entry
        if self.index[key] == nil {
            let isComplete = self.lower.absent.remove(key.hashed)
            self.index[key] = Variants(slots: [slot], isComplete: isComplete)
        } else {
            self.index[key]?.slots.append(slot)
            self.order(key)
        }
        self.changed(key)
        while let last = self.index[key]?.slots, last.count > self.variantsPerKey,
            let oldest = last.last
        {
            self.policy.remove(oldest)
            self.evicted(oldest)
        }
        return true
    }

    /// Removes an entry by either of its ids, and gives it back.
    mutating func remove(_ id: ObjectID, of key: HashedKey) -> MemoryEntry? {
        guard let slot = self.slot(of: id, key) else { return nil }
        self.policy.remove(slot)
        return self.takeOut(slot)
    }

    /// Notes that a response of a key is to get another head; false, and nothing is noted, where that
    /// comes of a request from before one of them was made invalid.
    ///
    /// - Parameters:
    ///   - begun: when that request was sent; nil: the head is right, whenever it comes.
    ///   - mark: of the change.
    mutating func notesUpdate(
        of key: HashedKey, to head: StoredHead, begun: RemovalMark?, at mark: UInt64
    ) -> Bool {
        if head.isInvalidated {
            self.invalidations.note(key.hashed, at: mark)
        } else if let begun,
            !self.invalidations.isUntouched(key.hashed, since: begun.rawValue)
        {
            return false
        }
        self.changes.note(key.hashed, at: mark)
        return true
    }

    /// Replaces the head of an entry, but for its extent; what it was before.
    mutating func update(_ id: ObjectID, of key: HashedKey, head: StoredHead) -> MemoryEntry? {
        guard let slot = self.slot(of: id, key), let old = self.entries[slot.index] else {
            return nil
        }
        var object = old.object
        object.head = head
        object.head.extent = old.object.head.extent
        self.put(object, slot, key)
        return old
    }

    /// Puts an object in the place of its former self; false where it has become larger than this
    /// part, or is not there.
    mutating func replace(
        _ id: ObjectID, of key: HashedKey, with object: StoredObject
    ) -> Bool {
        guard let slot = self.slot(of: id, key),
            MemoryCost.of(object) <= self.policy.capacity.bytes
        else { return false }
        self.put(object, slot, key)
        return true
    }

    private mutating func put(_ object: StoredObject, _ slot: Slot, _ key: HashedKey) {
        self.entries[slot.index]?.object = object
        self.order(key)
        self.changed(key)
        self.policy.resize(slot, to: MemoryCost.of(object), victims: &self.victims)
        self.settleVictims()
    }

    /// Notes a use, and gives the entry's id in the lower tier; false where it is not here.
    ///
    /// The use that brought an entry up is the lower tier's. Were it counted here, each entry that is
    /// ever read would look like one that is read again, and a scan would drive out the others.
    mutating func use(
        _ id: ObjectID, of key: HashedKey, at time: Timestamp
    ) -> (isHere: Bool, isHit: Bool, lowerID: ObjectID?) {
        guard let slot = self.slot(of: id, key),
            let (isHit, lowerID) = self.entries[slot.index]?.noteUse(at: time)
        else { return (false, false, nil) }
        if isHit {
            self.policy.hit(slot)
            self.hits &+= 1
        }
        return (true, isHit, lowerID)
    }

    /// The place of one of several objects, if they are still what is stored under the key.
    ///
    /// - Parameter needsAll: they must be all that the lower tier has, too.
    func place(
        of id: ObjectID, among objects: [StoredObject], of key: HashedKey, needsAll: Bool
    ) -> (slot: Slot, revision: UInt64)? {
        guard let variants = self.index[key], variants.isComplete || !needsAll,
            variants.slots.count == objects.count
        else { return nil }
        var place: (Slot, UInt64)?
        for (slot, object) in zip(variants.slots, objects) {
            guard let entry = self.entries[slot.index], entry.object.id == object.id,
                entry.object.head == object.head
            else { return nil }
            if object.id == id { place = (slot, entry.revision) }
        }
        return place
    }

    /// Notes a use of what is in a slot, and gives it and its id in the lower tier; nil where
    /// anything under its key has changed since it got the revision.
    mutating func use(
        _ slot: Slot, revision: UInt64, at time: Timestamp
    ) -> (object: StoredObject, isHit: Bool, lowerID: ObjectID?)? {
        guard slot.index < self.entries.count, self.entries[slot.index]?.revision == revision,
            let (isHit, lowerID) = self.entries[slot.index]?.noteUse(at: time),
            let object = self.entries[slot.index]?.object
        else { return nil }
        if isHit {
            self.policy.hit(slot)
            self.hits &+= 1
        }
        return (object, isHit, lowerID)
    }

    /// Notes that the lower tier shows an entry, or (nil) that it will not; false where it is not here.
    @discardableResult
    mutating func landed(_ id: ObjectID, of key: HashedKey, as lowerID: ObjectID?) -> Bool {
        guard let slot = self.slot(of: id, key) else { return false }
        self.entries[slot.index]?.isLanding = false
        self.entries[slot.index]?.lowerID = lowerID
        return true
    }

    /// Bounds the entries anew; those that no longer fit leave at once.
    mutating func resize(to capacity: ByteCount) {
        self.policy.resize(to: Self.net(capacity), victims: &self.victims)
        self.settleVictims()
    }

    /// Drops everything, for good.
    mutating func close() {
        self.isClosed = true
        self.index = [:]
        self.entries = []
        self.policy = EvictionPolicy(capacity: .zero)
    }

    private static func fingerprint(_ entry: MemoryEntry, _ key: HashedKey) -> UInt64 {
        let fields = entry.object.head.varyingFields
        guard !fields.lines.isEmpty else { return UInt64(bitPattern: Int64(key.hashed)) }
        var hasher = Hasher()
        hasher.combine(key.hashed)
        hasher.combine(fields.bytes)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Gives all that is stored under a key another revision.
    private mutating func changed(_ key: HashedKey) {
        guard let slots = self.index[key]?.slots else { return }
        self.revision &+= 1
        for slot in slots { self.entries[slot.index]?.revision = self.revision }
    }

    private mutating func order(_ key: HashedKey) {
        let entries = self.entries
        self.index[key]?.slots.sort { a, b in
            guard let a = entries[a.index], let b = entries[b.index] else { return false }
            return a.precedes(b)
        }
    }

    private mutating func settleVictims() {
        guard !self.victims.isEmpty else { return }
        for slot in self.victims { self.evicted(slot) }
        self.victims.removeAll(keepingCapacity: true)
    }

    /// The policy has let go of a slot for want of room.
    private mutating func evicted(_ slot: Slot) {
        guard let entry = self.entries[slot.index] else { return }
        self.evictions &+= 1
        let key = HashedKey(entry.object.key)
        if entry.lowerID != nil || entry.isLanding {
            // The lower tier now knows a variant that is not here.
            self.setComplete(false, key)
        }
        if let lowerID = entry.lowerID, lowerID != entry.object.id {
            self.lower.aliases.note(entry.object.id, is: lowerID)
        }
        _ = self.takeOut(slot)
    }

    private mutating func takeOut(_ slot: Slot) -> MemoryEntry? {
        guard let entry = self.entries[slot.index] else { return nil }
        self.entries[slot.index] = nil
        let key = HashedKey(entry.object.key)
        self.index[key]?.slots.removeAll { $0 == slot }
        if let variants = self.index[key], variants.slots.isEmpty {
            self.index[key] = nil
            if variants.isComplete { self.lower.absent.insert(key.hashed) }
        }
        self.changed(key)
        return entry
    }
}
