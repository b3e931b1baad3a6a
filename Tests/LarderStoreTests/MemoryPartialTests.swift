import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@Suite("Partial content in memory (RFC 9111 §3.3, §3.4)")
struct MemoryPartialTests {
    private func store(_ capacity: ByteCount = .mebibytes(4)) -> MemoryStore {
        MemoryStore(MemoryConfiguration(capacity: capacity, maximumObject: .kibibytes(512)))
    }

    private func expect(_ object: StoredObject, _ range: Range<Int>) {
        let read = drain(
            object.body.reader(range: UInt64(range.lowerBound)..<UInt64(range.upperBound)))
        #expect(read.isWhole)
        #expect(read.bytes == Array(Sample.representation(range).readableBytesView))
    }

    @Test("a part is visible at commit, and serves what it has and nothing else")
    func part() throws {
        let store = self.store()
        let observer = store.putPart("a", 100..<300, of: 1000)
        let object = try #require(store.found("a").first)
        #expect(observer.heard.outcomes == [.visible(object.id)])
        #expect(observer.heard.written.last == 200)
        #expect(object.head.extent == StoredExtent(completeLength: 1000, ranges: [100..<300]))
        #expect(object.bodyLength == 1000)
        #expect(object.body.resident == nil)
        for range in [100..<300, 100..<101, 299..<300, 150..<150] { self.expect(object, range) }
        for range in [99..<300, 100..<301, 0..<1000, 300..<400, 0..<100] as [Range<UInt64>] {
            let read = drain(object.body.reader(range: range))
            #expect(read.bytes.isEmpty && !read.isWhole)
        }
    }

    @Test("a part of unknown complete length ends where its last byte does")
    func unknownLength() throws {
        let store = self.store()
        _ = store.putPart("a", 100..<300, of: nil)
        let object = try #require(store.found("a").first)
        #expect(object.bodyLength == 300)
        #expect(object.head.extent == StoredExtent(completeLength: nil, ranges: [100..<300]))
    }

