import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

/// A tiered store over a scripted lower tier; memory takes bodies up to 4 KiB.
struct Tiers {
    let disk = ScriptedStore()
    let store: TieredStore

    init(capacity: ByteCount = .kibibytes(256), variantsPerKey: Int = 32) {
        self.store = TieredStore(
            memory: MemoryStore(
                MemoryConfiguration(
                    capacity: capacity, maximumObject: .kibibytes(4),
                    variantsPerKey: variantsPerKey)),
            disk: self.disk)
    }

    var lookups: Int {
        self.disk.calls.count { if case .lookup = $0 { true } else { false } }
    }

    /// Drives out of memory what nobody uses.
    func fillMemory() {
        for i in 0..<600 { self.store.put("fill\(i)", body: Sample.body(2000)) }
    }

    /// Begins to store a body that only the lower tier may take.
    static let large = Sample.body(10_000)
}

@Suite("Two tiers seen as one: finding")
struct TieredLookupTests {
    @Test("asks the lower tier until memory is known to hold all")
    func complete() {
        let tiers = Tiers()
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.found("a").isEmpty)
        #expect(tiers.store.resident("a")?.isEmpty == true, "known to be nowhere")
        tiers.store.put("a")
        #expect(tiers.store.resident("a")?.count == 1, "came by way of memory")
        #expect(tiers.store.found("a").count == 1)
        #expect(tiers.lookups == 1)
    }

    @Test("learns nothing of a lower tier that could not be read")
    func unreadable() {
        let tiers = Tiers()
        let id = tiers.disk.seed("a", body: Tiers.large)
        tiers.disk.failToRead(true)
        #expect(tiers.store.found("a").isEmpty)
        #expect(tiers.store.resident("a") == nil, "not known to be nowhere")
        tiers.store.put("b", Sample.head(at: 1))
        #expect(tiers.store.found("b").count == 1)
        #expect(tiers.store.resident("b") == nil, "nor to be all there is")
        tiers.disk.failToRead(false)
        #expect(tiers.store.foundIDs("a") == [id])
    }

    @Test("finds without waiting what the lower tier finds so, and what memory has instead")
    func inPlace() throws {
        let tiers = Tiers()
        let id = tiers.disk.seed("a")
        let key = Sample.key("a")
        #expect(tiers.store.lookupInPlace(key) == nil, "the lower tier would wait")
        tiers.disk.readInPlace()
        #expect(tiers.store.lookupInPlace(key)?.map(\.id) == [id])
        #expect(tiers.store.resident("a") == nil, "the body is not in memory")
        #expect(tiers.store.lookupInPlace(Sample.key("b"))?.isEmpty == true)
        #expect(tiers.store.resident("b")?.isEmpty == true, "and memory remembers that")
        tiers.disk.showBodies()
        #expect(tiers.store.lookupInPlace(key)?.first?.tier == .memory)
        #expect(tiers.store.resident("a")?.map(\.id) == [id], "taken up, and all there is")
        tiers.disk.hold()
        tiers.store.remove(key, ids: nil, nil)
        #expect(tiers.store.lookupInPlace(key)?.isEmpty == true, "though the lower tier has it")
        #expect(tiers.lookups == 0)
        tiers.disk.letGo()
    }

    @Test("a look that would have to wait leaves no trace of having asked")
    func inPlaceLeavesNothing() {
        let tiers = Tiers()
        for _ in 0..<3 { #expect(tiers.store.lookupInPlace(Sample.key("a")) == nil) }
        // Were it still counted as asking, what is stored meanwhile would taint the next answer.
        tiers.store.put("a")
        #expect(tiers.store.found("a").count == 1)
        #expect(tiers.store.resident("a")?.count == 1)
    }

    @Test("knows whether anything may lie under a key without its query")
    func withoutSearch() {
        let memory = MemoryStore(MemoryConfiguration(capacity: .kibibytes(256)))
        let store = TieredStore(memory: memory, disk: nil)
        let observer = RecordingObserver()
        for (key, holds) in [(Sample.key("a?b"), false), (Sample.key("a?b").withoutSearch, true)] {
            let sink = store.store(
                Sample.head(), for: key, length: 1, replacing: [], observer: observer)
            #expect(sink != nil)
            #expect(store.mayHoldWithoutSearch == holds)
            sink?.abandon()
        }
        #expect(Tiers().store.mayHoldWithoutSearch, "the lower tier does not say no")
    }

    @Test("does not take what memory has for all there is")
    func incomplete() {
        let tiers = Tiers()
        let old = tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        let new = tiers.store.put("a", Sample.head(at: 2, language: "fr")).id
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.foundIDs("a") == [new, old].compactMap { $0 })
    }

    @Test("gives one copy of what both tiers have, memory's")
    func merged() {
        let tiers = Tiers()
        let other = tiers.disk.seed("a", Sample.head(at: 9, language: "de"))
        tiers.store.put("a", Sample.head(at: 2, language: "fr"))
        let found = tiers.store.found("a")
        #expect(found.map(\.tier) == [.disk, .memory], "most recent first")
        #expect(found.first?.id == other)
        #expect(tiers.disk.ids("a").count == 2)
    }

    @Test("brings up a small body once it has been read whole")
    func promoted() throws {
        let tiers = Tiers()
        let id = tiers.disk.seed("a", body: Sample.body(3000, 5))
        let object = try #require(tiers.store.found("a").first)
        #expect(object.tier == .disk)
        #expect(drain(object.body.reader(range: 0..<100)).bytes.count == 100)
        #expect(tiers.store.resident("a") == nil, "a part is not the whole")
        let read = object.read()
        #expect(read.isWhole)
        #expect(read.bytes == [UInt8](repeating: 5, count: 3000))
        let resident = try #require(tiers.store.resident("a")?.first)
        #expect(resident.id == id)
        #expect(resident.tier == .memory)
        #expect(resident.body.resident == Sample.body(3000, 5))
    }

    @Test("brings up an empty body at the lookup")
    func promotedEmpty() {
        let tiers = Tiers()
        tiers.disk.seed("a", body: ByteBuffer())
        #expect(tiers.store.found("a").first?.body.resident?.readableBytes == 0)
        #expect(tiers.store.resident("a")?.count == 1)
    }

    @Test("brings up a body that was found with its head at the lookup, in storage of its size")
    func promotedResident() throws {
        let tiers = Tiers()
        // As it is read from the disk: behind something, in storage for twice as much.
        var body = ByteBuffer(repeating: 1, count: 8)
        body.writeRepeatingByte(7, count: 2_048)
        body.moveReaderIndex(forwardBy: 8)
        let id = tiers.disk.seed("a", body: body)
        tiers.disk.showBodies()
        let object = try #require(tiers.store.found("a").first)
        #expect(object.id == id)
        #expect(object.body.resident == body)
        #expect(object.body.resident?.storageCapacity == 2_048)
        #expect(tiers.store.resident("a")?.map(\.id) == [id])
        #expect(tiers.lookups == 1)
    }

    @Test("the use that brought it up is the lower tier's, the next one memory's")
    func firstUse() throws {
        let tiers = Tiers()
        let id = tiers.disk.seed("a")
        tiers.disk.showBodies()
        let object = try #require(tiers.store.found("a").first)
        tiers.store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 9))
        #expect(tiers.store.statistics().memory.hits == 0)
        #expect(tiers.store.statistics().disk?.hits == 1)
        tiers.store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 10))
        #expect(tiers.store.statistics().memory.hits == 1)
        #expect(tiers.store.statistics().disk?.hits == 1)
        #expect(tiers.disk.calls.count { $0 == .noteUse(id) } == 2, "the lower tier's eviction")
    }

    @Test("what is found below once does not drive out what is used")
    func scanned() throws {
        let tiers = Tiers()
        tiers.store.put("a", body: Sample.body(2_000))
        for time in 10..<14 as Range<Int64> {
            let object = try #require(tiers.store.found("a").first)
            tiers.store.noteUse(object.id, of: object.key, at: Timestamp(seconds: time))
        }
        for i in 0..<600 { tiers.disk.seed("scan\(i)", body: Sample.body(2_000)) }
        tiers.disk.showBodies()
        for i in 0..<600 {
            let object = try #require(tiers.store.found("scan\(i)").first)
            tiers.store.noteUse(object.id, of: object.key, at: Timestamp(seconds: 20))
        }
        #expect(tiers.store.statistics().memory.evictions > 0)
        #expect(tiers.store.found("a").map(\.tier) == [.memory])
    }

    @Test("does not bring up what a removal by predicate has passed", arguments: [true, false])
    func sweptMeanwhile(covers: Bool) {
        let tiers = Tiers()
        tiers.disk.seed("a")
        tiers.disk.showBodies()
        tiers.disk.hold()
        tiers.disk.readEarly()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.store.removeAll(where: { _ in covers }, { _ in })
        tiers.disk.letGo()
        #expect(answer.all.map(\.count) == [covers ? 0 : 1])
        #expect(tiers.store.statistics().memory.objects == 0)
    }

    @Test("of many readers of one body one keeps a copy, and the next if that one leaves")
    func promotedOnce() throws {
        let tiers = Tiers()
        tiers.disk.seed("a", body: Sample.body(3_000))
        let object = try #require(tiers.store.found("a").first)
        let range = 0..<object.bodyLength
        var first: (any BodySource)? = object.body.reader(range: range)
        #expect(drain(object.body.reader(range: range)).isWhole)
        #expect(tiers.store.resident("a") == nil, "another one is at it")
        first?.cancel()
        first = nil
        let dropped = object.body.reader(range: range)
        _ = consume dropped
        #expect(drain(object.body.reader(range: range)).isWhole)
        #expect(tiers.store.resident("a")?.count == 1)
    }

    @Test("leaves a large body below")
    func notPromoted() throws {
        let tiers = Tiers()
        tiers.disk.seed("a", body: Tiers.large)
        #expect(try #require(tiers.store.found("a").first).read().isWhole)
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.statistics().memory.objects == 0)
    }

    @Test("is complete only when every variant has come up")
    func promotedOneOfTwo() throws {
        let tiers = Tiers()
        tiers.disk.seed("a", Sample.head(at: 1, language: "de"))
        tiers.disk.seed("a", Sample.head(at: 2, language: "fr"))
        let found = tiers.store.found("a")
        _ = found.first?.read()
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.found("a").map(\.tier) == [.memory, .disk])
        _ = found.last?.read()
        #expect(tiers.store.resident("a")?.count == 2)
    }

    @Test("does not bring up what has changed since it was found", arguments: 0..<4)
    func staleNotPromoted(change: Int) throws {
        let tiers = Tiers()
        let id = tiers.disk.seed("a", Sample.head(at: 1))
        let object = try #require(tiers.store.found("a").first)
        let key = Sample.key("a")
        switch change {
        case 0: tiers.store.remove(key, ids: nil, nil)
        case 1: tiers.store.remove(key, ids: [id], nil)
        case 2: tiers.store.update(id, of: key, head: Sample.head(at: 2))
        default: tiers.store.removeAll(where: { $0 == key }, { _ in })
        }
        #expect(object.read().isWhole)
        #expect(tiers.store.statistics().memory.objects == 0)
        #expect(tiers.store.found("a").map(\.head) == (change == 2 ? [Sample.head(at: 2)] : []))
    }

    @Test("finds below what memory has evicted")
    func evicted() {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        let id = tiers.store.put("a").id
        tiers.fillMemory()
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.foundIDs("a") == tiers.disk.ids("a"))
        #expect(tiers.store.foundIDs("a") != [id].compactMap { $0 })
    }

    @Test("serves from memory what the lower tier has dropped by itself")
    func droppedBelow() {
        let tiers = Tiers()
        #expect(tiers.store.found("a").isEmpty)
        let id = tiers.store.put("a").id
        tiers.disk.evict("a")
        #expect(tiers.store.resident("a")?.map(\.id) == [id].compactMap { $0 })
    }

    @Test("does not trust an answer that something may have overtaken")
    func overtaken() {
        let tiers = Tiers()
        tiers.disk.hold()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        let observer = tiers.store.put("a", body: Tiers.large)
        #expect(tiers.disk.step(), "the lookup: it finds nothing")
        #expect(answer.all.map(\.count) == [0])
        tiers.disk.letGo()
        #expect(observer.id != nil)
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.foundIDs("a") == tiers.disk.ids("a"))
    }

    @Test("does not trust an answer older than what has landed meanwhile")
    func overtakenWholly() {
        let tiers = Tiers()
        tiers.disk.readEarly()
        tiers.disk.hold()
        let answer = Box<[StoredObject]>()
        tiers.store.lookup(Sample.key("a")) { answer.put($0) }
        tiers.store.put("a", body: Tiers.large)
        tiers.disk.stepLast()
        #expect(tiers.disk.ids("a").count == 1, "landed, before the lookup has answered")
        tiers.disk.letGo()
        #expect(answer.all.map(\.count) == [0])
        #expect(tiers.store.resident("a") == nil)
        #expect(tiers.store.found("a").isEmpty == false)
    }

    @Test("without a lower tier is memory")
    func memoryOnly() {
        let store = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(1))), disk: nil)
        #expect(store.resident("a")?.isEmpty == true)
        let id = store.put("a").id
        #expect(store.resident("a")?.map(\.id) == [id].compactMap { $0 })
        #expect(store.removed("a").all == [1])
        #expect(store.statistics().disk == nil)
    }

    @Test("with a memory of capacity 0 is the lower tier")
    func diskOnly() throws {
        let tiers = Tiers(capacity: .zero)
        let observer = tiers.store.put("a")
        #expect(observer.id.map { [$0] } == tiers.disk.ids("a"))
        #expect(observer.heard.written == [10])
        #expect(try #require(tiers.store.found("a").first).read().isWhole)
        #expect(tiers.store.found("a").first?.tier == .disk)
    }

    @Test("adds up the statistics of both")
    func statistics() throws {
        let tiers = Tiers()
        let inMemory = try #require(tiers.store.put("a").id)
        let below = tiers.disk.seed("b")
        for _ in 0..<3 {
            tiers.store.noteUse(inMemory, of: Sample.key("a"), at: Timestamp(seconds: 1))
        }
        tiers.store.noteUse(below, of: Sample.key("b"), at: Timestamp(seconds: 1))
        let statistics = tiers.store.statistics()
        #expect(statistics.memory.objects == 1)
        #expect(statistics.memory.hits == 3)
        #expect(statistics.disk?.objects == 2)
        #expect(statistics.disk?.hits == 1, "a hit counts in the tier that served it")
        #expect(statistics.fileBytes == 4096)
        #expect(statistics.damaged == 3)
        let twin = tiers.disk.ids("a")
        #expect(tiers.disk.calls.count { $0 == .noteUse(twin[0]) } == 3, "but is told below")
    }
}
