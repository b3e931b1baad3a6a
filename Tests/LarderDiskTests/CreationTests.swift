import Foundation
import Glibc
import LarderHTTP
import Testing

@testable import LarderDisk

@Suite("A cache file that is being made", .timeLimit(.minutes(10)))
struct CreationTests {
    /// Lets files of this process grow to `bytes`; a write beyond fails with EFBIG.
    private static func limitFiles(to bytes: UInt64) -> Bool {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else {
            return false
        }
        limit.rlim_cur = min(UInt(bytes), limit.rlim_max)
        return unsafe setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
    }

    @Test("has its name no sooner than it is whole, wherever the making of it ends")
    func isWholeOrNotThere() async throws {
        await #expect(processExitsWith: .success) {
            signal(SIGXFSZ, SIG_IGN)
            var failures = 0
            for size in stride(from: UInt64(4096), through: 96 << 10, by: 4096) {
                let directory = try TemporaryDirectory()
                let configuration = DiskConfiguration(
                    directory: directory.path, capacity: .mebibytes(64))
                guard Self.limitFiles(to: size) else { exit(1) }
                let store = try? DiskStore.open(
                    configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
                if store == nil { failures += 1 }
                await store?.closed()
                guard Self.limitFiles(to: .max) else { exit(2) }
                let data = directory.path + "/cache.mdb"
                if FileManager.default.fileExists(atPath: data) {
                    _ = try DiskInspector(directory: directory.path)
                } else if store != nil {
                    exit(3)
                }
            }
            // Some were too small, and the last was large enough.
            exit(failures > 2 && failures < 24 ? 0 : 4)
        }
    }
}
