import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Reading from the disk, in place and on the pool", .timeLimit(.minutes(10)))
struct InPlaceTests {
    private static let cell = UInt64(Segment.payloadSize)
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private func open(_ residency: Residency) throws -> DiskStore {
        try self.world.open(self.directory) { residency.configure(&$0) }
    }

    @Test(
        "gives the same bytes in the same pieces, of bodies and ranges, whatever is in memory",
        arguments: Residency.allCases)
    func bodies(residency: Residency) async throws {
        let store = try self.open(residency)
        let cell = Self.cell
        for size in [0, 1, 4_096, 40_000, Int(cell), Int(cell) + 1, 700_000] {
            let key = cacheKey("\(size)")
            let body = pattern(size)
            await store.put(key, body)
            let object = try #require(await store.find(key).first)
            let end = UInt64(size)
            var ranges = [0..<end, 0..<min(1, end), end / 2..<end, end..<end]
            if end > 3 * cell {
                ranges += [cell - 1..<cell + 1, cell..<2 * cell, 5..<3 * cell - 5]
            }
            for range in ranges {
                let got = await read(object.body.reader(range: range))
                #expect(got.failure == nil)
                #expect(got.bytes == Array(body[Int(range.lowerBound)..<Int(range.upperBound)]))
                #expect(got.wakes == got.pendings)
                var borders: [Int] = []
                var offset = range.lowerBound
                while offset < range.upperBound {
                    let next = min(range.upperBound, (offset / cell + 1) * cell)
                    borders.append(Int(next - offset))
                    offset = next
                }
                #expect(got.pieces == borders)
            }
        }
        let counts = store.readCounts
        switch residency {
        // The kernel may take a page from memory at any time: what need not wait seldom waits.
        case .everything: #expect(counts.lookupsInPlace > 0 && counts.piecesInPlace > 0)
        case .nothing: #expect(counts.lookupsInPlace == 0 && counts.piecesInPlace == 0)
        case .records: #expect(counts.lookupsInPlace > 0 && counts.piecesInPlace == 0)
        case .bodies: #expect(counts.lookupsInPlace == 0 && counts.piecesInPlace > 0)
        case .evenSegments, .inTurns: #expect(counts.piecesInPlace > 0 && counts.stepsOnPool > 0)
        }
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test(
        "gives the same of partial content, and of a part that has grown",
        arguments: Residency.allCases)
    func parts(residency: Residency) async throws {
        let store = try self.open(residency)
        let key = cacheKey("part")
        let cell = Self.cell
        let id = try #require(
            await store.putPart(key, 100..<3 * cell + 7, of: 9 * cell)?.id)
        #expect(await store.add(6 * cell - 3..<8 * cell, to: id, of: key) == .visible(id))
        #expect(await store.add(3 * cell + 7..<3 * cell + 900, to: id, of: key) == .visible(id))
        let object = try #require(await store.find(key).first)
        for range in [
            100..<3 * cell + 900, 6 * cell - 3..<8 * cell, cell..<cell + 1,
            3 * cell..<3 * cell + 20,
        ] {
            await expectStored(object, range)
        }
        for range in [99..<200, 6 * cell - 4..<6 * cell] as [Range<UInt64>] {
            await expectMissing(object, range)
        }
        await store.closed()
        #expect(self.world.reported.isEmpty)
    }

