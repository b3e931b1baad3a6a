import LarderHTTP
import LarderPolicy
import LarderStore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("What is known in memory of the keys that are stored", .timeLimit(.minutes(10)))
struct StoredKeysTests {
    private let world = World()

    private static func hashes(_ count: Int, seed: UInt64) -> [KeyHash] {
        var random = SplitMix64(seed: seed)
        return (0..<count).map { _ in KeyHash(high: random.next(), low: random.next()) }
    }

    // MARK: The filter

    @Test(
        "A filter holds all that was added, and takes one in a thousand others for one of them",
        arguments: [1, 32, 33, 5_000, 100_000])
    func filter(count: Int) {
        let filter = KeyFilter(keys: UInt64(count))
        #expect(filter.keys >= UInt64(count) && filter.keys < UInt64(count) + 32)
        let added = Self.hashes(count, seed: 1)
        for hash in added { filter.add(hash) }
        #expect(added.allSatisfy(filter.mayHold))
        #expect(filter.added <= UInt64(count) && filter.added >= UInt64(count) * 99 / 100)
        let before = filter.added
        for hash in added { filter.add(hash) }
        #expect(filter.added == before, "what is there already")
        let others = Self.hashes(100_000, seed: 2)
        #expect(others.count(where: filter.mayHold) < 300)
    }

    @Test("With twice as many it takes one in thirty others for one of them, and misses none")
    func crowded() {
        let filter = KeyFilter(keys: 20_000)
        let added = Self.hashes(40_000, seed: 3)
        for hash in added { filter.add(hash) }
        #expect(added.allSatisfy(filter.mayHold))
        #expect(Self.hashes(100_000, seed: 4).count(where: filter.mayHold) < 4_000)
    }

    @Test("An empty filter holds nothing")
    func empty() {
        let filter = KeyFilter(keys: 0)
        #expect(!Self.hashes(1_000, seed: 5).contains(where: filter.mayHold))
    }

    // MARK: When one is made

    @Test("Until a walk is over all may be stored, then only what it, or the writer, added")
    func first() throws {
        let keys = StoredKeys(fewest: 64)
        let hashes = Self.hashes(4, seed: 6)
        #expect(hashes.allSatisfy(keys.mayHold))
        let filter = try #require(keys.begin(holding: 3))
        #expect(keys.begin(holding: 3) == nil, "one at a time")
        filter.add(hashes[0])
        keys.willStore(hashes[1])
        #expect(hashes.allSatisfy(keys.mayHold))
        keys.ended(isWhole: true)
        #expect(hashes.map(keys.mayHold) == [true, true, false, false])
        keys.willStore(hashes[2])
        #expect(hashes.map(keys.mayHold) == [true, true, true, false])
    }

    @Test("Where nothing is stored no walk is needed")
    func nothing() {
        let keys = StoredKeys(fewest: 64)
        #expect(keys.begin(holding: 0) == nil)
        let hashes = Self.hashes(2, seed: 7)
        keys.willStore(hashes[0])
        #expect(hashes.map(keys.mayHold) == [true, false])
    }

    @Test("A walk that failed is the last for a file, and what was known before stays known")
    func failed() throws {
        let keys = StoredKeys(fewest: 64)
        let hashes = Self.hashes(200, seed: 8)
        _ = try #require(keys.begin(holding: 1))
        keys.ended(isWhole: false)
        #expect(keys.begin(holding: 1) == nil)
        #expect(keys.mayHold(hashes[0]))
        keys.fileExchanged()
        let filter = try #require(keys.begin(holding: 1))
        for hash in hashes.dropFirst() { filter.add(hash) }
        keys.ended(isWhole: true)
        _ = try #require(keys.begin(holding: 199))
        keys.fileExchanged()
        keys.ended(isWhole: false)
        _ = try #require(keys.begin(holding: 199), "another file, which it did not read")
        keys.ended(isWhole: false)
        #expect(!keys.mayHold(hashes[0]) && keys.mayHold(hashes[1]))
        #expect(keys.begin(holding: 199) == nil)
    }

    @Test("What the writer adds during a walk is in the filter before and in the one behind it")
    func both() throws {
        let keys = StoredKeys(fewest: 64)
        let hashes = Self.hashes(200, seed: 9)
        #expect(keys.begin(holding: 0) == nil)
        for hash in hashes.dropFirst(2) { keys.willStore(hash) }
        let filter = try #require(keys.begin(holding: 10))
        keys.willStore(hashes[0])
        #expect(keys.mayHold(hashes[0]))
        filter.add(hashes[10])
        keys.ended(isWhole: true)
        #expect(keys.mayHold(hashes[0]) && keys.mayHold(hashes[10]))
        #expect(!keys.mayHold(hashes[1]) && !keys.mayHold(hashes[11]))
    }

    struct Due: Sendable, CustomTestStringConvertible {
        let name: String
        /// Stored when it was made, added by now, and stored by now.
        let made: UInt64, added: UInt64, stored: UInt64
        let isDue: Bool
        var testDescription: String { self.name }
    }

