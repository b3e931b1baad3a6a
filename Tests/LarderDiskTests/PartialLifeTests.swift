import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("Partial content: removal, damage, death, room", .timeLimit(.minutes(10)))
struct PartialLifeTests {
    private let directory: TemporaryDirectory
    private let world = World()
    private let key = cacheKey("a")

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    /// Expects that the file holds no segment, once garbage is collected.
    private func expectNothingLeft(_ store: DiskStore) async throws {
        let environment = try #require(Environment.shared(path: self.directory.data))
        let schema = try Schema(environment, creating: false)
        func counts() throws -> (UInt64, UInt64) {
            try environment.read { (transaction) throws(LMDBError) in
                (
                    try transaction.statistics(of: schema.segments).entries,
                    try transaction.statistics(of: schema.garbage).entries
                )
            }
        }
        for _ in 0..<200 where try counts() != (0, 0) { await store.flushed() }
        let (segments, garbage) = try counts()
        #expect(segments == 0)
        #expect(garbage == 0)
        #expect(try DiskInspector(directory: self.directory.path).statistics().bodyBytes == 0)
    }

    private func begin(
        _ store: DiskStore, _ id: ObjectID, at offset: UInt64
    ) -> ((any ObjectSink)?, Observer) {
        let observer = Observer()
        let sink = store.extend(
            id, of: self.key, at: offset, length: nil, completeLength: nil,
            begun: store.removalMark(), observer: observer)
        return (sink, observer)
    }

    enum Removal: Sendable, CaseIterable { case key, ids, predicate }

    @Test("a removal in the middle of an addition wins, and nothing is left behind")
    func removed() async throws {
        let store = try self.world.open(self.directory)
        for (removal, afterwards) in zip(Removal.allCases, [100_000, 500_000, 10]) {
            let id = try #require(await store.putPart(self.key, 0..<100, of: 1_000_000)?.id)
            var (sink, observer) = self.begin(store, id, at: 100)
            sink?.write(ByteBuffer(bytes: representation(100..<300_000)))
            await observer.wrote(200_000)
            var held = await store.find(self.key).first
            switch removal {
            case .key: #expect(await store.removed(self.key) == 1)
            case .ids: #expect(await store.removed(self.key, ids: [id]) == 1)
            case .predicate: #expect(await store.purged { _ in true } == 1)
            }
            sink?.write(ByteBuffer(repeating: 1, count: afterwards))
            sink?.commit(trailers: Fields())
            #expect(await observer.end() == .abandoned(.removed))
            #expect(await store.find(self.key).isEmpty)
            if let held { await expectStored(held, 0..<100) }
            held = nil
            sink = nil
            try await self.expectNothingLeft(store)
        }
        #expect(store.statistics().damaged == 0)
        await store.closed()
    }

    @Test("what an abandoned addition left is never shown, and goes with the response")
    func orphans() async throws {
        let store = try self.world.open(self.directory)
        let id = try #require(await store.putPart(self.key, 70_000..<70_100, of: nil)?.id)
        // More cells than one step deletes, most of them beyond the end that is learnt later.
        let (sink, observer) = self.begin(store, id, at: 0)
        let noise = ByteBuffer(repeating: 0xEE, count: Segment.payloadSize * 10)
        sink?.write(ByteBuffer(repeating: 0xEE, count: 70_000))
        sink?.write(ByteBuffer(bytes: representation(70_000..<70_100)))
        for i in 1...27 as ClosedRange<UInt64> {
            sink?.write(noise)
            await observer.wrote((i - 1) * UInt64(noise.readableBytes))
        }
        sink?.abandon()
        #expect(await observer.end() == .abandoned(.byWriter))
        let before = try #require(await store.find(self.key).first)
        #expect(before.extent.ranges == [70_000..<70_100])
        await expectStored(before, 70_000..<70_100)
        await expectMissing(before, 0..<100)
        let outcome = await store.add(0..<200_000, to: id, of: self.key, completeLength: 200_000)
        #expect(outcome == .visible(id))
        let whole = try #require(await store.find(self.key).first)
        await expectStored(whole, 0..<200_000)
        var bytes: [UInt8] = []
        let inspector = try DiskInspector(directory: self.directory.path)
        try inspector.readBody(of: try #require(try inspector.objects(for: self.key).first)) {
            bytes += $0.copied
        }
        #expect(bytes == representation(0..<200_000))
        await store.closed()
    }

