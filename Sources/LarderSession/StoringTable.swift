import LarderPolicy
import Synchronization

/// What is on its way into the store, by key, and what has got there of late.
///
/// A client that has the last byte of a response may ask for it again at once, before a store that
/// writes to a disk can show it. Who finds nothing of use in the store looks here: whether there is
/// something to wait for, or something has come since the store was asked, so that it is to be asked
/// again.
///
/// Sharded, each shard locked for a few lines.
final class StoringTable: Sendable {
    private struct Shard {
        var storings: [CacheKey: [Storing]] = [:]
        /// The last that ended, the hash of their key and their number, in a ring.
        var ended: [(hash: Int, number: UInt64)] = []
        var next = 0

        mutating func note(_ hash: Int, _ number: UInt64) {
            if self.ended.count < StoringTable.remembered {
                self.ended.append((hash, number))
            } else {
                self.ended[self.next] = (hash, number)
                self.next = (self.next + 1) % StoringTable.remembered
            }
        }

        /// Whether a storing of a key with this hash has ended since, or that is no longer known.
        func hasEnded(_ hash: Int, since mark: UInt64) -> Bool {
            if self.ended.count == StoringTable.remembered, self.ended[self.next].number >= mark {
                return true
            }
            // The newest first: few have ended since, whatever the ring remembers.
            let count = self.ended.count
            for place in stride(from: count, to: 0, by: -1) {
                let (ended, number) = self.ended[(self.next + place - 1) % count]
                if number < mark { return false }
                if ended == hash { return true }
            }
            return false
        }
    }

    /// A slot of the table: `Mutex` cannot live in an array.
    private final class Slot: Sendable {
        let shard = Mutex(Shard())
    }

    /// A store ends a thousand at once where it is busy.
    private static let remembered = 128
    private let slots: [Slot]
    private let count = Atomic<UInt64>(0)
    /// How many storings have begun and not ended, over all keys.
    private let open = Atomic<Int>(0)

    init() {
        self.slots = (0..<32).map { _ in Slot() }
    }

    private func slot(_ hash: Int) -> Slot {
        self.slots[Int(UInt(bitPattern: hash) % UInt(self.slots.count))]
    }

    /// The present place in the order of endings; read before the store is asked.
    var mark: UInt64 { self.count.load(ordering: .acquiring) }

    func begin(_ storing: Storing) {
        self.open.add(1, ordering: .acquiringAndReleasing)
        self.slot(storing.key.digest).shard.withLock { shard in
            shard.storings[storing.key, default: []].append(storing)
        }
    }

    /// The store has said what became of it.
    ///
    /// To be followed by `release`, once the caller holds nothing that those who wait may want.
    func end(_ storing: Storing) {
        let hash = storing.key.digest
        let wasOpen = self.slot(hash).shard.withLock { shard in
            shard.note(hash, self.count.wrappingAdd(1, ordering: .acquiringAndReleasing).oldValue)
            guard var storings = shard.storings.removeValue(forKey: storing.key) else {
                return false
            }
            let count = storings.count
            storings.removeAll { $0 === storing }
            if !storings.isEmpty { shard.storings[storing.key] = storings }
            return storings.count < count
        }
        // After the mark has moved: who sees none open sees that one has ended.
        if wasOpen { self.open.subtract(1, ordering: .acquiringAndReleasing) }
    }

    /// Whether nothing is being stored, nor has been since the mark was read: then no key need be
    /// looked up.
    func isIdle(since mark: UInt64) -> Bool {
        self.open.load(ordering: .acquiring) == 0 && self.mark == mark
    }

    /// Whether a storing under the key has ended since the mark was read; now and then also where
    /// none has.
    func hasEnded(_ key: CacheKey, since mark: UInt64) -> Bool {
        // Nothing at all has, nearly always.
        if self.mark == mark { return false }
        let hash = key.digest
        return self.slot(hash).shard.withLock { $0.hasEnded(hash, since: mark) }
    }

    /// What is being stored under a key.
    func storings(of key: CacheKey) -> [Storing] {
        self.slot(key.digest).shard.withLock { $0.storings[key] ?? [] }
    }
}
