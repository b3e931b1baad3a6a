import Dispatch
import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("A disk that could not be opened at the start", .timeLimit(.minutes(10)))
struct LateDiskTests {
    private let directory: TemporaryDirectory
    private let world = World()
    private let obstacle: String

    init() throws {
        self.directory = try TemporaryDirectory()
        self.obstacle = self.directory.path + "/cache.lock"
    }

    /// A tier above the directory, which cannot be opened until the obstacle is removed.
    private func late(
        memory: ByteCount = .mebibytes(1),
        _ hearing: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) throws -> (TieredStore, LateDisk) {
        try? FileManager.default.removeItem(atPath: self.obstacle)
        try FileManager.default.createDirectory(
            atPath: self.obstacle, withIntermediateDirectories: true)
        let failure = try #require(throws: StoreError.self) {
            _ = try self.world.open(self.directory)
        }
        let late = LateDisk(
            self.directory, after: failure, clock: { self.world.now.withLock { $0 } }
        ) { event in
            self.world.events.withLock { $0.append(event) }
            hearing(event)
        }
        let memory = MemoryStore(MemoryConfiguration(capacity: memory))
        return (TieredStore(memory: memory, disk: late), late)
    }

    private func clear() throws { try FileManager.default.removeItem(atPath: self.obstacle) }

    /// Has it opened by storing something after the pause.
    private func opened(_ late: LateDisk, below tiers: TieredStore) async throws -> DiskStore {
        self.pass(.seconds(10))
        await tiers.put(cacheKey("opens"), [1])
        await tiers.flushed()
        return try #require(late.disk)
    }

    private func pass(_ duration: Duration) {
        self.world.now.withLock { $0 = $0 + duration }
    }

    /// What was told, by its kinds.
    private var told: [String] {
        self.world.reported.map { event in
            switch event {
            case .opened: "opened"
            case .failed: "failed"
            case .discarded: "discarded"
            case .removalNotKept: "removal not kept"
            default: "\(event)"
            }
        }
    }

    @Test("is opened once it can be, when something is to be stored and a pause is over")
    func opens() async throws {
        let (tiers, late) = try self.late()
        #expect(await tiers.put(cacheKey("a"), [1]) != nil)
        #expect(await tiers.find(cacheKey("a")).map(\.tier) == [.memory])
        #expect(tiers.statistics().disk == nil)
        try self.clear()
        await tiers.put(cacheKey("b"), [2])
        await tiers.flushed()
        #expect(late.disk == nil, "before the pause is over")
        self.pass(.seconds(10))
        await tiers.put(cacheKey("c"), [3])
        await tiers.flushed()
        #expect(late.disk != nil)
        #expect(self.told == ["opened"])
        await tiers.put(cacheKey("d"), [4])
        await tiers.flushed()
        #expect(tiers.statistics().disk?.objects == 1)
        for name in ["a", "b", "c", "d"] {
            #expect(await tiers.find(cacheKey(name)).count == 1)
        }
        await tiers.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("d")).count == 1)
        #expect(await again.find(cacheKey("a")).isEmpty)
        await again.closed()
    }

    @Test("is tried at longer and longer intervals, and its cause told once")
    func pauses() async throws {
        let (tiers, late) = try self.late()
        var tried: [Int] = []
        for second in stride(from: 0, to: 1_000, by: 5) {
            let before = late.pause
            await tiers.put(cacheKey("\(second)"), [1])
            await tiers.flushed()
            if late.pause > before { tried.append(second) }
            self.pass(.seconds(5))
        }
        #expect(tried == [10, 30, 70, 150, 310, 610, 910])
        #expect(self.told.isEmpty)
        // Another cause has another remedy.
        try self.clear()
        let holder = try self.world.open(self.directory)
        self.pass(.seconds(300))
        await tiers.put(cacheKey("x"), [1])
        await tiers.flushed()
        #expect(self.told == ["failed"])
        await holder.closed()
        self.pass(.seconds(300))
        await tiers.put(cacheKey("y"), [1])
        await tiers.flushed()
        #expect(self.told == ["failed", "opened"])
        await tiers.closed()
    }

    @Test("gives what lies there, but for what was stored anew meanwhile", arguments: [1, 20_000])
    func overtaken(stored: Int) async throws {
        let store = try self.world.open(self.directory)
        for name in ["old", "kept"] {
            await store.put(cacheKey(name), [1], head: storedHead("1"))
        }
        await store.closed()
        // Memory holds nothing for long.
        let (tiers, late) = try self.late(memory: .kibibytes(64))
        for number in 1..<stored { _ = late.begins(cacheKey("\(number)")) }
        await tiers.put(cacheKey("old"), [2], head: storedHead("2"))
        #expect(await tiers.find(cacheKey("kept")).isEmpty)
        try self.clear()
        let disk = try await self.opened(late, below: tiers)
        #expect(await disk.find(cacheKey("old")).isEmpty)
        // Of too many nobody remembers which they were.
        #expect(await disk.find(cacheKey("kept")).count == (stored == 1 ? 1 : 0))
        #expect(await tiers.find(cacheKey("kept")).count == (stored == 1 ? 1 : 0))
        await tiers.closed()
    }

    @Test(
        "gives nothing of what lies there where something was removed meanwhile",
        arguments: ["key", "all", "since", "group", "ids"])
    func removed(_ way: String) async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        let (tiers, late) = try self.late()
        await tiers.put(cacheKey("b"), [1])
        let remove = { @Sendable (tiers: TieredStore) async in
            switch way {
            case "key": _ = await tiers.removed(cacheKey("a"))
            case "all": _ = await tiers.purged(in: .all)
            case "since":
                await withCheckedContinuation { done in
                    tiers.removeAll(storedSince: Timestamp(seconds: 0)) { done.resume() }
                }
            case "group": tiers.noteInvalidation(ofGroup: [1], at: Timestamp(seconds: 1))
            default:
                let ids = await tiers.find(cacheKey("b")).map(\.id)
                _ = await tiers.removed(cacheKey("b"), ids: ids)
            }
        }
        await remove(tiers)
        try self.clear()
        let disk = try await self.opened(late, below: tiers)
        #expect(await disk.find(cacheKey("a")).isEmpty)
        #expect(tiers.unkeptRemoval == nil)
        #expect(self.told.contains("discarded") && self.told.last == "opened")
        // From now on it goes where it belongs.
        await tiers.put(cacheKey("d"), [1])
        #expect(await tiers.removed(cacheKey("d")) == 1)
        await tiers.put(cacheKey("e"), [1])
        await tiers.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("e")).count == 1)
        await again.closed()
    }

    @Test("takes up in their order what comes while it is being opened")
    func meanwhile() async throws {
        let store = try self.world.open(self.directory)
        for name in ["a", "b", "c"] { await store.put(cacheKey(name), [1]) }
        await store.closed()
        // Told when it is open, and before it is used.
        let (isOpen, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (tiers, late) = try self.late { event in
            guard event == .opened else { return }
            isOpen.signal()
            goOn.wait()
        }
        try self.clear()
        self.pass(.seconds(10))
        #expect(!late.begins(cacheKey("x")))
        await Self.wait(for: isOpen)
        #expect(!late.begins(cacheKey("c")))
        let order = Mutex<[String]>([])
        await withCheckedContinuation { done in
            tiers.remove(cacheKey("a"), ids: nil) { removed in
                order.withLock { $0.append("removed \(removed)") }
            }
            tiers.flush { order.withLock { $0.append("flushed") } }
            tiers.close {
                order.withLock { $0.append("closed") }
                done.resume()
            }
            goOn.signal()
        }
        #expect(order.withLock { $0 } == ["removed 1", "flushed", "closed"])
        let again = try self.world.open(self.directory)
        for (name, count) in [("a", 0), ("b", 1), ("c", 0)] {
            #expect(await again.find(cacheKey(name)).count == count, "\(name)")
        }
        await again.closed()
    }

    /// Waits on a thread of its own: tasks go on meanwhile.
    private static func wait(for semaphore: DispatchSemaphore) async {
        await withCheckedContinuation { done in
            Thread.detachNewThread {
                semaphore.wait()
                done.resume()
            }
        }
    }

    @Test("has nothing beside a response whose request was sent before it was opened")
    func early() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("old"), [1], head: storedHead("1"))
        await store.closed()
        let (tiers, late) = try self.late()
        #expect(await tiers.find(cacheKey("old")).isEmpty)
        try self.clear()
        let disk = try await self.opened(late, below: tiers)
        await tiers.put(cacheKey("old"), [2], head: storedHead("2"))
        await tiers.flushed()
        let found = await disk.find(cacheKey("old"))
        #expect(found.map(\.head.fields) == [storedHead("2").fields])
        await tiers.closed()
    }

    @Test("gives nothing that was removed after another process had taken the first note")
    func otherProcess() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        let (tiers, late) = try self.late()
        try self.clear()
        _ = await tiers.removed(cacheKey("a"))
        #expect(tiers.unkeptRemoval == nil)
        let other = try self.world.open(self.directory)
        await other.put(cacheKey("b"), [1])
        _ = await tiers.removed(cacheKey("b"))
        #expect(tiers.unkeptRemoval?.code == .unavailable)
        await other.closed()
        let disk = try await self.opened(late, below: tiers)
        #expect(await disk.find(cacheKey("b")).isEmpty)
        #expect(tiers.unkeptRemoval == nil)
        await tiers.closed()
    }

    @Test("takes what is to be stored while it forgets")
    func forgetting() async throws {
        let (tiers, late) = try self.late()
        try self.clear()
        self.pass(.seconds(10))
        for number in 0..<2_000 { await tiers.put(cacheKey("\(number)"), [1]) }
        await tiers.flushed()
        #expect(late.disk != nil)
        #expect(self.told == ["opened"])
        #expect(tiers.statistics().disk?.objects ?? 0 > 0)
        await tiers.closed()
    }

    @Test("is closed where it is not open")
    func closed() async throws {
        let (tiers, late) = try self.late()
        await tiers.closed()
        try self.clear()
        self.pass(.seconds(10))
        #expect(!late.begins(cacheKey("a")))
        await tiers.flushed()
        #expect(late.disk == nil && self.told.isEmpty)
    }
}

extension LateDisk {
    /// Asks it to store something, and says whether it does.
    fileprivate func begins(_ key: CacheKey) -> Bool {
        self.store(storedHead(), for: key, length: 1, replacing: [], observer: Observer()) != nil
    }
}