    @Test("parts grow together, and become a complete response in one buffer")
    func completes() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 100..<300, of: 1000).id)
        #expect(store.add(500..<1000, to: id, of: "a")?.outcome == .visible(id))
        let apart = try #require(store.found("a").first)
        #expect(apart.head.extent?.ranges == [100..<300, 500..<1000])
        self.expect(apart, 600..<900)
        #expect(!drain(apart.body.reader(range: 200..<600)).isWhole)
        #expect(store.add(0..<100, to: id, of: "a")?.outcome == .visible(id))
        #expect(
            store.add(250..<600, to: id, of: "a", completeLength: 1000)?.outcome == .visible(id))
        let whole = try #require(store.found("a").first)
        #expect(whole.id == id)
        #expect(whole.head.extent == nil)
        #expect(whole.bodyLength == 1000)
        #expect(whole.body.resident == Sample.representation(0..<1000))
        self.expect(apart, 600..<900)
    }

    @Test("a part that is the whole is complete at once")
    func wholePart() throws {
        let store = self.store()
        _ = store.putPart("a", 0..<500, of: 500)
        let object = try #require(store.found("a").first)
        #expect(object.head.extent == nil)
        #expect(object.body.resident == Sample.representation(0..<500))
    }

    struct Broken: Sendable {
        var length: UInt64?
        var written: Int
        var learned: UInt64?
        var extent: StoredExtent?
        var isVisible = true
    }

    @Test(
        "what came of a whole response that broke off can be kept",
        arguments: [
            Broken(
                length: 1000, written: 400,
                extent: StoredExtent(completeLength: 1000, ranges: [0..<400])),
            Broken(written: 400, extent: StoredExtent(completeLength: nil, ranges: [0..<400])),
            Broken(
                written: 400, learned: 700,
                extent: StoredExtent(completeLength: 700, ranges: [0..<400])),
            Broken(length: 400, written: 400, extent: nil),
            Broken(length: 1000, written: 0, isVisible: false),
            Broken(written: 400, learned: 399, isVisible: false),
            Broken(written: 400, learned: 1 << 40, isVisible: false),
        ])
    func kept(_ c: Broken) throws {
        let store = self.store()
        let observer = RecordingObserver()
        let sink = store.store(
            Sample.head(), for: Sample.key("a"), length: c.length, replacing: [],
            observer: observer)
        if c.written > 0 { sink?.write(Sample.representation(0..<c.written)) }
        sink?.keep(completeLength: c.learned)
        sink?.commit(trailers: Fields())
        #expect(observer.heard.outcomes.count == 1)
        let object = store.found("a").first
        #expect((object != nil) == c.isVisible)
        guard let object else { return }
        #expect(object.head.extent == c.extent)
        self.expect(object, 0..<c.written)
    }

    @Test("a part that came short is kept as far as it came, one too long is not")
    func shortAndLong() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 100..<300, of: 1000, writing: 50).id)
        #expect(store.found("a").first?.head.extent?.ranges == [100..<150])
        #expect(store.add(150..<300, to: id, of: "a", writing: 20)?.outcome == .visible(id))
        #expect(store.found("a").first?.head.extent?.ranges == [100..<170])
        #expect(store.add(170..<300, to: id, of: "a", writing: 0, .keep)?.outcome == .visible(id))
        #expect(store.putPart("b", 0..<10, of: 100, writing: 11).outcome == .abandoned(.byWriter))
        #expect(store.putPart("b", 0..<10, of: 100, writing: 0).outcome == .abandoned(.byWriter))
        #expect(
            store.add(300..<310, to: id, of: "a", writing: 11)?.outcome == .abandoned(.byWriter))
        #expect(store.found("b").isEmpty)
        #expect(store.found("a").first?.head.extent?.ranges == [100..<170])
    }

    @Test("what does not fit is refused at once")
    func refused() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 100..<300, of: 1000).id)
        #expect(store.add(900..<1001, to: id, of: "a") == nil)
        #expect(store.add(300..<400, to: id, of: "a", completeLength: 999) == nil)
        #expect(store.add(300..<400, to: ObjectID(rawValue: 5), of: "a") == nil)
        #expect(store.add(300..<400, to: id, of: "b") == nil)
        #expect(
            store.extend(
                id, of: Sample.key("a"), at: .max, length: .max, completeLength: nil,
                begun: store.removalMark(), observer: RecordingObserver()) == nil)
        let complete = try #require(store.put("c").id)
        #expect(store.add(0..<10, to: complete, of: "c") == nil)
        let large = store.putPart("d", 0..<10, of: 512 << 10 | 1)
        #expect(large.heard == RecordingObserver.Heard())
        var two = Sample.partialHead(0..<10, of: 100)
        two.extent?.insert(20..<30)
        #expect(
            store.store(
                two, for: Sample.key("e"), length: nil, replacing: [],
                observer: RecordingObserver()) == nil)
        #expect(
            store.store(
                Sample.partialHead(0..<10, of: 100), for: Sample.key("e"), length: 9,
                replacing: [], observer: RecordingObserver()) == nil)
    }

    @Test("bytes that are not those stored end the addition, and change nothing")
    func contradiction() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 100..<300, of: 1000).id)
        let observer = RecordingObserver()
        let sink = store.extend(
            id, of: Sample.key("a"), at: 250, length: nil, completeLength: nil,
            begun: store.removalMark(), observer: observer)
        sink?.write(Sample.body(100, 0xEE))
        sink?.commit(trailers: Fields())
        #expect(observer.outcome == .abandoned(.contradictory))
        let object = try #require(store.found("a").first)
        #expect(object.head.extent?.ranges == [100..<300])
        self.expect(object, 100..<300)
    }

    @Test("no more ranges than the limit")
    func scattered() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 0..<1, of: nil).id)
        for i in 1..<StoredExtent.rangeLimit {
            #expect(store.add(i * 10..<i * 10 + 1, to: id, of: "a")?.id == id)
        }
        #expect(store.add(5000..<5001, to: id, of: "a") == nil)
        let observer = RecordingObserver()
        let late = store.extend(
            id, of: Sample.key("a"), at: 5000, length: nil, completeLength: nil,
            begun: store.removalMark(), observer: observer)
        late?.write(Sample.representation(5000..<5001))
        late?.commit(trailers: Fields())
        #expect(observer.outcome == .abandoned(.tooScattered))
        #expect(store.add(1..<631, to: id, of: "a")?.id == id, "joining is always possible")
        #expect(store.found("a").first?.head.extent?.ranges == [0..<631])
    }

    @Test("many additions side by side are one range, and cost what they hold")
    func compaction() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 0..<100, of: nil).id)
        for i in 1..<1000 {
            #expect(store.add(i * 100..<i * 100 + 100, to: id, of: "a")?.id == id)
        }
        let object = try #require(store.found("a").first)
        #expect(object.head.extent?.ranges == [0..<100_000])
        self.expect(object, 0..<100_000)
        self.expect(object, 12_345..<67_890)
        let bytes = store.statistics().memory.bytes
        #expect(bytes >= 100_000 && bytes < 300_000)
    }

    @Test("an addition and a removal: nothing comes back", arguments: [true, false])
    func removal(byKey: Bool) throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 0..<100, of: 1000).id)
        let observer = RecordingObserver()
        let mark = store.removalMark()
        let sink = store.extend(
            id, of: Sample.key("a"), at: 100, length: nil, completeLength: nil,
            begun: mark, observer: observer)
        sink?.write(Sample.representation(100..<200))
        _ = store.removed("a", ids: byKey ? nil : [id])
        sink?.commit(trailers: Fields())
        #expect(observer.outcome == .abandoned(.removed))
        #expect(store.found("a").isEmpty)
        if byKey {
            let new = try #require(store.putPart("a", 0..<100, of: 1000).id)
            let late = store.add(100..<200, to: new, of: "a", begun: mark)
            #expect(late?.outcome == .abandoned(.removed), "asked for before the removal")
            #expect(store.putPart("a", 0..<9, of: 10, begun: mark).outcome == .abandoned(.removed))
        }
    }

    @Test("two additions at once both count")
    func twoAtOnce() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 0..<100, of: 400).id)
        let observers = [RecordingObserver(), RecordingObserver()]
        let sinks = [100, 250].enumerated().map { index, offset in
            store.extend(
                id, of: Sample.key("a"), at: UInt64(offset), length: 150, completeLength: 400,
                begun: store.removalMark(), observer: observers[index])
        }
        sinks[1]?.write(Sample.representation(250..<400))
        sinks[0]?.write(Sample.representation(100..<250))
        sinks[1]?.commit(trailers: Fields())
        sinks[0]?.commit(trailers: Fields())
        #expect(observers.map(\.outcome) == [.visible(id), .visible(id)])
        #expect(store.found("a").first?.head.extent == nil)
        #expect(store.found("a").first?.body.resident == Sample.representation(0..<400))
    }

    @Test("freshening leaves the extent alone")
    func update() throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 10..<20, of: 100).id)
        var head = Sample.head(at: 9)
        head.extent = StoredExtent(completeLength: 5, ranges: [0..<5])
        store.update(id, of: Sample.key("a"), head: head)
        let object = try #require(store.found("a").first)
        #expect(object.head.extent == StoredExtent(completeLength: 100, ranges: [10..<20]))
        #expect(object.head.responseTime == Timestamp(seconds: 9))
        let whole = try #require(store.put("b").id)
        store.update(whole, of: Sample.key("b"), head: head)
        #expect(store.found("b").first?.head.extent == nil)
    }

    @Test("the bound of the tier holds while parts grow")
    func bound() {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(1), maximumObject: .kibibytes(64)))
        var random = SplitMix64(seed: 11)
        for _ in 0..<800 {
            let name = "k\(Int.random(in: 0..<60, using: &random))"
            let start = Int.random(in: 0..<60_000, using: &random)
            let end = min(65_000, start + Int.random(in: 1..<20_000, using: &random))
            if let object = store.found(name).first {
                _ = store.add(start..<end, to: object.id, of: name)
            } else {
                _ = store.putPart(name, start..<end, of: 65_000)
            }
            #expect(store.statistics().memory.bytes <= 1 << 20)
            for object in store.found(name).prefix(1) {
                for range in object.extent.ranges {
                    self.expect(object, Int(range.lowerBound)..<Int(range.upperBound))
                }
            }
        }
        #expect(store.statistics().memory.evictions > 20)
        store.removeAll(where: { _ in true }, { _ in })
        #expect(store.statistics().memory.bytes == 0)
    }

    @Test("many tasks add to one response at once", .timeLimit(.minutes(10)))
    func stress() async throws {
        let store = self.store()
        let id = try #require(store.putPart("a", 0..<10, of: 300_000).id)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<6 {
                group.addTask {
                    for step in 0..<50 {
                        let start = 10 + (step * 6 + task) * 999
                        _ = store.add(start..<min(300_000, start + 1200), to: id, of: "a")
                        for object in store.found("a") {
                            let read = drain(object.body.reader(range: 0..<10))
                            #expect(read.isWhole)
                            #expect(
                                read.bytes
                                    == Array(Sample.representation(0..<10).readableBytesView))
                        }
                    }
                }
            }
        }
        #expect(store.add(10..<300_000, to: id, of: "a")?.outcome == .visible(id))
        let object = try #require(store.found("a").first)
        #expect(object.head.extent == nil)
        #expect(object.body.resident == Sample.representation(0..<300_000))
    }
}
