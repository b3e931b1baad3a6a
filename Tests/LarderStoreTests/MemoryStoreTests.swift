import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Synchronization
import Testing

@Suite("The memory tier")
struct MemoryStoreTests {
    private func store(_ capacity: ByteCount = .mebibytes(1)) -> MemoryStore {
        MemoryStore(MemoryConfiguration(capacity: capacity, maximumObject: .kibibytes(64)))
    }

    @Test("shows a response at commit, whole and resident")
    func visibleAtCommit() throws {
        let store = self.store()
        let observer = RecordingObserver()
        let sink = store.store(
            Sample.head(at: 5), for: Sample.key("a"), length: nil, replacing: [],
            observer: observer)
        sink?.write(Sample.body(3, 1))
        sink?.write(Sample.body(2, 2))
        #expect(store.resident("a")?.isEmpty == true)
        #expect(observer.heard.written == [3, 5])
        sink?.commit(trailers: ["X-End": "1"])
        let object = try #require(store.resident("a")?.first)
        #expect(observer.heard.outcomes == [.visible(object.id)])
        #expect(object.body.resident.map { Array($0.readableBytesView) } == [1, 1, 1, 2, 2])
        #expect(object.bodyLength == 5)
        #expect(object.head == Sample.head(at: 5))
        #expect(object.trailers == ["X-End": "1"])
        #expect(object.tier == .memory)
        #expect(drain(object.body.reader(range: 2..<4)).bytes == [1, 2])
        #expect(!drain(object.body.reader(range: 2..<6)).isWhole, "a range outside fails")
    }