    @Test(
        "A filter is made anew when it is full, or when most of what it holds is gone",
        arguments: [
            Due(name: "no change", made: 1_000, added: 1_000, stored: 1_000, isDue: false),
            Due(name: "half as many", made: 1_000, added: 1_500, stored: 1_000, isDue: false),
            Due(name: "as many again", made: 1_000, added: 2_100, stored: 1_000, isDue: true),
            Due(name: "twice as many", made: 1_000, added: 2_100, stored: 2_100, isDue: true),
            Due(name: "all removed", made: 1_000, added: 1_000, stored: 0, isDue: true),
            Due(name: "most removed", made: 1_000, added: 1_200, stored: 300, isDue: true),
            Due(name: "half removed", made: 1_000, added: 1_000, stored: 500, isDue: false),
            Due(name: "few", made: 3, added: 60, stored: 1, isDue: false),
        ])
    func due(_ due: Due) {
        let keys = StoredKeys(fewest: 64)
        let filter = KeyFilter(keys: keys.size(for: due.made))
        for hash in Self.hashes(Int(due.added), seed: 10) { filter.add(hash) }
        #expect(keys.isSpent(filter, due.stored) == due.isDue)
    }

    @Test("Its size is twice what is stored, and bounded")
    func sizes() {
        let keys = StoredKeys(fewest: 64)
        #expect(keys.size(for: 0) == 64)
        #expect(keys.size(for: 33) == 66)
        #expect(keys.size(for: 1_000_000) == 2_000_000)
        #expect(keys.size(for: .max) == StoredKeys.most)
    }

    // MARK: In a store

    /// Waits for a walk of the test's own, behind the store's: there is one thread that reads.
    private func walked(_ store: DiskStore, stepSize: Int = 4_096) async -> KeyFilter? {
        await store.flushed()
        let filter = KeyFilter(keys: 1_000)
        let isWhole = await withCheckedContinuation { ended in
            KeyWalk(core: store.core, filter: filter, stepSize: stepSize) {
                ended.resume(returning: $0)
            }.start()
        }
        return isWhole ? filter : nil
    }

    private func open(_ directory: TemporaryDirectory, capacity: ByteCount) throws -> DiskStore {
        try self.world.open(directory, capacity: capacity) {
            $0.readerThreads = 1
            $0.fewestKeys = 32
        }
    }

    @Test("Lookups of what is not stored ask no file, also after a new start")
    func spared() async throws {
        let directory = try TemporaryDirectory()
        for turn in 0..<3 {
            let store = try self.open(directory, capacity: .mebibytes(64))
            await store.put(cacheKey("\(turn)"), pattern(100))
            _ = await self.walked(store)
            let before = store.readCounts
            for other in 0..<20 {
                #expect(await store.find(cacheKey("none-\(turn)-\(other)")).isEmpty)
                let inPlace = store.lookupInPlace(cacheKey("none-\(turn)-\(other)"))
                #expect(inPlace?.isEmpty != false)
            }
            let after = store.readCounts
            #expect(after.lookupsSpared == before.lookupsSpared + 40)
            #expect(after.lookupsOnPool == before.lookupsOnPool)
            #expect(after.lookupsInPlace == before.lookupsInPlace)
            for stored in 0...turn { #expect(await store.find(cacheKey("\(stored)")).count == 1) }
            await store.closed()
        }
        #expect(self.world.reported.isEmpty)
    }

    @Test(
        "A walk adds what lies in either queue, whatever the size of its steps",
        arguments: [1, 2, 7, 4_096])
    func walk(stepSize: Int) async throws {
        let directory = try TemporaryDirectory()
        let store = try self.open(directory, capacity: .mebibytes(4))
        for number in 0..<160 as Range<Int> {
            await store.put(cacheKey("\(number)"), pattern(40_000))
            // What is used again goes to the main queue.
            if number < 20 { await store.use(cacheKey("\(number)"), times: 3) }
        }
        let filter = try #require(await self.walked(store, stepSize: stepSize))
        let audit = try QueueAudit(directory)
        #expect(audit.queues[.small]?.isEmpty == false && audit.queues[.main]?.isEmpty == false)
        #expect(audit.records.keys.allSatisfy { filter.mayHold($0.hash) })
        await store.closed()
    }

    @Test("Whatever is done to a store, and whenever a filter is made, what is stored is found")
    func model() async throws {
        let directory = try TemporaryDirectory()
        var store = try self.open(directory, capacity: .mebibytes(4))
        var random = SplitMix64(seed: 11)
        var spared: UInt64 = 0
        for step in 0..<700 {
            let key = cacheKey("\(Int(random.next() % 300))")
            switch Int(random.next() % 100) {
            case 0..<70: await store.put(key, pattern(Int(random.next() % 30_000)))
            case 70..<80: await store.use(key)
            case 80..<90: _ = await store.removed(key)
            case 90..<94:
                let rest = random.next() % 7
                _ = await store.purged { $0.bytes.reduce(0) { $0 &+ UInt64($1) } % 7 == rest }
            case 94..<97:
                spared += store.readCounts.lookupsSpared
                await store.closed()
                store = try self.open(directory, capacity: .mebibytes(4))
            case 97: _ = try await store.compacted()
            default: _ = await self.walked(store)
            }
            guard step % 10 == 0 else { continue }
            await store.flushed()
            let keys = store.core.keys
            #expect(try QueueAudit(directory).records.keys.allSatisfy { keys.mayHold($0.hash) })
            _ = await store.find(cacheKey("none-\(step)"))
        }
        #expect(spared > 0)
        await store.closed()
    }
}
