import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("The disk store", .timeLimit(.minutes(10)))
struct DiskStoreTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    @Test(
        "gives back every size of body, in whatever pieces it came",
        arguments: [
            0, 1, 65_511, 65_512, 65_513, 131_024, 196_536, 200_000, 5_000_000,
        ])
    func sizes(size: Int) async throws {
        let store = try self.world.open(self.directory)
        let key = cacheKey("file")
        let body = pattern(size)
        let outcome = await store.put(
            key, body, pieces: size > 10_000 ? 9_999 : 7, trailers: ["X-Sum": "1"])
        guard case .visible(let id) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        let found = await store.find(key)
        #expect(found.count == 1)
        let object = try #require(found.first)
        #expect(object.id == id)
        #expect(object.head == storedHead())
        #expect(object.head.fields.serialized() == storedHead().fields.serialized())
        #expect(object.trailers == ["X-Sum": "1"])
        #expect(object.bodyLength == UInt64(size))
        #expect(object.tier == .disk)
        let read = await store.body(object)
        #expect(read.failure == nil)
        #expect(read.bytes == body)
        #expect(read.trailers == ["X-Sum": "1"])
        if size <= 32_768 {
            #expect(object.body.resident.map { Array($0.readableBytesView) } == body)
        }
        await store.closed()
    }

    @Test("what a sink has written can be read while it is held, though it was given up")
    func readsBackAbandoned() async throws {
        let store = try self.world.open(self.directory)
        let observer = Observer()
        let body = pattern(Segment.payloadSize * 8)
        var sink: (any ObjectSink)? = store.store(
            storedHead(), for: cacheKey("file"), length: nil, replacing: [], observer: observer)
        sink?.write(ByteBuffer(bytes: body))
        await observer.wrote(UInt64(body.count))
        sink?.abandon()
        _ = await observer.end()
        // Room is taken back after a batch: let there be some.
        for number in 0..<3 { await store.put(cacheKey("other\(number)"), [1]) }
        let source = try #require(sink?.reader(from: 0))
        let read = await collect(source)
        #expect(read.failure == nil)
        let isSame = read.bytes == body
        #expect(isSame)
        source.cancel()
        sink = nil
        await store.closed()
    }

    @Test("reads any range of a body")
    func ranges() async throws {
        let store = try self.world.open(self.directory)
        let body = pattern(400_000)
        await store.put(cacheKey("file"), body)
        let object = try #require(await store.find(cacheKey("file")).first)
        let borders: [UInt64] = [0, 1, 65_511, 65_512, 65_513, 131_024, 262_048, 399_999, 400_000]
        for start in borders {
            for end in borders where end >= start {
                let read = await store.body(object, start..<end)
                #expect(read.failure == nil)
                #expect(read.bytes == Array(body[Int(start)..<Int(end)]))
            }
        }
        await store.closed()
    }

    @Test("keeps what it was given over a restart, at once and whole")
    func restart() async throws {
        var store = try self.world.open(self.directory)
        for i in 0..<50 { await store.put(cacheKey("\(i)"), pattern(i * 3000, seed: UInt64(i))) }
        await store.closed()
        store = try self.world.open(self.directory)
        #expect(store.statistics().disk?.objects == 50)
        for i in 0..<50 {
            let object = try #require(await store.find(cacheKey("\(i)")).first)
            #expect(await store.body(object).bytes == pattern(i * 3000, seed: UInt64(i)))
        }
        await store.put(cacheKey("more"), [1])
        #expect(await store.find(cacheKey("more")).first?.id.rawValue == 51)
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("finds what is stored for all queries of a path, after a restart, too")
    func search() async throws {
        let key = cacheKey("file").withoutSearch
        var store = try self.world.open(self.directory)
        #expect(await store.find(key).isEmpty)
        await store.put(cacheKey("file"), [1])
        #expect(await store.find(key).isEmpty)
        #expect(!store.mayHoldWithoutSearch)
        await store.put(key, [2])
        #expect(store.mayHoldWithoutSearch)
        #expect(await store.find(key).count == 1)
        await store.closed()
        store = try self.world.open(self.directory)
        #expect(store.mayHoldWithoutSearch)
        let object = try #require(await store.find(key).first)
        #expect(await store.body(object).bytes == [2])
        #expect(await store.find(cacheKey("other").withoutSearch).isEmpty)
        await store.closed()
    }

    @Test("finds all variants of a key, the most recent first, and no other key's")
    func variants() async throws {
        let store = try self.world.open(self.directory)
        for language in ["en", "de", "fr"] {
            await store.put(
                cacheKey("page"), Array(language.utf8),
                head: storedHead(language, vary: language))
        }
        await store.put(cacheKey("other"), [1])
        let found = await store.find(cacheKey("page"))
        #expect(
            found.map { $0.head.varyingFields.string("Accept-Language") } == ["fr", "de", "en"])
        #expect(await store.find(cacheKey("none")).isEmpty)
        await store.closed()
    }

    @Test("shows a new response in the same step in which it takes the place of others")
    func replacing() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(500_000), head: storedHead("old"))
        let old = try #require(await store.find(cacheKey("page")).first)
        await store.put(cacheKey("page"), [2], head: storedHead("new"), replacing: [old.id])
        let found = await store.find(cacheKey("page"))
        #expect(found.map { $0.head } == [storedHead("new")])
        #expect(store.statistics().disk?.objects == 1)
        #expect(await store.body(old).bytes == pattern(500_000))
        await store.flushed()
        await store.closed()
    }

    @Test("goes on reading a body that is removed meanwhile")
    func removalWhileReading() async throws {
        let store = try self.world.open(self.directory)
        let body = pattern(2_000_000)
        await store.put(cacheKey("page"), body)
        let object = try #require(await store.find(cacheKey("page")).first)
        let reader = object.body.reader(range: 0..<object.bodyLength)
        #expect(await store.removed(cacheKey("page")) == 1)
        #expect(await store.find(cacheKey("page")).isEmpty)
        await store.put(cacheKey("another"), pattern(100_000))
        #expect(await collect(reader).bytes == body)
        // Another one may come for as long as it is held.
        for number in 0..<3 { await store.put(cacheKey("\(number)"), pattern(100_000)) }
        #expect(await store.body(object).bytes == body)
        #expect(self.world.reported.isEmpty)
        await store.closed()
    }

    @Test("replaces a head, and keeps the body")
    func update() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), pattern(70_000))
        let object = try #require(await store.find(cacheKey("page")).first)
        var head = storedHead("fresh")
        head.isInvalidated = true
        store.update(object.id, of: cacheKey("page"), head: head)
        await store.flushed()
        let updated = try #require(await store.find(cacheKey("page")).first)
        #expect(updated.id == object.id)
        #expect(updated.head == head)
        #expect(await store.body(updated).bytes == pattern(70_000))
        await store.closed()
    }

    @Test("writes nothing where there is nothing to remove, whatever befell the store before")
    func nothingRemoved() async throws {
        let store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), [1])
        let environment = store.core.environment
        let last = try environment.information().lastTransaction
        for _ in 0..<3 {
            // As after a request that is not safe.
            #expect(await store.removed(cacheKey("other")) == 0)
            await store.flushed()
            store.core.failures.wrappingAdd(1, ordering: .relaxed)
            store.core.damaged.wrappingAdd(1, ordering: .relaxed)
            // As for a body that begins.
            _ = store.core.newID()
        }
        #expect(await store.removed(cacheKey("other")) == 0)
        #expect(try environment.information().lastTransaction == last)
        #expect(await store.removed(cacheKey("page")) == 1)
        #expect(try environment.information().lastTransaction > last)
        await store.closed()
    }

    @Test("counts on from the last process, and gives no id of its again that was written")
    func counters() async throws {
        var store = try self.world.open(self.directory)
        store.core.failures.wrappingAdd(3, ordering: .relaxed)
        _ = store.core.newID()
        await store.put(cacheKey("a"), [1])
        // Of this nothing is written.
        _ = store.core.newID()
        await store.closed()
        store = try self.world.open(self.directory)
        #expect(store.statistics().storeFailures == 3)
        await store.put(cacheKey("b"), [2])
        #expect(await store.find(cacheKey("a")).first?.id == ObjectID(rawValue: 2))
        let next = try #require(await store.find(cacheKey("b")).first)
        #expect(next.id.rawValue > 2)
        await store.closed()
    }

    @Test("removes by a predicate what was there before, and leaves what comes meanwhile")
    func purgedMeanwhile() async throws {
        let store = try self.world.open(self.directory)
        for number in 0..<20 { await store.put(cacheKey("\(number)"), pattern(100)) }
        let removed = await withCheckedContinuation { ended in
            let walk = RemovalWalk(core: store.core, .matching { _ in true }) {
                ended.resume(returning: $0)
            }
            Task {
                for number in 15..<30 { await store.put(cacheKey("\(number)"), pattern(200)) }
                walk.start()
            }
        }
        #expect(removed == 20)
        for number in 0..<30 as Range<Int> {
            let found = await store.find(cacheKey("\(number)"))
            #expect(found.map(\.bodyLength) == (number < 15 ? [] : [200]))
        }
        await store.closed()
    }

    @Test("removes one variant, all of a key, and whatever a predicate says")
    func removal() async throws {
        let store = try self.world.open(self.directory)
        for i in 0..<3 { await store.put(cacheKey("page"), [UInt8(i)], head: storedHead("\(i)")) }
        let second = await store.find(cacheKey("page"))[1]
        #expect(await store.removed(cacheKey("page"), ids: [second.id]) == 1)
        #expect(await store.removed(cacheKey("page"), ids: [second.id]) == 0)
        #expect(await store.find(cacheKey("page")).count == 2)
        #expect(await store.removed(cacheKey("page")) == 2)
        await withTaskGroup(of: Void.self) { group in
            for i in 0..<1500 {
                group.addTask {
                    await store.put(cacheKey("\(i)", host: i % 3 == 0 ? "a.org" : "b.org"), [1])
                }
            }
        }
        #expect(store.statistics().disk?.objects == 1500)
        #expect(await store.purged { $0.parts.uri.hasPrefix("http://a.org/") } == 500)
        #expect(await store.find(cacheKey("0", host: "a.org")).isEmpty)
        #expect(await store.find(cacheKey("1", host: "b.org")).count == 1)
        #expect(await store.purged { _ in true } == 1000)
        #expect(await store.purged { _ in true } == 0)
        await store.flushed()
        #expect(store.statistics().disk?.objects == 0)
        await store.closed()
    }

    @Test("counts uses without a write for each, and keeps them over a restart")
    func uses() async throws {
        var store = try self.world.open(self.directory)
        await store.put(cacheKey("page"), [1])
        let object = try #require(await store.find(cacheKey("page")).first)
        let time = Timestamp(seconds: 1_800_000_000)
        for i in 0..<10 { store.noteUse(object.id, of: cacheKey("page"), at: time + .seconds(i)) }
        #expect(await store.find(cacheKey("page")).first?.hits == 10)
        await store.closed()
        store = try self.world.open(self.directory)
        let found = try #require(await store.find(cacheKey("page")).first)
        #expect(found.hits == 10)
        #expect(found.lastUsed == time + .seconds(9))
        await store.closed()
    }
}

