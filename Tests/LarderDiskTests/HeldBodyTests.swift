import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("A body that is held when its entry is removed", .timeLimit(.minutes(10)))
struct HeldBodyTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Bodies whose entries are gone, and whose segments are not.
    private func garbage(of store: DiskStore) throws -> UInt64 {
        let core = store.core
        return try core.environment.read { (transaction) throws(LMDBError) in
            try transaction.statistics(of: core.schema.garbage).entries
        }
    }

    private func budget(of store: DiskStore) -> ReclaimBudget {
        ReclaimBudget(free: store.core.marks.capacityPages, deadline: .now + .seconds(3600))
    }

    @Test("is promised to no look-up once it is deleted, in the transaction of its removal, too")
    func sameTransaction() async throws {
        let store = try self.world.open(self.directory)
        let (core, key, body) = (store.core, cacheKey("page"), pattern(1_000_000))
        guard case .visible(let id) = await store.put(key, body) else {
            Issue.record("it was not stored")
            return
        }
        let writer = DiskWriter(core: core, meta: StoreMeta(seed: 0))
        let failure = LMDBError(.noSpace, operation: "test")
        do throws(LMDBError) {
            _ = try writer.attempt { (attempt, transaction) throws(LMDBError) -> Void in
                try writer.remove(core.objectKey(id, of: key), &attempt, transaction)
                // A look-up that has taken its snapshot before sees it still.
                let before = core.entries.withLock { $0.admits(id, of: key) }
                var budget = self.budget(of: store)
                let deleted = try writer.collectGarbage(transaction, &budget)
                let after = core.entries.withLock { $0.admits(id, of: key) }
                #expect(deleted > 0)
                #expect([before, after] == [true, false])
                throw failure
            }
            Issue.record("it was committed")
        } catch {
            #expect(error == failure)
        }
        let object = try #require(await store.find(key).first)
        #expect(await store.body(object).bytes == body)
        await store.closed()
    }

    @Test("keeps no other from being deleted, however many of them are held")
    func manyHeld() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(128))
        let body = [UInt8](repeating: 7, count: 100_000)
        let keys = (0..<300).map { cacheKey("\($0)") }
        var held: [StoredObject] = []
        for key in keys {
            await store.put(key, body)
            held += await store.find(key)
        }
        #expect(held.count == keys.count)
        await store.put(cacheKey("other"), pattern(1_000_000))
        for key in keys + [cacheKey("other")] { #expect(await store.removed(key) == 1) }
        let writer = DiskWriter(core: store.core, meta: StoreMeta(seed: 0))
        var budget = self.budget(of: store)
        // The store's own writer may have been here before.
        try store.core.environment.write { (transaction) throws(LMDBError) in
            _ = try writer.collectGarbage(transaction, &budget)
        }
        #expect(try self.garbage(of: store) == 300)
        held = []
        while try self.garbage(of: store) > 0 { await store.flushed() }
        await store.closed()
    }

    @Test("costs no transaction where others are let go of")
    func otherReleases() async throws {
        let store = try self.world.open(self.directory)
        for name in ["held", "other"] { await store.put(cacheKey(name), pattern(1_000_000)) }
        let object = try #require(await store.find(cacheKey("held")).first)
        #expect(await store.removed(cacheKey("held")) == 1)
        await store.flushed()
        let environment = store.core.environment
        let before = try environment.information().lastTransaction
        for _ in 0..<2000 { #expect(await store.find(cacheKey("other")).count == 1) }
        await store.flushed()
        #expect(try environment.information().lastTransaction - before < 10)
        withExtendedLifetime(object) {}
        await store.closed()
    }

    @Test("calls the writer when it is let go of, if the writer has come upon it")
    func met() {
        let (one, two) = (ObjectID(rawValue: 1), ObjectID(rawValue: 2))
        var entries = EntryVisibility()
        for id in [one, one, two] { entries.hold(id) }
        #expect(!entries.hasInTheWay)
        #expect([entries.release(two)] == [false])
        #expect([entries.isInTheWay(one), entries.isInTheWay(two)] == [true, false])
        #expect(entries.hasInTheWay)
        #expect([entries.release(one), entries.release(one)] == [false, true])
        #expect(!entries.hasInTheWay)
        entries.hold(one)
        entries.hold(two)
        #expect([entries.release(one), entries.leaves(two)] == [false, false])
        #expect([entries.release(two)] == [true])
    }
}
