import EvictionTraces
import LarderHTTP
import LarderStore
import SeededNumbers
import Testing

@Suite("Eviction by S3-FIFO")
struct EvictionPolicyTests {
    @Test("refuses what is larger than the capacity, and keeps the rest")
    func tooLarge() {
        var policy = EvictionPolicy(capacity: ByteCount(100))
        var victims: [EvictionPolicy.Slot] = []
        #expect(policy.insert(1, size: 60, victims: &victims) != nil)
        #expect(policy.insert(2, size: 101, victims: &victims) == nil)
        #expect(policy.insert(3, size: .max, victims: &victims) == nil)
        #expect(victims.isEmpty)
        #expect(policy.bytes == 60)
    }

    @Test("evicts the unused of the small queue first, and remembers them")
    func smallFirst() {
        var cache = MemoryTierCache(capacity: 40_000)
        for object in 0..<10 { _ = cache.request(object, size: 4000) }
        let isHit = cache.request(3, size: 4000)
        #expect(isHit)
        for object in 10..<19 { _ = cache.request(object, size: 4000) }
        #expect(cache.holds(3), "used once, it moved to the main queue")
        #expect(!cache.holds(0))
        #expect(cache.policy.ghostCount > 0)
        _ = cache.request(9, size: 4000)
        for object in 20..<40 { _ = cache.request(object, size: 4000) }
        #expect(cache.holds(9), "back while it was remembered, it went to the main queue")
    }

    @Test("gives an entry of the main queue another round for each use, up to three")
    func rounds() {
        var policy = EvictionPolicy(capacity: ByteCount(100))
        var victims: [EvictionPolicy.Slot] = []
        let main = EvictionPolicy.Standing(queue: .main, uses: 0)
        let first = policy.insert(1, size: 50, standing: main, victims: &victims)
        _ = policy.insert(2, size: 50, standing: main, victims: &victims)
        if let first { for _ in 0..<9 { policy.hit(first) } }
        #expect(first.map { policy.standing(of: $0).uses } == 3)
        for fingerprint in UInt64(3)..<6 {
            _ = policy.insert(fingerprint, size: 50, standing: main, victims: &victims)
            #expect(victims.last != first)
        }
        #expect(victims.count == 3)
        _ = policy.insert(6, size: 50, standing: main, victims: &victims)
        #expect(victims.contains { $0 == first })
    }

    @Test("lets the hot set survive a scan of ten times the cache, which LRU does not")
    func scan() {
        var builder = TraceBuilder(seed: 1)
        builder.scan(1080, sizes: .fixed(4096))
        let scan = builder.trace("scan", capacity: 409_600)
        func survivors(_ cache: inout some TraceCache) -> Int {
            for _ in 0..<3 { for hot in 0..<80 { _ = cache.request(hot, size: 4096) } }
            for object in scan.requests.dropFirst(80) {
                _ = cache.request(Int(object), size: 4096)
            }
            return (0..<80).count { cache.request($0, size: 4096) }
        }
        var memory = MemoryTierCache(capacity: 409_600)
        var disk = DiskTierCache(capacity: 409_600, reserve: 8192)
        var lru = LRUCache(capacity: 409_600)
        #expect(survivors(&memory) == 80)
        #expect(survivors(&disk) == 80)
        #expect(survivors(&lru) == 0)
    }

    @Test("keeps its books under any mix of events", arguments: [1, 2, 3, 4, 5])
    func books(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var cache = MemoryTierCache(capacity: 10_000)
        for _ in 0..<20_000 {
            let object = Int.random(in: 0..<300, using: &random)
            switch UInt8.random(in: 0..<10, using: &random) {
            case 0: cache.remove(object)
            case 1: cache.resize(object, to: UInt64.random(in: 0..<12_000, using: &random))
            default:
                _ = cache.request(object, size: UInt64.random(in: 0..<2000, using: &random))
            }
            #expect(cache.policy.bytes <= 10_000)
            #expect(cache.policy.count == cache.count)
        }
        var walked = 0
        var bytes: UInt64 = 0
        cache.policy.forEachOldestFirst {
            walked += 1
            bytes += cache.policy.size(of: $0)
        }
        #expect(walked == cache.count)
        #expect(bytes == cache.policy.bytes)
    }

    @Test("makes the same state again from its standings")
    func restored() {
        var builder = TraceBuilder(seed: 7)
        let objects = builder.population(200, skew: 1, sizes: .fixed(1000))
        builder.zipf(objects, count: 3000, oncePart: 0.25)
        let trace = builder.trace("", capacity: 50_000)
        var cache = MemoryTierCache(capacity: trace.capacity)
        _ = cache.replay(trace)
        var again = EvictionPolicy(capacity: ByteCount(50_000))
        var victims: [EvictionPolicy.Slot] = []
        var before: [EvictionPolicy.Standing] = []
        cache.policy.forEachOldestFirst { slot in
            let standing = cache.policy.standing(of: slot)
            before.append(standing)
            _ = again.insert(
                UInt64(slot.index), size: cache.policy.size(of: slot), standing: standing,
                victims: &victims)
        }
        var after: [EvictionPolicy.Standing] = []
        again.forEachOldestFirst { after.append(again.standing(of: $0)) }
        #expect(victims.isEmpty)
        #expect(before == after)
        #expect(Set(before.map(\.queue)).count == 2)
    }
}

