import LarderHTTP
import LarderPolicy
import LarderStore
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("The tail of a record: extent, attachment and path")
struct RecordTailTests {
    struct Case: Sendable {
        var extent: StoredExtent?
        var path: String?
        var attachment: [UInt8]?
        var size: Int
    }

    @Test(
        "comes back as it was written, and takes no room where there is nothing to say",
        arguments: [
            Case(size: 0),
            Case(path: "/a?b=c", size: 4 + 6),
            Case(path: "", size: 4),
            Case(extent: StoredExtent(completeLength: 10, ranges: [2..<5]), size: 4 + 8 + 16),
            Case(extent: StoredExtent(completeLength: nil, ranges: [2..<5]), size: 4 + 16),
            Case(
                extent: StoredExtent(completeLength: 10, ranges: [0..<1, 2..<5, 9..<10]),
                path: "/ü", size: 4 + 8 + 48 + 3),
            Case(attachment: [1, 2, 3], size: 4 + 4 + 3),
            Case(attachment: [], size: 4 + 4),
            Case(
                extent: StoredExtent(completeLength: 10, ranges: [2..<5]), path: "/a",
                attachment: [0x2F, 0], size: 4 + 8 + 16 + 4 + 2 + 2),
            Case(
                extent: StoredExtent(
                    completeLength: nil, ranges: (0..<64).map { $0 * 10..<$0 * 10 + 1 }),
                size: 4 + 64 * 16),
        ])
    func roundTrip(_ c: Case) throws {
        let tail = self.tail(c.extent, c.path, c.attachment)
        let bytes = tail.encoded()
        #expect(bytes.count == c.size)
        let again = try RecordTail(bytes.span)
        #expect(again == tail)
    }

    private func tail(
        _ extent: StoredExtent?, _ path: String?, _ attachment: [UInt8]? = nil
    ) -> RecordTail {
        var head = storedHead()
        head.attachment = attachment.map { StoredAttachment(bytes: $0) }
        head.extent = extent
        head.pathAndQuery = path
        return RecordTail(head)
    }

    @Test("is refused when it is cut, wherever")
    func cut() {
        let extent = StoredExtent(completeLength: 1000, ranges: [2..<5, 7..<9])
        let bytes = self.tail(extent, nil).encoded()
        for count in 1..<bytes.count {
            let cut = Array(bytes[..<count])
            #expect(throws: RecordDamage.tail) { try decode(cut) }
        }
        #expect(throws: RecordDamage.tail) { try decode(bytes + [0x41]) }
    }

    private func forged(
        _ flags: UInt8, _ count: UInt8, reserved: UInt16 = 0, length: UInt64? = nil,
        _ ranges: [(UInt64, UInt64)] = [], path: [UInt8] = []
    ) -> [UInt8] {
        var out = [flags, count]
        out.append(littleEndian: reserved)
        if let length { out.append(littleEndian: length) }
        for (start, end) in ranges {
            out.append(littleEndian: start)
            out.append(littleEndian: end)
        }
        return out + path
    }

    @Test("is refused when it says what no store writes")
    func forged() {
        let many = (0..<65 as Range<UInt64>).map { ($0 * 10, $0 * 10 + 1) }
        for (what, bytes) in [
            ("no flag", self.forged(0, 0)),
            ("unknown flag", self.forged(16, 0)),
            ("unknown flag beside a path", self.forged(20, 0, path: [0x2F])),
            ("no length of an attachment", self.forged(8, 0, path: [1, 0, 0])),
            ("an attachment beyond the end", self.forged(8, 0, path: [2, 0, 0, 0, 7])),
            ("an attachment of absurd length", self.forged(8, 0, path: [255, 255, 255, 255])),
            ("bytes behind an attachment", self.forged(8, 0, path: [1, 0, 0, 0, 7, 7])),
            ("reserved bytes", self.forged(4, 0, reserved: 1)),
            ("ranges without extent", self.forged(4, 1, [(0, 5)])),
            ("length without extent", self.forged(2, 0, length: 5)),
            ("no range", self.forged(1, 0)),
            ("no range of a known length", self.forged(3, 0, length: 5)),
            ("more ranges than the bound", self.forged(1, 65, many)),
            ("an empty range", self.forged(1, 1, [(5, 5)])),
            ("a range backwards", self.forged(1, 1, [(5, 4)])),
            ("ranges out of order", self.forged(1, 2, [(5, 6), (1, 2)])),
            ("ranges that touch", self.forged(1, 2, [(1, 2), (2, 3)])),
            ("ranges that overlap", self.forged(1, 2, [(1, 5), (2, 9)])),
            ("a range beyond the end", self.forged(3, 1, length: 4, [(2, 5)])),
            ("nothing missing", self.forged(3, 1, length: 5, [(0, 5)])),
            ("a path that is no text", self.forged(4, 0, path: [0xFF])),
            ("bytes behind the ranges", self.forged(1, 1, [(1, 2)], path: [0x2F])),
        ] {
            #expect(throws: RecordDamage.tail, Comment(rawValue: what)) { try decode(bytes) }
        }
        // What is well formed among such bytes is no damage.
        #expect(throws: Never.self) { try decode(self.forged(5, 1, [(1, 2)], path: [0x2F])) }
    }

    @Test("noise that passes is what would be written", arguments: 0..<2000 as Range<UInt64>)
    func noise(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var bytes = pattern(Int(generator.next() % 60), seed: seed)
        if bytes.count >= 4 {
            bytes[0] = UInt8(generator.next() % 16)
            bytes[1] = UInt8(generator.next() % 4)
            bytes[2] = 0
            bytes[3] = 0
        }
        guard let tail = try? RecordTail(bytes.span) else { return }
        #expect(tail.encoded() == bytes)
    }

    @Test("a record with ends that no counter holds is refused, not counted")
    func farEnds() {
        var record = ObjectRecord(
            key: cacheKey("a"), head: storedHead(), trailers: [:], bodyLength: 0, segmentCount: 0,
            hits: 0, lastUsed: .init(seconds: 0), sequence: 0,
            standing: EvictionRules.Standing(queue: .small, uses: 0))
        for extent in [
            StoredExtent(completeLength: nil, ranges: [1..<UInt64.max]),
            StoredExtent(completeLength: .max, ranges: [1..<2]),
            StoredExtent(completeLength: nil, ranges: [(.max - 1)..<UInt64.max]),
        ] {
            record.head.extent = extent
            for length in [0, 2, extent.bodyLength] as [UInt64] {
                record.bodyLength = length
                let bytes = record.encoded()
                #expect(throws: RecordDamage.lengths) { try ObjectRecord.decode(bytes.span) }
            }
        }
    }

    @Test(
        "segments of a partial response are counted by the cells that it touches",
        arguments: [
            ([0..<1], 1), ([65_511..<65_512], 1), ([65_511..<65_513], 2), ([65_512..<65_513], 1),
            ([0..<10, 20..<30, 65_000..<65_600], 2), ([0..<1, 131_024..<131_025], 2),
            ([10..<65_512 * 3], 3), ([0..<1, 65_000..<65_512, 65_513..<65_514], 2),
        ] as [([Range<UInt64>], UInt32)])
    func cells(ranges: [Range<UInt64>], count: UInt32) {
        let extent = StoredExtent(completeLength: 1_000_000, ranges: ranges)
        #expect(ObjectRecord.segmentCount(of: extent, bodyLength: 1_000_000) == count)
    }
}

private func decode(_ bytes: [UInt8]) throws(RecordDamage) {
    _ = try RecordTail(bytes.span)
}
