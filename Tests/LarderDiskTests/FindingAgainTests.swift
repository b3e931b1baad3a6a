import Foundation
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Finding again on disk what was found before", .timeLimit(.minutes(10)))
struct FindingAgainTests {
    private let directory: TemporaryDirectory
    private let world = World()
    private let key = cacheKey("page")

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func open(_ residency: Residency = .everything) throws -> DiskStore {
        try self.world.open(self.directory) { residency.configure(&$0) }
    }

    private func place(in store: DiskStore, _ index: Int = 0) async throws -> FoundPlace {
        let objects = await store.find(self.key)
        try #require(objects.indices.contains(index))
        return FoundPlace(of: objects, index)
    }

    /// What is found again; tried some times, as the kernel may take a page from memory at any time.
    private func again(_ place: FoundPlace, in store: DiskStore) async -> [UInt8]? {
        for _ in 0..<20 {
            if let body = store.bodyAgain(at: place, of: self.key) {
                return Array(body.readableBytesView)
            }
            for object in await store.find(self.key) { _ = await store.body(object) }
        }
        return nil
    }

    @Test(
        "gives the body where it comes with its head, and nothing of a larger one",
        arguments: [0, 1, 900, 4_096, 32_768, 32_769, 100_000])
    func sizes(size: Int) async throws {
        let store = try self.open()
        await store.put(self.key, pattern(size))
        let place = try await self.place(in: store)
        #expect(place.bodyLength == UInt64(size))
        #expect(await self.again(place, in: store) == (size <= 32_768 ? pattern(size) : nil))
        #expect(store.bodyAgain(at: place, of: cacheKey("other")) == nil)
        #expect(store.bodyAgain(at: place, of: self.key.withoutSearch) == nil)
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test(
        "gives nothing where something is not in memory",
        arguments: [Residency.nothing, .records, .bodies])
    func elsewhere(residency: Residency) async throws {
        let store = try self.open(residency)
        await store.put(self.key, pattern(900))
        let place = try await self.place(in: store)
        let before = store.readCounts
        #expect(store.bodyAgain(at: place, of: self.key) == nil)
        #expect(store.readCounts.lookupsInPlace == before.lookupsInPlace)
        #expect(store.readCounts.lookupsOnPool == before.lookupsOnPool)
        await store.closed()
    }

    @Test("gives each of several variants, and nothing once there is one more or less")
    func variants() async throws {
        let store = try self.open()
        for language in ["a", "b", "c"] {
            await store.put(
                self.key, Array(language.utf8), head: storedHead(language, vary: language))
        }
        let places = try await [
            self.place(in: store, 0), self.place(in: store, 1), self.place(in: store, 2),
        ]
        for (place, language) in zip(places, ["c", "b", "a"]) {
            #expect(await self.again(place, in: store) == Array(language.utf8))
        }
        await store.put(self.key, [1], head: storedHead("d", vary: "d"))
        for place in places { #expect(await self.again(place, in: store) == nil) }
        let four = try await self.place(in: store, 3)
        #expect(await self.again(four, in: store) == Array("a".utf8))
        #expect(await store.removed(self.key, ids: [places[1].id]) == 1)
        #expect(await self.again(four, in: store) == nil)
        #expect(await store.removed(self.key) == 3)
        for place in places + [four] { #expect(await self.again(place, in: store) == nil) }
        await store.closed()
    }

    @Test("goes on when uses are written, and ends with another head")
    func rewritten() async throws {
        let store = try self.open()
        await store.put(self.key, pattern(900))
        let place = try await self.place(in: store)
        for second in 1...3 as ClosedRange<Int64> {
            store.noteUse(
                place.id, of: self.key, at: Timestamp(seconds: 1_700_000_100 + second))
            await store.flushed()
            #expect(await self.again(place, in: store) == pattern(900))
        }
        var head = storedHead()
        head.isInvalidated = true
        store.update(place.id, of: self.key, head: head)
        await store.flushed()
        #expect(await self.again(place, in: store) == nil)
        await store.closed()
    }

    @Test("gives nothing that is hidden, or about to be deleted")
    func hidden() async throws {
        let store = try self.open()
        await store.put(self.key, pattern(900))
        let place = try await self.place(in: store)
        #expect(await self.again(place, in: store) == pattern(900))
        #expect(store.core.entries.withLock { $0.leaves(place.id) })
        #expect(store.bodyAgain(at: place, of: self.key) == nil)
        store.core.entries.withLock { $0.stays() }
        #expect(await self.again(place, in: store) == pattern(900))
        #expect(store.core.entries.withLock { $0.hide(place.id) })
        #expect(store.bodyAgain(at: place, of: self.key) == nil)
        await store.closed()
    }

    @Test("gives nothing of a damaged body, and leaves it to whoever reads it")
    func damaged() async throws {
        var store = try self.open()
        await store.put(self.key, pattern(5_000))
        let place = try await self.place(in: store)
        await store.closed()
        let url = URL(fileURLWithPath: self.directory.data)
        var data = try Data(contentsOf: url)
        let range = try #require(data.range(of: Data(pattern(5_000)[1_000..<1_040])))
        data[range.lowerBound] ^= 0x01
        try data.write(to: url)
        store = try self.open()
        #expect(store.bodyAgain(at: place, of: self.key) == nil)
        #expect(store.statistics().damaged == 0)
        #expect(await self.again(place, in: store) == nil)
        // A look-up that began before it was taken out may come upon it after that.
        #expect(store.statistics().damaged >= 1)
        await store.closed()
    }
}
