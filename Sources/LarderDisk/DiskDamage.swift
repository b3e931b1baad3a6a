import LarderLMDB
package import LarderPolicy
import LarderStore

/// Something in a cache file that is not as its writer leaves it, and where.
package struct DiskDamage: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// A record that cannot be read: not what was written, or of an unknown version.
        case record
        /// A record that lies where its key's hash does not lead.
        case misplaced
        /// A segment that an entry needs is not there, or is not what was written.
        case segment
        /// An entry is named among the bodies that are being written or deleted.
        case named
        /// An entry has no place in the queue of eviction, so that it would stay for ever.
        case unqueued
        /// A place in the queue belongs to no entry.
        case stray
        /// Segments belong to no entry, so that nothing would ever delete them.
        case orphan
        /// The sum of the bodies' lengths is another one than the store counts with.
        case sum
    }

    package var kind: Kind
    /// The entry's key in `objects`: the hash of its cache key; zero where there is none.
    package var high: UInt64
    /// Its other half; of a sum what the store counted.
    package var low: UInt64
    /// The object's id; zero where there is none.
    package var id: UInt64
    /// The segment, the place in the queue, or what is to be added to the sum (two's complement).
    package var number: UInt64

    package init(_ kind: Kind, high: UInt64, low: UInt64, id: UInt64, number: UInt64) {
        self.kind = kind
        self.high = high
        self.low = low
        self.id = id
        self.number = number
    }

    init(_ kind: Kind, _ key: ObjectKey, number: UInt64 = 0) {
        self.init(
            kind, high: key.hash.high, low: key.hash.low, id: key.id.rawValue, number: number)
    }

    init(_ kind: Kind, id: ObjectID = ObjectID(rawValue: 0), number: UInt64 = 0) {
        self.init(kind, high: 0, low: 0, id: id.rawValue, number: number)
    }

    /// A sum of bodies' lengths that the store has wrong.
    init(counted: UInt64, sum: UInt64) {
        self.init(.sum, high: 0, low: counted, id: 0, number: sum &- counted)
    }

    var objectID: ObjectID { ObjectID(rawValue: self.id) }

    var objectKey: ObjectKey {
        ObjectKey(hash: KeyHash(high: self.high, low: self.low), id: self.objectID)
    }

    /// Whether mending it takes away a stored response.
    package var costsEntry: Bool {
        switch self.kind {
        case .record, .misplaced, .segment, .named: true
        case .unqueued, .stray, .orphan, .sum: false
        }
    }
}

extension [DiskDamage] {
    /// In the order in which it is mended: a sum is right as it was found until something is taken
    /// out.
    package var sumsFirst: [DiskDamage] {
        self.filter { $0.kind == .sum } + self.filter { $0.kind != .sum }
    }
}

/// What a verification has found, for a person.
package struct DiskFinding: Sendable, Equatable {
    package var damage: DiskDamage
    /// Whose it is; nil where that cannot be told any more.
    package var key: CacheKey?
    /// What is wrong, in a line.
    package var reason: String
}

/// What a verification has looked at so far, or in the end.
package struct DiskVerification: Sendable, Equatable {
    package var entries: UInt64 = 0
    package var segments: UInt64 = 0
    /// How many bytes of records and segments were checked.
    package var bytes: UInt64 = 0
    /// Entries when it began: what `entries` will come to, more or less.
    package var expectedEntries: UInt64 = 0
    package var expectedBytes: UInt64 = 0
    /// Segments that their entry's record does not name.
    ///
    /// Additions to a partial response that came to nothing left them; they go with their entry.
    package var leftovers: UInt64 = 0
    /// What looked wrong and was found changed by the writer meanwhile.
    package var changed: UInt64 = 0
    /// Nobody wrote meanwhile, so that sums could be compared.
    package var isQuiet = true
    package var findings: UInt64 = 0

    package init() {}

    package var isSound: Bool { self.findings == 0 }
}

/// Whether what lies in the file under one key is what an entry needs.
///
/// Asked twice where a verification finds damage, and once more, inside of a write transaction, before
/// it is taken away: so nothing goes that has changed meanwhile.
extension Schema {
    /// What is wrong with a segment of a response; nil where nothing is, or nothing of it is stored.
    func problem(
        inSegment index: UInt32, of id: ObjectID, _ extent: StoredExtent,
        _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> String? {
        guard let needed = extent.hull(inCell: index) else { return nil }
        let key = SegmentKey(id: id, index: index).bytes
        let found: String?? = try transaction.get(self.segments, key.span) { value in
            Segment.problem(with: value, id: id, index: index, needed: needed)
        }
        return found ?? "segment \(index) is missing"
    }

    /// The record under `key`, or why it is none; nil where there is nothing.
    func judgedRecord(
        _ key: ObjectKey, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Result<ObjectRecord, RecordDamage>? {
        try transaction.get(self.objects, key.bytes.span) { value in
            do throws(RecordDamage) {
                return .success(try ObjectRecord.decode(value))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Whether a body is being written or deleted.
    func isNamed(
        _ id: ObjectID, _ transaction: borrowing ReadTransaction
    ) throws(LMDBError) -> Bool {
        let key = NumberKey.bytes(id.rawValue)
        if try transaction.contains(self.garbage, key.span) { return true }
        return try transaction.contains(self.pending, key.span)
    }
}

extension Segment {
    /// Why a value does not hold `needed` of its cell; nil where it does.
    static func problem(
        with value: Span<UInt8>, id: ObjectID, index: UInt32, needed: Range<Int>
    ) -> String? {
        switch Self.place(of: needed, in: value, id: id, index: index) {
        case .success: nil
        case .failure(let failure): failure.description
        }
    }
}

extension StoredExtent {
    /// From the first to the last stored byte of a cell; nil where none is stored.
    func hull(inCell index: UInt32) -> Range<Int>? {
        var hull: Range<Int>?
        for range in self.ranges {
            let part = Segment.cell(index, of: range)
            if part.isEmpty { continue }
            hull = (hull?.lowerBound ?? part.lowerBound)..<part.upperBound
        }
        return hull
    }

    /// The first cell from `index` on in which something is stored.
    func cell(from index: UInt32) -> UInt32? {
        for range in self.ranges where !range.isEmpty {
            if Segment.index(of: range.upperBound - 1) >= index {
                return max(index, Segment.index(of: range.lowerBound))
            }
        }
        return nil
    }
}
