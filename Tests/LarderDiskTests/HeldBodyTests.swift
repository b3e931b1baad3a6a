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
}
