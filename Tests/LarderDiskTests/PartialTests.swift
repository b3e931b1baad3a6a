import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

@Suite("Partial content on disk (RFC 9111 §3.3, §3.4)", .timeLimit(.minutes(10)))
struct PartialTests {
    private static let cell = UInt64(Segment.payloadSize)
    private let key = cacheKey("a")

    @Test("a part is visible at commit, serves what it has, and outlives the process")
    func part() async throws {
        let directory = try TemporaryDirectory()
        let world = World()
        var store = try world.open(directory)
        let id = try #require(await store.putPart(self.key, 100..<300, of: 1000)?.id)
        for reopens in [true, false] {
            let object = try #require(await store.find(self.key).first)
            #expect(object.id == id)
            #expect(object.head.extent == StoredExtent(completeLength: 1000, ranges: [100..<300]))
            #expect(object.bodyLength == 1000)
            #expect(object.body.resident == nil)
            for range in [100..<300, 100..<101, 299..<300, 150..<150] as [Range<UInt64>] {
                await expectStored(object, range)
            }
            for range in [99..<300, 100..<301, 0..<1000, 300..<400] as [Range<UInt64>] {
                await expectMissing(object, range)
            }
            await store.closed()
            if reopens { store = try world.open(directory) }
        }
        #expect(world.reported.isEmpty)
    }

    /// Lengths and places around the borders of cells.
    static let meetings: [(Range<UInt64>, Range<UInt64>)] = {
        let c = Self.cell
        let places: [UInt64] = [1, 100, c - 1, c, c + 1, 2 * c - 1, 2 * c, 2 * c + 1]
        var pairs: [(Range<UInt64>, Range<UInt64>)] = []
        for middle in places {
            pairs.append((0..<middle, middle..<3 * c))
            pairs.append((middle..<3 * c, 0..<middle))
            pairs.append((middle..<middle + 2, 0..<3 * c))
            pairs.append((middle..<3 * c - 1, min(5, middle)..<middle + 1))
        }
        return pairs
    }()

