import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

@Suite("Admission to the disk", .timeLimit(.minutes(10)))
struct AdmissionTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func open(_ rules: AdmissionRules) throws -> DiskStore {
        try self.world.open(self.directory, capacity: .mebibytes(16)) { $0.admission = rules }
    }

    @Test("at the second request keeps nothing of the first, and all of the second")
    func second() async throws {
        var store = try self.open(AdmissionRules(takesOnceSeen: false))
        #expect(await store.put(cacheKey("a"), pattern(5000)) == .abandoned(.seenOnce))
        #expect(await store.find(cacheKey("a")).isEmpty)
        #expect(await store.put(cacheKey("b"), pattern(5000)) == .abandoned(.seenOnce))
        #expect(await store.put(cacheKey("a"), pattern(5000))?.id != nil)
        let object = try #require(await store.find(cacheKey("a")).first)
        #expect(await store.body(object).bytes == pattern(5000))
        #expect(
            await store.put(cacheKey("a"), pattern(9), replacing: [object.id])?.id != nil,
            "what takes a stored response's place has been asked for before")
        await store.closed()
        // It remembers across a restart.
        store = try self.open(AdmissionRules(takesOnceSeen: false))
        #expect(await store.put(cacheKey("b"), pattern(5000))?.id != nil)
        await store.closed()
    }

    @Test("is not asked about what somebody counts on finding after a restart")
    func awaited() async throws {
        let store = try self.open(AdmissionRules(takesOnceSeen: false))
        let outcome = await store.put(cacheKey("a"), pattern(5000), awaitsLowest: true)
        #expect(outcome?.id != nil)
        await store.closed()
    }

    @Test("variants are told apart")
    func variants() async throws {
        let store = try self.open(AdmissionRules(takesOnceSeen: false))
        for language in ["de", "en"] {
            let head = storedHead(vary: language)
            let outcome = await store.put(cacheKey("a"), pattern(10), head: head)
            #expect(outcome == .abandoned(.seenOnce))
        }
        #expect(await store.put(cacheKey("a"), [1], head: storedHead(vary: "en"))?.id != nil)
        await store.closed()
    }

    @Test("of large bodies at the second request, told by their length or found out on the way")
    func large() async throws {
        let store = try self.open(AdmissionRules(largeFrom: .kibibytes(100)))
        let (small, large) = (pattern(102_399), pattern(102_400))
        #expect(await store.put(cacheKey("s"), small, length: 102_399)?.id != nil)
        #expect(await store.put(cacheKey("t"), small)?.id != nil)
        for (path, length) in [("a", UInt64(102_400)), ("b", nil)] {
            let first = await store.put(cacheKey(path), large, length: length)
            #expect(first == .abandoned(.largeSeenOnce))
            #expect(await store.find(cacheKey(path)).isEmpty)
            #expect(await store.put(cacheKey(path), large, length: length)?.id != nil)
        }
        // What had come of the long one is garbage, and goes.
        let inspector = try DiskInspector(directory: self.directory.path)
        for _ in 0..<100 where try inspector.statistics().garbage > 0 { await store.flushed() }
        #expect(try inspector.statistics().garbage == 0)
        #expect(try inspector.statistics().pending == 0)
        await store.closed()
    }

    @Test("of a part goes by the length of the whole")
    func part() async throws {
        let store = try self.open(AdmissionRules(largeFrom: .kibibytes(100)))
        #expect(
            await store.putPart(cacheKey("a"), 0..<1000, of: 1_000_000)
                == .abandoned(.largeSeenOnce))
        #expect(await store.putPart(cacheKey("a"), 0..<1000, of: 1_000_000)?.id != nil)
        #expect(await store.putPart(cacheKey("b"), 0..<1000, of: 2000)?.id != nil)
        await store.closed()
    }

    @Test("leaves memory its part: who asks again soon is answered from there")
    func tiered() async throws {
        let disk = try self.open(AdmissionRules(takesOnceSeen: false))
        let memory = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(1), maximumObject: .kibibytes(64)))
        let store = TieredStore(memory: memory, disk: disk)
        let observer = Observer()
        let sink = store.store(
            storedHead(), for: cacheKey("a"), length: 5, replacing: [],
            begun: store.removalMark(), observer: observer)
        sink?.write(ByteBuffer(bytes: [1, 2, 3, 4, 5]))
        sink?.commit(trailers: Fields())
        #expect(await observer.end().id != nil)
        #expect(await store.looked(cacheKey("a")).count == 1)
        #expect(await disk.find(cacheKey("a")).isEmpty)
        // What memory does not take either is told why.
        let other = Observer()
        let none = store.store(
            storedHead(), for: cacheKey("b"), length: 100_000, replacing: [],
            begun: store.removalMark(), observer: other)
        none?.write(ByteBuffer(bytes: pattern(100_000)))
        #expect(await other.end() == .abandoned(.seenOnce))
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
    }
}
