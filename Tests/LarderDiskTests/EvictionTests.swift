import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Entries of the main queue that are kept in a row")
struct KeptInARowTests {
    private let keep = EvictionRules.Verdict.keep(EvictionRules.Standing(queue: .main, uses: 1))

    @Test("are some thousands, and then the oldest leave, until the rules let one go")
    func bound() {
        var kept = KeptInARow()
        func next(
            _ verdict: EvictionRules.Verdict, _ queue: EvictionRules.Queue = .main
        ) -> EvictionRules.Verdict {
            kept.verdict(after: verdict, of: queue, isUrgent: false)
        }
        for _ in 0..<2 {
            for _ in 0..<KeptInARow.most { #expect(next(self.keep) == self.keep) }
            for _ in 0..<3 { #expect(next(self.keep) == .evict(isRemembered: false)) }
            // What the small queue does is another matter.
            #expect(next(self.keep, .small) == self.keep)
            #expect(next(.evict(isRemembered: true), .small) == .evict(isRemembered: true))
            #expect(next(self.keep) == .evict(isRemembered: false))
            #expect(next(.evict(isRemembered: false)) == .evict(isRemembered: false))
        }
    }

    @Test("are none where room is wanted whatever the rules say", arguments: [false, true])
    func urgent(isMain: Bool) {
        var kept = KeptInARow()
        let verdict = kept.verdict(after: self.keep, of: isMain ? .main : .small, isUrgent: true)
        #expect(verdict == .evict(isRemembered: !isMain))
        #expect(kept == KeptInARow())
    }
}

@Suite("How full the file may be")
struct DiskMarksTests {
    @Test(
        "the marks are in order and below the capacity, for any of it",
        arguments: [
            0, 1, 7, 256, 4096, 2_621_440, 10_485_760, .max,
        ] as [UInt64])
    func order(capacity: UInt64) {
        for batch in [0, 17, 2048, .max] as [UInt64] {
            let marks = DiskMarks(capacityPages: capacity, batchPages: batch)
            #expect(marks.lowPages <= marks.highPages)
            #expect(marks.highPages <= marks.criticalPages)
            #expect(marks.criticalPages <= marks.fullPages)
            #expect(marks.fullPages <= capacity)
        }
    }

    @Test("a large file keeps three batches and some slack free, no tenth; a small one a tenth")
    func reserve() {
        let pages = { (gibibytes: UInt64) in gibibytes << 30 / 4096 }
        let large = DiskMarks(capacityPages: pages(40), batchPages: 2049)
        #expect(large.reserve * 4096 < 700 << 20)
        #expect(large.reserve > 3 * 2049)
        let small = DiskMarks(capacityPages: 4096, batchPages: 129)
        #expect(small.reserve == 409)
        #expect(small.reserve > 3 * 129)
    }
}

@Suite("The bound of the disk store", .timeLimit(.minutes(5)))
struct EvictionTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test("holds over ten capacities of churn with bodies of all sizes")
    func churn() async throws {
        let capacity = ByteCount.mebibytes(16)
        let store = try self.world.open(self.directory, capacity: capacity)
        var generator = SplitMix64(seed: 42)
        var written: UInt64 = 0
        var refused = 0
        var number = 0
        let source = pattern(3 << 20)
        while written < capacity.bytes * 10 {
            // One in eight is large, the rest small: as on the web.
            let large = generator.next() % 8 == 0
            let size = Int(generator.next() % (large ? 3 << 20 : 30_000))
            let outcome = await store.put(
                cacheKey("\(number)"), Array(source[..<size]), pieces: 60_000)
            if case .visible = outcome { written += UInt64(size) } else { refused += 1 }
            number += 1
            #expect(self.directory.fileSize <= capacity.bytes)
        }
        let statistics = store.statistics()
        let disk = try #require(statistics.disk)
        #expect(disk.evictions > 0)
        #expect(statistics.fileBytes <= capacity.bytes)
        // A cache that holds the bound by holding nothing would be none.
        #expect(disk.bytes > capacity.bytes / 2)
        #expect(refused <= number / 50, "\(refused) of \(number) refused")
        let last = try #require(await store.find(cacheKey("\(number - 1)")).first)
        #expect(await store.body(last).failure == nil)
        #expect(await store.find(cacheKey("0")).isEmpty)
        await store.closed()
        #expect(self.directory.fileSize <= capacity.bytes)
    }

    @Test("lets go of no more large bodies than the room asks for")
    func largeBodies() async throws {
        let capacity = ByteCount.mebibytes(32)
        let store = try self.world.open(self.directory, capacity: capacity)
        let body = pattern(1 << 20)
        for i in 0..<80 {
            guard case .visible = await store.put(cacheKey("\(i)"), body) else {
                Issue.record("refused")
                return
            }
            guard i >= 40 else { continue }
            await store.flushed()
            let objects = try #require(store.statistics().disk).objects
            #expect(objects >= 22, "only \(objects) MiB of 32 after \(i)")
        }
        #expect(try #require(store.statistics().disk).evictions < 60)
        await store.closed()
    }

    @Test("lets a scan pass by what is used")
    func scan() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(8))
        for i in 0..<20 { await store.put(cacheKey("hot\(i)"), pattern(20_000)) }
        let hot = await withTaskGroup(of: [StoredObject].self) { group in
            for i in 0..<20 { group.addTask { await store.find(cacheKey("hot\(i)")) } }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(hot.count == 20)
        for i in 0..<600 {
            for object in hot where i % 20 == 0 {
                store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 1_700_000_100))
            }
            await store.put(cacheKey("scan\(i)"), pattern(30_000))
        }
        #expect(try #require(store.statistics().disk).evictions > 300)
        for i in 0..<20 { #expect(await store.find(cacheKey("hot\(i)")).count == 1) }
        #expect(await store.find(cacheKey("scan0")).isEmpty)
        await store.closed()
    }

    @Test("goes on where the capacity is tiny and bodies are as large as it lets them be")
    func tiny() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(1))
        var visible = 0
        for i in 0..<60 {
            let outcome = await store.put(cacheKey("\(i)"), pattern(i % 3 == 0 ? 500_000 : 5000))
            switch outcome {
            case .visible: visible += 1
            case .abandoned(.noSpace), nil:
                // The time after which it tries again has come.
                self.world.now.withLock { $0 = $0 + .seconds(60) }
            case .abandoned(let reason): Issue.record("abandoned: \(reason)")
            }
            #expect(self.directory.fileSize <= 1 << 20)
        }
        #expect(visible > 30)
        await store.closed()
    }

    @Test("lets no more large bodies go than it takes, though their room comes free later")
    func large() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(32))
        let body = pattern(4 << 20)
        for i in 0..<10 { await store.put(cacheKey("\(i)"), body) }
        // Seven have room below the mark at which eviction begins.
        let disk = try #require(store.statistics().disk)
        #expect((2...5).contains(disk.evictions), "\(disk.evictions) of 10 evicted")
        await store.closed()
    }

    @Test("goes on where all at the old ends of the queues is being read")
    func heldEnds() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(4))
        var held: [StoredObject] = []
        for i in 0..<150 {
            guard case .visible = await store.put(cacheKey("\(i)"), pattern(40_000)) else {
                Issue.record("\(i) was refused")
                break
            }
            if i < 30 { held += await store.find(cacheKey("\(i)")) }
        }
        #expect(held.count == 30)
        #expect(try #require(store.statistics().disk).evictions > 40)
        for object in held { #expect(await store.body(object).bytes == pattern(40_000)) }
        await store.closed()
    }

    @Test("is counted from the opening on, as are hits; in the file, from its beginning")
    func counts() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(4))
        for i in 0..<150 { await store.put(cacheKey("\(i)"), pattern(40_000)) }
        let object = try #require(await store.find(cacheKey("149")).first)
        store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 1_700_000_100))
        let before = try #require(store.statistics().disk)
        #expect(before.evictions > 40)
        #expect(before.hits == 1)
        await store.closed()
        store = try self.world.open(self.directory, capacity: .mebibytes(4))
        let after = try #require(store.statistics().disk)
        #expect(after.evictions == 0)
        #expect(after.hits == 0)
        let file = try DiskInspector(directory: self.directory.path).statistics()
        #expect(file.evictions >= before.evictions)
        #expect(file.hits == 1)
        await store.closed()
    }

    @Test("frees the room of what was purged for what comes")
    func reuse() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(32))
        let body = pattern(4 << 20)
        for round in 0..<4 {
            for i in 0..<5 {
                guard case .visible = await store.put(cacheKey("\(i)"), body) else {
                    Issue.record("refused in round \(round)")
                    return
                }
            }
            #expect(await store.purged { _ in true } == 5)
        }
        #expect(try #require(store.statistics().disk).evictions == 0)
        await store.closed()
    }

    @Test("holds after the capacity was lowered, and what fits is kept")
    func lowered() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(64))
        for i in 0..<40 as Range<UInt64> {
            await store.put(cacheKey("\(i)"), pattern(1 << 20, seed: i))
        }
        await store.closed()
        #expect(self.directory.fileSize > 40 << 20)
        store = try self.world.open(self.directory, capacity: .mebibytes(16))
        let report = try await store.shrunk(self.world)
        #expect(report.before > 40 << 20)
        #expect(report.after <= 16 << 20)
        #expect(self.directory.fileSize <= 16 << 20)
        // Eviction ends at 88 % of the capacity.
        var kept = 0
        for i in 0..<40 as Range<UInt64> {
            guard let object = await store.find(cacheKey("\(i)")).first else { continue }
            #expect(await store.body(object).bytes == pattern(1 << 20, seed: i))
            kept += 1
        }
        #expect((12...14).contains(kept), "\(kept) of 40")
        for i in 100..<140 as Range<UInt64> {
            await store.put(cacheKey("\(i)"), pattern(1 << 20, seed: i))
            #expect(self.directory.fileSize <= 16 << 20)
        }
        await store.closed()
        #expect(self.directory.aside.isEmpty)
    }

    /// Opens a store that was filled with more than it may hold now, and waits until it has made the
    /// file smaller by itself: nobody asks for anything, which would wake its writer.
    ///
    /// - Returns: what it evicted, and in how many steps.
    private func shrinking(
        by change: @escaping (inout DiskConfiguration) -> Void
    ) async throws -> (evictions: UInt64, steps: UInt64) {
        var store = try self.world.open(self.directory, capacity: .mebibytes(64))
        for i in 0..<3_000 as Range<UInt64> {
            await store.put(cacheKey("\(i)"), pattern(1_000, seed: i))
        }
        await store.closed()
        let (reports, told) = AsyncStream<DiskEvent>.makeStream()
        var configuration = DiskConfiguration(
            directory: self.directory.path, capacity: .mebibytes(4))
        change(&configuration)
        store = try DiskStore.open(
            configuration, clock: { Timestamp(seconds: 1_700_000_000) },
            report: { told.yield($0) })
        for await event in reports {
            if case .shrunk = event { break }
        }
        #expect(self.directory.fileSize <= 4 << 20)
        let steps = store.core.reclaimTimes.histogram.reduce(0, +)
        let evictions = try #require(store.statistics().disk).evictions
        await store.closed()
        return (evictions, steps)
    }

    @Test(
        "is reached by itself, in steps as large as the room in the file allows",
        .timeLimit(.minutes(10)))
    func loweredAtOnce() async throws {
        let (evictions, steps) = try await self.shrinking { $0.reclaimTime = .seconds(1) }
        #expect(evictions > 500)
        #expect(steps < evictions / 8, "\(steps) steps for \(evictions)")
    }

    @Test(
        "is reached by itself, too, where each step takes longer than it may",
        .timeLimit(.minutes(10)))
    func loweredSlowly() async throws {
        let (evictions, steps) = try await self.shrinking { $0.reclaimTime = .zero }
        #expect(evictions > 500 && steps > evictions / 4)
    }

    @Test("is reached without a loss where only the file was too large, not what it holds")
    func loweredWithHoles() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(64))
        for i in 0..<40 as Range<UInt64> {
            await store.put(cacheKey("\(i)"), pattern(1 << 20, seed: i))
        }
        for i in 0..<30 { _ = await store.removed(cacheKey("\(i)")) }
        await store.closed()
        store = try self.world.open(self.directory, capacity: .mebibytes(16))
        _ = try await store.shrunk(self.world)
        #expect(self.directory.fileSize <= 16 << 20)
        for i in 30..<40 as Range<UInt64> {
            let object = try #require(await store.find(cacheKey("\(i)")).first)
            #expect(await store.body(object).bytes == pattern(1 << 20, seed: i))
        }
        #expect(try #require(store.statistics().disk).evictions == 0)
        await store.closed()
    }

    @Test("grows with the capacity, and nothing is lost")
    func raised() async throws {
        var store = try self.world.open(self.directory, capacity: .mebibytes(4))
        await store.put(cacheKey("a"), pattern(1 << 20))
        await store.closed()
        store = try self.world.open(self.directory, capacity: .mebibytes(32))
        for i in 0..<20 { await store.put(cacheKey("\(i)"), pattern(1 << 20)) }
        let object = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(object).bytes == pattern(1 << 20))
        #expect(self.directory.fileSize > 20 << 20)
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }
}

extension DiskStore {
    /// Waits until the writer has made the file smaller by itself.
    fileprivate func shrunk(_ world: World) async throws -> CompactionReport {
        for _ in 0..<10_000 {
            for case .shrunk(let report) in world.reported { return report }
            await self.flushed()
        }
        throw StoreError(.failed, path: "", cause: "\(world.reported)", remedy: "")
    }
}
