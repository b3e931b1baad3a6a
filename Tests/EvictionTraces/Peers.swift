/// Least recently used.
package struct LRUCache: TraceCache {
    private let capacity: UInt64
    private var queue = Chains(1)

    package init(capacity: UInt64) {
        self.capacity = capacity
    }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        if self.queue.chain(of: object) == 0 {
            self.queue.move(object, to: 0)
            return true
        }
        guard size <= self.capacity else { return false }
        while self.queue[0].bytes + size > self.capacity { self.queue.remove(self.queue[0].oldest) }
        self.queue.append(object, size: size, to: 0)
        return false
    }
}

/// First in, first out; with a second chance for what was used meanwhile, where asked for.
package struct FIFOCache: TraceCache {
    private let capacity: UInt64
    private let givesSecondChance: Bool
    private var queue = Chains(1)
    private var used: [Bool] = []

    package init(capacity: UInt64, givesSecondChance: Bool) {
        self.capacity = capacity
        self.givesSecondChance = givesSecondChance
    }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        while self.used.count <= object { self.used.append(false) }
        if self.queue.chain(of: object) == 0 {
            self.used[object] = true
            return true
        }
        guard size <= self.capacity else { return false }
        while self.queue[0].bytes + size > self.capacity {
            let oldest = self.queue[0].oldest
            if self.givesSecondChance, self.used[oldest] {
                self.used[oldest] = false
                self.queue.move(oldest, to: 0)
            } else {
                self.queue.remove(oldest)
            }
        }
        self.used[object] = false
        self.queue.append(object, size: size, to: 0)
        return false
    }
}

/// The adaptive replacement cache, counted in bytes.
///
/// After Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003. Sizes
/// are not in the paper: its lists are bounded in bytes here, and its target moves by bytes.
package struct ARCCache: TraceCache {
    private static let recent = 0
    private static let frequent = 1
    private static let recentGhosts = 2
    private static let frequentGhosts = 3

    private let capacity: UInt64
    private var lists = Chains(4)
    /// Bytes that the recent list may have.
    private var target: UInt64 = 0

    package init(capacity: UInt64) {
        self.capacity = capacity
    }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        guard size <= self.capacity else { return false }
        let place = self.lists.chain(of: object)
        switch place {
        case Self.recent, Self.frequent:
            self.lists.move(object, to: Self.frequent)
            return true
        case Self.recentGhosts, Self.frequentGhosts:
            self.adapt(place, size)
            self.lists.remove(object)
            self.makeRoom(size, isFrequentGhost: place == Self.frequentGhosts)
            self.lists.append(object, size: size, to: Self.frequent)
        default:
            self.makeRoom(size, isFrequentGhost: false)
            self.lists.append(object, size: size, to: Self.recent)
            self.trimGhosts()
        }
        return false
    }

    private mutating func adapt(_ place: Int, _ size: UInt64) {
        let recent = max(1, self.lists[Self.recentGhosts].bytes)
        let frequent = max(1, self.lists[Self.frequentGhosts].bytes)
        if place == Self.recentGhosts {
            let step = size * max(1, frequent / recent)
            self.target = min(self.capacity, self.target + step)
        } else {
            let step = size * max(1, recent / frequent)
            self.target -= min(self.target, step)
        }
    }

    private mutating func makeRoom(_ size: UInt64, isFrequentGhost: Bool) {
        while self.lists[Self.recent].bytes + self.lists[Self.frequent].bytes + size
            > self.capacity
        {
            let recent = self.lists[Self.recent]
            let isOver =
                recent.bytes > self.target || (isFrequentGhost && recent.bytes == self.target)
            if recent.count > 0, isOver || self.lists[Self.frequent].count == 0 {
                self.lists.move(recent.oldest, to: Self.recentGhosts)
            } else {
                self.lists.move(self.lists[Self.frequent].oldest, to: Self.frequentGhosts)
            }
        }
    }

    private mutating func trimGhosts() {
        while self.lists[Self.recent].bytes + self.lists[Self.recentGhosts].bytes > self.capacity,
            self.lists[Self.recentGhosts].count > 0
        {
            self.lists.remove(self.lists[Self.recentGhosts].oldest)
        }
        while self.lists.chains.reduce(0, { $0 + $1.bytes }) > self.capacity * 2,
            self.lists[Self.frequentGhosts].count > 0
        {
            self.lists.remove(self.lists[Self.frequentGhosts].oldest)
        }
    }
}