    @Test("gives what a sink has written, while it is written", arguments: Residency.allCases)
    func whileWritten(residency: Residency) async throws {
        let store = try self.open(residency)
        let observer = Observer()
        let body = pattern(9 * Int(Self.cell))
        let sink = try #require(
            store.store(
                storedHead(), for: cacheKey("file"), length: nil, replacing: [],
                observer: observer))
        var offset = 0
        while offset < body.count {
            let end = min(body.count, offset + 2 * Int(Self.cell))
            sink.write(ByteBuffer(bytes: body[offset..<end]))
            await observer.wrote(UInt64(end / Int(Self.cell) * Int(Self.cell)))
            let source = try #require(sink.reader(from: 5))
            let got = await read(source)
            #expect(got.failure == nil && got.wakes == got.pendings)
            #expect(got.bytes == Array(body[5..<Int(observer.written)]))
            offset = end
        }
        sink.commit(trailers: Fields())
        _ = await observer.end()
        await store.closed()
    }

    @Test(
        "finds damage before a wrong byte is handed out, and gives what is sound before it",
        arguments: Residency.allCases)
    func damage(residency: Residency) async throws {
        let body = pattern(6 * Int(Self.cell))
        var store = try self.open(residency)
        await store.put(cacheKey("page"), body)
        await store.closed()
        try self.flip(Array(body[150_000..<150_040]))
        store = try self.open(residency)
        let object = try #require(await store.find(cacheKey("page")).first)
        let got = await read(object.body.reader(range: 0..<object.bodyLength))
        guard case .store = got.failure else {
            Issue.record("\(String(describing: got.failure))")
            return
        }
        #expect(got.bytes == Array(body[..<(2 * Int(Self.cell))]))
        #expect(store.statistics().damaged == 1)
        #expect(await store.find(cacheKey("page")).isEmpty)
        await store.closed()
    }

    /// Changes a byte in the middle of the one place in the file where `needle` lies.
    private func flip(_ needle: [UInt8]) throws {
        let url = URL(fileURLWithPath: self.directory.data)
        var data = try Data(contentsOf: url)
        let range = try #require(data.range(of: Data(needle)))
        data[range.lowerBound + needle.count / 2] ^= 0x01
        try data.write(to: url)
    }

    @Test("tells a missing segment from an entry that is gone", arguments: Residency.allCases)
    func missing(residency: Residency) async throws {
        let store = try self.open(residency)
        await store.put(cacheKey("page"), pattern(200_000))
        await store.put(cacheKey("gone"), pattern(200_000))
        let object = try #require(await store.find(cacheKey("page")).first)
        let gone = try #require(await store.find(cacheKey("gone")).first)
        let environment = try #require(Environment.shared(path: self.directory.data))
        let schema = try Schema(environment, creating: false)
        let core = try #require(gone.body as? DiskBody).core
        try environment.write { (transaction) throws(LMDBError) in
            let key = SegmentKey(id: object.id, index: 1).bytes
            try transaction.delete(schema.segments, key.span)
            // As with a new file in the place of the one that it was found in.
            let first = SegmentKey(id: gone.id, index: 0).bytes
            try transaction.delete(schema.segments, first.span)
            let record = core.objectKey(gone.id, of: gone.key).bytes
            try transaction.delete(schema.objects, record.span)
        }
        let short = await read(object.body.reader(range: 0..<object.bodyLength))
        #expect(short.failure == .store("the stored body is damaged: segment 1 is missing"))
        #expect(short.bytes.count == Int(Self.cell))
        #expect(store.statistics().damaged == 1)
        let nothing = await read(gone.body.reader(range: 0..<gone.bodyLength))
        #expect(nothing.failure == .store("the stored body was removed while it was read"))
        #expect(nothing.bytes.isEmpty)
        #expect(store.statistics().damaged == 1)
        await store.closed()
    }

    @Test(
        "goes on with a body that is removed meanwhile, from whatever step on",
        arguments: Residency.allCases)
    func removed(residency: Residency) async throws {
        let store = try self.open(residency)
        let body = pattern(7 * Int(Self.cell))
        for step in [0, 3, 6] {
            let key = cacheKey("\(step)")
            await store.put(key, body)
            let object = try #require(await store.find(key).first)
            let source = object.body.reader(range: 0..<object.bodyLength)
            let bell = AsyncStream<Void>.makeStream()
            source.attach { bell.continuation.yield() }
            var wakes = bell.stream.makeAsyncIterator()
            var bytes: [UInt8] = []
            var pieces = 0
            var isOver = false
            while !isOver {
                if pieces == step, await !store.find(key).isEmpty {
                    #expect(await store.removed(key) == 1)
                    for number in 0..<3 { await store.put(cacheKey("x\(number)"), [1]) }
                }
                switch source.next() {
                case .piece(let piece):
                    pieces += 1
                    bytes.append(contentsOf: piece.readableBytesView)
                case .pending: _ = await wakes.next()
                case .end: isOver = true
                case .failed(let failure):
                    Issue.record("\(failure)")
                    isOver = true
                }
            }
            #expect(bytes == body)
        }
        await store.closed()
    }

    @Test(
        "can be cancelled at every step, and lets the body go", arguments: Residency.allCases)
    func cancelled(residency: Residency) async throws {
        let store = try self.open(residency)
        let body = pattern(6 * Int(Self.cell))
        await store.put(cacheKey("page"), body)
        var found = await store.find(cacheKey("page")).first
        let core = try #require(found?.body as? DiskBody).core
        let id = try #require(found?.id)
        do {
            let object = try #require(found)
            for limit in 0...7 {
                let source = object.body.reader(range: 0..<object.bodyLength)
                let got = await read(source, upTo: limit)
                #expect(got.pieces.count == min(limit, 6))
                #expect(got.bytes == Array(body[..<got.bytes.count]))
                if limit < 7 {
                    guard case .failed(.cancelled) = source.next() else {
                        Issue.record("goes on after \(limit) pieces")
                        continue
                    }
                }
            }
            // In the middle of a step on the pool, and while nobody holds the source any more.
            for _ in 0..<50 {
                let source = object.body.reader(range: 0..<object.bodyLength)
                source.attach {}
                _ = source.next()
                source.cancel()
            }
        }
        #expect(core.entries.withLock { $0.isHeld(id) })
        found = nil
        #expect(!core.entries.withLock { $0.isHeld(id) })
        await store.closed()
    }

    @Test("a lookup that needs nothing from the disk is answered before it returns")
    func atOnce() async throws {
        let store = try self.open(.everything)
        for number in 0..<20 { await store.put(cacheKey("\(number)"), pattern(number * 1_000)) }
        let isInPlace = await self.becomesTrue {
            let before = store.readCounts
            for number in 0..<25 {
                let found = Mutex<[StoredObject]?>(nil)
                store.lookup(cacheKey("\(number)")) { objects in
                    found.withLock { $0 = objects }
                }
                guard let objects = found.withLock({ $0 }) else { return false }
                #expect(
                    objects.map(\.bodyLength) == (number < 20 ? [UInt64(number * 1_000)] : []))
            }
            let after = store.readCounts
            return after.lookupsInPlace == before.lookupsInPlace + 20
                && after.lookupsSpared == before.lookupsSpared + 5
                && after.lookupsOnPool == before.lookupsOnPool
        } reading: {
            for number in 0..<25 { _ = await store.find(cacheKey("\(number)")) }
        }
        #expect(isInPlace)
        await store.closed()
    }

    /// Whether what is in memory once it has been read is found there: not always, as the kernel may
    /// take a page from memory at any time.
    private func becomesTrue(
        _ isTrue: () async -> Bool, reading: () async -> Void
    ) async -> Bool {
        for _ in 0..<20 {
            await reading()
            if await isTrue() { return true }
        }
        return false
    }

    @Test(
        "a lookup that must not wait finds what another one would, or nothing at all",
        arguments: [Residency.everything, .nothing, .records])
    func withoutWaiting(residency: Residency) async throws {
        let store = try self.open(residency)
        for number in 0..<6 { await store.put(cacheKey("\(number)"), pattern(number * 900)) }
        for number in 0..<8 {
            let key = cacheKey("\(number)")
            let lengths = number < 6 ? [UInt64(number * 900)] : []
            switch residency {
            // That nothing is stored is known without the disk.
            case .nothing where number < 6: #expect(store.lookupInPlace(key) == nil)
            // An empty body is none that has to be read.
            case .records where number > 0 && number < 6:
                #expect(store.lookupInPlace(key) == nil)
            default:
                let isInPlace = await self.becomesTrue {
                    store.lookupInPlace(key)?.map(\.bodyLength) == lengths
                } reading: {
                    _ = await store.find(key)
                }
                #expect(isInPlace)
            }
        }
        let before = store.readCounts
        #expect(store.lookupInPlace(cacheKey("0").withoutSearch) == nil)
        #expect(store.readCounts.lookupsOnPool == before.lookupsOnPool)
        await store.closed()
    }

    @Test(
        "a lookup of an absent key looks for no body and takes no thread",
        arguments: [true, false])
    func absent(isKnown: Bool) async throws {
        let store = try self.world.open(self.directory) {
            if !isKnown { $0.fewestKeys = 0 }
        }
        // One commit for all: each waits for the disk.
        for number in 0..<300 {
            let sink = store.store(
                storedHead(), for: cacheKey("\(number)"), length: nil, replacing: [],
                observer: Observer())
            sink?.write(ByteBuffer(bytes: pattern(number % 3 == 0 ? 9_000 : 10)))
            sink?.commit(trailers: Fields())
        }
        await store.flushed()
        let segments = store.readCounts.segments
        func ask() async {
            for number in 0..<1_000 { #expect(await store.find(cacheKey("no/\(number)")).isEmpty) }
        }
        let isInPlace = await self.becomesTrue {
            let before = store.readCounts
            await ask()
            let after = store.readCounts
            return after.lookupsOnPool == before.lookupsOnPool
                && after.lookupsInPlace == before.lookupsInPlace + (isKnown ? 0 : 1_000)
                && after.lookupsSpared == before.lookupsSpared + (isKnown ? 1_000 : 0)
        } reading: {
            await ask()
        }
        #expect(isInPlace)
        #expect(store.readCounts.segments == segments)
        await store.closed()
    }

    @Test(
        "of many variants a few small bodies come with the heads, the others when asked for",
        arguments: Residency.allCases)
    func variants(residency: Residency) async throws {
        let store = try self.open(residency)
        let languages = (0..<9).map { "l\($0)" }
        for language in languages {
            await store.put(
                cacheKey("page"), Array(language.utf8), head: storedHead(language, vary: language))
        }
        let found = await store.find(cacheKey("page"))
        #expect(found.count == 9)
        #expect(found.map { $0.body.resident != nil } == (0..<9).map { $0 < 4 })
        for (object, language) in zip(found, languages.reversed()) {
            #expect(await store.body(object).bytes == Array(language.utf8))
        }
        await store.closed()
    }

    @Test(
        "a response whose small body is damaged is not found, wherever that is",
        arguments: Residency.allCases)
    func smallDamage(residency: Residency) async throws {
        var store = try self.open(residency)
        await store.put(cacheKey("page"), pattern(5_000))
        await store.closed()
        try self.flip(Array(pattern(5_000)[1_000..<1_040]))
        store = try self.open(residency)
        #expect(await store.find(cacheKey("page")).isEmpty)
        #expect(store.statistics().damaged == 1)
        await store.flushed()
        #expect(store.statistics().disk?.objects == 0)
        await store.closed()
    }
}
