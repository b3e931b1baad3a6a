import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("The record of a stored response")
struct RecordTests {
    private static func record(_ seed: UInt64) -> ObjectRecord {
        var generator = SplitMix64(seed: seed)
        func text(_ limit: Int) -> String {
            let count = Int(generator.next() % UInt64(limit))
            return String(
                (0..<count).map { _ in
                    "abcxyz019-_"[
                        "abcxyz019-_".index(
                            "abcxyz019-_".startIndex, offsetBy: Int(generator.next() % 11))]
                })
        }
        func fields(_ limit: Int) -> Fields {
            var fields = Fields()
            for _ in 0..<Int(generator.next() % UInt64(limit)) {
                let name = generator.next() % 3 == 0 ? "Cache-Control" : "X" + text(30)
                fields.append(
                    name,
                    Array(
                        (0..<generator.next() % 60).map { _ in
                            UInt8(0x20 + generator.next() % 0x5F)
                        }))
            }
            return fields
        }
        let length = generator.next() % 1_000_000
        var standing = EvictionRules.Standing(queue: .small, uses: 0)
        if seed % 2 == 0 { standing.queue = .main }
        standing.used(seed / 2 % 4)
        var record = ObjectRecord(
            key: CacheKey(bytes: pattern(Int(generator.next() % 300), seed: seed)),
            head: StoredHead(
                method: generator.next() % 2 == 0 ? .get : .post,
                status: StatusCode(UInt16(100 + generator.next() % 900)), reason: text(40),
                fields: fields(20), varyingFields: fields(4),
                requestTime: Timestamp(microseconds: Int64(bitPattern: generator.next())),
                responseTime: Timestamp(microseconds: Int64(bitPattern: generator.next())),
                storedTime: Timestamp(microseconds: Int64(bitPattern: generator.next())),
                isInvalidated: generator.next() % 2 == 0),
            trailers: fields(3), bodyLength: length,
            segmentCount: Segment.count(of: length) ?? 0, hits: generator.next(),
            lastUsed: Timestamp(microseconds: Int64(bitPattern: generator.next())),
            sequence: generator.next(), standing: standing)
        _ = generator.next()
        record.head.answersCredentials = seed % 3 == 0
        if generator.next() % 3 == 0 { record.head.pathAndQuery = "/" + text(50) + "?é" }
        if generator.next() % 2 == 0 {
            var extent = StoredExtent(
                completeLength: generator.next() % 2 == 0 ? 1_000_000 : nil)
            for _ in 0...generator.next() % 30 {
                let start = generator.next() % 999_000
                extent.insert(start..<start + 1 + generator.next() % 1000)
            }
            record.take(extent)
        }
        return record
    }

    @Test("comes back as it was written", arguments: 0..<200 as Range<UInt64>)
    func roundTrip(seed: UInt64) throws {
        let record = Self.record(seed)
        let bytes = record.encoded()
        let decoded = try ObjectRecord.decode(bytes.span)
        #expect(decoded == record)
        #expect(decoded.head.fields.serialized() == record.head.fields.serialized())
        let key = try ObjectRecord.checkedKey(bytes.span)
        #expect(key == record.key)
    }

    @Test("says whether credentials led to it (RFC 9111 §3.5), which older ones do not")
    func credentials() throws {
        var record = Self.record(5)
        record.head.answersCredentials = true
        var bytes = record.encoded()
        #expect(try decode(bytes).head.answersCredentials)
        // The ninth bit of the flags.
        #expect(bytes[3] == 1)
        bytes[3] = 0
        Self.reseal(&bytes)
        record.head.answersCredentials = false
        #expect(try decode(bytes) == record)
        #expect(record.encoded() == bytes)
    }

    @Test("is refused when any byte of it is changed", arguments: [3, 7, 11] as [UInt64])
    func changedByte(seed: UInt64) {
        let bytes = Self.record(seed).encoded()
        for i in bytes.indices {
            var changed = bytes
            changed[i] ^= 0x10
            #expect(throws: RecordDamage.self) { try decode(changed) }
        }
    }

