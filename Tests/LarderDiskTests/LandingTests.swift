import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("A response that is being committed", .timeLimit(.minutes(10)))
struct LandingTests {
    /// The store alone, and below a memory tier that holds nothing.
    private func stores() throws -> [any ObjectStore] {
        let directories = [try TemporaryDirectory(), try TemporaryDirectory()]
        let disks = try directories.map { try World().open($0) }
        let memory = MemoryStore(MemoryConfiguration(capacity: ByteCount(0)))
        return [disks[0], TieredStore(memory: memory, disk: disks[1])]
    }

    @Test("is found by a lookup that comes after its last byte, whatever the writer is at")
    func whole() async throws {
        for store in try self.stores() {
            for number in 0..<50 {
                let key = cacheKey("\(number)")
                let observer = Observer()
                let sink = try #require(
                    store.store(
                        storedHead(), for: key, length: nil, replacing: [],
                        begun: store.removalMark(), observer: observer))
                sink.write(ByteBuffer(repeating: 1, count: number * 4_000))
                sink.commit(trailers: Fields())
                let found = await store.looked(key)
                #expect(found.map(\.bodyLength) == [UInt64(number * 4_000)])
            }
        }
    }

    @Test("is found with all of it, where it is a part and grows")
    func part() async throws {
        for store in try self.stores() {
            let key = cacheKey("part")
            var head = storedHead()
            head.extent = StoredExtent(completeLength: 1_000, ranges: [0..<10])
            let first = try #require(
                store.store(
                    head, for: key, length: 10, replacing: [], begun: store.removalMark(),
                    observer: Observer()))
            first.write(ByteBuffer(repeating: 1, count: 10))
            first.commit(trailers: Fields())
            for end in stride(from: UInt64(20), through: 1_000, by: 10) {
                let object = try #require(await store.looked(key).first)
                #expect(object.head.extent?.ranges == [0..<end - 10])
                let more = try #require(
                    store.extend(
                        object.id, of: key, at: end - 10, length: 10, completeLength: nil,
                        begun: store.removalMark(), observer: Observer()))
                more.write(ByteBuffer(repeating: 1, count: 10))
                more.commit(trailers: Fields())
            }
            let whole = try #require(await store.looked(key).first)
            #expect(whole.head.extent == nil && whole.bodyLength == 1_000)
        }
    }

    @Test("keeps no lookup waiting that came before it")
    func numbers() {
        var landings = KeyLandings()
        let told = Mutex<[String]>([])
        func wait(_ name: String) {
            landings.wait { told.withLock { $0.append(name) } }
        }
        func end(_ number: UInt64) -> [String] {
            for lookup in landings.end(number) { lookup() }
            return told.withLock { names in
                defer { names = [] }
                return names
            }
        }
        let first = landings.begin()
        wait("a")
        let second = landings.begin()
        wait("b")
        let third = landings.begin()
        // A later one that has landed does not make up for one that has not.
        #expect(end(second).isEmpty)
        wait("c")
        #expect(end(first) == ["a", "b"])
        #expect(landings.isAwaited && !landings.isOver)
        let fourth = landings.begin()
        #expect(end(third) == ["c"])
        #expect(!landings.isAwaited && !landings.isOver)
        wait("d")
        #expect(end(fourth) == ["d"])
        #expect(landings.isOver)
    }

    @Test("keeps no lookup waiting when the store closes, or the response is given up")
    func ends() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let key = cacheKey("")
        let sink = try #require(
            store.store(
                storedHead(), for: key, length: nil, replacing: [], observer: Observer()))
        sink.write(ByteBuffer(repeating: 1, count: 10))
        #expect(await store.looked(key).isEmpty)
        sink.abandon()
        #expect(await store.looked(key).isEmpty)
        let last = try #require(
            store.store(
                storedHead(), for: key, length: nil, replacing: [], observer: Observer()))
        last.write(ByteBuffer(repeating: 1, count: 10))
        last.commit(trailers: Fields())
        async let found = store.looked(key)
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
        // Found or not, it has been told.
        #expect(await found.count <= 1)
    }
}