    @Test("all cells go, though the record knows of few")
    func fewKnown() async throws {
        let store = try self.world.open(self.directory)
        let id = try #require(await store.putPart(self.key, 5..<6, of: nil)?.id)
        var (sink, observer) = self.begin(store, id, at: 6)
        let noise = ByteBuffer(repeating: 0xEE, count: Segment.payloadSize * 10)
        for i in 1...30 as ClosedRange<UInt64> {
            sink?.write(noise)
            await observer.wrote((i - 1) * UInt64(noise.readableBytes))
        }
        sink = nil
        #expect(await observer.end() == .abandoned(.byWriter))
        #expect(await store.removed(self.key) == 1)
        try await self.expectNothingLeft(store)
        await store.closed()
    }

    @Test("a damaged or missing cell costs the response, and never a wrong byte")
    func damage() async throws {
        for isMissing in [true, false] {
            let store = try self.world.open(self.directory)
            let id = try #require(await store.putPart(self.key, 100..<70_000, of: 90_000)?.id)
            let environment = try #require(Environment.shared(path: self.directory.data))
            let schema = try Schema(environment, creating: false)
            try environment.write { (transaction) throws(LMDBError) in
                let key = SegmentKey(id: id, index: 1).bytes
                if isMissing {
                    try transaction.delete(schema.segments, key.span)
                    return
                }
                var value: [UInt8]? = try transaction.reading.get(schema.segments, key.span) {
                    (bytes: Span<UInt8>) -> [UInt8] in bytes.copied
                }
                value?[20] ^= 1
                let changed = value ?? []
                try transaction.put(schema.segments, key.span, changed.span)
            }
            do {
                let object = try #require(await store.find(self.key).first)
                await expectStored(object, 100..<60_000)
            }
            #expect(
                await store.add(70_000..<90_000, to: id, of: self.key)
                    == .abandoned(.storeFailed))
            await store.flushed()
            #expect(await store.find(self.key).isEmpty)
            guard case .damaged(let key, _) = self.world.reported.last else {
                Issue.record("not reported")
                return
            }
            #expect(key == self.key)
            try await self.expectNothingLeft(store)
            await store.closed()
        }
    }

    @Test("a process that is killed in the middle of an addition leaves what the record says")
    func killed() async throws {
        let path = self.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try DiskStore.open(
                DiskConfiguration(directory: path, capacity: .mebibytes(64)),
                clock: { Timestamp(seconds: 0) }, report: { _ in })
            let key = cacheKey("a")
            let id = try #require(await store.putPart(key, 1000..<100_000, of: 2_000_000)?.id)
            let observer = Observer()
            let sink = store.extend(
                id, of: key, at: 100_000, length: nil, completeLength: nil,
                begun: store.removalMark(), observer: observer)
            sink?.write(ByteBuffer(bytes: representation(100_000..<900_000)))
            await observer.wrote(700_000)
            kill(getpid(), SIGKILL)
        }
        let store = try self.world.open(self.directory)
        // Nothing of it is held when it is removed.
        do {
            let object = try #require(await store.find(self.key).first)
            #expect(
                object.extent == StoredExtent(completeLength: 2_000_000, ranges: [1000..<100_000]))
            await expectStored(object, 1000..<100_000)
            await expectMissing(object, 100_000..<100_001)
            #expect(
                await store.add(50_000..<300_000, to: object.id, of: self.key)?.id == object.id)
            let grown = try #require(await store.find(self.key).first)
            await expectStored(grown, 1000..<300_000)
        }
        #expect(self.world.reported.isEmpty)
        #expect(await store.removed(self.key) == 1)
        try await self.expectNothingLeft(store)
        await store.closed()
    }

    @Test("who reads while it grows reads what was there, verified")
    func readers() async throws {
        let store = try self.world.open(self.directory)
        let id = try #require(await store.putPart(self.key, 40_000..<90_000, of: 800_000)?.id)
        let key = self.key
        let reading = Task {
            var isComplete = false
            while !isComplete {
                guard let object = await store.find(key).first else { return false }
                for range in object.extent.ranges { await expectStored(object, range) }
                isComplete = object.head.extent == nil
            }
            return true
        }
        var random = SplitMix64(seed: 5)
        for _ in 0..<25 {
            let start = UInt64.random(in: 0..<790_000, using: &random)
            let end = min(800_000, start + .random(in: 1...40_000, using: &random))
            #expect(await store.add(start..<end, to: id, of: key) == .visible(id))
        }
        #expect(await store.add(0..<800_000, to: id, of: key) == .visible(id))
        #expect(await reading.value)
        #expect(store.statistics().damaged == 0)
        await store.closed()
    }

    @Test("the bound holds, and the account is right, with parts that grow and leave")
    func room() async throws {
        let capacity = ByteCount.mebibytes(4)
        let store = try self.world.open(self.directory, capacity: capacity)
        var random = SplitMix64(seed: 9)
        for _ in 0..<150 {
            let key = cacheKey("\(UInt64.random(in: 0..<30, using: &random))")
            let start = UInt64.random(in: 0..<900_000, using: &random)
            let range = start..<start + .random(in: 1...100_000, using: &random)
            if let object = await store.find(key).first {
                _ = await store.add(range, to: object.id, of: key, pieces: 60_000)
            } else {
                _ = await store.putPart(key, range, of: 1_000_000, pieces: 60_000)
            }
            #expect(self.directory.fileSize <= capacity.bytes)
        }
        #expect(try #require(store.statistics().disk).evictions > 0)
        await store.flushed()
        let inspector = try DiskInspector(directory: self.directory.path)
        var stored: UInt64 = 0
        var count = 0
        try inspector.forEachObject { object in
            stored += object.storedBytes
            count += 1
            #expect(object.head.extent.map { $0.storedBytes == object.storedBytes } == true)
            let error = #expect(throws: StoreError.self) {
                try inspector.readBody(of: object) { _ in Issue.record("a part was given") }
            }
            #expect(error?.code == .incomplete)
            return true
        }
        #expect(count > 3)
        #expect(try inspector.statistics().bodyBytes == stored)
        #expect(await store.purged { _ in true } == count)
        try await self.expectNothingLeft(store)
        await store.closed()
    }

    @Test("an addition gives back what it has written, from where it began")
    func sinkReader() async throws {
        let store = try self.world.open(self.directory)
        let id = try #require(await store.putPart(self.key, 0..<100, of: nil)?.id)
        let (sink, observer) = self.begin(store, id, at: 60_000)
        sink?.write(ByteBuffer(bytes: representation(60_000..<200_000)))
        await observer.wrote(100_000)
        let written = observer.written
        #expect(written == 131_024 + 65_512 - 60_000)
        let reader = try #require(sink?.reader(from: 10))
        #expect(await collect(reader).bytes == representation(60_010..<60_000 + written))
        #expect(sink?.reader(from: written + 1) == nil)
        sink?.abandon()
        await store.closed()
    }
}

