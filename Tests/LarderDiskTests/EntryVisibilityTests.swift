import Dispatch
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("What of a cache's file look-ups find while it changes", .timeLimit(.minutes(10)))
struct EntryVisibilityTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test(
        "can be read to its end, though it is removed before the first byte is",
        arguments: [0, 100, 40_000, 200_000, 1_000_000])
    func removedBeforeReading(size: Int) async throws {
        let store = try self.world.open(self.directory)
        let body = pattern(size)
        await store.put(cacheKey("page"), body)
        let object = try #require(await store.find(cacheKey("page")).first)
        #expect(await store.removed(cacheKey("page")) == 1)
        // Room is taken back after a batch: let there be some.
        for number in 0..<3 { await store.put(cacheKey("other\(number)"), [1]) }
        #expect(await store.find(cacheKey("page")).isEmpty)
        let read = await store.body(object)
        #expect(read.failure == nil)
        #expect(read.bytes == body)
        await store.closed()
    }

    @Test("is deleted once nobody holds it any more")
    func deletedAfterwards() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(1_000_000))
        var object = await store.find(cacheKey("page")).first
        let core = try #require(object?.body as? DiskBody).core
        let id = try #require(object?.id)
        #expect(core.entries.withLock { $0.isHeld(id) })
        let source = object?.body.reader(range: 0..<1_000_000)
        object = nil
        #expect(core.entries.withLock { $0.isHeld(id) })
        source?.cancel()
        #expect(!core.entries.withLock { $0.isHeld(id) })
        await store.closed()
    }

    @Test("is given up early by who says so, but not by who reads")
    func letGo() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(1_000_000))
        let object = try #require(await store.find(cacheKey("page")).first)
        let core = try #require(object.body as? DiskBody).core
        let source = object.body.reader(range: 0..<1_000_000)
        object.body.letGo()
        object.body.letGo()
        #expect(core.entries.withLock { $0.isHeld(object.id) })
        source.cancel()
        #expect(!core.entries.withLock { $0.isHeld(object.id) })
        await store.closed()
    }

    /// What a test does in the midst of a look-up, once.
    private final class Interruption: Sendable {
        private let action = Mutex<(@Sendable () -> Void)?>(nil)

        func set(_ action: @escaping @Sendable () -> Void) {
            self.action.withLock { $0 = action }
        }

        func run() {
            self.action.withLock { $0.take() }?()
        }
    }

    @Test("is not found by a look-up that began before it was removed, and ends after")
    func removedMeanwhile() async throws {
        let interruption = Interruption()
        let store = try self.world.open(self.directory) { configuration in
            configuration.outstanding = .mebibytes(1)
            configuration.isResident = { place in
                // Asked for with the snapshot of the look-up taken.
                if case .segment = place { interruption.run() }
                return true
            }
        }
        let key = cacheKey("page")
        // The most recent one, a small one, is looked at first.
        let large = await store.put(key, pattern(300_000))
        let small = await store.put(key, pattern(100))
        guard case .visible(let large) = large, case .visible(let small) = small else {
            Issue.record("they were not stored")
            return
        }
        interruption.set {
            let isGone = DispatchSemaphore(value: 0)
            store.remove(key, ids: [large]) { _ in isGone.signal() }
            isGone.wait()
        }
        #expect(await store.find(key).map(\.id) == [small])
        interruption.set {
            var head = storedHead()
            head.fields.append("X-Long", String(repeating: "x", count: 2_000_000))
            store.update(small, of: key, head: head)
            let isWritten = DispatchSemaphore(value: 0)
            store.flush { isWritten.signal() }
            isWritten.wait()
        }
        #expect(await store.find(key).isEmpty)
        await store.closed()
    }

    @Test("leaves for all look-ups once the writer is about to delete it, and stays if that fails")
    func leaving() {
        let (one, two) = (ObjectID(rawValue: 1), ObjectID(rawValue: 2))
        let key = cacheKey("page")
        var entries = EntryVisibility()
        entries.hold(one)
        entries.hold(one)
        #expect([entries.leaves(one), entries.leaves(two)] == [false, true])
        #expect([entries.admits(one, of: key), entries.admits(two, of: key)] == [true, false])
        entries.stays()
        #expect(entries.admits(two, of: key))
        #expect(entries.removals == 0)
        #expect([entries.release(one), entries.release(one)] == [false, true])
        #expect([entries.leaves(one), entries.leaves(two)] == [true, true])
        entries.removed([one, two])
        #expect(entries.removals == 1)
        entries.removed([])
        #expect(entries.removals == 1)
    }

    @Test("is hidden by its id, its key or its age until it is removed")
    func hidden() {
        let (one, two) = (ObjectID(rawValue: 1), ObjectID(rawValue: 2))
        let (page, other) = (cacheKey("page"), cacheKey("other"))
        var entries = EntryVisibility()
        #expect([entries.hide(one), entries.hide(one)] == [true, false])
        #expect([entries.admits(one, of: page), entries.admits(two, of: page)] == [false, true])
        entries.removed([one])
        #expect(entries.admits(one, of: page))
        entries.hide(page, below: two)
        #expect(!entries.admits(one, of: page))
        #expect([entries.admits(two, of: page), entries.admits(one, of: other)] == [true, true])
        entries.removed([page])
        #expect(entries.admits(one, of: page))
        entries.hideAll(below: two)
        #expect([entries.admits(one, of: other), entries.admits(two, of: other)] == [false, true])
        entries.removedAll()
        #expect(entries.admits(one, of: other))
        #expect(entries.removals == 3)
    }
}
