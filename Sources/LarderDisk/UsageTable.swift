import LarderHTTP
import LarderStore
import Synchronization

/// Uses of stored responses that the disk does not know of yet.
///
/// A hit costs a few lines under a lock and no transaction; the writer takes them in batches.
final class UsageTable: Sendable {
    struct Use: Sendable {
        var key: ObjectKey
        var count: UInt64
        var last: Timestamp
    }

    /// Beyond it uses are not noted until the writer comes round: a bound on memory.
    private static let limit = 65_536
    private let uses = Mutex<[ObjectID: Use]>([:])

    /// Notes a use; true where the table was empty.
    func note(_ key: ObjectKey, at time: Timestamp) -> Bool {
        self.uses.withLock { uses in
            if var use = uses[key.id] {
                use.count += 1
                use.last = max(use.last, time)
                uses[key.id] = use
                return false
            }
            guard uses.count < Self.limit else { return false }
            uses[key.id] = Use(key: key, count: 1, last: time)
            return uses.count == 1
        }
    }

    func use(of id: ObjectID) -> Use? {
        self.uses.withLock { $0[id] }
    }

    func forget(_ id: ObjectID) {
        self.uses.withLock { _ = $0.removeValue(forKey: id) }
    }

    /// Takes up to `limit` uses out.
    func take(_ limit: Int) -> [Use] {
        self.uses.withLock { uses in
            let taken = Array(uses.values.prefix(limit))
            for use in taken { uses.removeValue(forKey: use.key.id) }
            return taken
        }
    }

    /// Forgets all that was noted.
    func clear() {
        self.uses.withLock { $0 = [:] }
    }

    var isEmpty: Bool { self.uses.withLock { $0.isEmpty } }
}
