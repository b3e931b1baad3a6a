import LarderHTTP
import LarderStore

/// A request of a trace: which object, how large.
struct TraceRequest: Hashable {
    var object: UInt64
    var size: UInt64
}

/// A cache that holds nothing but what its policy keeps.
protocol TraceCache {
    /// Whether the request was a hit; otherwise it is put in.
    mutating func request(_ request: TraceRequest) -> Bool
}

extension TraceCache {
    /// The share of requests that were hits.
    mutating func hitRatio(_ trace: [TraceRequest]) -> Double {
        var hits = 0
        for request in trace where self.request(request) { hits += 1 }
        return Double(hits) / Double(max(1, trace.count))
    }
}

struct PolicyCache: TraceCache {
    private(set) var policy: EvictionPolicy
    private var slots: [UInt64: EvictionPolicy.Slot] = [:]
    private var objects: [EvictionPolicy.Slot: UInt64] = [:]
    private var victims: [EvictionPolicy.Slot] = []

    init(capacity: UInt64) {
        self.policy = EvictionPolicy(capacity: ByteCount(capacity))
    }

    func holds(_ object: UInt64) -> Bool { self.slots[object] != nil }
    var count: Int { self.slots.count }

    mutating func request(_ request: TraceRequest) -> Bool {
        if let slot = self.slots[request.object] {
            self.policy.hit(slot)
            return true
        }
        let slot = self.policy.insert(
            request.object, size: request.size, victims: &self.victims)
        self.settle()
        if let slot {
            self.slots[request.object] = slot
            self.objects[slot] = request.object
        }
        return false
    }

    mutating func remove(_ object: UInt64) {
        guard let slot = self.slots.removeValue(forKey: object) else { return }
        self.objects[slot] = nil
        self.policy.remove(slot)
    }

    mutating func resize(_ object: UInt64, to size: UInt64) {
        guard let slot = self.slots[object] else { return }
        self.policy.resize(slot, to: size, victims: &self.victims)
        self.settle()
    }

    private mutating func settle() {
        for victim in self.victims {
            if let object = self.objects.removeValue(forKey: victim) { self.slots[object] = nil }
        }
        self.victims = []
    }
}

/// Least recently used, to compare with.
///
/// Plain, not quick.
struct LRUCache: TraceCache {
    private let capacity: UInt64
    private var bytes: UInt64 = 0
    private var clock: UInt64 = 0
    private var entries: [UInt64: (used: UInt64, size: UInt64)] = [:]
    private var byUse: [UInt64: UInt64] = [:]
    private var oldest: UInt64 = 0

    init(capacity: UInt64) {
        self.capacity = capacity
    }

    mutating func request(_ request: TraceRequest) -> Bool {
        self.clock += 1
        let old = self.entries[request.object]
        if let old { self.byUse[old.used] = nil } else { self.bytes += request.size }
        self.entries[request.object] = (self.clock, request.size)
        self.byUse[self.clock] = request.object
        while self.bytes > self.capacity, self.oldest < self.clock {
            self.oldest += 1
            guard let object = self.byUse.removeValue(forKey: self.oldest),
                let entry = self.entries.removeValue(forKey: object)
            else { continue }
            self.bytes -= entry.size
        }
        return old != nil
    }
}

/// Traces of 1,000-byte objects, the same on each run.
enum Trace {
    /// Popularity falls as 1/rank; every `oneHitEvery`-th request is of an object never seen again.
    static func zipf(
        objects: Int, count: Int, oneHitEvery: Int, seed: UInt64, first: UInt64 = 0
    ) -> [TraceRequest] {
        var random = SeededGenerator(seed: seed)
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...objects {
            sum += 1 / Double(rank)
            sums.append(sum)
        }
        return (0..<count).map { i in
            if oneHitEvery > 0, i % oneHitEvery == 0 {
                return TraceRequest(object: 1 << 40 | seed << 32 | UInt64(i), size: 1000)
            }
            let point = Double.random(in: 0..<sum, using: &random)
            var low = 0
            var high = objects - 1
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] > point { high = middle } else { low = middle + 1 }
            }
            return TraceRequest(object: first + UInt64(low), size: 1000)
        }
    }

    /// Objects each asked for once.
    static func scan(count: Int, first: UInt64 = 1 << 50) -> [TraceRequest] {
        (0..<count).map { TraceRequest(object: first + UInt64($0), size: 1000) }
    }

    static func loop(objects: Int, rounds: Int) -> [TraceRequest] {
        (0..<rounds).flatMap { _ in
            (0..<objects).map { TraceRequest(object: UInt64($0), size: 1000) }
        }
    }
}
