import Foundation
import LarderHTTP
import LarderStore
import Testing

@testable import LarderDisk

@Suite("The cache of a service that root looks into", .enabled(if: geteuid() == 0, "only root can"))
struct ForeignOwnerTests {
    private let directory: TemporaryDirectory
    private let world = World()
    private static let owner: uid_t = 1

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// The cache file alone, as a backup has brought it back.
    private func restore() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("a"), pattern(10_000))
        await store.closed()
        let files = DiskFiles(directory: self.directory.path)
        for path in [files.writerLock, files.readerTable] {
            try #require(unsafe unlink(path) == 0)
        }
        for path in [files.data, files.directory] {
            try #require(unsafe chown(path, Self.owner, Self.owner) == 0)
        }
    }

    private func owners() throws -> [String: [uid_t]] {
        var owners: [String: [uid_t]] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: self.directory.path) {
            var status = stat()
            try #require(unsafe lstat("\(self.directory.path)/\(name)", &status) == 0)
            owners[name] = [status.st_uid, status.st_gid]
        }
        return owners
    }

    @Test("has no files of root afterwards")
    func looked() async throws {
        let whose = [Self.owner, Self.owner]
        try await self.restore()
        let statistics = try DiskInspector(directory: self.directory.path).statistics()
        #expect(statistics.objects == 1 && statistics.writer == nil)
        #expect(try self.owners() == ["cache.mdb": whose, "cache.mdb-lock": whose])
        let report = try StructureCheck.run(directory: self.directory.path, progress: { _, _ in })
        #expect(report?.isSound == true)
        #expect(
            try self.owners() == [
                "cache.mdb": whose, "cache.mdb-lock": whose, "cache.lock": whose,
            ])
    }

    @Test("can be opened by the service afterwards")
    func opened() async throws {
        try await self.restore()
        let path = self.directory.path
        _ = try DiskInspector(directory: path).statistics()
        _ = try StructureCheck.run(directory: path, progress: { _, _ in })
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            guard setgid(1) == 0, setuid(1) == 0 else { exit(8) }
            let store = try DiskStore.open(
                DiskConfiguration(directory: path, capacity: .mebibytes(64)),
                clock: { Timestamp(seconds: 1_700_000_000) }, report: { _ in })
            let count = await store.find(cacheKey("a")).count
            await store.closed()
            exit(count == 1 ? 7 : 9)
        }
    }
}
