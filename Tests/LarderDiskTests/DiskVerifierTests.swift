import Foundation
import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderDisk

@Suite("Verification of the file", .timeLimit(.minutes(10)))
struct DiskVerifierTests {
    private let directory: TemporaryDirectory
    private let world = World()

    init() throws {
        self.directory = try TemporaryDirectory()
    }

    private static let bodies: [(String, Int)] = [
        ("empty", 0), ("small", 100), ("one", Segment.payloadSize), ("two", 65_513),
        ("large", 500_000),
    ]

    /// A file with whole responses, one with two parts, and one to be spoilt.
    private func fill() async throws {
        let store = try self.world.open(self.directory)
        for (index, body) in Self.bodies.enumerated() {
            await store.put(cacheKey(body.0), pattern(body.1, seed: UInt64(index + 2)))
        }
        _ = await store.putPart(cacheKey("part"), 70_000..<200_000, of: 900_000)
        let part = try #require(await store.find(cacheKey("part")).first)
        _ = await store.add(800_000..<850_000, to: part.id, of: part.key)
        // What came to nothing lies beside it until it goes.
        _ = await store.add(400_000..<600_000, to: part.id, of: part.key, .abandon)
        await store.put(cacheKey("page"), pattern(300_000))
        await store.closed()
    }

    private func verify(
        round: Int = DiskVerifier.usualRound
    ) throws -> (DiskVerification, [DiskFinding]) {
        var findings: [DiskFinding] = []
        let verifier = DiskVerifier(
            try DiskInspector(directory: self.directory.path), roundSize: round,
            progress: { _ in }, found: { findings.append($0) })
        return (try verifier.run(), findings)
    }

    /// Changes the file behind the store's back.
    private func change(
        _ body: (borrowing WriteTransaction, Schema) throws(LMDBError) -> Void
    ) throws {
        let environment = try Environment.open(
            path: self.directory.data, options: EnvironmentOptions(mapSize: 64 << 20))
        defer { environment.close() }
        let schema = try Schema(environment, creating: false)
        try environment.write { (transaction) throws(LMDBError) in try body(transaction, schema) }
    }

    private func entry(_ name: String) throws -> (ObjectKey, ObjectRecord) {
        let inspector = try DiskInspector(directory: self.directory.path)
        let key = cacheKey(name)
        let object = try #require(try inspector.objects(for: key).first)
        let objectKey = ObjectKey(
            hash: Checksum.key(key.bytes, seed: inspector.seed), id: object.id)
        let record = try inspector.read { (transaction) throws(LMDBError) in
            try? inspector.schema.judgedRecord(objectKey, transaction)?.get()
        }
        return (objectKey, try #require(record))
    }

    private func mend(_ findings: [DiskFinding]) async throws -> [DiskDamage] {
        let store = try self.world.open(self.directory)
        let mended = await withCheckedContinuation { continuation in
            store.mend(findings.map(\.damage)) { continuation.resume(returning: $0) }
        }
        await store.flushed()
        await store.closed()
        return mended
    }

    @Test("finds nothing wrong in a sound one, in however many rounds", arguments: [1, 3, 100])
    func sound(_ round: Int) async throws {
        try await self.fill()
        let (state, findings) = try self.verify(round: round)
        #expect(findings == [])
        #expect(state.isSound && state.isQuiet)
        #expect(state.entries == 7)
        #expect(state.expectedEntries == 7)
        // 0, 1, 1, 2 and 8; of the part 3 and 1; 5 of the page; and what was left beside.
        #expect(state.segments == 21 + state.leftovers)
        #expect(state.changed == 0)
    }

    @Test(
        "finds a changed byte of a body, and mending drops that entry alone", arguments: [1, 100])
    func body(_ round: Int) async throws {
        try await self.fill()
        let body = pattern(300_000)
        let url = URL(fileURLWithPath: self.directory.data)
        var data = try Data(contentsOf: url)
        let needle = try #require(data.range(of: Data(body[150_000..<150_040])))
        data[needle.lowerBound + 20] ^= 0x01
        try data.write(to: url)
        let (state, findings) = try self.verify(round: round)
        #expect(findings.map(\.key) == [cacheKey("page")])
        #expect(findings.map(\.damage.kind) == [.segment])
        #expect(
            findings.first?.reason
                == "the stored body is damaged: segment 2 has a wrong checksum")
        #expect(state.findings == 1)
        let mended = try await self.mend(findings)
        #expect(mended == findings.map(\.damage))
        let (after, rest) = try self.verify()
        #expect(rest == [])
        #expect(after.entries == 6)
        #expect(try await self.mend(findings) == [], "nothing is taken out twice")
        let store = try self.world.open(self.directory)
        #expect(await store.find(cacheKey("page")).isEmpty)
        let large = try #require(await store.find(cacheKey("large")).first)
        #expect(await store.body(large).bytes == pattern(500_000, seed: 6))
        await store.closed()
    }

