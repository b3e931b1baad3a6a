import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderDisk

@Suite("Keys that are found again in the same commit", .timeLimit(.minutes(10)))
struct RecentFindsTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// What somebody does to a store in which one response lies under `key`.
    enum Change: CaseIterable {
        case nothing, otherKey, variant, replaced, head, removed, removedByPattern, compacted
        case openedAgain
    }

    private static let key = cacheKey("a")

    /// - Returns: the marks that are to be found afterwards, the most recent first.
    private func make(_ change: Change, _ store: inout DiskStore) async throws -> [String] {
        let key = Self.key
        switch change {
        case .nothing: return ["first"]
        case .otherKey:
            await store.put(cacheKey("b"), pattern(3000))
            return ["first"]
        case .variant:
            await store.put(key, pattern(2000, seed: 2), head: storedHead("second"))
            return ["second", "first"]
        case .replaced:
            let former = await store.find(key).map(\.id)
            await store.put(
                key, pattern(2000, seed: 2), head: storedHead("second"), replacing: former)
            return ["second"]
        case .head:
            let id = try #require(await store.find(key).first).id
            store.update(id, of: key, head: storedHead("second"), written: nil)
            await store.flushed()
            return ["second"]
        case .removed:
            #expect(await store.removed(key) == 1)
            return []
        case .removedByPattern:
            #expect(await store.purged { $0 == key } == 1)
            return []
        case .compacted:
            await store.put(cacheKey("b"), pattern(300_000))
            _ = await store.removed(cacheKey("b"))
            _ = try await store.compacted()
            return ["first"]
        case .openedAgain:
            await store.closed()
            store = try self.world.open(self.directory)
            return ["first"]
        }
    }

    @Test("are what is stored after each change", arguments: Change.allCases)
    func changed(_ change: Change) async throws {
        var store = try self.world.open(self.directory)
        let bodies = ["first": pattern(1000), "second": pattern(2000, seed: 2)]
        // Where only the head changes, the body stays.
        let lengths = change == .head ? ["second": bodies["first"]] : [:]
        await store.put(Self.key, pattern(1000), head: storedHead("first"))
        for _ in 0..<3 { #expect(await store.find(Self.key).count == 1) }
        let marks = try await self.make(change, &store)
        for _ in 0..<3 {
            let found = await store.find(Self.key)
            #expect(found.map(\.head) == marks.map { storedHead($0) })
            for (object, mark) in zip(found, marks) {
                #expect(await store.body(object).bytes == (lengths[mark] ?? bodies[mark]))
            }
        }
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("are walked to once, and once more after each commit")
    func walks() async throws {
        let store = try self.world.open(self.directory)
        await store.put(Self.key, pattern(1000))
        await store.flushed()
        let before = store.readCounts.walks
        for _ in 0..<5 { #expect(await store.find(Self.key).count == 1) }
        #expect(store.readCounts.walks == before + 1)
        await store.put(cacheKey("b"), pattern(1000))
        await store.flushed()
        for _ in 0..<5 { #expect(await store.find(Self.key).count == 1) }
        #expect(store.readCounts.walks == before + 2)
        await store.closed()
    }

    @Test("with more variants than four, or none, are walked to each time", arguments: [0, 4, 5])
    func variants(_ count: Int) async throws {
        let store = try self.world.open(self.directory)
        for number in 0..<count {
            await store.put(Self.key, pattern(100, seed: UInt64(number)))
        }
        await store.flushed()
        let before = store.readCounts.walks
        for _ in 0..<3 { #expect(await store.find(Self.key).count == count) }
        #expect(store.readCounts.walks == before + (count == 4 ? 1 : 3))
        await store.closed()
    }

    @Test("two keys that take the same place are told apart")
    func neighbours() {
        let finds = RecentFinds()
        let moment = RecentFinds.Moment(environment: 1, commit: 9)
        let (here, there) = (KeyHash(high: 1, low: 5), KeyHash(high: 2, low: 5))
        let found = [FoundEntry(id: ObjectID(rawValue: 1), record: DecodedRecordsTests.record())]
        finds.note(found, here, Self.key, at: moment)
        #expect(finds.found(here, Self.key, at: moment)?.map(\.id) == found.map(\.id))
        #expect(finds.found(there, cacheKey("b"), at: moment) == nil)
        for other in [(1, 8), (1, 10), (2, 9)] as [(UInt64, UInt64)] {
            let moment = RecentFinds.Moment(environment: other.0, commit: other.1)
            #expect(finds.found(here, Self.key, at: moment) == nil)
        }
    }
}
