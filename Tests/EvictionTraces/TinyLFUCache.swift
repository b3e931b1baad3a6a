import SeededNumbers

/// W-TinyLFU, counted in bytes: a small LRU window, then a segmented LRU that a candidate enters if
/// it was asked for more often than what it would drive out.
///
/// After Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017,
/// and Einziger, Eytan, Friedman and Manes, "Lightweight Robust Size Aware Cache Management", 2021:
/// where sizes differ, a candidate is compared with all that would leave for it together.
package struct TinyLFUCache: TraceCache {
    private static let window = 0
    private static let probation = 1
    private static let protected = 2

    private let capacity: UInt64
    private var lists = Chains(3)
    private var sketch: FrequencySketch

    /// - Parameter objects: about how many objects the cache has room for.
    package init(capacity: UInt64, objects: Int) {
        self.capacity = capacity
        self.sketch = FrequencySketch(objects: objects)
    }

    private var windowLimit: UInt64 { self.capacity / 100 }
    private var mainLimit: UInt64 { self.capacity - self.windowLimit }

    package mutating func request(_ object: Int, size: UInt64) -> Bool {
        self.sketch.note(object)
        let place = self.lists.chain(of: object)
        switch place {
        case Self.window, Self.protected:
            self.lists.move(object, to: place)
            return true
        case Self.probation:
            self.lists.move(object, to: Self.protected)
            while self.lists[Self.protected].bytes > self.mainLimit / 10 * 8 {
                self.lists.move(self.lists[Self.protected].oldest, to: Self.probation)
            }
            return true
        default:
            guard size <= self.capacity else { return false }
            self.lists.append(object, size: size, to: Self.window)
            while self.lists[Self.window].bytes > self.windowLimit,
                self.lists[Self.window].count > 0
            {
                self.contend(self.lists[Self.window].oldest)
            }
            return false
        }
    }

    private var mainBytes: UInt64 {
        self.lists[Self.probation].bytes + self.lists[Self.protected].bytes
    }

    private mutating func contend(_ candidate: Int) {
        let size = self.lists.size(of: candidate)
        let frequency = self.sketch.estimate(candidate)
        self.lists.remove(candidate)
        guard size <= self.mainLimit else { return }
        var victims: UInt64 = 0
        while self.mainBytes + size > self.mainLimit {
            let chain = self.lists[Self.probation].count > 0 ? Self.probation : Self.protected
            let victim = self.lists[chain].oldest
            victims += UInt64(self.sketch.estimate(victim))
            if victims >= UInt64(frequency) {
                // It stays, and is not the next to be asked.
                self.lists.move(victim, to: chain)
                return
            }
            self.lists.remove(victim)
        }
        self.lists.append(candidate, size: size, to: Self.probation)
    }
}

/// How often things were seen lately: four counters of up to fifteen each, the least of which counts;
/// all are halved once in a while.
private struct FrequencySketch {
    private var counters: [UInt8]
    private let mask: UInt64
    private let sample: Int
    private var noted = 0

    init(objects: Int) {
        var size = 1024
        while size < objects * 4 { size *= 2 }
        self.counters = Array(repeating: 0, count: size)
        self.mask = UInt64(size - 1)
        self.sample = max(1000, objects * 10)
    }

    private func places(_ object: Int) -> (Int, Int, Int, Int) {
        var random = SplitMix64(seed: UInt64(object))
        let (a, b) = (random.next(), random.next())
        return (
            Int(a & self.mask), Int((a >> 32) & self.mask), Int(b & self.mask),
            Int((b >> 32) & self.mask)
        )
    }

    func estimate(_ object: Int) -> UInt8 {
        let p = self.places(object)
        return min(
            min(self.counters[p.0], self.counters[p.1]), min(self.counters[p.2], self.counters[p.3])
        )
    }

    mutating func note(_ object: Int) {
        let p = self.places(object)
        for place in [p.0, p.1, p.2, p.3] where self.counters[place] < 15 {
            self.counters[place] += 1
        }
        self.noted += 1
        guard self.noted >= self.sample else { return }
        self.noted /= 2
        for i in self.counters.indices { self.counters[i] /= 2 }
    }
}
