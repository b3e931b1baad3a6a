import Dispatch
import Glibc
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("A read that fails for a moment", .timeLimit(.minutes(5)))
struct ReadFailureTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// A store with a few responses, slots for four readers, and one thread that reads.
    private func filled() async throws -> DiskStore {
        let store = try self.world.open(self.directory) {
            $0.maximumReaders = 4
            $0.readerThreads = 1
        }
        for name in ["a", "b", "c"] { await store.put(cacheKey(name), [1, 2, 3]) }
        await store.flushed()
        return store
    }

    /// Runs `body` while no slot for a reader is free.
    private func withoutSlots(_ environment: Environment, _ body: () -> Void) {
        do throws(LMDBError) {
            try environment.read { (_) throws(LMDBError) in self.withoutSlots(environment, body) }
        } catch {
            #expect(error.code == .readersFull)
            body()
        }
    }

    /// What is handed to the closure that `begin` is given, while no slot for a reader is free.
    private func withoutSlots<R: Sendable>(
        _ store: DiskStore, _ begin: (@escaping @Sendable (R) -> Void) -> Void
    ) -> R? {
        let result = Mutex<R?>(nil)
        let told = DispatchSemaphore(value: 0)
        self.withoutSlots(store.core.environment) {
            begin { value in
                result.withLock { $0 = value }
                told.signal()
            }
            told.wait()
        }
        return result.withLock { $0 }
    }

    @Test("is a miss for that one request, and no knowledge")
    func uncertain() async throws {
        let store = try await self.filled()
        let answer: StoreAnswer? = self.withoutSlots(store) { tell in
            store.ask(for: cacheKey("a")) { tell($0) }
        }
        #expect(answer?.objects.isEmpty == true)
        #expect(answer?.isCertain == false)
        #expect(await store.find(cacheKey("a")).count == 1)
        await store.closed()
    }

    @Test("lets a walk through all names end without them, and the file as it is")
    func names() async throws {
        let store = try await self.filled()
        let names: [StoredName]?? = self.withoutSlots(store) { tell in
            store.allNames { tell($0) }
        }
        #expect(names == .some(nil))
        await store.flushed()
        #expect(await store.find(cacheKey("a")).count == 1)
        #expect(self.directory.aside.isEmpty)
        await store.closed()
    }

    /// Removes all that is stored, with a first read that fails; how much that is told to be.
    private func removeAll(_ store: DiskStore) -> AsyncStream<Int> {
        let (counts, count) = AsyncStream<Int>.makeStream()
        let (begins, hasFailed, goesOn) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let reads = store.core.reads
        _ = reads.submit(for: .body) { begins.wait() }
        store.removeAll(where: { _ in true }) { removed in
            count.yield(removed)
            count.finish()
        }
        // The walk's second try comes behind this.
        _ = reads.submit(for: .body) {
            hasFailed.signal()
            goesOn.wait()
        }
        self.withoutSlots(store.core.environment) {
            begins.signal()
            hasFailed.wait()
        }
        goesOn.signal()
        return counts
    }

    @Test("is tried again by a walk that removes, and costs no file")
    func removal() async throws {
        let store = try await self.filled()
        let file = store.core.file
        var removed: [Int] = []
        for await count in self.removeAll(store) { removed.append(count) }
        #expect(removed == [3])
        await store.flushed()
        #expect(store.core.file === file)
        #expect(self.directory.aside.isEmpty)
        await store.closed()
    }

    @Test("costs no file either where it fails more often than a walk tries again at once")
    func putOff() async throws {
        let store = try await self.filled()
        let file = store.core.file
        let (counts, count) = AsyncStream<Int>.makeStream()
        let limit = ContinuousClock.now + .seconds(60)
        self.withoutSlots(store.core.environment) {
            store.removeAll(where: { _ in true }) { count.yield($0) }
            let failures = { store.core.failures.load(ordering: .relaxed) }
            while failures() <= UInt64(WalkRemedy.mostRepeats), ContinuousClock.now < limit {
                _ = sched_yield()
            }
        }
        #expect(await counts.first { _ in true } == 3)
        await store.flushed()
        #expect(store.core.file === file)
        #expect(self.directory.aside.isEmpty)
        await store.closed()
    }

    @Test(
        "leaves a removal owed that the store closes before, be it of all or by time",
        arguments: [false, true])
    func closed(byTime: Bool) async throws {
        let store = try await self.filled()
        let (texts, told) = AsyncStream<String>.makeStream()
        let tell = { @Sendable in told.yield(self.directory.writerLockText ?? "") }
        let (ends, ended) = AsyncStream<Void>.makeStream()
        let limit = ContinuousClock.now + .seconds(60)
        self.withoutSlots(store.core.environment) {
            if byTime {
                store.names(storedSince: Timestamp(seconds: 0)) { _ in _ = tell() }
            } else {
                // Nor can an empty file take its place, for which it is read once.
                store.removeAll(in: .all) { _ in _ = tell() }
            }
            let failures = { store.core.failures.load(ordering: .relaxed) }
            while failures() <= UInt64(WalkRemedy.mostRepeats), ContinuousClock.now < limit {
                _ = sched_yield()
            }
            // Before there are slots again: nothing more is taken from here on.
            store.close { ended.yield() }
        }
        let text = try #require(await texts.first { _ in true })
        #expect(text.hasSuffix("\nowed\n"), "\(text)")
        _ = await ends.first { _ in true }
        #expect(self.directory.writerLockText == "\(getpid())\nclosed\nowed\n")
        let next = try self.world.open(self.directory)
        for name in ["a", "b", "c"] { #expect(await next.find(cacheKey(name)).isEmpty) }
        await next.closed()
    }

    @Test("is told from damage, which no other try mends", arguments: LMDBError.Code.allCases)
    func remedies(_ code: LMDBError.Code) {
        let error = LMDBError(code, operation: "test")
        let isDamage = FileTrouble(error) != nil
        #expect(WalkRemedy(error, WalkTries()) == (isDamage ? .giveUp : .again))
        let isShortage = code == .readersFull || code == .noMemory
        var tries = WalkTries(repeats: WalkRemedy.mostRepeats)
        #expect(WalkRemedy(error, tries) == (isShortage ? .later : .giveUp))
        #expect(WalkRemedy(error, tries.later) == (isDamage ? .giveUp : .again))
        // Nothing of what is to be removed is served meanwhile.
        tries.delays = WalkRemedy.mostDelays
        #expect(WalkRemedy(error, tries) == .giveUp)
    }

    @Test(
        "for want of a slot is rare: there are slots for all event loops",
        arguments: [
            (-1, 126), (0, 126), (1, 126), (31, 126), (32, 128), (64, 192), (.max, 131_136),
        ] as [(Int, UInt32)])
    func slots(eventLoops: Int, expected: UInt32) {
        #expect(DiskConfiguration.readers(eventLoops: eventLoops) == expected)
    }
}