    @Test("two parts that meet anywhere in or between cells fit together", arguments: Self.meetings)
    func meeting(first: Range<UInt64>, second: Range<UInt64>) async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let length = 3 * Self.cell
        let id = try #require(await store.putPart(self.key, first, of: length, pieces: 7777)?.id)
        let outcome = await store.add(second, to: id, of: self.key, pieces: 30_011)
        #expect(outcome == .visible(id))
        let object = try #require(await store.find(self.key).first)
        let expected = StoredExtent(completeLength: length, ranges: [first, second])
        #expect(object.extent == expected)
        #expect((object.head.extent == nil) == expected.isComplete)
        for range in expected.ranges { await expectStored(object, range) }
        #expect(store.statistics().damaged == 0)
        await store.closed()
    }

    @Test("parts in one cell, apart from each other, then all of it")
    func withinCell() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 1000..<1010, of: 5000)?.id)
        for start in stride(from: 4000, through: 500, by: -500) as StrideThrough<UInt64> {
            #expect(await store.add(start..<start + 7, to: id, of: self.key) == .visible(id))
        }
        let object = try #require(await store.find(self.key).first)
        #expect(object.extent.ranges.count == 8)
        for range in object.extent.ranges { await expectStored(object, range) }
        await expectMissing(object, 500..<1001)
        #expect(await store.add(0..<5000, to: id, of: self.key) == .visible(id))
        let whole = try #require(await store.find(self.key).first)
        #expect(whole.head.extent == nil && whole.bodyLength == 5000)
        #expect(whole.body.resident.map { Array($0.readableBytesView) } == representation(0..<5000))
        await expectStored(object, 4000..<4007)
        await store.closed()
    }

    @Test(
        "what came of a whole response that broke off can be kept, its last bytes too",
        arguments: [1, 65_511, 65_512, 65_513, 200_000] as [UInt64])
    func kept(written: UInt64) async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        for (name, length, learned) in [
            ("a", 300_000, nil), ("b", nil, nil), ("c", nil, 300_000),
        ] as [(String, UInt64?, UInt64?)] {
            let observer = Observer()
            let sink = store.store(
                storedHead(), for: cacheKey(name), length: length, replacing: [],
                observer: observer)
            sink?.write(ByteBuffer(bytes: representation(0..<written)))
            sink?.keep(completeLength: learned)
            let id = try #require(await observer.end().id)
            let object = try #require(await store.find(cacheKey(name)).first)
            #expect(
                object.head.extent
                    == StoredExtent(completeLength: length ?? learned, ranges: [0..<written]))
            await expectStored(object, 0..<written)
            let outcome = await store.add(
                written..<300_000, to: id, of: cacheKey(name), completeLength: 300_000)
            #expect(outcome == .visible(id))
            let whole = try #require(await store.find(cacheKey(name)).first)
            #expect(whole.head.extent == nil)
            await expectStored(whole, 0..<300_000)
        }
        await store.closed()
    }

    @Test("nothing, too little, too much: what each becomes")
    func odd() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory, change: { $0.maximumObject = .kibibytes(512) })
        let short = await store.putPart(self.key, 100..<300, of: 1000, writing: 50)
        let id = try #require(short?.id)
        #expect(await store.find(self.key).first?.extent.ranges == [100..<150])
        #expect(await store.add(150..<150, to: id, of: self.key, .keep) == .visible(id))
        #expect(
            await store.add(150..<160, to: id, of: self.key, saying: 9) == .abandoned(.byWriter))
        let other = cacheKey("b")
        #expect(
            await store.putPart(other, 0..<10, of: 100, writing: 0, .keep) == .abandoned(.byWriter))
        #expect(
            await store.putPart(other, 0..<10, of: 100, writing: 11) == .abandoned(.byWriter))
        #expect(await store.putPart(other, 0..<10, of: 512 << 10 | 1) == nil)
        #expect(await store.putPart(other, 0..<10, of: 100, .release) == .abandoned(.byWriter))
        #expect(await store.find(other).isEmpty)
        #expect(await store.add(0..<10, to: id, of: self.key, completeLength: 1 << 40) == nil)
        #expect(await store.add(5..<10, to: id, of: self.key, completeLength: 5, saying: 5) == nil)
        #expect(
            store.extend(
                id, of: self.key, at: .max, length: .max, completeLength: nil,
                begun: store.removalMark(), observer: Observer()) == nil)
        #expect(
            await store.add(200..<201, to: id, of: self.key, completeLength: 999)
                == .abandoned(.contradictory))
        #expect(await store.add(900..<1001, to: id, of: self.key) == .abandoned(.contradictory))
        #expect(
            await store.add(0..<9, to: ObjectID(rawValue: 999), of: self.key)
                == .abandoned(.removed))
        #expect(await store.find(self.key).first?.extent.ranges == [100..<150])
        await store.closed()
    }

    @Test("a whole that is complete takes no more, and contradicts nothing that it has")
    func complete() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.put(self.key, representation(0..<1000))?.id)
        #expect(await store.add(10..<20, to: id, of: self.key) == .visible(id))
        #expect(await store.add(990..<1001, to: id, of: self.key) == .abandoned(.contradictory))
        #expect(
            await store.add(10..<20, to: id, of: self.key, completeLength: 2000)
                == .abandoned(.contradictory))
        let object = try #require(await store.find(self.key).first)
        #expect(object.head.extent == nil && object.bodyLength == 1000)
        await store.closed()
    }

    @Test("bytes that are not those stored end the addition, and change nothing")
    func contradiction() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 100..<90_000, of: 200_000)?.id)
        for offset in [80_000, 50, 65_000] as [UInt64] {
            let observer = Observer()
            let sink = store.extend(
                id, of: self.key, at: offset, length: nil, completeLength: nil,
                begun: store.removalMark(), observer: observer)
            sink?.write(ByteBuffer(repeating: 0xEE, count: 70_000))
            sink?.commit(trailers: Fields())
            #expect(await observer.end() == .abandoned(.contradictory))
            let object = try #require(await store.find(self.key).first)
            #expect(object.extent.ranges == [100..<90_000])
            await expectStored(object, 100..<90_000)
        }
        await store.closed()
    }

    @Test("no more ranges than the limit")
    func scattered() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 0..<1, of: nil)?.id)
        for i in 1..<UInt64(StoredExtent.rangeLimit) {
            #expect(await store.add(i * 10..<i * 10 + 1, to: id, of: self.key) == .visible(id))
        }
        #expect(await store.add(5000..<5001, to: id, of: self.key) == .abandoned(.tooScattered))
        #expect(await store.add(1..<631, to: id, of: self.key) == .visible(id))
        #expect(await store.find(self.key).first?.extent.ranges == [0..<631])
        await store.closed()
    }

    @Test("two additions at once both count; of the same bytes, one")
    func twoAtOnce() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 0..<100, of: 200_000)?.id)
        func begin(_ offset: UInt64, _ length: UInt64?) -> ((any ObjectSink)?, Observer) {
            let observer = Observer()
            let sink = store.extend(
                id, of: self.key, at: offset, length: length, completeLength: 200_000,
                begun: store.removalMark(), observer: observer)
            return (sink, observer)
        }
        let (low, lowEnd) = begin(100, 99_900)
        let (high, highEnd) = begin(100_000, nil)
        #expect(low != nil && high != nil)
        #expect(begin(99_999, 1).0 == nil)
        #expect(begin(150_000, nil).0 == nil)
        for start in stride(from: 0, to: 99_900, by: 33_300) as StrideTo<UInt64> {
            low?.write(ByteBuffer(bytes: representation(100 + start..<33_400 + start)))
            high?.write(ByteBuffer(bytes: representation(100_000 + start..<133_300 + start)))
        }
        high?.write(ByteBuffer(bytes: representation(199_900..<200_000)))
        high?.commit(trailers: Fields())
        #expect(await highEnd.end() == .visible(id))
        #expect(await store.find(self.key).first?.extent.ranges == [0..<100, 100_000..<200_000])
        low?.commit(trailers: Fields())
        #expect(await lowEnd.end() == .visible(id))
        let object = try #require(await store.find(self.key).first)
        #expect(object.head.extent == nil)
        await expectStored(object, 0..<200_000)
        await store.closed()
    }

    @Test("two additions that meet within a cell leave each other's bytes alone")
    func twoInOneCell() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 400_000..<400_100, of: 500_000)?.id)
        let observer = Observer()
        let high = try #require(
            store.extend(
                id, of: self.key, at: 30_000, length: 100_000, completeLength: 500_000,
                begun: store.removalMark(), observer: observer))
        high.write(ByteBuffer(bytes: representation(30_000..<100_000)))
        // Its part of the first cell is written, and not committed.
        await observer.wrote(UInt64(Segment.payloadSize) - 30_000)
        let low = await store.add(10_000..<30_000, to: id, of: self.key, saying: 20_000)
        #expect(low == .visible(id))
        let back = await collect(try #require(high.reader(from: 0)))
        #expect(back.failure == nil)
        #expect(back.bytes.elementsEqual(representation(30_000..<65_512)))
        high.write(ByteBuffer(bytes: representation(100_000..<130_000)))
        high.commit(trailers: Fields())
        #expect(await observer.end() == .visible(id))
        let object = try #require(await store.find(self.key).first)
        #expect(object.extent.ranges == [10_000..<130_000, 400_000..<400_100])
        await expectStored(object, 10_000..<130_000)
        #expect(store.statistics().damaged == 0)
        await store.closed()
    }

    @Test("freshening leaves the extent alone")
    func update() async throws {
        let directory = try TemporaryDirectory()
        let store = try World().open(directory)
        let id = try #require(await store.putPart(self.key, 10..<20, of: 100)?.id)
        var head = storedHead("fresh")
        head.extent = StoredExtent(completeLength: 5, ranges: [0..<5])
        head.pathAndQuery = "/a?b"
        store.update(id, of: self.key, head: head)
        await store.flushed()
        let object = try #require(await store.find(self.key).first)
        #expect(object.extent == StoredExtent(completeLength: 100, ranges: [10..<20]))
        #expect(object.head.fields == head.fields)
        #expect(object.head.pathAndQuery == "/a?b")
        await store.closed()
    }
}
