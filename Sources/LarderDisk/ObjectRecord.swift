import LarderHTTP
import LarderPolicy
import LarderStore

/// Why bytes are not a record.
enum RecordDamage: String, Error, Sendable, Equatable {
    case tooShort = "record is too short"
    case unknownVersion = "record is of an unknown version"
    case checksum = "record has a wrong checksum"
    case lengths = "record's lengths do not add up"
    case fields = "record's fields are malformed"
    case tail = "record's extent or path is malformed"
}

/// A stored response without its body, as it lies in `objects`.
///
/// ```
///  0 'L' version flags:2      64 status:2 method:2 reason:2 0:2
///  4 checksum:4 (of 8…)       72 key:4 fields:4 varying:4 trailers:4   lengths
///  8 hits  16 last used       88 segments:4 tail:4
/// 24 place in the queue       96 key, method, reason, fields, varying fields, trailers, tail
/// 32 body length
/// 40 request  48 response  56 stored time
/// ```
///
/// Numbers are little-endian, times microseconds since 1970. The flags lie outside the checksum's
/// range and are mixed into it.
struct ObjectRecord: Sendable, Equatable {
    var key: CacheKey
    var head: StoredHead
    var trailers: Fields
    /// The length of the whole; for partial content of unknown length, where its last stored byte
    /// ends.
    var bodyLength: UInt64
    /// Cells of the body in which something is stored.
    var segmentCount: UInt32
    var hits: UInt64
    var lastUsed: Timestamp
    /// Its place in the queue of eviction that its standing names.
    var sequence: UInt64
    var standing: EvictionRules.Standing

    /// Pages of their own that its segments take, about.
    var bodyPages: Int {
        Self.bodyPages(segments: self.segmentCount, storedBytes: self.storedBytes)
    }

    static func bodyPages(segments: UInt32, storedBytes: UInt64) -> Int {
        Int(
            clamping: min(
                UInt64(segments) &* Segment.pages,
                storedBytes / UInt64(Segment.pageSize) &+ UInt64(segments)))
    }

    private static let mark = UInt8(ascii: "L")
    private static let version: UInt8 = 1
    static let fixedSize = 96

    private struct Flags: OptionSet {
        var rawValue: UInt16
        static let invalidated = Flags(rawValue: 1)
        /// The lower bit of the uses; records of the first format have no other, and no queue.
        static let usedOnce = Flags(rawValue: 2)
        static let usedTwice = Flags(rawValue: 4)
        static let inMain = Flags(rawValue: 8)
        /// Records that are older than it lack it, whatever led to them: nothing else tells it of
        /// them, and to distrust all would cost the whole cache.
        static let answersCredentials = Flags(rawValue: 256)

        var standing: EvictionRules.Standing {
            EvictionRules.Standing(
                queue: self.contains(.inMain) ? .main : .small,
                uses: (self.contains(.usedOnce) ? 1 : 0) + (self.contains(.usedTwice) ? 2 : 0))
        }
    }

