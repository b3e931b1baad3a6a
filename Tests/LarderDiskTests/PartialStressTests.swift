import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("Partial content in two tiers: many tasks", .timeLimit(.minutes(10)))
struct PartialStressTests {
    private static let length: UInt64 = 200_000

    @Test("never gives a wrong byte, and leaves none behind")
    func tasks() async throws {
        let directory = try TemporaryDirectory()
        let disk = try World().open(directory)
        let store = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))), disk: disk)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 as Range<UInt64> {
                group.addTask {
                    var random = SplitMix64(seed: task)
                    for _ in 0..<50 { await Self.act(store, &random) }
                }
            }
        }
        _ = await withCheckedContinuation { done in
            store.removeAll(where: { _ in true }, { done.resume(returning: $0) })
        }
        for i in 0..<3 { #expect(await store.looked(cacheKey("k\(i)")).isEmpty) }
        #expect(disk.statistics().damaged == 0)
        let inspector = try DiskInspector(directory: directory.path)
        for _ in 0..<200 where try inspector.statistics().garbage > 0 { await disk.flushed() }
        let left = try inspector.statistics()
        #expect(left.objects == 0 && left.bodyBytes == 0)
        #expect(left.garbage == 0 && left.pending == 0)
        let environment = try #require(Environment.shared(path: directory.data))
        let schema = try Schema(environment, creating: false)
        let segments = try environment.read { (transaction) throws(LMDBError) in
            try transaction.statistics(of: schema.segments).entries
        }
        #expect(segments == 0)
        await withCheckedContinuation { done in store.close { done.resume() } }
    }

    private static func act(_ store: TieredStore, _ random: inout SplitMix64) async {
        let key = cacheKey("k\(UInt64.random(in: 0..<3, using: &random))")
        let start = UInt64.random(in: 0..<Self.length, using: &random)
        let end = min(Self.length, start + .random(in: 1...90_000, using: &random))
        let leaving = Leaving.allCases.randomElement(using: &random) ?? .commit
        let objects = await store.looked(key)
        for object in objects {
            for range in object.extent.ranges {
                let read = await collect(object.body.reader(range: range))
                // It may have been purged meanwhile; then it ends before its time.
                let right = representation(range)
                #expect(
                    read.bytes == right || (read.failure != nil && right.starts(with: read.bytes)))
            }
        }
        switch (UInt64.random(in: 0..<12, using: &random), objects.first) {
        case (0, _):
            await withCheckedContinuation { done in
                store.remove(key, ids: nil) { _ in done.resume() }
            }
        case (1, _?):
            let ids = objects.map(\.id)
            await withCheckedContinuation { done in
                store.remove(key, ids: ids) { _ in done.resume() }
            }
        case (_, let object?):
            let outcome = await store.add(
                start..<end, to: object.id, of: key, completeLength: Self.length, leaving)
            #expect(outcome != .abandoned(.contradictory))
            #expect(outcome != .abandoned(.storeFailed))
        case (_, nil):
            _ = await store.putPart(key, start..<end, of: Self.length, leaving)
        }
    }
}