    @Test("is refused when it is cut, wherever", arguments: [3, 7] as [UInt64])
    func cut(seed: UInt64) {
        let bytes = Self.record(seed).encoded()
        for count in bytes.indices {
            let cut = Array(bytes[..<count])
            #expect(throws: RecordDamage.self) { try decode(cut) }
        }
    }

    @Test("is refused when its lengths lie, though its checksum is right")
    func forgedLengths() {
        let bytes = Self.record(5).encoded()
        for place in [32, 66, 68, 72, 76, 80, 84, 88, 92] {
            for value in [0, 1, 0xFFFF, 0xFFFF_FFFF] as [UInt32] {
                var forged = bytes
                if place == 66 || place == 68 {
                    forged.replace(littleEndian: UInt16(truncatingIfNeeded: value), at: place)
                } else {
                    forged.replace(littleEndian: value, at: place)
                }
                if forged == bytes { continue }
                Self.reseal(&forged)
                #expect(throws: RecordDamage.self) { try decode(forged) }
            }
        }
    }

    @Test("cannot split a message: a forged field with a line end in it is refused")
    func forgedFields() {
        var record = Self.record(5)
        record.head.fields = ["A": "xxxx"]
        record.head.varyingFields = Fields()
        record.trailers = Fields()
        let bytes = record.encoded()
        let sections = bytes.count - 4 - 4 - 4 - 6 - "A: xxxx\r\n".utf8.count
        let value = sections + 4 + 6 + 3
        // White space at the end of a value is nothing that a parser would have left there.
        for byte in [0x0A, 0x0D, 0x00, 0x7F, 0x20, 0x09] as [UInt8] {
            var forged = bytes
            #expect(forged[value] == UInt8(ascii: "x"))
            forged[value] = byte
            Self.reseal(&forged)
            #expect(throws: RecordDamage.fields) { try decode(forged) }
        }
    }

    private static func reseal(_ bytes: inout [UInt8]) {
        let flags: UInt16 = bytes.span.littleEndian(2) ?? 0
        let sum = Checksum.record(bytes.span.extracting(8...)) ^ UInt32(flags)
        bytes.replace(littleEndian: sum, at: 4)
    }

    @Test("noise is never one", arguments: [0, 1, 95, 96, 97, 500])
    func noise(count: Int) {
        for seed in 0..<50 as Range<UInt64> {
            var bytes = pattern(count, seed: seed)
            #expect(throws: RecordDamage.self) { try decode(bytes) }
            // The same behind a right mark and checksum: lengths and fields must hold it off.
            guard count >= 96 else { continue }
            bytes[0] = UInt8(ascii: "L")
            bytes[1] = 1
            Self.reseal(&bytes)
            #expect(throws: RecordDamage.self) { try decode(bytes) }
        }
    }
}

extension RecordTests {
    private static let hash = KeyHash(high: 0x0123_4567_89AB_CDEF, low: 42)

    private static func facts(_ bytes: [UInt8]) throws(RecordDamage) -> StandingFacts {
        try ObjectRecord.standingFacts(bytes.span, of: Self.hash)
    }

    @Test("tells eviction what its fields and its tail do", arguments: 0..<200 as Range<UInt64>)
    func standingFacts(seed: UInt64) throws {
        let bytes = Self.record(seed).encoded()
        let record = try decode(bytes)
        let facts = try Self.facts(bytes)
        #expect(facts == StandingFacts(record, of: Self.hash))
        #expect(facts.charge == record.charge)
        #expect(facts.bodyPages == record.bodyPages)
    }

    @Test("tells eviction nothing where any byte of it is changed, or it is cut")
    func standingFactsOfDamaged() {
        let bytes = Self.record(3).encoded()
        for i in bytes.indices {
            var changed = bytes
            changed[i] ^= 0x10
            #expect(throws: RecordDamage.self) { try Self.facts(changed) }
            #expect(throws: RecordDamage.self) { try Self.facts(Array(bytes[..<i])) }
        }
    }

