package import LarderHTTP
package import LarderPolicy

/// Where a lookup has found a response in memory, good for as long as nothing under its key changes.
///
/// A second lookup costs a hash of the key, a search for it, and a copy of all that is stored under
/// it; to find that nothing has changed costs the comparison of a number.
package struct ResidentMark: Sendable {
    /// Which part of the memory tier.
    let part: Int
    let slot: EvictionPolicy.Slot
    let revision: UInt64
}

extension ObjectStore {
    /// For a store that finds everything anew.
    package func residentMark(
        of id: ObjectID, among objects: [StoredObject], under key: CacheKey
    ) -> ResidentMark? { nil }

    /// For a store that gives no marks.
    package func useResident(
        _ mark: ResidentMark, of key: CacheKey, at time: Timestamp
    ) -> StoredObject? { nil }
}

extension MemoryStore {
    package func residentMark(
        of id: ObjectID, among objects: [StoredObject], under key: CacheKey
    ) -> ResidentMark? {
        self.mark(of: id, among: objects, under: key, needsAll: false)
    }

    package func useResident(
        _ mark: ResidentMark, of key: CacheKey, at time: Timestamp
    ) -> StoredObject? {
        self.use(mark, at: time)?.object
    }

    func mark(
        of id: ObjectID, among objects: [StoredObject], under key: CacheKey, needsAll: Bool
    ) -> ResidentMark? {
        let key = HashedKey(key)
        let place = self.withShard(of: key) {
            $0.place(of: id, among: objects, of: key, needsAll: needsAll)
        }
        return place.map {
            ResidentMark(part: self.part(of: key), slot: $0.slot, revision: $0.revision)
        }
    }
}

extension TieredStore {
    package func residentMark(
        of id: ObjectID, among objects: [StoredObject], under key: CacheKey
    ) -> ResidentMark? {
        self.memory.mark(of: id, among: objects, under: key, needsAll: self.disk != nil)
    }

    package func useResident(
        _ mark: ResidentMark, of key: CacheKey, at time: Timestamp
    ) -> StoredObject? {
        guard let use = self.memory.use(mark, at: time) else { return nil }
        if let lowerID = use.lowerID {
            self.tellUse(of: lowerID, key, isHit: use.isHit, at: time)
        }
        return use.object
    }
}
