/// One range of a `Range` field in bytes (RFC 9110 §14.1.1).
package enum ByteRange: Sendable, Hashable {
    /// `first-last`, both included; `last` is nil for `first-`.
    case from(UInt64, through: UInt64?)
    /// `-count`: the last so many bytes.
    case suffix(UInt64)

    /// The bytes of a representation of this length that the range asks for; nil where it asks for
    /// none of them (§14.1.2).
    ///
    /// Empty only for a suffix of an empty representation: satisfiable, but not to be written as a
    /// `Content-Range`.
    package func resolve(length: UInt64) -> Range<UInt64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            // `length` is above zero here, so there is a last byte.
            return first..<(min(last ?? (length - 1), length - 1) + 1)
        case .suffix(let count):
            guard count > 0 else { return nil }
            return (length - min(count, length))..<length
        }
    }

    /// Nil where the bytes are no `range-spec` of the unit `bytes`.
    init?(_ spec: FieldValue) {
        guard let dash = spec.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let left = spec[spec.startIndex..<dash]
        let right = spec[(dash + 1)...]
        if left.isEmpty {
            guard let count = UInt64(saturatingDigits: right) else { return nil }
            self = .suffix(count)
        } else {
            guard let first = UInt64(saturatingDigits: left) else { return nil }
            if right.isEmpty {
                self = .from(first, through: nil)
            } else {
                guard let last = UInt64(saturatingDigits: right), first <= last else { return nil }
                self = .from(first, through: last)
            }
        }
    }
}

/// The ranges that a `Range` field asks for (RFC 9110 §14.2).
package struct RangeSet: Sendable, Hashable {
    package var ranges: [ByteRange]

    package init(_ ranges: [ByteRange]) {
        self.ranges = ranges
    }

    /// The set in a field value; nil where it is malformed or of another unit than `bytes`, which
    /// means that the field is ignored (§14.2).
    package static func parse(_ value: FieldValue) -> RangeSet? {
        guard let equals = value.firstIndex(of: ASCII.equals),
            value[value.startIndex..<equals].spells("bytes")
        else { return nil }
        var ranges: [ByteRange] = []
        for member in ListMembers(value[(equals + 1)...]) {
            guard let range = ByteRange(member) else { return nil }
            ranges.append(range)
        }
        return ranges.isEmpty ? nil : RangeSet(ranges)
    }

    /// The set of a request; nil where there is no `Range`, or more than one, or an invalid one.
    package init?(of fields: Fields) {
        let values = fields.values(FieldName(.range))
        guard values.count == 1, let set = Self.parse(values[0]) else { return nil }
        self = set
    }

    /// The satisfiable ranges in the order asked for; nil where none is, which means 416 (§15.5.17).
    package func resolve(length: UInt64) -> [Range<UInt64>]? {
        let resolved = self.ranges.compactMap { $0.resolve(length: length) }
        return resolved.isEmpty ? nil : resolved
    }

    /// Whether a server should answer with the whole instead (§14.2, §17.15): more than 16 ranges,
    /// or more than two that overlap.
    package func isExcessive(length: UInt64) -> Bool {
        if self.ranges.count > 16 { return true }
        let sorted = (self.resolve(length: length) ?? []).sorted {
            $0.lowerBound < $1.lowerBound
        }
        var overlaps = 0
        var end: UInt64 = 0
        for range in sorted {
            if range.lowerBound < end { overlaps += 1 }
            end = max(end, range.upperBound)
        }
        return overlaps > 1
    }
}

/// `Content-Range` (RFC 9110 §14.4) in bytes.
package enum ContentRange: Sendable, Hashable {
    /// The bytes enclosed, and the length of the whole where it is known.
    case bytes(Range<UInt64>, of: UInt64?)
    /// `*/length`: none can be given; what a 416 says.
    case unsatisfied(length: UInt64)

    /// Nil for another unit than `bytes`, and for whatever contradicts itself: a last byte before the
    /// first, or one beyond the length.
    package init?(parsing value: FieldValue) {
        guard value.prefix(6).spells("bytes ") else { return nil }
        let rest = value.dropFirst(6)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let span = rest[rest.startIndex..<slash]
        let whole = rest[(slash + 1)...]
        let star = [UInt8(ascii: "*")]
        let length = UInt64(exactDigits: whole)
        if span.elementsEqual(star) {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
            return
        }
        guard let dash = span.firstIndex(of: UInt8(ascii: "-")),
            let first = UInt64(exactDigits: span[span.startIndex..<dash]),
            let last = UInt64(exactDigits: span[(dash + 1)...]),
            first <= last, last < .max
        else { return nil }
        if let length {
            guard last < length else { return nil }
            self = .bytes(first..<(last + 1), of: length)
        } else {
            guard whole.elementsEqual(star) else { return nil }
            self = .bytes(first..<(last + 1), of: nil)
        }
    }

    /// The field value. An empty range has none; it is written as unsatisfied.
    package var value: String {
        switch self {
        case .bytes(let range, let length):
            guard !range.isEmpty else { return "bytes */\(length ?? 0)" }
            let whole = length.map { String($0) } ?? "*"
            return "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(whole)"
        case .unsatisfied(let length):
            return "bytes */\(length)"
        }
    }
}

extension UInt64 {
    /// The number that the digits spell, the largest one where they spell more; nil for anything
    /// but digits.
    package init?(saturatingDigits digits: FieldValue) {
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
        self = UInt64(exactDigits: digits) ?? .max
    }

    /// The number that the digits spell; nil for anything but digits and for what does not fit.
    package init?(exactDigits digits: FieldValue) {
        guard !digits.isEmpty else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard ASCII.isDigit(byte) else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte - 0x30))
            guard !overflow, !carry else { return nil }
            number = sum
        }
        self = number
    }
}
