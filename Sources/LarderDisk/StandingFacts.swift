import LarderLMDB
import LarderPolicy
import LarderStore

/// What eviction and removal must know of a stored response: a value.
///
/// They meet a record only to let go of it, mostly: for that no field is read, and nothing is copied.
struct StandingFacts: Sendable, Equatable {
    var standing: EvictionRules.Standing
    /// Its place in the queue that its standing names.
    var sequence: UInt64
    var storedBytes: UInt64
    /// Cells of the body in which something is stored.
    var segmentCount: UInt32
    /// By which it is known when it comes back after it has left.
    var fingerprint: UInt64

    /// What it counts in the books of eviction.
    var charge: UInt64 { self.storedBytes &+ ObjectRecord.overhead }

    /// Pages of their own that its segments take, about.
    var bodyPages: Int {
        ObjectRecord.bodyPages(segments: self.segmentCount, storedBytes: self.storedBytes)
    }
}

extension StandingFacts {
    /// - Parameter hash: that of its cache key.
    init(_ record: ObjectRecord, of hash: KeyHash) {
        self.init(
            standing: record.standing, sequence: record.sequence,
            storedBytes: record.storedBytes, segmentCount: record.segmentCount,
            fingerprint: Checksum.fingerprint(of: hash, record.head.varyingFields))
    }
}

extension ObjectRecord {
    /// The facts of the record in `bytes`, once its mark, version and checksum are found right.
    ///
    /// - Parameter hash: that of its cache key.
    static func standingFacts(
        _ bytes: Span<UInt8>, of hash: KeyHash
    ) throws(RecordDamage) -> StandingFacts {
        _ = try Self.checkedPrint(bytes)
        guard let tailLength: UInt32 = bytes.littleEndian(92),
            let sequence = Self.supposedPlace(bytes),
            let bodyLength: UInt64 = bytes.littleEndian(32),
            let segments: UInt32 = bytes.littleEndian(88), let standing = Self.standing(bytes)
        else { throw .tooShort }
        // How much is stored of a partial response its tail alone says.
        if tailLength > 0 { return StandingFacts(try Self.decode(checked: bytes), of: hash) }
        guard Segment.count(of: bodyLength) == segments else { throw .lengths }
        return StandingFacts(
            standing: standing, sequence: sequence, storedBytes: bodyLength,
            segmentCount: segments, fingerprint: try Self.fingerprint(bytes, of: hash))
    }

    private static func fingerprint(
        _ bytes: Span<UInt8>, of hash: KeyHash
    ) throws(RecordDamage) -> UInt64 {
        guard let method: UInt16 = bytes.littleEndian(66),
            let reason: UInt16 = bytes.littleEndian(68), let key: UInt32 = bytes.littleEndian(72),
            let fields: UInt32 = bytes.littleEndian(76),
            let varying: UInt32 = bytes.littleEndian(80)
        else { throw .tooShort }
        let start = Self.fixedSize + Int(key) + Int(method) + Int(reason) + Int(fields)
        guard start + Int(varying) <= bytes.count else { throw .lengths }
        let section = bytes.extracting(start..<start + Int(varying))
        guard let lines = FieldsCoding.startOfLines(section) else { throw .fields }
        return Checksum.fingerprint(of: hash, varying: section.extracting(lines...))
    }
}

extension DiskWriter {
    /// What eviction and removal must know of the record under `key`; nil where there is none, or a
    /// damaged one.
    func standingFacts(
        _ key: ObjectKey, _ transaction: borrowing WriteTransaction
    ) throws(LMDBError) -> StandingFacts? {
        let found = try transaction.reading.get(self.core.schema.objects, key.bytes.span) { value in
            try? ObjectRecord.standingFacts(value, of: key.hash)
        }
        return found ?? nil
    }
}
