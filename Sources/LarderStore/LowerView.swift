import LarderHTTP
import LarderPolicy

/// What the memory tier knows of the tier below it, for the keys of one part.
///
/// A value.
struct LowerView: Sendable {
    /// Keys of which the lower tier has nothing, and memory neither.
    var absent = RecentHashes(limit: 4096)
    /// Lookups of the lower tier under way, by key.
    var asks: [Int: Ask] = [:]
    /// Responses committed to the lower tier that it has neither shown nor given up yet.
    var landings = Landings()
    /// Ids that are being removed from the lower tier: no lookup may show them any more.
    var hidden: [ObjectID: Int] = [:]
    /// Keys that are being removed from the lower tier as a whole, and how often at once.
    var purging: [Int: Int] = [:]
    var aliases = Aliases()
    var heads = LatestHeads()
    /// Responses of the lower tier of which a reader is making a copy for memory.
    var promoting: Set<ObjectID> = []

    /// A lookup of one key in the lower tier, or several at once.
    struct Ask: Sendable {
        var count = 0
        /// Something may have come to the lower tier since the first of them began: their answers
        /// do not tell all.
        var isTainted = false
    }

    mutating func beganAsking(_ hash: Int) {
        self.asks[hash, default: Ask()].count += 1
    }

    /// A lookup has its answer; whether that tells all.
    mutating func endedAsking(_ hash: Int) -> Bool {
        guard var ask = self.asks[hash] else { return false }
        ask.count -= 1
        self.asks[hash] = ask.count > 0 ? ask : nil
        return !ask.isTainted
    }

    mutating func taint(_ hash: Int) {
        // Nobody asks, nearly always: looked for in place, it would cost four allocations to find that.
        guard var ask = self.asks[hash] else { return }
        ask.isTainted = true
        self.asks[hash] = ask
    }

    mutating func hide(_ ids: [ObjectID]) {
        for id in ids { self.hidden[id, default: 0] += 1 }
    }

    mutating func unhide(_ ids: [ObjectID]) {
        for id in ids {
            guard let count = self.hidden[id] else { continue }
            self.hidden[id] = count > 1 ? count - 1 : nil
        }
    }

    mutating func beganPurging(_ hash: Int) {
        self.purging[hash, default: 0] += 1
    }

    mutating func endedPurging(_ hash: Int) {
        guard let count = self.purging[hash] else { return }
        self.purging[hash] = count > 1 ? count - 1 : nil
    }

    /// Whether a lookup may show `found`, which the lower tier has answered with.
    func mayShow(_ found: StoredObject, of key: HashedKey) -> Bool {
        if self.hidden[found.id] != nil { return false }
        for landing in self.landings.landings(of: key) {
            if landing.isInMemory, landing.replaced.contains(found.id) { return false }
            if landing.isDoomed, landing.object.isCopy(of: found) { return false }
        }
        return true
    }
    /// Whether lookups would show of a key what a place names, with the heads that it has, where they
    /// find the same.
    func changesNothing(of place: FoundPlace, _ key: HashedKey) -> Bool {
        guard self.purging[key.hashed] == nil, self.landings.landings(of: key).isEmpty else {
            return false
        }
        if self.hidden.isEmpty, self.heads.isEmpty { return true }
        return place.allSatisfy { id, head in
            self.hidden[id] == nil && self.heads[id].map { $0 == head } ?? true
        }
    }
}