    @Test("reads large bodies in pieces")
    func pieces() throws {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(16)))
        store.put("a", body: Sample.body(200_000, 7))
        let object = try #require(store.found("a").first)
        let source = object.body.reader(range: 0..<object.bodyLength)
        guard case .piece(let first) = source.next() else { return #expect(Bool(false)) }
        #expect(first.readableBytes <= 65_536)
        #expect(drain(source).bytes.count + first.readableBytes == 200_000)
    }

    @Test(
        "keeps a body that comes whole in a buffer of its size as it is, and copies any other",
        arguments: [(4096, 4096, true), (3000, 4096, true), (2048, 4096, false), (1, 4096, false)])
    func keptAsItIs(_ length: Int, _ room: Int, _ isKept: Bool) throws {
        func place(_ buffer: ByteBuffer) -> UInt {
            unsafe buffer.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
        }
        let store = self.store()
        var body = ByteBufferAllocator().buffer(capacity: room)
        body.writeRepeatingByte(7, count: length)
        store.put("a", body: body)
        let kept = try #require(store.found("a").first?.body.resident)
        #expect(kept == body)
        #expect((place(kept) == place(body)) == isKept)
        #expect(kept.storageCapacity / 2 < length || length == 1)
        body.setRepeatingByte(8, count: 1, at: 0)
        #expect(kept.getInteger(at: 0, as: UInt8.self) == 7, "who wrote it may write on")
    }

    @Test(
        "keeps large bodies where their pages can be lent, and counts those",
        arguments: [(65_535, false), (65_536, true), (100_000, true), (1 << 20, true)])
    func lent(_ length: Int, _ isLent: Bool) throws {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(16)))
        store.put("a", body: Sample.body(length, 7))
        let body = try #require(store.found("a").first?.body.resident)
        #expect(body == Sample.body(length, 7))
        #expect(LentMemory.holds(body) == isLent)
        let pages = UInt64((length + 4_095) / 4_096 * 4_096)
        let counted = store.statistics().memory.bytes
        #expect(counted >= pages)
        #expect(counted <= pages + 8_192)
    }

    @Test("stores nothing at capacity 0")
    func nothing() {
        let store = MemoryStore(.none)
        #expect(store.put("a").heard == RecordingObserver.Heard())
        #expect(store.resident("a")?.isEmpty == true)
        #expect(store.found("a").isEmpty)
    }

    @Test("refuses a body known to be too large, and abandons one that turns out so")
    func tooLarge() {
        let store = self.store()
        let observer = RecordingObserver()
        #expect(
            store.store(
                Sample.head(), for: Sample.key("a"), length: 65_537, replacing: [],
                observer: observer) == nil)
        let sink = store.store(
            Sample.head(), for: Sample.key("a"), length: nil, replacing: [], observer: observer)
        sink?.write(Sample.body(65_536))
        sink?.write(Sample.body(1))
        sink?.write(Sample.body(1))
        sink?.commit(trailers: Fields())
        sink?.abandon()
        #expect(observer.heard.outcomes == [.abandoned(.tooLarge)])
        #expect(!observer.heard.toldAfterEnd)
        #expect(store.found("a").isEmpty)
    }

    @Test("abandons a sink that is released without commit, once")
    func released() {
        let store = self.store()
        let observer = RecordingObserver()
        var sink = store.store(
            Sample.head(), for: Sample.key("a"), length: 3, replacing: [], observer: observer)
        sink?.write(Sample.body(3))
        sink = nil
        #expect(observer.heard.outcomes == [.abandoned(.byWriter)])
        #expect(store.found("a").isEmpty)
    }

    @Test("gives written bytes back while the body grows")
    func sinkReader() {
        let store = self.store()
        let sink = store.store(
            Sample.head(), for: Sample.key("a"), length: nil, replacing: [],
            observer: RecordingObserver())
        sink?.write(Sample.body(4, 1))
        let reader = sink?.reader(from: 1)
        sink?.write(Sample.body(4, 2))
        let result = drain(reader)
        #expect(result.bytes == [1, 1, 1], "up to where it was asked")
        #expect(result.isWhole)
        #expect(drain(sink?.reader(from: 3)).bytes == [1, 2, 2, 2, 2])
        #expect(sink?.reader(from: 9) == nil)
        sink?.abandon()
        #expect(drain(sink?.reader(from: 6)).bytes == [2, 2], "for those who lag")
    }

    @Test("gives the variants of a key most recent first, at most so many")
    func variants() {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(1), variantsPerKey: 3))
        for (i, second) in [Int64(4), 1, 3, 5, 2].enumerated() {
            store.put("a", Sample.head(at: second, language: "l\(i)"))
        }
        let seconds = store.found("a").map(\.head.responseTime.seconds)
        #expect(seconds == [5, 4, 3])
    }

    @Test("replaces in one step what the new response takes the place of")
    func replacing() throws {
        let store = self.store()
        let old = store.put("a", Sample.head(at: 1, language: "de")).id
        let other = store.put("a", Sample.head(at: 2, language: "fr")).id
        let new = store.put(
            "a", Sample.head(at: 3, language: "de"), replacing: [try #require(old)]
        ).id
        #expect(store.foundIDs("a") == [new, other].compactMap { $0 })
    }

    @Test("freshens, orders anew, and recounts")
    func update() throws {
        let store = self.store()
        let first = try #require(store.put("a", Sample.head(at: 1, language: "de")).id)
        let second = try #require(store.put("a", Sample.head(at: 2, language: "fr")).id)
        #expect(store.foundIDs("a") == [second, first])
        let before = store.statistics().memory.bytes
        store.update(
            first, of: Sample.key("a"), head: Sample.head(at: 3, language: "de", fill: 5000))
        #expect(store.foundIDs("a") == [first, second])
        #expect(store.statistics().memory.bytes >= before + 5000)
    }

    @Test("notes uses, and never a later one as earlier")
    func uses() throws {
        let store = self.store()
        let id = try #require(store.put("a").id)
        store.noteUse(id, of: Sample.key("a"), at: Timestamp(seconds: 9))
        store.noteUse(id, of: Sample.key("a"), at: Timestamp(seconds: 8))
        let object = try #require(store.found("a").first)
        #expect(object.hits == 2)
        #expect(object.lastUsed == Timestamp(seconds: 9))
        #expect(store.statistics().memory.hits == 2)
    }

    @Test("removes by id, by key, by predicate, and tells how many")
    func removal() throws {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(64)))
        let id = try #require(store.put("a", Sample.head(at: 1, language: "de")).id)
        store.put("a", Sample.head(at: 2, language: "fr"))
        #expect(store.removed("a", ids: [id, ObjectID(rawValue: 7)]).all == [1])
        #expect(store.removed("a").all == [1])
        #expect(store.removed("a").all == [0])
        for i in 0..<1000 { store.put(i % 4 == 0 ? "x/\(i)" : "y/\(i)") }
        let prefix = Sample.key("x/").bytes
        let count = Box<Int>()
        store.removeAll(where: { $0.bytes.starts(with: prefix) }, { count.put($0) })
        #expect(count.all == [250])
        #expect(store.statistics().memory.objects == 750)
    }

    @Test("holds its bound, and counts what it holds")
    func bound() {
        let store = self.store(.mebibytes(2))
        var random = SplitMix64(seed: 3)
        for i in 0..<3000 {
            let length = Int.random(in: 0..<20_000, using: &random)
            store.put("o\(i)", body: Sample.body(length))
            #expect(store.statistics().memory.bytes <= 2 << 20)
        }
        let memory = store.statistics().memory
        #expect(memory.evictions > 1000)
        #expect(memory.bytes > 1 << 20, "and uses it")
        var held: UInt64 = 0
        for i in 0..<3000 {
            for object in store.found("o\(i)") {
                held += UInt64(object.body.resident?.storageCapacity ?? 0)
            }
        }
        #expect(held <= memory.bytes)
        #expect(held > 0)
    }

    @Test("keeps bodies in storage of their own, however large the piece's was")
    func ownStorage() {
        let store = self.store()
        let large = Sample.body(60_000)
        if let slice = large.getSlice(at: 0, length: 100) { store.put("a", body: slice) }
        #expect(store.found("a").first?.body.resident?.storageCapacity ?? .max < 1000)
    }

    @Test("does not show what was asked for before its key was removed")
    func removedMeanwhile() {
        let store = self.store()
        let mark = store.removalMark()
        let observer = RecordingObserver()
        let sink = store.store(
            Sample.head(), for: Sample.key("a"), length: 1, replacing: [], observer: observer)
        store.remove(Sample.key("a"), ids: nil, nil)
        sink?.write(Sample.body(1))
        sink?.commit(trailers: Fields())
        #expect(observer.outcome == .abandoned(.removed))
        #expect(store.put("a", begun: mark).outcome == .abandoned(.removed))
        #expect(store.put("b", begun: mark).id != nil, "another key is not concerned")
        #expect(store.put("a").id != nil, "nor is one that was asked for later")
    }

    @Test("does not show what was asked for before a removal by predicate that covers it")
    func sweptMeanwhile() {
        let store = self.store()
        let mark = store.removalMark()
        let covered = Sample.key("a")
        store.removeAll(where: { $0 == covered }, { _ in })
        #expect(store.put("a", begun: mark).outcome == .abandoned(.removed))
        #expect(store.put("b", begun: mark).id != nil)
        #expect(store.put("a").id != nil)
        for _ in 0..<40 { store.removeAll(where: { _ in false }, { _ in }) }
        #expect(
            store.put("b", begun: mark).outcome == .abandoned(.removed),
            "forgotten removals count as covering all")
    }

    @Test("forgets old removals only in the safe direction")
    func removalsForgotten() {
        let store = self.store()
        let mark = store.removalMark()
        for i in 0..<40_000 { store.remove(Sample.key("r\(i)"), ids: nil, nil) }
        #expect(store.put("r0", begun: mark).outcome == .abandoned(.removed))
        #expect(store.put("r39999", begun: mark).outcome == .abandoned(.removed))
        #expect(store.put("r0").id != nil)
    }

    @Test(
        "stores what took long, though thousands of other keys were removed meanwhile",
        arguments: [ByteCount.mebibytes(1), .mebibytes(64)])
    func removalsKept(capacity: ByteCount) {
        // One part, and sixteen.
        let store = MemoryStore(MemoryConfiguration(capacity: capacity))
        let mark = store.removalMark()
        for i in 0..<8000 { store.remove(Sample.key("r\(i)"), ids: nil, nil) }
        #expect(store.put("a", begun: mark).id != nil)
        #expect(store.put("r0", begun: mark).outcome == .abandoned(.removed))
    }

    @Test("drops all on close, and what was not committed")
    func close() {
        let store = self.store()
        store.put("a")
        let observer = RecordingObserver()
        let sink = store.store(
            Sample.head(), for: Sample.key("b"), length: 1, replacing: [], observer: observer)
        store.close {}
        sink?.commit(trailers: Fields())
        #expect(observer.outcome == .abandoned(.closing))
    }

    @Test("serves many tasks at once", .timeLimit(.minutes(10)))
    func stress() async {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(4), maximumObject: .kibibytes(64)))
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(task))
                    for step in 0..<1500 {
                        let name = "k\(Int.random(in: 0..<200, using: &random))"
                        switch step % 8 {
                        case 0: store.remove(Sample.key(name), ids: nil, nil)
                        case 1...3:
                            let old = store.resident(name)?.map(\.id) ?? []
                            let length = Int.random(in: 0..<30_000, using: &random)
                            store.put(
                                name, body: Sample.body(length, UInt8(length % 251)),
                                replacing: old)
                        default:
                            for object in store.resident(name) ?? [] {
                                let length = Int(clamping: object.bodyLength)
                                let expected = Sample.body(length, UInt8(length % 251))
                                #expect(object.body.resident == expected)
                                store.noteUse(
                                    object.id, of: object.key, at: Timestamp(seconds: 1))
                            }
                        }
                    }
                }
            }
        }
        #expect(store.statistics().memory.bytes <= 4 << 20)
        let all = Box<Int>()
        store.removeAll(where: { _ in true }, { all.put($0) })
        #expect(store.statistics().memory.objects == 0)
        #expect(store.statistics().memory.bytes == 0)
    }
}