@Suite("Partial content in two tiers", .timeLimit(.minutes(10)))
struct PartialTieredTests {
    private let directory: TemporaryDirectory
    private let disk: DiskStore
    private let store: TieredStore
    private let key = cacheKey("a")

    init() throws {
        self.directory = try TemporaryDirectory()
        self.disk = try World().open(self.directory)
        self.store = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(16))), disk: self.disk)
    }

    private func closed() async {
        await withCheckedContinuation { done in self.store.close { done.resume() } }
    }

    @Test("a part lies on disk alone, and comes up when it is complete and was read")
    func promotion() async throws {
        let id = try #require(await self.store.putPart(self.key, 0..<100, of: 1000)?.id)
        #expect(self.store.lookupResident(self.key) == nil, "only the disk knows")
        let part = try #require(await self.store.looked(self.key).first)
        #expect(part.tier == .disk)
        await expectStored(part, 0..<100)
        #expect(self.store.statistics().memory.objects == 0)
        #expect(self.store.lookupResident(self.key) == nil)
        #expect(await self.store.add(100..<1000, to: id, of: self.key) == .visible(id))
        let whole = try #require(await self.store.looked(self.key).first)
        #expect(whole.head.extent == nil)
        await expectStored(whole, 0..<1000)
        let again = try #require(await self.store.looked(self.key).first)
        #expect(again.body.resident.map { Array($0.readableBytesView) } == representation(0..<1000))
        await self.closed()
    }

    @Test("a small response that broke off is kept on disk, and takes the place of the old one")
    func kept() async throws {
        let old = Observer()
        let first = self.store.store(
            storedHead("old"), for: self.key, length: 3, replacing: [], observer: old)
        first?.write(ByteBuffer(bytes: [1, 2, 3]))
        first?.commit(trailers: Fields())
        let oldID = try #require(await old.end().id)
        let observer = Observer()
        let sink = self.store.store(
            storedHead("new"), for: self.key, length: 1000, replacing: [oldID],
            observer: observer)
        sink?.write(ByteBuffer(bytes: representation(0..<400)))
        sink?.keep(completeLength: nil)
        #expect(await observer.end().id != nil)
        let objects = await self.store.looked(self.key)
        #expect(
            objects.map(\.head.extent) == [StoredExtent(completeLength: 1000, ranges: [0..<400])])
        await expectStored(try #require(objects.first), 0..<400)
        #expect(self.store.statistics().memory.objects == 0)
        await self.closed()
    }

    @Test("a purge wins over an addition and over a part that was asked for before it")
    func purged() async throws {
        let id = try #require(await self.store.putPart(self.key, 0..<100, of: 1000)?.id)
        let mark = self.store.removalMark()
        let observer = Observer()
        let sink = self.store.extend(
            id, of: self.key, at: 100, length: nil, completeLength: nil, begun: mark,
            observer: observer)
        sink?.write(ByteBuffer(bytes: representation(100..<200)))
        let removed = await withCheckedContinuation { done in
            self.store.remove(self.key, ids: nil) { done.resume(returning: $0) }
        }
        #expect(removed == 1)
        sink?.commit(trailers: Fields())
        #expect(await observer.end() == .abandoned(.removed))
        #expect(await self.store.looked(self.key).isEmpty)
        // The new one was stored behind the purge; what comes for it was asked for before.
        let new = try #require(await self.store.putPart(self.key, 0..<100, of: 1000)?.id)
        let late = Observer()
        let lateSink = self.store.extend(
            new, of: self.key, at: 100, length: nil, completeLength: nil, begun: mark,
            observer: late)
        lateSink?.write(ByteBuffer(bytes: representation(100..<200)))
        lateSink?.commit(trailers: Fields())
        #expect(await late.end() == .abandoned(.removed))
        #expect(await self.store.looked(self.key).first?.extent.ranges == [0..<100])
        await self.closed()
    }

    @Test("a freshened head is shown with the extent that the disk knows")
    func freshened() async throws {
        let id = try #require(await self.store.putPart(self.key, 0..<100, of: 1000)?.id)
        self.store.update(id, of: self.key, head: storedHead("fresh"))
        #expect(await self.store.add(200..<300, to: id, of: self.key) == .visible(id))
        let object = try #require(await self.store.looked(self.key).first)
        #expect(object.head.fields == storedHead("fresh").fields)
        #expect(object.extent.ranges == [0..<100, 200..<300])
        await self.closed()
    }
}
