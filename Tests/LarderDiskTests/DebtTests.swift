import Foundation
import Glibc
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

/// A disk that takes the first bytes of each file, and no page of a cache, while `isFull`.
///
/// setrlimit(2), `RLIMIT_FSIZE`: for the whole process, so only where a test has one of its own.
func disk(isFull: Bool) {
    _ = signal(SIGXFSZ, SIG_IGN)
    let kind = __rlimit_resource_t(UInt32(RLIMIT_FSIZE.rawValue))
    var limit = rlimit()
    _ = unsafe getrlimit(kind, &limit)
    limit.rlim_cur = isFull ? 512 : limit.rlim_max
    _ = unsafe setrlimit(kind, &limit)
}

private func opened(_ path: String) throws(StoreError) -> DiskStore {
    try DiskStore.open(
        DiskConfiguration(directory: path, capacity: .mebibytes(64)),
        clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
}

@Suite("What was removed while the disk refused to write", .timeLimit(.minutes(10)))
struct DebtTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private var reasons: [String] {
        self.world.reported.compactMap { event in
            switch event {
            case .discarded(let reason), .setAside(_, let reason): reason
            default: nil
            }
        }
    }

    /// Opens what a process left, and looks whether it was taken away with its reason, room and all.
    private func expectDiscarded(_ location: SourceLocation = #_sourceLocation) async throws {
        #expect(
            self.directory.writerLockText?.hasSuffix("\nowed\n") == true,
            sourceLocation: location)
        let store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("a")).isEmpty, sourceLocation: location)
        #expect(self.directory.aside.isEmpty, sourceLocation: location)
        #expect(
            self.reasons == [
                "responses were removed that could not be taken out of it"
            ], sourceLocation: location)
        #expect(
            self.directory.writerLockText == "\(getpid())\nopened 1\n",
            sourceLocation: location)
        await store.put(cacheKey("b"), [1])
        await store.closed()
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("b")).count == 1, sourceLocation: location)
        #expect(self.reasons.count == 1, sourceLocation: location)
        await again.closed()
    }

    @Test("is not served by the next process, by whichever call it was removed")
    func key() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try opened(path)
            await store.put(cacheKey("a"), pattern(10_000))
            disk(isFull: true)
            guard await store.removed(cacheKey("a")) == 1 else { exit(1) }
            guard await store.find(cacheKey("a")).isEmpty else { exit(2) }
            kill(getpid(), SIGKILL)
        }
        try await self.expectDiscarded()
    }

    @Test("is not served by the next process, where all that matches was removed")
    func matching() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try opened(path)
            for name in ["a", "b", "c"] { await store.put(cacheKey(name), pattern(10_000)) }
            disk(isFull: true)
            guard await store.purged({ _ in true }) == 3 else { exit(1) }
            kill(getpid(), SIGKILL)
        }
        try await self.expectDiscarded()
    }

    @Test("is not served by the next process, where it was marked as invalid")
    func invalidated() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try opened(path)
            await store.put(cacheKey("a"), pattern(10_000))
            guard let object = await store.find(cacheKey("a")).first else { exit(1) }
            disk(isFull: true)
            var head = object.head
            head.isInvalidated = true
            store.update(object.id, of: object.key, head: head)
            await store.flushed()
            kill(getpid(), SIGKILL)
        }
        try await self.expectDiscarded()
    }

    @Test("is not served by the next process, where its group was invalidated")
    func group() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try opened(path)
            await store.put(cacheKey("a"), pattern(10_000))
            disk(isFull: true)
            store.noteInvalidation(ofGroup: [1, 2, 3], at: Timestamp(seconds: 1_700_000_100))
            await store.flushed()
            kill(getpid(), SIGKILL)
        }
        try await self.expectDiscarded()
    }

    @Test("is still owed by a process that ends before it has set the file aside")
    func noteIsKept() throws {
        try Data("4711\nsteady\nowed\n".utf8).write(
            to: URL(fileURLWithPath: self.directory.path + "/cache.lock"))
        let lock = try WriterLock.acquire(DiskFiles(directory: self.directory.path))
        #expect(self.directory.writerLockText == "\(getpid())\nsteady\nowed\n")
        try lock.noteOpening()
        #expect(self.directory.writerLockText == "\(getpid())\nopened 1\nowed\n")
    }

    @Test("does not lay the ends that came of its file to the charge of the new one")
    func earlyEnds() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        try Data("4711\nopened 31\nowed\n".utf8).write(
            to: URL(fileURLWithPath: self.directory.path + "/cache.lock"))
        store = try self.world.open(self.directory)
        #expect(self.directory.writerLockText == "\(getpid())\nopened 1\n")
        #expect(await store.find(cacheKey("a")).isEmpty)
        await store.closed()
    }

    @Test(
        "is told by the text of the lock alone",
        arguments: [
            ("", false), ("4711\nsteady\n", false), ("4711\nsteady\nowed\n", true),
            ("4711\nopened 3\nowed\n", true), ("owed\n", false), ("1\nowed\n", false),
            ("4711\nsteady\nowed 2\n", false),
        ])
    func texts(_ text: String, _ isOwed: Bool) {
        #expect(WriterLock.isOwed(Array(text.utf8)) == isOwed)
    }

    @Test("is not owed for ever by a process that was killed while it wrote that it is paid")
    func killedWhileWriting() {
        let before = Array("4711\nsteady\nowed\n".utf8)
        let written = WriterLock.covering("4711\nsteady\n")
        #expect(!WriterLock.isOwed(written + before.dropFirst(written.count)))
        #expect(WriterLock.isOwed(WriterLock.covering("4711\nsteady\nowed\n")))
        #expect(WriterLock.earlyEnds(WriterLock.covering("4711\nopened 3\n")) == 3)
    }

    @Test("is owed until it is known to be on the disk, and no longer")
    func certainty() {
        var removals = PendingRemovals()
        removals.debts.garbage = [ObjectID(rawValue: 1)]
        removals.debts.isRecorded = true
        var isDone = removals.committed(removals.debts.part, isCertain: false)
        #expect(!isDone)
        #expect(removals.debts.isRecorded)
        // With nothing left to write.
        #expect(removals.debts.part.garbage.isEmpty)
        isDone = removals.committed(removals.debts.part, isCertain: true)
        #expect(isDone)
        #expect(removals.debts.isNothing)
    }

    /// Has a reader stand still in a transaction until nearly all of a file of 16 MiB is used up: what
    /// is removed meanwhile cannot be used again.
    private func fill(_ store: DiskStore, until left: UInt64) async throws -> HeldReader {
        await store.put(cacheKey("stays"), pattern(10_000))
        await store.put(cacheKey("a"), pattern(10_000))
        let environment = try #require(Environment.shared(path: self.directory.data))
        let reader = await HeldReader.begin(on: environment)
        for _ in 0..<1000 where try environment.information().lastPage < 4096 - left {
            await store.put(cacheKey("churn"), pattern(40_000))
            _ = await store.removed(cacheKey("churn"))
        }
        return reader
    }

    /// Takes the last pages of the file, one transaction after the other.
    private func exhaust(_ store: DiskStore) throws {
        let environment = try #require(Environment.shared(path: self.directory.data))
        let schema = store.core.schema
        for _ in 0..<1000 {
            do throws(LMDBError) {
                try environment.write { (transaction) throws(LMDBError) in
                    guard let meta = try schema.readMeta(transaction.reading) else { return }
                    try schema.writeMeta(meta, transaction)
                }
            } catch {
                #expect(error.code == .mapFull)
                return
            }
        }
    }

    @Test("is not told before the disk has it where a reader that stands still fills the file")
    func stuck() async throws {
        let failed = AsyncStream<Void>.makeStream()
        let store = try DiskStore.open(
            DiskConfiguration(directory: self.directory.path, capacity: .mebibytes(16)),
            clock: { Timestamp(seconds: 1_700_000_000) },
            report: { event in
                if case .failed = event { failed.continuation.yield() }
            })
        let reader = try await self.fill(store, until: 100)
        try self.exhaust(store)
        let removed = AsyncStream<(Int, String?)>.makeStream()
        store.remove(cacheKey("a"), ids: nil) { count in
            removed.continuation.yield((count, self.directory.writerLockText))
        }
        let flushed = AsyncStream<Bool>.makeStream()
        let isEnding = Flag()
        store.flush { flushed.continuation.yield(isEnding.isSet) }
        _ = await failed.stream.first { _ in true }
        isEnding.set()
        await reader.end()
        // Nor is it said that all is done.
        #expect(await flushed.stream.first { _ in true } == true)
        let (count, text) = try #require(await removed.stream.first { _ in true })
        #expect(count == 1)
        #expect(text?.hasSuffix("\nowed\n") == false, "\(text ?? "")")
        #expect(await store.find(cacheKey("a")).isEmpty)
        #expect(await store.find(cacheKey("stays")).count == 1)
        await store.closed()
    }

    @Test("is owed where a reader stands still for longer than anybody waits")
    func stuckForLong() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(16)) {
            $0.owingPatience = .milliseconds(1)
        }
        let reader = try await self.fill(store, until: 100)
        try self.exhaust(store)
        #expect(await store.removed(cacheKey("a")) == 1)
        #expect(self.directory.writerLockText?.hasSuffix("\nowed\n") == true)
        #expect(await store.find(cacheKey("a")).isEmpty)
        await reader.end()
        await store.closed()
        #expect(self.directory.writerLockText == "\(getpid())\nclosed\n")
        let again = try self.world.open(self.directory, capacity: .mebibytes(16))
        #expect(await again.find(cacheKey("a")).isEmpty)
        #expect(await again.find(cacheKey("stays")).count == 1)
        await again.closed()
    }

    @Test("is not owed where a full cache refused what was to be stored in the same step")
    func full() async throws {
        let store = try self.world.open(self.directory, capacity: .mebibytes(16))
        let reader = try await self.fill(store, until: 100)
        // What follows comes to the writer as one batch.
        let hold = DispatchSemaphore(value: 0)
        let isHeld = AsyncStream<Void>.makeStream()
        store.flush {
            isHeld.continuation.yield()
            hold.wait()
        }
        _ = await isHeld.stream.first { _ in true }
        let observer = Observer()
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("b"), length: nil, replacing: [], observer: observer))
        let removed = AsyncStream<(Int, String?)>.makeStream()
        store.remove(cacheKey("a"), ids: nil) { count in
            removed.continuation.yield((count, self.directory.writerLockText))
        }
        sink.write(ByteBuffer(bytes: pattern(450_000)))
        sink.commit(trailers: Fields())
        hold.signal()
        #expect(await observer.end() == .abandoned(.noSpace))
        let (count, text) = try #require(await removed.stream.first { _ in true })
        #expect(count == 1)
        #expect(text?.hasSuffix("\nowed\n") == false, "\(text ?? "")")
        #expect(await store.find(cacheKey("a")).isEmpty)
        #expect(await store.find(cacheKey("stays")).count == 1)
        await reader.end()
        await store.closed()
    }

    @Test("is removed when the disk takes it, in parts, and the rest of the cache stays")
    func paid() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let store = try opened(path)
            for i in 0..<1500 { await store.put(cacheKey("gone\(i)"), [1]) }
            await store.put(cacheKey("stays"), pattern(10_000))
            disk(isFull: true)
            let gone = cacheKey("gone").bytes
            guard await store.purged({ $0.bytes.starts(with: gone) }) == 1500 else { exit(1) }
            disk(isFull: false)
            // Nothing else is written: what is owed is paid for its own sake.
            await store.closed()
            exit(7)
        }
        #expect(self.directory.writerLockText?.hasSuffix("\nclosed\n") == true)
        let store = try self.world.open(self.directory)
        #expect(self.reasons.isEmpty)
        #expect(await store.find(cacheKey("stays")).count == 1)
        #expect(store.statistics().disk?.objects == 1)
        try QueueAudit(self.directory).expectSound()
        await store.closed()
    }

    @Test("does not come back with a file that could not be opened meanwhile")
    func unopened() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.closed()
        let absent = LateDisk(self.directory)
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        let tiers = TieredStore(memory: memory, disk: absent)
        let removed = await withCheckedContinuation { done in
            tiers.remove(cacheKey("a"), ids: nil) { done.resume(returning: $0) }
        }
        #expect(removed == 0)
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("a")).isEmpty)
        #expect(self.reasons.count == 1)
        await again.put(cacheKey("b"), pattern(10))
        await again.closed()
        // Nothing was removed: nothing is lost.
        let last = try self.world.open(self.directory)
        #expect(await last.find(cacheKey("b")).count == 1)
        #expect(self.reasons.count == 1)
        await last.closed()
    }

    @Test("is tried again by itself, though nobody stores anything more")
    func triedAgain() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let configuration = DiskConfiguration(
                directory: path, capacity: .mebibytes(64), retryInterval: .milliseconds(1))
            let store = try DiskStore.open(
                configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
            await store.put(cacheKey("a"), pattern(10_000))
            disk(isFull: true)
            guard await store.removed(cacheKey("a")) == 1 else { exit(1) }
            disk(isFull: false)
            let limit = ContinuousClock.now + .seconds(30)
            while store.statistics().disk?.objects != 0 {
                if ContinuousClock.now > limit { exit(2) }
                await Task.yield()
            }
            exit(7)
        }
    }

    @Test("takes all that is stored along where it cannot be found any more")
    func givenUp() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        // Whatever it is asked for from now on fails.
        try #require(Environment.shared(path: self.directory.data)).close()
        #expect(await store.purged { _ in true } == 0)
        await store.flushed()
        #expect(self.reasons.count == 1)
        #expect(await store.find(cacheKey("a")).isEmpty)
        self.world.now.withLock { $0 = $0 + .seconds(11) }
        guard case .visible = await store.put(cacheKey("b"), [1]) else {
            Issue.record("there is no file in use")
            return
        }
        #expect(await store.find(cacheKey("b")).count == 1)
        #expect(self.directory.writerLockText == "\(getpid())\nsteady\n")
        // Once the last commit is on the disk, the writer rests.
        let limit = ContinuousClock.now + .seconds(30)
        while store.core.mailbox.look().alarm != nil {
            try #require(ContinuousClock.now < limit)
            await Task.yield()
        }
        await store.closed()
    }

    @Test("stays removed where the file could not even be read then, and was opened again")
    func unreadable() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.put(cacheKey("b"), pattern(10_000))
        let environment = try #require(Environment.shared(path: self.directory.data))
        let reader = await HeldReader.begin(on: environment)
        store.core.readFailed(LMDBError(.panic, operation: "test"), with: environment)
        await store.flushed()
        _ = await store.removed(cacheKey("a"))
        await reader.end()
        self.world.now.withLock { $0 = $0 + .seconds(11) }
        guard case .visible = await store.put(cacheKey("c"), [1]) else {
            Issue.record("the file is not in use again")
            return
        }
        #expect(await store.find(cacheKey("a")).isEmpty)
        #expect(await store.find(cacheKey("b")).count == 1)
        #expect(self.directory.writerLockText == "\(getpid())\nsteady\n")
        // What is stored from then on is another response.
        await store.put(cacheKey("a"), [2])
        #expect(await store.find(cacheKey("a")).count == 1)
        await store.closed()
    }
}