    /// One way to spoil the file, and what is to be found then.
    enum Spoiling: String, Sendable, CaseIterable {
        case missingFirst, missingLast, missingOfPart, record, misplaced, orphan, stray, unqueued
        case pending, garbage, sum

        var kinds: [DiskDamage.Kind] {
            switch self {
            case .missingFirst, .missingLast, .missingOfPart: [.segment]
            // What it has in the sum goes with it.
            case .record: [.record]
            case .misplaced: [.misplaced]
            case .orphan: [.orphan]
            case .stray: [.stray]
            case .unqueued: [.unqueued]
            case .pending, .garbage: [.named]
            case .sum: [.sum]
            }
        }

        var name: String { self == .missingOfPart ? "part" : "page" }
    }

    private func spoil(_ spoiling: Spoiling) throws {
        let (key, record) = try self.entry(spoiling.name)
        try self.change { (transaction, schema) throws(LMDBError) in
            switch spoiling {
            case .missingFirst:
                try transaction.delete(
                    schema.segments, SegmentKey(id: key.id, index: 0).bytes.span)
            case .missingLast:
                try transaction.delete(
                    schema.segments, SegmentKey(id: key.id, index: 4).bytes.span)
            case .missingOfPart:
                try transaction.delete(
                    schema.segments, SegmentKey(id: key.id, index: 12).bytes.span)
            case .record:
                var bytes = record.encoded()
                bytes[100] ^= 1
                try transaction.put(schema.objects, key.bytes.span, bytes.span)
            case .misplaced:
                var other = record
                other.key = cacheKey("elsewhere")
                try transaction.put(schema.objects, key.bytes.span, other.encoded().span)
            case .orphan:
                try transaction.put(
                    schema.segments, SegmentKey(id: ObjectID(rawValue: 99), index: 0).bytes.span,
                    [1, 2, 3].span)
            case .stray:
                try transaction.put(schema.queue, NumberKey.bytes(77).span, key.bytes.span)
            case .unqueued:
                try transaction.delete(schema.queue, NumberKey.bytes(record.sequence).span)
            case .pending:
                try transaction.put(schema.pending, NumberKey.bytes(key.id.rawValue).span, Span())
            case .garbage:
                try transaction.put(schema.garbage, NumberKey.bytes(key.id.rawValue).span, Span())
            case .sum:
                guard var meta = try schema.readMeta(transaction.reading) else { return }
                meta.bodyBytes -= 5
                try schema.writeMeta(meta, transaction)
            }
        }
    }

    @Test("finds what is spoilt, mends it, and finds nothing then", arguments: Spoiling.allCases)
    func spoilt(_ spoiling: Spoiling) async throws {
        try await self.fill()
        try self.spoil(spoiling)
        for round in [1, 100] {
            let (_, findings) = try self.verify(round: round)
            #expect(findings.map(\.damage.kind) == spoiling.kinds, "\(spoiling), \(round)")
        }
        var (_, findings) = try self.verify()
        var mended = try await self.mend(findings)
        if spoiling == .garbage, mended.isEmpty {
            // The store had collected what it names before it was told: then that is missing.
            (_, findings) = try self.verify()
            #expect(findings.map(\.damage.kind) == [.segment])
            mended = try await self.mend(findings)
        }
        #expect(mended == findings.map(\.damage))
        let (after, rest) = try self.verify()
        #expect(rest == [], "\(spoiling)")
        #expect(after.entries == (findings.first?.damage.costsEntry == true ? 6 : 7))
    }

