@testable import LarderDisk
import LarderHTTP
import LarderPolicy
import LarderStore

/// What lies on a disk, where anything may have happened to it.
///
/// Checksums are set right before reading: else nothing would be read that is not sound already.
enum DiskRecordPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try self.checkRecord(input)
        var repaired = input
        if input.count >= ObjectRecord.fixedSize {
            repaired[0] = UInt8(ascii: "L")
            let flags = UInt32(input[2]) | UInt32(input[3]) << 8
            repaired.replace(
                littleEndian: Checksum.record(input.span.extracting(8...)) ^ flags, at: 4)
            try self.checkRecord(repaired)
        }
        try self.checkFields(input)
        try self.checkKeys(input)
        try self.checkSegment(input)
    }

    private static func checkRecord(_ bytes: [UInt8]) throws(Violation) {
        guard let record = try? ObjectRecord.decode(bytes.span) else { return }
        try checkSection(record.head.fields)
        try checkSection(record.head.varyingFields)
        try checkSection(record.trailers)
        let written = record.encoded()
        let again = try? ObjectRecord.decode(written.span)
        try hold(again == record, "written and read again: \(again as Any), first: \(record)")
        _ = record.key.parts
        let now = Timestamp(seconds: 1_700_000_000)
        _ = Freshness.of(record.head, at: now, configuration: PolicyConfiguration())
        // Cut short anywhere, it is refused.
        for length in [0, 95, bytes.count / 2, bytes.count - 1] where length < bytes.count {
            let part = try? ObjectRecord.decode(bytes.span.extracting(first: length))
            try hold(part == nil, "a record cut to \(length) of \(bytes.count) is read")
        }
    }

    private static func checkFields(_ bytes: [UInt8]) throws(Violation) {
        guard let fields = FieldsCoding.decode(bytes.span) else { return }
        try checkSection(fields)
        var written: [UInt8] = []
        FieldsCoding.append(fields, to: &written)
        try hold(written == bytes, "fields that can be written in two ways: \(fields.pairs)")
    }

    private static func checkKeys(_ bytes: [UInt8]) throws(Violation) {
        if let key = ObjectKey(bytes.span) { try hold(key.bytes.span.copied == bytes, "\(key)") }
        if let key = SegmentKey(bytes.span) { try hold(key.bytes.span.copied == bytes, "\(key)") }
        if let entry = QueueEntry(bytes.span), let charge = entry.charge {
            let again = QueueEntry.bytes(of: entry.key, charge: charge)
            try hold(again.span.copied == bytes, "\(entry)")
        }
        if let number = NumberKey.number(bytes.span) {
            try hold(NumberKey.bytes(number).span.copied == bytes, "\(number)")
            if let count = Segment.count(of: number), count > 0 {
                let last = Segment.payloadLength(of: count - 1, bodyLength: number)
                try hold(
                    last > 0 && Segment.offset(of: count - 1) + UInt64(last) == number,
                    "\(count) segments for \(number) bytes")
                try hold(Segment.payloadLength(of: count, bodyLength: number) == 0, "\(number)")
            }
        }
        if let name = GroupCoding.name(bytes.span) {
            try hold(GroupCoding.key(name) == bytes, "\(name)")
        }
        if let time = GroupCoding.time(bytes.span) {
            try hold(GroupCoding.encode(time) == bytes, "\(time)")
        }
        if let meta = StoreMeta(bytes.span) {
            let again = StoreMeta(meta.encoded().span)
            try hold(again == meta, "\(again as Any), first: \(meta)")
        }
        _ = CacheKey(bytes: bytes).parts
    }

    private static func checkSegment(_ bytes: [UInt8]) throws(Violation) {
        let id = ObjectID(rawValue: .max)
        var repaired = bytes
        if let start: UInt16 = bytes.span.littleEndian(6) {
            let payload = bytes.span.extracting(Segment.headerSize...)
            let sum = Checksum.segment(payload, id: id, index: .max, start: start)
            repaired.replace(littleEndian: sum, at: 0)
        }
        for value in [bytes, repaired] {
            guard case .sound(let held) = Segment.verify(value.span, id: id, index: .max) else {
                continue
            }
            try hold(
                held.count == value.count - Segment.headerSize
                    && held.upperBound <= Segment.payloadSize,
                "\(value.count) bytes pass for \(held) of a cell")
            for wanted in [held, 0..<1, 0..<Segment.payloadSize, 0..<held.upperBound + 1] {
                let place = try? Segment.place(of: wanted, in: value.span, id: id, index: .max)
                    .get()
                let isHeld =
                    held.lowerBound <= wanted.lowerBound && wanted.upperBound <= held.upperBound
                try hold(
                    (place != nil) == isHeld, "\(wanted) of \(held) is found at \(place as Any)")
                guard let place else { continue }
                try hold(
                    place.count == wanted.count && place.upperBound <= value.count,
                    "\(wanted) of \(held) is found at \(place)")
            }
        }
    }
}
