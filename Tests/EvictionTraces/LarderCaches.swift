import LarderHTTP
package import LarderStore

/// The memory tier's policy.
package struct MemoryTierCache: TraceCache {
    package private(set) var policy: EvictionPolicy
    private var slots: [EvictionPolicy.Slot?] = []
    private var objects: [Int] = []
    private var victims: [EvictionPolicy.Slot] = []

    package init(capacity: UInt64) {
        self.policy = EvictionPolicy(capacity: ByteCount(capacity))
    }

    package func holds(_ object: Int) -> Bool {
        object < self.slots.count && self.slots[object] != nil
    }

    package var count: Int { self.slots.count { $0 != nil } }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        while self.slots.count <= object { self.slots.append(nil) }
        if let slot = self.slots[object] {
            self.policy.hit(slot)
            return true
        }
        let slot = self.policy.insert(UInt64(object), size: size, victims: &self.victims)
        self.settle()
        guard let slot else { return false }
        while self.objects.count <= slot.index { self.objects.append(-1) }
        self.slots[object] = slot
        self.objects[slot.index] = object
        return false
    }

    package mutating func remove(_ object: Int) {
        guard object < self.slots.count, let slot = self.slots[object] else { return }
        self.slots[object] = nil
        self.policy.remove(slot)
    }

    package mutating func resize(_ object: Int, to size: UInt64) {
        guard object < self.slots.count, let slot = self.slots[object] else { return }
        self.policy.resize(slot, to: size, victims: &self.victims)
        self.settle()
    }

    private mutating func settle() {
        for victim in self.victims { self.slots[self.objects[victim.index]] = nil }
        self.victims = []
    }
}

/// The disk tier's policy, as its writer applies it: the same rules over queues of its own, and room
/// made ahead of need, down to some way below the capacity once that is nearly reached.
package struct DiskTierCache: TraceCache {
    private let rules: EvictionRules
    private let high: UInt64
    private let low: UInt64
    private var queues = Chains(2)
    private var uses: [UInt8] = []
    private var ghosts: GhostTable

    /// - Parameter reserve: bytes that are kept free; a fifth more of them once eviction has begun.
    package init(capacity: UInt64, reserve: UInt64) {
        self.rules = EvictionRules(capacity: ByteCount(capacity))
        self.high = capacity - min(capacity, reserve)
        self.low = capacity - min(capacity, reserve + reserve / 5)
        self.ghosts = GhostTable(capacity: ByteCount(capacity))
    }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        while self.uses.count <= object { self.uses.append(0) }
        if let queue = EvictionRules.Queue(rawValue: UInt8(max(0, self.queues.chain(of: object)))),
            self.queues.chain(of: object) >= 0
        {
            var standing = EvictionRules.Standing(queue: queue, uses: self.uses[object])
            standing.used()
            self.uses[object] = standing.uses
            return true
        }
        guard size <= self.low else { return false }
        let arrival = self.rules.arrival(isRemembered: self.ghosts.take(UInt64(object)))
        self.uses[object] = arrival.uses
        self.queues.append(object, size: size, to: Int(arrival.queue.rawValue))
        if self.bytes > self.high { self.evict() }
        return false
    }

    private var bytes: UInt64 { self.queues[0].bytes + self.queues[1].bytes }

    private func totals(_ chain: Int) -> EvictionRules.Totals {
        EvictionRules.Totals(
            bytes: self.queues[chain].bytes, count: UInt64(self.queues[chain].count))
    }

    private mutating func evict() {
        while self.bytes > self.low,
            let queue = self.rules.next(small: self.totals(0), main: self.totals(1))
        {
            let object = self.queues[Int(queue.rawValue)].oldest
            let count = UInt64(self.queues[0].count + self.queues[1].count)
            let size = self.queues.size(of: object)
            let standing = EvictionRules.Standing(queue: queue, uses: self.uses[object])
            switch self.rules.judge(
                standing, size: size, typical: self.bytes / max(1, count))
            {
            case .keep(let standing):
                self.uses[object] = standing.uses
                self.queues.move(object, to: Int(standing.queue.rawValue))
            case .evict(let isRemembered):
                self.queues.remove(object)
                if isRemembered { self.ghosts.insert(UInt64(object), size: size) }
            }
        }
    }
}
