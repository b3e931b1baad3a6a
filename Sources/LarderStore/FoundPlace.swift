package import LarderHTTP
package import LarderPolicy
package import NIOCore

/// What a look-up has found, and which of it an answer is made from: to be found again.
///
/// It holds heads and no bodies.
package struct FoundPlace: Sendable {
    /// More variants than this are decided on anew each time: their heads would be held here.
    package static let mostObjects = 4

    private struct Found: Sendable {
        let id: ObjectID
        let head: StoredHead
    }

    private let found: [Found]
    /// Which of them the answer is made from.
    package let index: Int
    /// The length of its body.
    package let bodyLength: UInt64

    package init(of objects: [StoredObject], _ index: Int) {
        self.found = objects.map { Found(id: $0.id, head: $0.head) }
        self.index = index
        self.bodyLength = objects[index].bodyLength
    }

    /// How many were found.
    package var count: Int { self.found.count }

    /// The one that the answer is made from.
    package var id: ObjectID { self.found[self.index].id }

    /// Where among those that were found this one stands; nil where it does not.
    package func place(of id: ObjectID, _ head: StoredHead) -> Int? {
        self.found.firstIndex { $0.id == id && $0.head == head }
    }

    /// Whether all that were found satisfy a predicate.
    package func allSatisfy(_ isTrue: (ObjectID, StoredHead) -> Bool) -> Bool {
        self.found.allSatisfy { isTrue($0.id, $0.head) }
    }

    /// The one that the answer is made from, where a look-up has found the same, in the same order.
    package func object(among objects: [StoredObject]) -> StoredObject? {
        guard objects.count == self.found.count else { return nil }
        for (place, object) in objects.enumerated() {
            guard self.place(of: object.id, object.head) == place else { return nil }
        }
        return objects[self.index]
    }

    /// The bytes of the fields that it holds.
    package var fieldBytes: Int { self.found.reduce(0) { $0 + $1.head.fields.bytes.count } }
}

extension ObjectStore {
    /// For a store that has no shorter way than to look for all of it.
    package func bodyAgain(at place: FoundPlace, of key: CacheKey) -> ByteBuffer? {
        guard let objects = self.lookupInPlace(key), objects.count == place.count,
            objects.allSatisfy({ place.place(of: $0.id, $0.head) != nil })
        else { return nil }
        return objects.first { $0.id == place.id }?.body.resident
    }

    package func useAgain(
        at place: FoundPlace, of key: CacheKey, at time: Timestamp
    ) -> ByteBuffer? {
        self.useLookedUp(at: place, of: key, at: time)
    }

    fileprivate func useLookedUp(
        at place: FoundPlace, of key: CacheKey, at time: Timestamp
    ) -> ByteBuffer? {
        guard let objects = self.lookupInPlace(key), let object = place.object(among: objects),
            let body = object.body.resident
        else { return nil }
        self.noteUse(object.id, of: key, at: time)
        return body
    }
}

extension TieredStore {
    /// Past all that a look-up does to bring a body up to memory, where memory would not take it.
    package func useAgain(
        at place: FoundPlace, of key: CacheKey, at time: Timestamp
    ) -> ByteBuffer? {
        guard let disk = self.disk, !self.memory.mayTake(place.bodyLength) else {
            return self.useLookedUp(at: place, of: key, at: time)
        }
        let mark = self.memory.removalMark()
        let hashed = HashedKey(key)
        // Before it is read and after: what begins or ends meanwhile shows in one of them.
        guard self.showsLower(place, of: hashed, since: mark) else {
            return self.useLookedUp(at: place, of: key, at: time)
        }
        guard let body = disk.bodyAgain(at: place, of: key),
            self.showsLower(place, of: hashed, since: mark)
        else { return nil }
        disk.noteUse(place.id, of: key, at: time)
        return body
    }

    /// Whether a look-up would show what the lower tier finds of a key as that finds it, and nothing
    /// else; where that cannot be told at once it would not.
    private func showsLower(
        _ place: FoundPlace, of key: HashedKey, since mark: RemovalMark
    ) -> Bool {
        self.memory.hasNoSweeps(since: mark)
            && self.memory.withShard(of: key) { $0.showsLower(place, of: key, since: mark) }
    }
}
