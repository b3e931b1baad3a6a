import Dispatch
import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDaemon
@testable import LarderDisk

/// Over a disk whose writer lets commands gather for an hour after each batch, unless somebody waits.
@Suite("Storing what an archive holds", .timeLimit(.minutes(5)))
struct ArchiveStoringTests {
    private final class Disk: Sendable {
        let store: DiskStore
        private let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-import-\(UUID().uuidString)")

        init(_ admission: AdmissionRules = AdmissionRules()) throws {
            var configuration = DiskConfiguration(
                directory: self.directory.path, capacity: .mebibytes(64), admission: admission)
            configuration.pause = .seconds(3600)
            self.store = try DiskStore.open(
                configuration, clock: { Timestamp(seconds: 0) }, report: { _ in })
        }

        deinit { try? FileManager.default.removeItem(at: self.directory) }

        var objects: UInt64 { self.store.statistics().disk?.objects ?? 0 }

        /// With memory above it that would take every small body.
        var belowMemory: TieredStore {
            let memory = MemoryStore(MemoryConfiguration(capacity: .mebibytes(16)))
            return TieredStore(memory: memory, disk: self.store)
        }
    }

    /// Puts a body in as an import does, which may wait.
    private static func put(_ length: Int, _ number: Int, _ storing: ArchiveStoring) {
        let time = Timestamp(seconds: 0)
        let head = StoredHead(status: .ok, fields: [:], requestTime: time, responseTime: time)
        let uri = TargetURI(scheme: .http, host: "example.org", pathAndQuery: "/\(number)")
        let pending = storing.begin(
            head, for: CacheKey(method: .get, uri: uri), length: UInt64(length), replacing: [])
        var rest = ByteBuffer(repeating: 1, count: length)
        while let piece = rest.readSlice(length: min(65_536, rest.readableBytes)),
            piece.readableBytes > 0, pending?.write(piece) == true
        {}
        pending?.commit(trailers: Fields())
    }

    /// On a thread that may wait.
    private func importing<T: Sendable>(_ work: @escaping @Sendable () -> T) async -> T {
        await withCheckedContinuation { done in
            DispatchQueue(label: "importing").async { done.resume(returning: work()) }
        }
    }

    @Test(
        "runs ahead of the disk by a few responses only, and ends when it has them all",
        arguments: [true, false])
    func pace(hasMemory: Bool) async throws {
        let disk = try Disk()
        let storing = ArchiveStoring(hasMemory ? disk.belowMemory : disk.store)
        let (ahead, tally, objects) = await self.importing {
            var ahead: UInt64 = 0
            for number in 1...300 {
                Self.put(1_000, number, storing)
                let objects = disk.objects
                ahead = max(ahead, UInt64(number) - min(UInt64(number), objects))
            }
            return (ahead, storing.finish(), disk.objects)
        }
        // Places are free again a moment after the store counts what they were for.
        #expect(ahead <= 128)
        #expect(tally.stored == 300 && tally.refused.isEmpty)
        #expect(objects == 300)
    }

    @Test(
        "waits for no more than the disk takes to write a large body", arguments: [true, false])
    func large(hasMemory: Bool) async throws {
        let disk = try Disk()
        let storing = ArchiveStoring(hasMemory ? disk.belowMemory : disk.store)
        let tally = await self.importing {
            for number in 1...2 { Self.put(9 << 20, number, storing) }
            return storing.finish()
        }
        #expect(tally.stored == 2 && tally.bytes == 18 << 20)
        #expect(disk.objects == 2)
    }

    @Test("stores on disk at first sight, whatever the rules of admission say")
    func admitted() async throws {
        let disk = try Disk(AdmissionRules(takesOnceSeen: false))
        let storing = ArchiveStoring(disk.belowMemory)
        let tally = await self.importing {
            for number in 1...3 { Self.put(1_000, number, storing) }
            return storing.finish()
        }
        #expect(tally.stored == 3 && tally.refused.isEmpty)
        #expect(disk.objects == 3)
    }
}