    @Test("corrects the sum once, however many found it wrong, and before it takes anything out")
    func sumOnce() async throws {
        try await self.fill()
        try self.spoil(.sum)
        try self.spoil(.missingFirst)
        let (_, findings) = try self.verify()
        #expect(findings.map(\.damage.kind) == [.segment, .sum])
        #expect(try await self.mend(findings).count == 2)
        #expect(try await self.mend(findings) == [])
        let (_, rest) = try self.verify()
        #expect(rest == [])
    }

    @Test("of the pages below finds one that is noise, where nobody writes to them")
    func pages() async throws {
        try await self.fill()
        let sound = try #require(
            try StructureCheck.run(directory: self.directory.path, progress: { _, _ in }))
        #expect(sound.isSound && sound.usedPages > 0)
        let store = try self.world.open(self.directory)
        #expect(
            try StructureCheck.run(directory: self.directory.path, progress: { _, _ in }) == nil)
        await store.closed()
        let url = URL(fileURLWithPath: self.directory.data)
        var data = try Data(contentsOf: url)
        var rest = data.startIndex
        // Every leaf page with records: old copies among them are not in the tree any more.
        while let place = data.range(of: Data("X-Odd-Case".utf8), in: rest..<data.endIndex) {
            let page = place.lowerBound / 4096 * 4096
            for offset in 8..<64 { data[page + offset] = 0xA5 }
            rest = page + 4096
        }
        try data.write(to: url)
        let damaged = try #require(
            try StructureCheck.run(directory: self.directory.path, progress: { _, _ in }))
        #expect(damaged.problemCount > 0)
        #expect(!damaged.problems.isEmpty)
    }

    @Test(
        "of the pages below is no opening, however often it is made",
        arguments: ["", "1\nclosed\n", "1\nopened 2\n", "1\nopened 7\nowed\n"])
    func pagesAgain(mark: String) async throws {
        try await self.fill()
        let files = DiskFiles(directory: self.directory.path)
        let lock = URL(fileURLWithPath: files.writerLock)
        try Data(mark.utf8).write(to: lock)
        for _ in 0..<9 {
            let report = try StructureCheck.run(directory: files.directory) { _, _ in
                // It may be killed at any moment.
                let text = (try? Data(contentsOf: lock)).map { Array($0) } ?? []
                #expect(WriterLock.earlyEnds(text) == WriterLock.earlyEnds(Array(mark.utf8)))
                #expect(WriterLock.isOwed(text) == mark.contains("owed"))
                #expect(WriterLock.holder(of: files) == getpid())
            }
            #expect(report?.isSound == true)
        }
        #expect(try Data(contentsOf: lock) == Data(mark.utf8))
    }

    @Test("calls nothing damaged that another writer changes meanwhile")
    func churn() async throws {
        let store = try self.world.open(self.directory)
        for number in 0..<64 { await store.put(cacheKey("\(number)"), pattern(70_000)) }
        let isOver = Atomic(false)
        let writing = Task {
            var round = 0
            while !isOver.load(ordering: .relaxed) {
                let key = cacheKey("\(round % 64)")
                let old = await store.find(key)
                await store.put(
                    key, pattern(1_000 + round * 37 % 200_000), replacing: old.map(\.id))
                if round % 5 == 0 { _ = await store.removed(cacheKey("\(round * 7 % 64)")) }
                round += 1
            }
            return round
        }
        // At least one of them has to meet a change, or they all say nothing.
        var (changed, rounds): (UInt64, Int) = (0, 0)
        while rounds < 40 || changed == 0 {
            let (state, findings) = try self.verify(round: 16)
            #expect(findings == [])
            changed += state.changed
            rounds += 1
            await Task.yield()
        }
        isOver.store(true, ordering: .relaxed)
        #expect(await writing.value > 0)
        await store.closed()
        #expect(try self.verify().1 == [])
    }
}