    @Test("tells eviction what lies within it, or nothing, where its lengths lie")
    func standingFactsForged() {
        for seed in [5, 6, 7, 8] as [UInt64] {
            let bytes = Self.record(seed).encoded()
            for place in [66, 68, 72, 76, 80, 84, 88, 92] {
                for value in [0, 1, 0xFFFF, 0xFFFF_FFFF] as [UInt32] {
                    var forged = bytes
                    if place == 66 || place == 68 {
                        forged.replace(littleEndian: UInt16(truncatingIfNeeded: value), at: place)
                    } else {
                        forged.replace(littleEndian: value, at: place)
                    }
                    Self.reseal(&forged)
                    // It must come to an end, whichever.
                    if let facts = try? Self.facts(forged), forged == bytes {
                        #expect(facts.sequence == Self.record(seed).sequence)
                    }
                }
            }
        }
    }

    @Test("is decoded once for its bytes, and anew when they or its id are others")
    func decodedOnce() throws {
        let records = DecodedRecords()
        var record = Self.record(5)
        let id = ObjectID(rawValue: 7)
        func decoded(_ id: ObjectID) throws -> ObjectRecord {
            try records.record(id, record.encoded().span).record
        }
        for place in [id, ObjectID(rawValue: 7 + UInt64(DecodedRecords.count)), id] {
            #expect(try decoded(place) == record)
            #expect(try decoded(place) == record)
        }
        record.hits &+= 1
        #expect(try decoded(id) == record)
        record.head.isInvalidated.toggle()
        #expect(try decoded(id) == record)
        // What is too large to be kept comes back as well.
        record.head.fields.append(
            "X-Large", [UInt8](repeating: 0x61, count: DecodedRecords.largest))
        #expect(try decoded(id) == record)
    }

    @Test("is refused when a byte of it changes after it was decoded")
    func changedLater() throws {
        let records = DecodedRecords()
        var record = Self.record(3)
        record.key = CacheKey(bytes: [1])
        record.head.fields = ["A": "b"]
        let bytes = record.encoded()
        #expect(bytes.count <= DecodedRecords.largest)
        let id = ObjectID(rawValue: 1)
        #expect(try records.record(id, bytes.span).record == record)
        for i in bytes.indices {
            var changed = bytes
            changed[i] ^= 0x10
            #expect(throws: RecordDamage.self) { try records.record(id, changed.span) }
        }
        #expect(try records.record(id, bytes.span).record == record)
    }
}

private func decode(_ bytes: [UInt8]) throws(RecordDamage) -> ObjectRecord {
    try ObjectRecord.decode(bytes.span)
}

@Suite("Segments and keys")
struct SegmentTests {
    @Test(
        "a body is cut so that each segment fills sixteen pages",
        arguments: [
            (0, 0), (1, 1), (65_511, 1), (65_512, 1), (65_513, 2), (131_024, 2), (131_025, 3),
        ] as [(UInt64, UInt32)])
    func count(length: UInt64, segments: UInt32) {
        #expect(Segment.count(of: length) == segments)
        let sum = (0..<segments).reduce(0) {
            $0 + Segment.payloadLength(of: $1, bodyLength: length)
        }
        #expect(UInt64(sum) == length)
        #expect(Segment.payloadLength(of: segments, bodyLength: length) == 0)
    }

    @Test("a body too long for its segments to be counted has no count")
    func tooLong() {
        #expect(Segment.count(of: .max) == nil)
        #expect(16 + Segment.valueSize == 16 * 4096)
    }

    @Test(
        "a step of reading leads on, also at the end of the longest body that a record may claim",
        arguments: [
            0, 65_511, 65_512, 1 << 40, UInt64(UInt32.max) * 65_512 - 1,
            (UInt64(UInt32.max) + 1) * 65_512 - 1, .max - 1,
        ] as [UInt64])
    func step(offset: UInt64) {
        var reading = BodyReading(range: offset..<(.max))
        guard case .readInPlace(let range) = reading.asked() else {
            Issue.record("nothing to read")
            return
        }
        #expect(range.lowerBound == offset && !range.isEmpty)
        guard case .pending = reading.readInPlace(SegmentsRead(end: .notResident)) else {
            Issue.record("not left to the pool")
            return
        }
        let step = reading.takeJob()?.step
        #expect(step.map { $0.lowerBound == offset && !$0.isEmpty } == true)
    }

