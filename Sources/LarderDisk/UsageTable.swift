import LarderHTTP
import LarderStore
import Synchronization

/// Uses of stored responses that the disk does not know of yet.
///
/// A hit costs a few lines under a lock and no transaction; the writer takes them in batches. To
/// write one copies a page of the tree, and often one for it alone. So the first use of a response
/// is due at once, and those that follow it when the next round begins: what is asked for again and
/// again costs a write a round. Lookups and eviction count the uses in here, so that only a kill
/// loses them.
final class UsageTable: Sendable {
    struct Use: Sendable {
        var key: ObjectKey
        /// Uses that are not written; 0 where all are.
        var count: UInt64
        var last: Timestamp
        fileprivate var isDue = true
    }

    private struct State {
        var uses: [ObjectID: Use] = [:]
        /// What is to be written, in order; some of it may be forgotten meanwhile.
        var due: [ObjectID] = []

        mutating func noteAgain(_ id: ObjectID, at time: Timestamp) -> Bool {
            // In its place: a second search for it costs as much as the first.
            guard let place = self.uses.index(forKey: id) else { return false }
            self.uses.values[place].count += 1
            if time > self.uses.values[place].last { self.uses.values[place].last = time }
            return true
        }
    }

    /// Beyond it uses are not noted until the writer comes round: a bound on memory.
    private static let limit = 65_536
    private let state = Mutex(State())

    /// Notes one more use; false, and nothing is noted, where it does not know of the first.
    func noteAgain(_ id: ObjectID, at time: Timestamp) -> Bool {
        self.state.withLock { $0.noteAgain(id, at: time) }
    }

    /// Notes a use; true where nothing was due and something is now.
    func note(_ key: ObjectKey, at time: Timestamp) -> Bool {
        self.state.withLock { state in
            if state.noteAgain(key.id, at: time) { return false }
            guard state.uses.count < Self.limit else { return false }
            state.uses[key.id] = Use(key: key, count: 1, last: time)
            state.due.append(key.id)
            return state.due.count == 1
        }
    }

    func use(of id: ObjectID) -> Use? {
        self.state.withLock { $0.uses[id] }
    }

    func forget(_ id: ObjectID) {
        self.state.withLock { _ = $0.uses.removeValue(forKey: id) }
    }

    /// Takes up to `limit` uses that are due, the oldest first.
    func take(_ limit: Int) -> [Use] {
        self.state.withLock { state in
            let ids = state.due.prefix(max(0, limit))
            state.due.removeFirst(ids.count)
            // What was written is remembered only while that leaves room for what was not.
            let remembers = state.uses.count <= Self.limit / 2
            return ids.compactMap { id in
                guard let use = state.uses[id], use.isDue else { return nil }
                if remembers {
                    state.uses[id]?.count = 0
                    state.uses[id]?.isDue = false
                } else {
                    state.uses[id] = nil
                }
                return use
            }
        }
    }

    /// What was used since it was written is due from now on; what was not is forgotten.
    func beginRound() {
        self.state.withLock { state in
            for (id, use) in state.uses where !use.isDue {
                if use.count > 0 {
                    state.uses[id]?.isDue = true
                    state.due.append(id)
                } else {
                    state.uses[id] = nil
                }
            }
        }
    }

    /// Forgets all that was noted.
    func clear() {
        self.state.withLock { $0 = State() }
    }

    var isEmpty: Bool { self.state.withLock { $0.uses.isEmpty } }

    var hasDue: Bool { self.state.withLock { !$0.due.isEmpty } }
}