@Suite("Eviction against its peers, on the traces of the comparison")
struct EvictionComparisonTests {
    /// Smaller than those of `scripts/bench-eviction`, otherwise the same.
    private static let traces = EvictionTrace.library(scale: 1)

    @Test("hits objects and bytes more often than LRU, but where LRU is optimal", arguments: traces)
    func beatsLRU(_ trace: EvictionTrace) {
        var lru = LRUCache(capacity: trace.capacity)
        let theirs = lru.replay(trace)
        var memory = MemoryTierCache(capacity: trace.capacity)
        var disk = DiskTierCache(capacity: trace.capacity, reserve: trace.capacity / 50)
        for ours in [memory.replay(trace), disk.replay(trace)] {
            if trace.name.hasPrefix("recency") {
                #expect(ours.objects < theirs.objects, "the trace is not what it says")
                #expect(ours.objects > theirs.objects * 0.93)
            } else {
                #expect(ours.objects > theirs.objects + 0.01, "\(ours) against \(theirs)")
                #expect(ours.bytes > theirs.bytes, "\(ours) against \(theirs)")
            }
        }
    }

    @Test(
        "nothing hits more often than the optimum, the bound for sizes included", arguments: traces)
    func optimum(_ trace: EvictionTrace) {
        let optimum = Optimum.ratio(trace)
        #expect(optimum.objects < 1)
        var memory = MemoryTierCache(capacity: trace.capacity)
        var lru = LRUCache(capacity: trace.capacity)
        var arc = ARCCache(capacity: trace.capacity)
        var tiny = TinyLFUCache(capacity: trace.capacity, objects: 400)
        for ratio in [
            memory.replay(trace), lru.replay(trace), arc.replay(trace), tiny.replay(trace),
        ] {
            #expect(ratio.objects <= optimum.objects)
            #expect(ratio.bytes <= optimum.bytes)
        }
    }

    @Test("a trace is the same whenever it is made, and another with another seed")
    func reproducible() {
        let again = EvictionTrace.library(scale: 1)
        #expect(again.map(\.requests) == Self.traces.map(\.requests))
        #expect(again.map(\.sizes) == Self.traces.map(\.sizes))
        let other = EvictionTrace.library(scale: 1, seed: 2)
        #expect(other[0].requests != again[0].requests)
    }
}

@Suite("The rules of eviction")
struct EvictionRulesTests {
    typealias Rules = EvictionRules

    struct Case: Sendable {
        var queue: Rules.Queue
        var uses: UInt8
        var size: UInt64
        var expected: Rules.Verdict
    }

    @Test(
        "a round in the main queue costs the more uses the larger an entry is",
        arguments: [
            Case(queue: .small, uses: 0, size: 100, expected: .evict(isRemembered: true)),
            Case(
                queue: .small, uses: 1, size: 1 << 40,
                expected: .keep(Rules.Standing(queue: .main, uses: 0))),
            Case(queue: .main, uses: 0, size: 1, expected: .evict(isRemembered: false)),
            Case(
                queue: .main, uses: 1, size: 399,
                expected: .keep(Rules.Standing(queue: .main, uses: 0))),
            Case(queue: .main, uses: 1, size: 400, expected: .evict(isRemembered: false)),
            Case(
                queue: .main, uses: 2, size: 1599,
                expected: .keep(Rules.Standing(queue: .main, uses: 0))),
            Case(queue: .main, uses: 2, size: 1600, expected: .evict(isRemembered: false)),
            Case(
                queue: .main, uses: 3, size: .max,
                expected: .keep(Rules.Standing(queue: .main, uses: 0))),
        ])
    func verdict(_ c: Case) {
        let rules = Rules(capacity: .mebibytes(1))
        let standing = Rules.Standing(queue: c.queue, uses: c.uses)
        #expect(rules.judge(standing, size: c.size, typical: 100) == c.expected)
    }

    @Test("the small queue gives way beyond a tenth, or alone; an empty tier has nothing to judge")
    func next() {
        let rules = Rules(capacity: ByteCount(1000))
        let none = Rules.Totals()
        func some(_ bytes: UInt64) -> Rules.Totals { Rules.Totals(bytes: bytes, count: 1) }
        #expect(rules.next(small: none, main: none) == nil)
        #expect(rules.next(small: some(1), main: none) == .small)
        #expect(rules.next(small: some(100), main: some(1)) == .main)
        #expect(rules.next(small: some(101), main: some(1)) == .small)
        #expect(rules.next(small: none, main: some(1)) == .main)
    }

    @Test("uses count up to three, however many come at once")
    func uses() {
        var standing = Rules.Standing(queue: .small, uses: 200)
        #expect(standing.uses == 3)
        standing = Rules.Standing(queue: .main, uses: 1)
        standing.used()
        #expect(standing.uses == 2)
        standing.used(.max)
        #expect(standing.uses == 3)
    }

    @Test("no size and no sum of bytes traps")
    func extremes() {
        let rules = Rules(capacity: ByteCount(.max))
        let full = Rules.Totals(bytes: .max, count: .max)
        #expect(rules.next(small: full, main: full) == .small)
        let standing = Rules.Standing(queue: .main, uses: 3)
        #expect(
            rules.judge(standing, size: .max, typical: 0)
                == .keep(Rules.Standing(queue: .main, uses: 0)))
    }
}