@Suite("A sink of the disk store", .timeLimit(.minutes(10)))
struct DiskSinkTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func begin(
        _ store: DiskStore, length: UInt64? = nil
    ) throws -> (any ObjectSink, Observer) {
        let observer = Observer()
        let sink = store.store(
            storedHead(), for: cacheKey("page"), length: length, replacing: [], observer: observer)
        return (try #require(sink), observer)
    }

    @Test("shows nothing before its commit, and gives back what is written to those that lag")
    func lag() async throws {
        let store = try self.world.open(self.directory)
        let (sink, observer) = try self.begin(store)
        let body = pattern(200_000)
        sink.write(ByteBuffer(bytes: body))
        await observer.wrote(196_536)
        #expect(observer.written == 196_536)
        #expect(await store.find(cacheKey("page")).isEmpty)
        for offset in [0, 1, 65_512, 150_000, 196_536] {
            let reader = try #require(sink.reader(from: UInt64(offset)))
            #expect(await collect(reader).bytes == Array(body[offset..<196_536]))
        }
        #expect(sink.reader(from: 196_537) == nil)
        sink.commit(trailers: Fields())
        guard case .visible = await observer.end() else {
            Issue.record("not visible")
            return
        }
        #expect(await store.find(cacheKey("page")).count == 1)
        await store.closed()
    }

    @Test("leaves nothing behind when it is abandoned")
    func abandon() async throws {
        let store = try self.world.open(self.directory)
        let (sink, observer) = try self.begin(store)
        sink.write(ByteBuffer(bytes: pattern(300_000)))
        await observer.wrote(65_512)
        sink.abandon()
        sink.abandon()
        sink.write(ByteBuffer(bytes: [1]))
        sink.commit(trailers: Fields())
        #expect(await observer.end() == .abandoned(.byWriter))
        await self.expectNothingLeft(in: store)
        #expect(observer.ends == 1)
    }

    @Test("is abandoned when it is released without a commit")
    func release() async throws {
        let store = try self.world.open(self.directory)
        let observer: Observer
        do {
            let begun = try self.begin(store)
            observer = begun.1
            begun.0.write(ByteBuffer(bytes: pattern(300_000)))
        }
        #expect(await observer.end() == .abandoned(.byWriter))
        await self.expectNothingLeft(in: store)
    }

    private func expectNothingLeft(in store: DiskStore) async {
        await store.closed()
        // A new start takes back what was left to do.
        do {
            let store = try self.world.open(self.directory)
            var left = try DiskInspector(directory: self.directory.path).statistics()
            for _ in 0..<100 where left.garbage > 0 || left.pending > 0 {
                await store.flushed()
                left = try DiskInspector(directory: self.directory.path).statistics()
            }
            #expect(left.garbage == 0)
            #expect(left.pending == 0)
            #expect(left.objects == 0)
            #expect(left.usedBytes < 65_536)
            await store.closed()
        } catch {
            Issue.record(error)
        }
    }

    @Test("does not take a body that is larger than allowed, said before or found out")
    func tooLarge() async throws {
        let store = try self.world.open(self.directory) { $0.maximumObject = .kibibytes(100) }
        #expect(
            store.store(
                storedHead(), for: cacheKey("a"), length: 102_401, replacing: [],
                observer: Observer()) == nil)
        #expect(await store.put(cacheKey("a"), pattern(102_401)) == .abandoned(.tooLarge))
        guard case .visible = await store.put(cacheKey("a"), pattern(102_400)) else {
            Issue.record("what is allowed was refused")
            return
        }
        let half = try self.world.open(TemporaryDirectory(), capacity: .mebibytes(1))
        #expect(
            half.store(
                storedHead(), for: cacheKey("a"), length: 524_289, replacing: [],
                observer: Observer()) == nil)
        await half.closed()
        await store.closed()
    }

    @Test("never shows a body whose length is not what was said", arguments: [99, 101])
    func wrongLength(length: UInt64) async throws {
        let store = try self.world.open(self.directory)
        #expect(
            await store.put(cacheKey("a"), pattern(100), length: length) == .abandoned(.byWriter))
        #expect(await store.find(cacheKey("a")).isEmpty)
        await store.closed()
    }

    @Test("is abandoned as too slow where the store cannot keep up")
    func tooSlow() async throws {
        let store = try self.world.open(self.directory) { $0.outstanding = .kibibytes(100) }
        let (sink, observer) = try self.begin(store)
        sink.write(ByteBuffer(bytes: pattern(300_000)))
        #expect(await observer.end() == .abandoned(.tooSlow))
        guard case .visible = await store.put(cacheKey("b"), pattern(60_000)) else {
            Issue.record("the room was not given back")
            return
        }
        await store.closed()
    }

    @Test("is dropped rather than used with an old head, where the store cannot take the new one")
    func headTooMuch() async throws {
        let store = try self.world.open(self.directory) { $0.outstanding = .kibibytes(100) }
        let key = cacheKey("a")
        guard case .visible(let id) = await store.put(key, pattern(100)) else {
            Issue.record("it was not stored")
            return
        }
        var head = storedHead()
        head.fields.append("X-Long", String(repeating: "x", count: 200_000))
        store.update(id, of: key, head: head)
        #expect(await store.find(key).isEmpty)
        await withCheckedContinuation { done in store.flush { done.resume() } }
        #expect(await store.find(key).isEmpty)
        #expect(store.statistics().disk?.objects == 0)
        await store.closed()
    }

    @Test("is told when the store closes, and what was committed before is kept")
    func closing() async throws {
        let store = try self.world.open(self.directory)
        let (open, openObserver) = try self.begin(store)
        open.write(ByteBuffer(bytes: pattern(100_000)))
        let observers = (0..<20).map { _ in Observer() }
        for (i, observer) in observers.enumerated() {
            let sink = store.store(
                storedHead(), for: cacheKey("\(i)"), length: nil, replacing: [],
                observer: observer)
            sink?.write(ByteBuffer(bytes: pattern(70_000)))
            sink?.commit(trailers: Fields())
        }
        await store.closed()
        #expect(await openObserver.end() == .abandoned(.closing))
        open.write(ByteBuffer(bytes: [1]))
        open.commit(trailers: Fields())
        #expect(openObserver.ends == 1)
        for observer in observers {
            guard case .visible = await observer.end() else {
                Issue.record("a commit was lost by closing")
                return
            }
        }
        let again = try self.world.open(self.directory)
        #expect(again.statistics().disk?.objects == 20)
        #expect(await again.find(cacheKey("7")).count == 1)
        await again.closed()
    }

    @Test("commits again and again while commands never stop coming")
    func flood() async throws {
        let store = try self.world.open(self.directory)
        guard case .visible(let id) = await store.put(cacheKey("flooded"), [1]) else {
            Issue.record("not stored")
            return
        }
        let isOver = Flag()
        let flood = Task {
            while !isOver.isSet {
                for _ in 0..<100 {
                    store.update(id, of: cacheKey("flooded"), head: storedHead("b"))
                }
                await Task.yield()
            }
        }
        let environment = store.core.environment
        var last = try environment.information().lastTransaction
        for i in 0..<5 {
            // A trickle: bytes of a response that is far from its end.
            let observer = Observer()
            let sink = try #require(
                store.store(
                    storedHead(), for: cacheKey("trickle\(i)"), length: nil, replacing: [],
                    observer: observer))
            sink.write(ByteBuffer(bytes: pattern(70_000)))
            await observer.wrote(65_000)
            let now = try environment.information().lastTransaction
            #expect(now > last)
            last = now
            #expect(observer.ends == 0)
        }
        isOver.set()
        await flood.value
        await store.closed()
    }
}
