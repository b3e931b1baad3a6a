/// What no cache of this capacity can do better than, knowing the future.
package enum Optimum {
    /// The best hit ratios there are.
    ///
    /// Where all objects have one size it is exact: Belady's rule, what is needed last leaves, and may
    /// be the newcomer itself. Where they differ the optimum is hard to compute, and this is a bound
    /// that no cache reaches (PFOO-L of Berger, Beckmann and Harchol-Balter, "Practical Bounds on
    /// Optimal Caching with Variable Object Sizes", 2018): a hit needs the object's bytes for the time
    /// since the request before; the cheapest hits are counted until the room of the cache over all
    /// the time of the trace is used up, as if it could be shared out at will.
    package static func ratio(_ trace: EvictionTrace) -> HitRatio {
        trace.isUniform ? Self.belady(trace) : Self.bound(trace)
    }

    /// By request: when its object is asked for again, `.max` where it is not.
    private static func nextUses(_ trace: EvictionTrace) -> [Int] {
        var next = Array(repeating: Int.max, count: trace.requests.count)
        var later = Array(repeating: Int.max, count: trace.sizes.count)
        for i in trace.requests.indices.reversed() {
            let object = Int(trace.requests[i])
            next[i] = later[object]
            later[object] = i
        }
        return next
    }

    private static func belady(_ trace: EvictionTrace) -> HitRatio {
        let size = max(1, trace.sizes.first ?? 1)
        let room = Int(trace.capacity / size)
        let next = Self.nextUses(trace)
        // When each cached object is needed: the last one leaves. Times do not repeat.
        var heap = MaximumHeap()
        var due = Array(repeating: -1, count: trace.sizes.count)
        var count = 0
        var hits = 0
        for (i, request) in trace.requests.enumerated() {
            let object = Int(request)
            if due[object] == i {
                hits += 1
                count -= 1
            }
            due[object] = -1
            guard next[i] != .max, room > 0 else { continue }
            due[object] = next[i]
            heap.push(next[i], object)
            count += 1
            while count > room, let (time, last) = heap.pop() {
                guard due[last] == time else { continue }
                due[last] = -1
                count -= 1
            }
        }
        let ratio = Double(hits) / Double(max(1, trace.requests.count))
        return HitRatio(objects: ratio, bytes: ratio)
    }

    private static func bound(_ trace: EvictionTrace) -> HitRatio {
        let next = Self.nextUses(trace)
        var spans: [(size: Double, time: Double)] = []
        for (i, request) in trace.requests.enumerated() where next[i] != .max {
            spans.append((Double(trace.sizes[Int(request)]), Double(next[i] - i)))
        }
        let room = Double(trace.capacity) * Double(trace.requests.count)
        func best(
            _ cost: ((size: Double, time: Double)) -> Double,
            _ worth: ((size: Double, time: Double)) -> Double
        ) -> Double {
            var left = room
            var sum = 0.0
            for span in spans.sorted(by: { cost($0) < cost($1) }) {
                let needed = span.size * span.time
                if needed > left { return sum + worth(span) * left / needed }
                left -= needed
                sum += worth(span)
            }
            return sum
        }
        return HitRatio(
            objects: best({ $0.size * $0.time }, { _ in 1 })
                / Double(max(1, trace.requests.count)),
            bytes: best({ $0.time }, { $0.size }) / Double(max(1, trace.requestedBytes)))
    }
}

/// Pairs of a time and an object, the latest first.
private struct MaximumHeap {
    private var items: [(time: Int, object: Int)] = []

    mutating func push(_ time: Int, _ object: Int) {
        self.items.append((time, object))
        var i = self.items.count - 1
        while i > 0, self.items[(i - 1) / 2].time < self.items[i].time {
            self.items.swapAt(i, (i - 1) / 2)
            i = (i - 1) / 2
        }
    }

    mutating func pop() -> (time: Int, object: Int)? {
        guard let first = self.items.first else { return nil }
        let last = self.items.removeLast()
        guard !self.items.isEmpty else { return first }
        self.items[0] = last
        var i = 0
        while true {
            var largest = i
            for child in [2 * i + 1, 2 * i + 2]
            where child < self.items.count && self.items[child].time > self.items[largest].time {
                largest = child
            }
            if largest == i { return first }
            self.items.swapAt(i, largest)
            i = largest
        }
    }
}