    func encoded() -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(
            Self.fixedSize + self.key.bytes.count + self.head.fields.bytes.count
                + self.head.fields.count * 8 + self.head.varyingFields.bytes.count + 192)
        let fixed = self.fixedPart
        out.append(fixed.span)
        out.append(self.key.bytes.span)
        // Lengths are written over what stands in their place until they are known.
        Self.append(self.head.method.rawValue, lengthAt: 66, to: &out)
        Self.append(self.head.reason, lengthAt: 68, to: &out)
        Self.append(self.head.fields, lengthAt: 76, to: &out)
        Self.append(self.head.varyingFields, lengthAt: 80, to: &out)
        Self.append(self.trailers, lengthAt: 84, to: &out)
        let tail = RecordTail(self.head).encoded()
        out.append(tail.span)
        out.replace(littleEndian: UInt32(clamping: tail.count), at: 92)
        out.replace(littleEndian: Self.checksum(of: out.span, self.flags.rawValue), at: 4)
        return out
    }

    /// What stands before the key; zeros where the checksum and the lengths of what follows it go.
    private var fixedPart: InlineArray<96, UInt8> {
        var fixed = InlineArray<96, UInt8>(repeating: 0)
        fixed[0] = Self.mark
        fixed[1] = Self.version
        fixed.put(littleEndian: self.flags.rawValue, at: 2)
        fixed.put(littleEndian: self.hits, at: 8)
        fixed.put(littleEndian: self.lastUsed.microseconds, at: 16)
        fixed.put(littleEndian: self.sequence, at: 24)
        fixed.put(littleEndian: self.bodyLength, at: 32)
        fixed.put(littleEndian: self.head.requestTime.microseconds, at: 40)
        fixed.put(littleEndian: self.head.responseTime.microseconds, at: 48)
        fixed.put(littleEndian: self.head.storedTime.microseconds, at: 56)
        fixed.put(littleEndian: self.head.status.rawValue, at: 64)
        fixed.put(littleEndian: UInt32(clamping: self.key.bytes.count), at: 72)
        fixed.put(littleEndian: self.segmentCount, at: 88)
        return fixed
    }

    private static func append(_ text: String, lengthAt place: Int, to out: inout [UInt8]) {
        let start = out.count
        out.append(text.utf8.span.extracting(first: Int(UInt16.max)))
        out.replace(littleEndian: UInt16(clamping: out.count - start), at: place)
    }

    private static func append(_ fields: Fields, lengthAt place: Int, to out: inout [UInt8]) {
        let start = out.count
        FieldsCoding.append(fields, to: &out)
        out.replace(littleEndian: UInt32(clamping: out.count - start), at: place)
    }

    private var flags: Flags {
        var flags: Flags = []
        if self.head.isInvalidated { flags.insert(.invalidated) }
        if self.head.answersCredentials { flags.insert(.answersCredentials) }
        if self.standing.uses & 1 != 0 { flags.insert(.usedOnce) }
        if self.standing.uses & 2 != 0 { flags.insert(.usedTwice) }
        if self.standing.queue == .main { flags.insert(.inMain) }
        return flags
    }

    private static func checksum(of bytes: Span<UInt8>, _ flags: UInt16) -> UInt32 {
        Checksum.record(bytes.extracting(8...)) ^ UInt32(flags)
    }

    /// By which the bytes of one entry's record are told from what was there before.
    struct Print: Sendable, Equatable {
        /// What stands before the checksum's range, it and the flags among it.
        fileprivate var start: UInt64
        fileprivate var hash: UInt64
        fileprivate var length: Int
    }

    /// The print of a record whose mark, version and checksum are right.
    static func checkedPrint(_ bytes: Span<UInt8>) throws(RecordDamage) -> Print {
        guard bytes.count >= Self.fixedSize, let start: UInt64 = bytes.littleEndian(0),
            let flags: UInt16 = bytes.littleEndian(2), let sum: UInt32 = bytes.littleEndian(4)
        else { throw .tooShort }
        guard bytes[0] == Self.mark, bytes[1] == Self.version else { throw .unknownVersion }
        let hash = Checksum.whole(bytes.extracting(8...))
        guard UInt32(truncatingIfNeeded: hash) ^ UInt32(flags) == sum else { throw .checksum }
        return Print(start: start, hash: hash, length: bytes.count)
    }

    /// The record in `bytes`, all of which it must take.
    static func decode(_ bytes: Span<UInt8>) throws(RecordDamage) -> ObjectRecord {
        _ = try Self.checkedPrint(bytes)
        return try Self.decode(checked: bytes)
    }

    /// The record in `bytes`, whose mark, version and checksum were found right.
    static func decode(checked bytes: Span<UInt8>) throws(RecordDamage) -> ObjectRecord {
        let key = try Self.key(bytes)
        guard let hits: UInt64 = bytes.littleEndian(8), let used: Int64 = bytes.littleEndian(16),
            let sequence: UInt64 = bytes.littleEndian(24),
            let bodyLength: UInt64 = bytes.littleEndian(32),
            let rawFlags: UInt16 = bytes.littleEndian(2),
            let segments: UInt32 = bytes.littleEndian(88)
        else { throw .tooShort }
        let (head, trailers) = try Self.decodeHead(bytes, keyLength: key.bytes.count)
        let extent = head.extent
        guard bodyLength == extent?.bodyLength ?? bodyLength,
            Self.segmentCount(of: extent, bodyLength: bodyLength) == segments
        else { throw .lengths }
        return ObjectRecord(
            key: key, head: head, trailers: trailers, bodyLength: bodyLength,
            segmentCount: segments, hits: hits, lastUsed: Timestamp(microseconds: used),
            sequence: sequence, standing: Flags(rawValue: rawFlags).standing)
    }

    /// The place in a queue that bytes name which may be no sound record: to be compared with what the
    /// queue says.
    static func supposedPlace(_ bytes: Span<UInt8>) -> UInt64? { bytes.littleEndian(24) }

    /// The standing of the record in `bytes`; to be believed where its checksum is right.
    static func standing(_ bytes: Span<UInt8>) -> EvictionRules.Standing? {
        let flags: UInt16? = bytes.littleEndian(2)
        return flags.map { Flags(rawValue: $0).standing }
    }

    /// When the response of the record in `bytes` was first stored; to be believed where its checksum is
    /// right.
    static func storedTime(_ bytes: Span<UInt8>) -> Timestamp? {
        let time: Int64? = bytes.littleEndian(56)
        return time.map { Timestamp(microseconds: $0) }
    }

    /// The cache key of the record in `bytes`, once its mark, version and checksum are found right.
    static func checkedKey(_ bytes: Span<UInt8>) throws(RecordDamage) -> CacheKey {
        _ = try Self.checkedPrint(bytes)
        return try Self.key(bytes)
    }

    private static func key(_ bytes: Span<UInt8>) throws(RecordDamage) -> CacheKey {
        guard let length: UInt32 = bytes.littleEndian(72) else { throw .tooShort }
        guard let key = bytes.array(Self.fixedSize, Int(length)) else { throw .lengths }
        return CacheKey(bytes: key)
    }

    private static func decodeHead(
        _ bytes: Span<UInt8>, keyLength: Int
    ) throws(RecordDamage) -> (StoredHead, Fields) {
        guard let request: Int64 = bytes.littleEndian(40),
            let rawFlags: UInt16 = bytes.littleEndian(2),
            let response: Int64 = bytes.littleEndian(48),
            let stored: Int64 = bytes.littleEndian(56),
            let status: UInt16 = bytes.littleEndian(64),
            let methodLength: UInt16 = bytes.littleEndian(66),
            let reasonLength: UInt16 = bytes.littleEndian(68)
        else { throw .tooShort }
        var offset = Self.fixedSize + keyLength
        guard let method = bytes.array(offset, Int(methodLength)) else { throw .lengths }
        offset += method.count
        guard let reason = bytes.array(offset, Int(reasonLength)) else { throw .lengths }
        offset += reason.count
        let fields = try Self.decodeFields(bytes, &offset, lengthAt: 76)
        let varying = try Self.decodeFields(bytes, &offset, lengthAt: 80)
        let trailers = try Self.decodeFields(bytes, &offset, lengthAt: 84)
        guard let tailLength: UInt32 = bytes.littleEndian(92),
            Int(tailLength) == bytes.count - offset
        else { throw .lengths }
        let tail = try RecordTail(bytes.extracting(offset...))
        var head = StoredHead(
            method: Method(rawValue: String(decoding: method, as: UTF8.self)),
            status: StatusCode(status), reason: String(decoding: reason, as: UTF8.self),
            fields: fields, varyingFields: varying,
            requestTime: Timestamp(microseconds: request),
            responseTime: Timestamp(microseconds: response),
            storedTime: Timestamp(microseconds: stored),
            isInvalidated: Flags(rawValue: rawFlags).contains(.invalidated),
            answersCredentials: Flags(rawValue: rawFlags).contains(.answersCredentials),
            extent: tail.extent, pathAndQuery: tail.pathAndQuery)
        // Even to set nothing would make a copy of the head.
        if let bytes = tail.attachment { head.attachment = StoredAttachment(bytes: bytes) }
        return (head, trailers)
    }

    private static func decodeFields(
        _ bytes: Span<UInt8>, _ offset: inout Int, lengthAt place: Int
    ) throws(RecordDamage) -> Fields {
        guard let length: UInt32 = bytes.littleEndian(place), Int(length) <= bytes.count - offset
        else { throw .lengths }
        let end = offset + Int(length)
        guard let fields = FieldsCoding.decode(bytes.extracting(offset..<end)) else {
            throw .fields
        }
        offset = end
        return fields
    }
}
