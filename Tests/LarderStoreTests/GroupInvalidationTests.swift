import LarderHTTP
import LarderStore
import SeededNumbers
import Testing

@Suite("Invalidated groups (RFC 9875 §3)")
struct GroupInvalidationTests {
    private func seconds(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds) }

    @Test("are known by name, the latest moment counts, others are not concerned")
    func latest() {
        var groups = GroupInvalidations<String>()
        #expect(groups.time(of: "a") == nil)
        groups.note("a", at: self.seconds(5))
        groups.note("a", at: self.seconds(3))
        #expect(groups.time(of: "a") == self.seconds(5))
        groups.note("a", at: self.seconds(9))
        #expect(groups.time(of: "a") == self.seconds(9))
        #expect(groups.time(of: "b") == nil)
        #expect(groups.floor == nil)
    }

    @Test("are bounded, and none that was noted is ever forgotten", arguments: [1, 2, 7, 8, 100])
    func bounded(limit: Int) {
        var groups = GroupInvalidations<Int>(limit: limit)
        var noted: [Int: Timestamp] = [:]
        var kept: Set<Int> = []
        var random = SplitMix64(seed: UInt64(limit))
        for _ in 0..<2000 {
            let name = Int.random(in: 0..<500, using: &random)
            let time = self.seconds(.random(in: 0..<100_000, using: &random))
            noted[name] = max(noted[name] ?? time, time)
            kept.insert(name)
            for folded in groups.note(name, at: time).folded { kept.remove(folded) }
            #expect(groups.times.count <= limit)
        }
        for (name, time) in noted {
            #expect(groups.time(of: name).map { $0 >= time } == true)
        }
        #expect(Set(groups.times.keys).isSubset(of: kept))
        #expect((groups.floor != nil) == (limit < 500))
    }

    @Test("are kept by memory, and by both tiers where the lower one keeps none")
    func stores() {
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        let stores: [any ObjectStore] = [
            memory, Tiers(capacity: .mebibytes(1)).store,
            TieredStore(memory: MemoryStore(.none), disk: nil),
        ]
        for store in stores {
            #expect(store.groupInvalidation(of: [1]) == nil)
            store.noteInvalidation(ofGroup: [1], at: self.seconds(7))
            #expect(store.groupInvalidation(of: [1]) == self.seconds(7))
            #expect(store.groupInvalidation(of: [2]) == nil)
        }
    }
}
