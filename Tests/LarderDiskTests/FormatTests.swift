import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

@Suite("A file of the first format", .timeLimit(.minutes(10)))
struct FormatTests {
    private let directory: TemporaryDirectory
    private let world = World()
    private static let seed: UInt64 = 0x1234_5678_9ABC_DEF0

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private static func body(_ number: Int) -> [UInt8] {
        pattern(1000 + number * 700, seed: UInt64(number))
    }

    /// Writes a file as it was written then, by hand: six databases, one queue of keys alone, a state
    /// of eighty bytes, one flag for uses.
    private func write(
        _ count: Int, capacity: UInt64, damaging damaged: Int? = nil, bodyBytesOff: UInt64 = 0
    ) throws {
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: capacity))
        defer { environment.close() }
        let databases = try environment.openDatabases(
            ["meta", "objects", "segments", "queue", "pending", "garbage"], creating: true)
        try environment.write { (transaction) throws(LMDBError) in
            var bytes: UInt64 = bodyBytesOff
            for number in 0..<count {
                let id = ObjectID(rawValue: UInt64(number) + 1)
                let body = Self.body(number)
                bytes += UInt64(body.count)
                let key = ObjectKey(
                    hash: Checksum.key(cacheKey("\(number)").bytes, seed: Self.seed), id: id)
                var record = Self.record(number, body, isUsed: number % 3 == 0)
                if number == damaged { record[record.count - 1] ^= 1 }
                try transaction.put(databases[1], key.bytes.span, record.span)
                try transaction.put(
                    databases[2], SegmentKey(id: id, index: 0).bytes.span,
                    reserving: Segment.headerSize + body.count
                ) { Segment.write([ByteBuffer(bytes: body)], id: id, index: 0, into: &$0) }
                try transaction.put(
                    databases[3], NumberKey.bytes(UInt64(number) + 1).span, key.bytes.span)
            }
            let state = Self.state(UInt64(count) + 1, bytes)
            try transaction.put(databases[0], Array("state".utf8).span, state.span)
        }
    }

    private static func state(_ next: UInt64, _ bodyBytes: UInt64) -> [UInt8] {
        var state: [UInt8] = []
        for number in [0, 1, Self.seed, next, next, bodyBytes, 5, 7, 0, 0] as [UInt64] {
            state.append(littleEndian: number)
        }
        state.replace(littleEndian: Checksum.record(state.span.extracting(8...)), at: 0)
        return state
    }

    /// The record as it was: version 1, of the flags the first two bits alone.
    private static func record(_ number: Int, _ body: [UInt8], isUsed: Bool) -> [UInt8] {
        var record = ObjectRecord(
            key: cacheKey("\(number)"), head: storedHead(), trailers: Fields(),
            bodyLength: UInt64(body.count), segmentCount: 1, hits: 3,
            lastUsed: Timestamp(seconds: 1_700_000_000), sequence: UInt64(number) + 1,
            standing: EvictionRules.Standing(queue: .small, uses: 0)
        ).encoded()
        #expect(record[1] == 1 && record[2] == 0 && record[3] == 0)
        if isUsed {
            record[2] = 2
            let sum: UInt32 = record.span.littleEndian(4) ?? 0
            record.replace(littleEndian: sum ^ 2, at: 4)
        }
        return record
    }

    @Test("is taken over as it lies: all it holds is found, all of it in the small queue")
    func migrated() async throws {
        try self.write(30, capacity: 4 << 20)
        for round in 0..<2 {
            let store = try self.world.open(self.directory, capacity: .mebibytes(4))
            let audit = try QueueAudit(self.directory)
            audit.expectSound(chargesAreNoted: false)
            #expect(audit.meta?.format == 2)
            #expect(audit.meta?.evictions == 5)
            #expect(audit.queues[.small]?.count == 30)
            #expect(audit.queues[.main]?.isEmpty == true)
            for number in 0..<30 {
                let object = try #require(await store.find(cacheKey("\(number)")).first)
                #expect(object.hits == 3)
                #expect(await store.body(object).bytes == Self.body(number), "round \(round)")
                let record = audit.record(cacheKey("\(number)"))
                #expect(record?.standing.uses == (number % 3 == 0 ? 1 : 0))
            }
            await store.closed()
        }
        #expect(self.world.reported.isEmpty)
        #expect(self.directory.aside.isEmpty)
    }

    @Test("lets go of what was not used, keeps what was, and its books stay right")
    func evicted() async throws {
        try self.write(80, capacity: 4 << 20)
        let store = try self.world.open(self.directory, capacity: .mebibytes(4))
        for i in 0..<150 { await store.put(cacheKey("new\(i)"), pattern(20_000)) }
        await store.flushed()
        let audit = try QueueAudit(self.directory)
        audit.expectSound(chargesAreNoted: false)
        let left = (0..<80).filter { audit.record(cacheKey("\($0)")) != nil }
        #expect(left.count(where: { $0 % 3 == 0 }) > 20)
        #expect(left.count(where: { $0 % 3 != 0 }) < 10)
        await store.closed()
    }

    @Test("with a damaged entry and a wrong sum comes right when its queue has run empty")
    func damaged() async throws {
        try self.write(20, capacity: 4 << 20, damaging: 7, bodyBytesOff: 12_345)
        let store = try self.world.open(self.directory, capacity: .mebibytes(4))
        #expect(await store.find(cacheKey("7")).isEmpty)
        #expect(await store.purged { _ in true } == 19)
        await store.flushed()
        let audit = try QueueAudit(self.directory)
        #expect(audit.meta?.smallBytes == 0)
        #expect(audit.queues[.small]?.isEmpty == true)
        await store.closed()
    }

    @Test("is looked into as it is by who only looks")
    func inspected() throws {
        try self.write(5, capacity: 4 << 20)
        let inspector = try DiskInspector(directory: self.directory.path)
        #expect(try inspector.statistics().objects == 5)
        let object = try #require(try inspector.objects(for: cacheKey("3")).first)
        var body: [UInt8] = []
        try inspector.readBody(of: object) { body += $0.copied }
        #expect(body == Self.body(3))
    }

    @Test("and its reader would not take a file of this one for its own")
    func older() {
        // What it asked of the state: eighty bytes, and 1 at the eighth.
        let state = StoreMeta(seed: 1).encoded()
        #expect(state.count != 80)
        let format: UInt64? = state.span.littleEndian(8)
        #expect(format == 2)
    }
}
