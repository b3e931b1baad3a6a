import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
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
