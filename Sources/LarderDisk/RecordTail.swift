import LarderPolicy
import LarderStore

/// What only some stored responses have, at the end of their record: which bytes are stored of a
/// partial one, what was attached to it, and the path where the key does not say it.
///
/// ```
/// 0 flags:1 ranges:1 0:2
/// 4 complete length:8, where it is known
///   (start:8 end:8) × ranges
///   length:4 attachment, where there is one
///   path and query
/// ```
///
/// Empty for all others, so that their records are what they were before there was a tail.
struct RecordTail: Sendable, Equatable {
    var extent: StoredExtent?
    var pathAndQuery: String?
    var attachment: [UInt8]?

    private struct Flags: OptionSet {
        var rawValue: UInt8
        static let extent = Flags(rawValue: 1)
        static let completeLength = Flags(rawValue: 2)
        static let path = Flags(rawValue: 4)
        static let attachment = Flags(rawValue: 8)
        static let all: Flags = [.extent, .completeLength, .path, .attachment]
    }

    init(_ head: StoredHead) {
        self.extent = head.extent
        self.pathAndQuery = head.pathAndQuery
        self.attachment = head.attachment?.bytes
    }

    func encoded() -> [UInt8] {
        var flags: Flags = []
        if self.extent != nil { flags.insert(.extent) }
        if self.extent?.completeLength != nil { flags.insert(.completeLength) }
        if self.pathAndQuery != nil { flags.insert(.path) }
        if self.attachment != nil { flags.insert(.attachment) }
        if flags.isEmpty { return [] }
        let ranges = self.extent?.ranges ?? []
        var out: [UInt8] = []
        out.append(flags.rawValue)
        out.append(UInt8(clamping: ranges.count))
        out.append(littleEndian: UInt16(0))
        if let length = self.extent?.completeLength { out.append(littleEndian: length) }
        for range in ranges {
            out.append(littleEndian: range.lowerBound)
            out.append(littleEndian: range.upperBound)
        }
        if let attachment = self.attachment {
            out.append(littleEndian: UInt32(clamping: attachment.count))
            out.append(contentsOf: attachment)
        }
        out.append(contentsOf: (self.pathAndQuery ?? "").utf8)
        return out
    }

    /// The tail in `bytes`, all of which it must take; only what `encoded` makes is one.
    init(_ bytes: Span<UInt8>) throws(RecordDamage) {
        if bytes.isEmpty { return }
        guard bytes.count >= 4, let reserved: UInt16 = bytes.littleEndian(2), reserved == 0 else {
            throw .tail
        }
        let flags = Flags(rawValue: bytes[0])
        let count = Int(bytes[1])
        guard !flags.isEmpty, flags.isSubset(of: .all),
            flags.contains(.extent) || (count == 0 && !flags.contains(.completeLength))
        else { throw .tail }
        var offset = 4
        if flags.contains(.extent) {
            self.extent = try Self.extent(bytes, &offset, flags, count)
        }
        if flags.contains(.attachment) {
            guard let length: UInt32 = bytes.littleEndian(offset),
                let attachment = bytes.array(offset + 4, Int(length))
            else { throw .tail }
            self.attachment = attachment
            offset += 4 + attachment.count
        }
        guard let rest = bytes.array(offset, bytes.count - offset) else { throw .tail }
        if flags.contains(.path) {
            guard let path = String(validating: rest, as: UTF8.self) else { throw .tail }
            self.pathAndQuery = path
        } else if !rest.isEmpty {
            throw .tail
        }
    }

    private static func extent(
        _ bytes: Span<UInt8>, _ offset: inout Int, _ flags: Flags, _ count: Int
    ) throws(RecordDamage) -> StoredExtent {
        var completeLength: UInt64?
        if flags.contains(.completeLength) {
            completeLength = bytes.littleEndian(offset)
            guard completeLength != nil else { throw .tail }
            offset += 8
        }
        guard (1...StoredExtent.rangeLimit).contains(count) else { throw .tail }
        var ranges: [Range<UInt64>] = []
        for _ in 0..<count {
            guard let start: UInt64 = bytes.littleEndian(offset),
                let end: UInt64 = bytes.littleEndian(offset + 8), start < end
            else { throw .tail }
            ranges.append(start..<end)
            offset += 16
        }
        let extent = StoredExtent(completeLength: completeLength, ranges: ranges)
        // Out of order, touching or beyond the end: it would come out as another one.
        guard extent.ranges == ranges, !extent.isComplete else { throw .tail }
        return extent
    }
}

extension ObjectRecord {
    /// What of the representation is stored.
    var extent: StoredExtent {
        self.head.extent
            ?? StoredExtent(completeLength: self.bodyLength, ranges: [0..<self.bodyLength])
    }

    var storedBytes: UInt64 { self.head.extent?.storedBytes ?? self.bodyLength }

    /// What an entry counts in the books of eviction beside its body: about what its record and the
    /// unused ends of its pages take.
    ///
    /// One number for all, so that the sum over a file can be told from its totals.
    static let overhead: UInt64 = 2048

    /// What it counts in the books of eviction.
    var charge: UInt64 { self.storedBytes &+ Self.overhead }

    /// Bytes that it takes in a file, at most: of pages that belong to many half may be empty.
    ///
    /// - Parameter length: of the record itself.
    func room(ofRecord length: Int) -> UInt64 {
        let size = UInt64(Segment.payloadSize)
        let rest = Int(self.storedBytes % size)
        let restPages = Segment.pages(ofPayload: rest)
        var pages = self.storedBytes / size &* Segment.pages &+ UInt64(restPages)
        var shared = length + (restPages == 0 ? rest : 0)
        if self.head.extent != nil { pages = UInt64(self.bodyPages) }
        // Keys, places in the queue and what LMDB keeps with each of them.
        shared += 64 * (2 + Int(clamping: self.segmentCount))
        return pages &* UInt64(Segment.pageSize) &+ 2 &* UInt64(shared)
    }

    /// Lets this be what is stored.
    ///
    /// - Parameter extent: within the bound of what an object may take.
    mutating func take(_ extent: StoredExtent) {
        self.head = self.head.with(extent: extent)
        self.bodyLength = extent.bodyLength
        self.segmentCount =
            Self.segmentCount(of: self.head.extent, bodyLength: self.bodyLength)
            ?? self.segmentCount
    }

    /// How many cells of a body have something stored in them; nil where the number has no place.
    ///
    /// - Parameter bodyLength: where no byte of the extent lies beyond.
    static func segmentCount(of extent: StoredExtent?, bodyLength: UInt64) -> UInt32? {
        guard let all = Segment.count(of: bodyLength) else { return nil }
        guard let extent else { return all }
        var count: UInt32 = 0
        var next: UInt32 = 0
        for range in extent.ranges {
            let first = max(next, Segment.index(of: range.lowerBound))
            let end = Segment.index(of: range.upperBound - 1) + 1
            if end > first { count += end - first }
            next = max(next, end)
        }
        return count
    }
}
