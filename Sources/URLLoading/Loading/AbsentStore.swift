import LarderHTTP
import LarderPolicy
import LarderStore

/// The store of a session without a cache, and of loads that do not use it: it holds nothing.
final class AbsentStore: ObjectStore {
    func lookupResident(_ key: CacheKey) -> [StoredObject]? { [] }

    var mayHoldWithoutSearch: Bool { false }

    func lookup(_ key: CacheKey, _ completion: @escaping @Sendable ([StoredObject]) -> Void) {
        completion([])
    }

    func store(
        _ head: StoredHead, for key: CacheKey, length: UInt64?, replacing: [ObjectID],
        observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        nil
    }

    func update(
        _ id: ObjectID, of key: CacheKey, head: StoredHead, written: (@Sendable () -> Void)?
    ) {
        written?()
    }

    func remove(_ key: CacheKey, ids: [ObjectID]?, _ completion: (@Sendable (Int) -> Void)?) {
        completion?(0)
    }

    func removeAll(
        in selection: KeySelection, _ completion: @escaping @Sendable (Int) -> Void
    ) {
        completion(0)
    }

    func noteUse(_ id: ObjectID, of key: CacheKey, at time: Timestamp) {}
    func statistics() -> StoreStatistics { StoreStatistics() }
    func close(_ completion: @escaping @Sendable () -> Void) { completion() }
}
