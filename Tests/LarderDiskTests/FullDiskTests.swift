import Foundation
import Glibc
import LarderHTTP
import LarderLMDB
import LarderStore
import Synchronization
import Testing

@testable import LarderDisk

/// A clock by which each pause is over when somebody asks.
private enum HastyClock {
    private static let seconds = Atomic<Int64>(1_700_000_000)

    static func now() -> Timestamp {
        Timestamp(seconds: self.seconds.wrappingAdd(1000, ordering: .relaxed).newValue)
    }
}

/// Lets no file of this process grow beyond `size` from now on.
///
/// setrlimit(2), `RLIMIT_FSIZE`: so only where a test has a process of its own.
private func bound(files size: UInt64) {
    _ = signal(SIGXFSZ, SIG_IGN)
    let kind = __rlimit_resource_t(UInt32(RLIMIT_FSIZE.rawValue))
    var limit = rlimit()
    _ = unsafe getrlimit(kind, &limit)
    limit.rlim_cur = rlim_t(size)
    _ = unsafe setrlimit(kind, &limit)
}

@Suite("A disk that is full", .timeLimit(.minutes(10)))
struct FullDiskTests {
    private let directory: TemporaryDirectory

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// - Parameter beyond: what a file may still grow by. Less than a page: a write of several is cut
    ///   short, as on a disk that becomes full, which LMDB takes for one that fails.
    @Test(
        "has new responses take the place of old ones, however small the file is, and says so once",
        arguments: [0, 2048, 3 * 4096 + 2048] as [UInt64])
    func evicts(beyond: UInt64) async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .exitCode(7)) {
            [path = path as String, beyond = beyond as UInt64] in
            let told = Atomic(0)
            let store = try DiskStore.open(
                DiskConfiguration(
                    directory: path, capacity: .mebibytes(64), retryInterval: .milliseconds(1)),
                clock: { HastyClock.now() },
                report: { event in
                    if case .full = event { told.add(1, ordering: .relaxed) }
                })
            // A tenth of the capacity, with some room in it.
            for i in 0..<100 { await store.put(cacheKey("old\(i)"), pattern(60_000)) }
            for i in 0..<10 { _ = await store.removed(cacheKey("old\(i)")) }
            await store.flushed()
            bound(files: try store.core.environment.fileSize() + beyond)
            var stored = 0
            for i in 0..<100 {
                let outcome = await store.put(cacheKey("new\(i)"), pattern(60_000))
                if case .visible = outcome { stored += 1 }
            }
            // Not all of the cache for it, either.
            let objects = store.statistics().disk?.objects ?? 0
            guard told.load(ordering: .relaxed) == 1 else { exit(2) }
            exit(stored > 50 && objects > 40 ? 7 : 1)
        }
    }
}
