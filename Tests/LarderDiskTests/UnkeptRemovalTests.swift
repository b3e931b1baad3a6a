import Foundation
import Glibc
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

/// Has no file of this process grow or change from now on, as a disk that is there for reading alone;
/// or lets them again.
///
/// setrlimit(2), `RLIMIT_FSIZE`: so only where a test has a process of its own.
private func disk(takesNothing: Bool) {
    _ = signal(SIGXFSZ, SIG_IGN)
    let kind = __rlimit_resource_t(UInt32(RLIMIT_FSIZE.rawValue))
    var limit = rlimit()
    _ = unsafe getrlimit(kind, &limit)
    limit.rlim_cur = takesNothing ? 0 : limit.rlim_max
    _ = unsafe setrlimit(kind, &limit)
}

extension DiskEvent {
    fileprivate var tellsOfRemoval: Bool {
        if case .removalNotKept = self { return true }
        return false
    }
}

@Suite("A removal that can be written down nowhere", .timeLimit(.minutes(10)))
struct UnkeptRemovalTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test("is told not to last, to whoever asks, and once to all, until the disk takes it")
    func refused() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let told = Mutex(0)
            let store = try DiskStore.open(
                DiskConfiguration(
                    directory: path, capacity: .mebibytes(64), retryInterval: .milliseconds(1)),
                clock: { Timestamp(seconds: 0) },
                report: { event in
                    if event.tellsOfRemoval { told.withLock { $0 += 1 } }
                })
            let tiers = TieredStore(
                memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(1))), disk: store)
            for name in ["a", "b"] { await store.put(cacheKey(name), pattern(10_000)) }
            guard tiers.unkeptRemoval == nil else { exit(1) }
            disk(takesNothing: true)
            guard await store.removed(cacheKey("a")) == 1 else { exit(2) }
            guard await store.purged({ _ in true }) >= 1 else { exit(3) }
            for name in ["a", "b"] {
                guard await store.find(cacheKey(name)).isEmpty else { exit(4) }
            }
            guard let unkept = tiers.unkeptRemoval, unkept.code == .notWritten,
                unkept.path == path + "/cache.lock", told.withLock({ $0 }) == 1
            else { exit(5) }
            disk(takesNothing: false)
            let limit = ContinuousClock.now + .seconds(30)
            while tiers.unkeptRemoval != nil {
                if ContinuousClock.now > limit { exit(6) }
                await Task.yield()
            }
            exit(7)
        }
    }

    @Test("is told not to last once the store is closed, and does come back")
    func closed() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let store = try DiskStore.open(
                DiskConfiguration(directory: path, capacity: .mebibytes(64)),
                clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
            await store.put(cacheKey("a"), pattern(10_000))
            disk(takesNothing: true)
            guard await store.removed(cacheKey("a")) == 1 else { exit(1) }
            await store.closed()
            exit(store.unkeptRemoval?.code == .notWritten ? 7 : 2)
        }
        let store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("a")).count == 1)
        #expect(store.unkeptRemoval == nil)
        await store.closed()
    }

    @Test("is told not to last where it comes when the store is closed", arguments: [true, false])
    func late(ofAll: Bool) async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), [1])
        await store.closed()
        #expect(store.unkeptRemoval == nil)
        if ofAll {
            #expect(await store.purged { _ in true } == 0)
        } else {
            #expect(await store.removed(cacheKey("a")) == 0)
        }
        #expect(store.unkeptRemoval?.code == .unavailable)
    }

    @Test("is told not to last where the file could not be opened, until it can be noted")
    func unopened() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.closed()
        let lock = self.directory.path + "/cache.lock"
        try FileManager.default.removeItem(atPath: lock)
        try FileManager.default.createDirectory(atPath: lock, withIntermediateDirectories: false)
        let told = Mutex(0)
        let absent = LateDisk(
            self.directory,
            report: { event in
                if event.tellsOfRemoval { told.withLock { $0 += 1 } }
            })
        let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        let tiers = TieredStore(memory: memory, disk: absent)
        func remove() async {
            await withCheckedContinuation { done in
                tiers.remove(cacheKey("a"), ids: nil) { _ in done.resume() }
            }
        }
        #expect(tiers.unkeptRemoval == nil)
        for _ in 0..<2 {
            await remove()
            #expect(tiers.unkeptRemoval?.path == lock)
        }
        let count = told.withLock { $0 }
        #expect(count == 1)
        try FileManager.default.removeItem(atPath: lock)
        await remove()
        #expect(tiers.unkeptRemoval == nil)
        let again = try self.world.open(self.directory)
        #expect(await again.find(cacheKey("a")).isEmpty)
        await again.closed()
    }

    @Test("is none where there is no file")
    func nothingThere() async throws {
        let absent = LateDisk(self.directory)
        await withCheckedContinuation { done in absent.willAnswerRemoval { done.resume() } }
        #expect(absent.unkeptRemoval == nil)
    }
}
