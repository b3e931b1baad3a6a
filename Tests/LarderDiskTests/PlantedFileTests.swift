import Foundation
import LarderHTTP
import Synchronization
import Testing

@testable import LarderDisk

@Suite("What somebody has laid into a cache's directory")
struct PlantedFileTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test(
        "is neither written to nor read",
        arguments: ["cache.lock", "cache.mdb", "cache.mdb-lock"], [true, false])
    func planted(_ name: String, isLink: Bool) async throws {
        try await self.world.open(self.directory).closed()
        let (victim, path) = ("\(self.directory.path)/victim", "\(self.directory.path)/\(name)")
        try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
        _ = unsafe unlink(path)
        let isLaid = isLink ? unsafe symlink(victim, path) : unsafe link(victim, path)
        try #require(isLaid == 0)
        let error = #expect(throws: StoreError.self) { try self.world.open(self.directory) }
        #expect(error?.code == .untrusted)
        #expect(error?.cause.hasPrefix(name) == true)
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
    }

    @Test("A directory that others may write to is refused, with what to do")
    func openToOthers() async throws {
        try #require(unsafe chmod(self.directory.path, 0o777) == 0)
        let error = #expect(throws: StoreError.self) { try self.world.open(self.directory) }
        #expect(error?.code == .untrusted && error?.path == self.directory.path)
        #expect(error?.cause == "others may write to the directory (mode 777)")
        #expect(error?.remedy.contains("chmod go-w") == true)
        #expect(unsafe access(self.directory.path + "/cache.lock", F_OK) != 0)
        try #require(unsafe chmod(self.directory.path, 0o1777) == 0)
        try await self.world.open(self.directory).closed()
    }

    @Test("The directory itself may be reached by a link, as service managers make them")
    func linked() async throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/larder"
        try #require(unsafe symlink(self.directory.path, path) == 0)
        let store = try DiskStore.open(
            DiskConfiguration(directory: path, capacity: .mebibytes(64)),
            clock: { self.world.now.withLock { $0 } }, report: { _ in })
        await store.closed()
        #expect(self.directory.fileSize > 0)
    }
}
