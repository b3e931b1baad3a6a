import ArgumentParser
import LarderDaemon
import LarderHTTP

/// What rows are sorted by.
///
/// Names in the order of their letters, numbers the largest first.
enum RowOrder: String, CaseIterable, ExpressibleByArgument {
    case url, size, age, hits
    case lastUsed = "last-used"
    case freshFor = "fresh-for"
    case host
}

/// A row as a record of a ``RecordSorter``: bytes whose order is the order that was asked for.
///
/// ```
/// what is sorted by │ URL 0 │ method 0 │ principal 0 │ id:8 │ numbers … │ lengths of the first four
/// ```
///
/// Rows that are alike in what they are sorted by come by URL, and those that differ in nothing that
/// is shown by id: the order of a listing is always the same.
enum RowRecord {
    static func of(_ row: CacheRow, by order: RowOrder) -> [UInt8] {
        let first = Self.first(row, order)
        var out = first
        for text in [row.url, row.method, row.partition] {
            out += text.utf8
            out.append(0)
        }
        out.append(bigEndian: row.id)
        out.append(bigEndian: UInt64(bitPattern: Int64(row.status)))
        for number in [
            row.bytes, UInt64(bitPattern: row.ageMilliseconds),
            UInt64(bitPattern: row.freshForMilliseconds), row.hits,
            UInt64(bitPattern: row.lastUsedMicroseconds),
        ] { out.append(bigEndian: number) }
        out.append(row.tier.code)
        Self.append(row.partial, to: &out)
        Self.append(row.variant, to: &out)
        for length in [
            first.count, row.url.utf8.count, row.method.utf8.count, row.partition.utf8.count,
        ] { out.append(bigEndian: UInt64(length)) }
        return out
    }

    private static func first(_ row: CacheRow, _ order: RowOrder) -> [UInt8] {
        var out: [UInt8] = []
        switch order {
        case .url: break
        case .host: out += URLHost.of(row.url.utf8).map(ASCII.lowercased) + [0]
        case .size: out.append(bigEndian: ~row.bytes)
        case .hits: out.append(bigEndian: ~row.hits)
        case .age: out.append(bigEndian: ~Self.ordered(row.ageMilliseconds))
        case .lastUsed: out.append(bigEndian: ~Self.ordered(row.lastUsedMicroseconds))
        case .freshFor: out.append(bigEndian: ~Self.ordered(row.freshForMilliseconds))
        }
        return out
    }

    /// Sorts as the number does, its sign included.
    private static func ordered(_ number: Int64) -> UInt64 {
        UInt64(bitPattern: number) ^ 1 << 63
    }

    private static func append(_ partial: CachePartial?, to out: inout [UInt8]) {
        guard let partial else { return out.append(0) }
        out.append(partial.completeLength == nil ? 1 : 2)
        out.append(bigEndian: partial.storedBytes)
        out.append(bigEndian: partial.completeLength ?? 0)
        out.append(bigEndian: UInt64(partial.ranges.count))
        for range in partial.ranges {
            out.append(bigEndian: range.first)
            out.append(bigEndian: range.last)
        }
    }

    private static func append(_ variant: [CacheField], to out: inout [UInt8]) {
        out.append(bigEndian: UInt64(variant.count))
        for text in variant.flatMap({ [$0.name, $0.value] }) {
            out.append(bigEndian: UInt64(text.utf8.count))
            out += text.utf8
            out.append(0)
        }
    }

    /// The row of a record; nil where the bytes are none.
    static func row(_ bytes: [UInt8]) -> CacheRow? {
        guard bytes.count >= 32 else { return nil }
        var lengths = Reader(bytes[(bytes.count - 32)...])
        var reader = Reader(bytes.dropLast(32))
        guard let first = lengths.number(), reader.bytes(first) != nil,
            let url = reader.text(lengths.number()), let method = reader.text(lengths.number()),
            let partition = reader.text(lengths.number()), let id = reader.number(),
            let status = reader.number(), let size = reader.number(), let age = reader.number(),
            let fresh = reader.number(), let hits = reader.number(), let used = reader.number(),
            let tier = reader.bytes(1)?.first.flatMap({ CacheTier(code: $0) }),
            let partial = reader.partial(), let variant = reader.variant()
        else { return nil }
        return CacheRow(
            id: id, partition: partition, method: method, url: url,
            status: Int(truncatingIfNeeded: status), bytes: size,
            ageMilliseconds: Int64(bitPattern: age),
            freshForMilliseconds: Int64(bitPattern: fresh), hits: hits,
            lastUsedMicroseconds: Int64(bitPattern: used), tier: tier, partial: partial,
            variant: variant)
    }

    private struct Reader {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) {
            self.rest = bytes
        }

        mutating func bytes(_ count: UInt64) -> ArraySlice<UInt8>? {
            guard count <= UInt64(self.rest.count) else { return nil }
            defer { self.rest = self.rest.dropFirst(Int(count)) }
            return self.rest.prefix(Int(count))
        }

        mutating func number() -> UInt64? {
            self.bytes(8)?.reduce(0) { $0 << 8 | UInt64($1) }
        }

        /// Text of this length, and the zero behind it.
        mutating func text(_ length: UInt64?) -> String? {
            guard let length, let bytes = self.bytes(length), self.bytes(1) != nil else {
                return nil
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        mutating func variant() -> [CacheField]? {
            guard let count = self.number(), count <= UInt64(self.rest.count) / 18 else {
                return nil
            }
            var variant: [CacheField] = []
            for _ in 0..<count {
                guard let name = self.text(self.number()), let value = self.text(self.number())
                else { return nil }
                variant.append(CacheField(name: name, value: value))
            }
            return variant
        }

        mutating func partial() -> CachePartial?? {
            guard let kind = self.bytes(1)?.first else { return nil }
            if kind == 0 { return .some(nil) }
            guard let stored = self.number(), let length = self.number(),
                let count = self.number(), count <= UInt64(self.rest.count) / 16
            else { return nil }
            var ranges: [CacheRange] = []
            for _ in 0..<count {
                guard let first = self.number(), let last = self.number() else { return nil }
                ranges.append(CacheRange(first: first, last: last))
            }
            return CachePartial(
                ranges: ranges, storedBytes: stored, completeLength: kind == 2 ? length : nil)
        }
    }
}

extension CacheTier {
    fileprivate var code: UInt8 {
        switch self {
        case .memory: 1
        case .disk: 2
        case .both: 3
        }
    }

    fileprivate init?(code: UInt8) {
        switch code {
        case 1: self = .memory
        case 2: self = .disk
        case 3: self = .both
        default: return nil
        }
    }
}

extension [UInt8] {
    /// Appends a number, most significant byte first.
    fileprivate mutating func append(bigEndian number: UInt64) {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            self.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }
}
