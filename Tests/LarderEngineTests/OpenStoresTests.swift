import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderEngine

@Suite("Caches whose capacity on the disk comes and goes")
struct OpenStoresTests {
    private func resize(_ store: SharedStore, to capacity: ByteCount) async {
        await withCheckedContinuation { continuation in
            store.resizeDisk(to: capacity) { continuation.resume() }
        }
    }

    @Test("lie nowhere without a directory, whatever they are given")
    func nowhere() async {
        let store = OpenStores.store(memory: .mebibytes(1), disk: .mebibytes(8), directory: nil)
        #expect(store.diskCapacity == .zero)
        await self.resize(store, to: .mebibytes(8))
        #expect(store.diskCapacity == .zero)
    }

    @Test(
        "are one with others also where their directory could not be used at first",
        arguments: [false, true])
    func late(isGivenCapacityLater: Bool) async throws {
        let directory = NSTemporaryDirectory() + "open-stores-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(FileManager.default.createFile(atPath: directory, contents: Data()))
        let first = OpenStores.store(
            memory: .mebibytes(1), disk: isGivenCapacityLater ? .zero : .mebibytes(8),
            directory: directory)
        if isGivenCapacityLater { await self.resize(first, to: .mebibytes(8)) }
        try FileManager.default.removeItem(atPath: directory)
        let key = CacheKey(
            method: .get, uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"))
        let now = Timestamp(seconds: 1_900_000_000)
        let head = StoredHead(
            status: .ok, fields: [:], varyingFields: [:], requestTime: now, responseTime: now)
        let ended = Ended()
        let sink = first.store.store(
            head, for: key, length: 0, replacing: [], observer: ended)
        sink?.commit(trailers: Fields())
        await withCheckedContinuation { continuation in
            first.flush { continuation.resume() }
        }
        let second = OpenStores.store(
            memory: .mebibytes(1), disk: .mebibytes(8), directory: directory)
        #expect(first === second)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["responses"])
    }

    private final class Ended: ObjectSinkObserver {
        func sink(written offset: UInt64) {}
        func sinkEnded(_ outcome: SinkOutcome) {}
    }

    /// As a program has one that is never released.
    private static let kept = Mutex<SharedStore?>(nil)
    private static let key = CacheKey(
        method: .get, uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"))

    private static func open(_ directory: String) -> SharedStore {
        let store = OpenStores.store(
            memory: .mebibytes(1), disk: .mebibytes(8), directory: directory)
        self.kept.withLock { $0 = store }
        return store
    }

    /// Stores one response; with what the process is to end.
    private static func storesOne(in directory: String) async -> Int32 {
        let store = self.open(directory)
        let now = Timestamp(seconds: 1_900_000_000)
        let head = StoredHead(
            status: .ok, fields: [:], varyingFields: [:], requestTime: now, responseTime: now)
        let sink = store.store.store(
            head, for: self.key, length: 0, replacing: [], observer: Ended())
        sink?.commit(trailers: Fields())
        await withCheckedContinuation { continuation in
            store.flush { continuation.resume() }
        }
        return 7
    }

    /// Looks for it, and stores nothing.
    private static func findsOne(in directory: String) async -> Int32 {
        let store = self.open(directory)
        let count = await withCheckedContinuation { continuation in
            store.store.lookup(self.key) { continuation.resume(returning: $0.count) }
        }
        return count == 1 ? 7 : 1
    }

    @Test("are left in order by a process that stores nothing and is soon over")
    func soonOver() async throws {
        let directory = NSTemporaryDirectory() + "open-stores-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        await #expect(processExitsWith: .exitCode(7)) { [directory = directory as String] in
            exit(await Self.storesOne(in: directory))
        }
        let lock = directory + "/responses/cache.lock"
        try Data("4711\nopened 5\n".utf8).write(to: URL(fileURLWithPath: lock))
        await #expect(processExitsWith: .exitCode(7)) { [directory = directory as String] in
            exit(await Self.findsOne(in: directory))
        }
        // Nor would the next one suspect the file.
        let left = try String(contentsOfFile: lock, encoding: .utf8)
        #expect(left.hasSuffix("\nsteady\n"), "\(left)")
    }

    @Test("are one with those that are made in the directory later")
    func shared() async {
        let directory = NSTemporaryDirectory() + "open-stores-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let first = OpenStores.store(memory: .mebibytes(1), disk: .zero, directory: directory)
        #expect(!FileManager.default.fileExists(atPath: directory))
        await self.resize(first, to: .mebibytes(8))
        let second = OpenStores.store(
            memory: .mebibytes(1), disk: .mebibytes(9), directory: directory)
        #expect(first === second && first.diskCapacity == .mebibytes(9))
        // Made when nothing was to be there, it stays by itself.
        let third = OpenStores.store(memory: .mebibytes(1), disk: .zero, directory: directory)
        await self.resize(third, to: .mebibytes(8))
        #expect(third !== first && third.diskCapacity == .mebibytes(8))
    }
}
