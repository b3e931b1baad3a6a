import LarderCredentials

/// Why bytes are no record.
enum RecordFault: String, Error, Sendable {
    /// Shorter than its own lengths say.
    case short
    /// Longer than that.
    case long
    /// A word, a number or a text that cannot be.
    case value
    /// The record is of a version that this release does not know.
    case version
}

/// The place in a record up to which it was read; the record is lent at each step.
struct RecordReader {
    private var offset = 0

    mutating func byte(_ record: Span<UInt8>) throws(RecordFault) -> UInt8 {
        guard self.offset < record.count else { throw .short }
        defer { self.offset += 1 }
        return record[self.offset]
    }

    mutating func flag(_ record: Span<UInt8>) throws(RecordFault) -> Bool {
        switch try self.byte(record) {
        case 0: return false
        case 1: return true
        default: throw .value
        }
    }

    mutating func number<T: FixedWidthInteger>(
        _ record: Span<UInt8>, as: T.Type = T.self
    ) throws(RecordFault) -> T {
        var value: T = 0
        for i in 0..<T.bitWidth / 8 {
            value |= T(truncatingIfNeeded: try self.byte(record)) << T(truncatingIfNeeded: i * 8)
        }
        return value
    }

    private mutating func range(_ record: Span<UInt8>) throws(RecordFault) -> Range<Int> {
        let count = Int(try self.number(record, as: UInt32.self))
        guard count <= record.count - self.offset else { throw .short }
        defer { self.offset += count }
        return self.offset..<self.offset + count
    }

    mutating func octets(_ record: Span<UInt8>) throws(RecordFault) -> [UInt8] {
        let part = record.extracting(try self.range(record))
        return unsafe part.withUnsafeBufferPointer { unsafe Array($0) }
    }

    mutating func text(_ record: Span<UInt8>) throws(RecordFault) -> String {
        guard let text = String(validating: try self.octets(record), as: UTF8.self) else {
            throw .value
        }
        return text
    }

    mutating func optionalText(_ record: Span<UInt8>) throws(RecordFault) -> String? {
        try self.flag(record) ? try self.text(record) : nil
    }

    mutating func secret(_ record: Span<UInt8>) throws(RecordFault) -> Secret {
        Secret(record.extracting(try self.range(record)))
    }

    /// What follows is nothing.
    func end(_ record: Span<UInt8>) throws(RecordFault) {
        if self.offset != record.count { throw .long }
    }
}