    @Test("a segment is sound only whole, unchanged and in its place")
    func damage() {
        let id = ObjectID(rawValue: 77)
        let payload = pattern(1000)
        var value = [UInt8](repeating: 0, count: Segment.headerSize + payload.count)
        var span = value.mutableSpan
        Segment.write(
            [ByteBuffer(bytes: payload[..<300]), ByteBuffer(bytes: payload[300...])], id: id,
            index: 3, into: &span)
        func place(
            _ value: [UInt8], _ wanted: Range<Int>, _ id: ObjectID = ObjectID(rawValue: 77),
            _ index: UInt32 = 3
        ) -> Range<Int>? {
            try? Segment.place(of: wanted, in: value.span, id: id, index: index).get()
        }
        #expect(Array(value[Segment.headerSize...]) == payload)
        #expect(place(value, 0..<1000) == Segment.headerSize..<value.count)
        #expect(place(value, 10..<20) == Segment.headerSize + 10..<Segment.headerSize + 20)
        #expect(place(value, 0..<1000, id, 4) == nil)
        #expect(place(value, 0..<1000, ObjectID(rawValue: 78)) == nil)
        #expect(place(value, 0..<1001) == nil)
        #expect(place(Array(value.dropLast()), 0..<1) == nil)
        #expect(place([1, 2, 3], 0..<0) == nil)
        for i in value.indices {
            var changed = value
            changed[i] ^= 1
            #expect(place(changed, 0..<0) == nil)
        }
    }

    @Test("a segment that begins inside its cell is sound for just that part of it")
    func insideCell() {
        let id = ObjectID(rawValue: 77)
        let payload = pattern(500)
        var value = [UInt8](repeating: 0, count: Segment.headerSize + payload.count)
        var span = value.mutableSpan
        Segment.write(
            [ByteBuffer(bytes: payload)], id: id, index: 3, start: 65_012, into: &span)
        let verdict = Segment.verify(value.span, id: id, index: 3)
        #expect(verdict == .sound(65_012..<65_512))
        for (wanted, isThere) in [
            (65_012..<65_512, true), (65_100..<65_101, true), (65_011..<65_013, false),
            (0..<1, false), (65_511..<65_513, false),
        ] {
            let place = try? Segment.place(of: wanted, in: value.span, id: id, index: 3).get()
            #expect((place != nil) == isThere)
        }
        for i in value.indices {
            var changed = value
            changed[i] ^= 1
            let verdict = Segment.verify(changed.span, id: id, index: 3)
            if case .sound = verdict { Issue.record("byte \(i) is not covered") }
        }
    }

    @Test("keys of one cache key sort the most recent first, others beside them")
    func order() {
        let hash = KeyHash(high: 1, low: 2)
        let keys = [9, 2, 1].map {
            ObjectKey(hash: hash, id: ObjectID(rawValue: $0)).bytes.span.copied
        }
        #expect(keys.sorted { $0.lexicographicallyPrecedes($1) } == keys)
        let first = keys[0]
        let parsed = ObjectKey(first.span)
        #expect(parsed?.id == ObjectID(rawValue: 9))
        let segment = SegmentKey(id: ObjectID(rawValue: 5), index: 6)
        let bytes = segment.bytes
        let again = SegmentKey(bytes.span)
        #expect(again == segment)
    }

    @Test("the state of a store comes back, and noise does not pass for one")
    func meta() {
        var meta = StoreMeta(seed: 7)
        meta.nextID = 100
        meta.evictions = 3
        let bytes = meta.encoded()
        let again = StoreMeta(bytes.span)
        #expect(again == meta)
        for i in bytes.indices where !(4..<8).contains(i) {
            var changed = bytes
            changed[i] ^= 4
            let read = StoreMeta(changed.span)
            #expect(read == nil)
        }
    }

    @Test(
        "the state of a store without a sensible next id is none",
        arguments: [
            (0, false), (1, true), ((1 << 62) - 1, true), (1 << 62, false), (.max, false),
        ] as [(UInt64, Bool)])
    func nextID(_ number: UInt64, isSound: Bool) {
        var meta = StoreMeta(seed: 7)
        meta.nextID = number
        let bytes = meta.encoded()
        let read = StoreMeta(bytes.span)
        #expect((read != nil) == isSound)
    }
}
