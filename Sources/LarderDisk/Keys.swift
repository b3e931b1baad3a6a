import LarderStore

/// The hash of a cache key: finds the place, proves nothing.
struct KeyHash: Hashable, Sendable {
    var high: UInt64
    var low: UInt64

    static let length = 16

    /// As keys in `objects` begin.
    var bytes: InlineArray<16, UInt8> {
        var bytes = InlineArray<16, UInt8>(repeating: 0)
        bytes.put(bigEndian: self.high, at: 0)
        bytes.put(bigEndian: self.low, at: 8)
        return bytes
    }
}

/// A key in `objects`: hash of the cache key, then the complement of the object's id.
///
/// So the variants of a cache key lie side by side, the most recent first.
struct ObjectKey: Hashable, Sendable {
    var hash: KeyHash
    var id: ObjectID

    static let length = 24

    init(hash: KeyHash, id: ObjectID) {
        self.hash = hash
        self.id = id
    }

    init?(_ bytes: Span<UInt8>) {
        guard bytes.count == Self.length, let high: UInt64 = bytes.bigEndian(0),
            let low: UInt64 = bytes.bigEndian(8), let id: UInt64 = bytes.bigEndian(16)
        else { return nil }
        self.init(hash: KeyHash(high: high, low: low), id: ObjectID(rawValue: ~id))
    }

    var bytes: InlineArray<24, UInt8> {
        var bytes = InlineArray<24, UInt8>(repeating: 0)
        self.put(into: &bytes)
        return bytes
    }

    fileprivate func put<let count: Int>(into bytes: inout InlineArray<count, UInt8>) {
        bytes.put(bigEndian: self.hash.high, at: 0)
        bytes.put(bigEndian: self.hash.low, at: 8)
        bytes.put(bigEndian: ~self.id.rawValue, at: 16)
    }
}

/// A key in `segments`: the object's id, then the number of the segment.
struct SegmentKey: Hashable, Sendable {
    var id: ObjectID
    var index: UInt32

    init(id: ObjectID, index: UInt32) {
        self.id = id
        self.index = index
    }

    init?(_ bytes: Span<UInt8>) {
        guard bytes.count == 12, let id: UInt64 = bytes.bigEndian(0),
            let index: UInt32 = bytes.bigEndian(8)
        else { return nil }
        self.init(id: ObjectID(rawValue: id), index: index)
    }

    var bytes: InlineArray<12, UInt8> {
        var bytes = InlineArray<12, UInt8>(repeating: 0)
        bytes.put(bigEndian: self.id.rawValue, at: 0)
        bytes.put(bigEndian: self.index, at: 8)
        return bytes
    }
}

/// A key in `queue`, `main`, `ghosts`, `pending` or `garbage`: one number.
enum NumberKey {
    static func bytes(_ number: UInt64) -> InlineArray<8, UInt8> {
        var bytes = InlineArray<8, UInt8>(repeating: 0)
        bytes.put(bigEndian: number, at: 0)
        return bytes
    }

    static func number(_ bytes: Span<UInt8>) -> UInt64? {
        bytes.count == 8 ? bytes.bigEndian(0) : nil
    }
}

/// What a queue of eviction holds at a place: whose it is, and what that counts towards the queue's
/// bytes.
///
/// Entries of the first format lack the count; all of them lie in `queue`, and the record has it.
struct QueueEntry: Hashable, Sendable {
    var key: ObjectKey
    var charge: UInt64?

    static let length = ObjectKey.length + 8

    init?(_ bytes: Span<UInt8>) {
        guard bytes.count == Self.length || bytes.count == ObjectKey.length,
            let key = ObjectKey(bytes.extracting(0..<ObjectKey.length))
        else { return nil }
        self.key = key
        self.charge = bytes.littleEndian(ObjectKey.length)
    }

    /// As it is written.
    static func bytes(of key: ObjectKey, charge: UInt64) -> InlineArray<32, UInt8> {
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        key.put(into: &bytes)
        bytes.put(littleEndian: charge, at: ObjectKey.length)
        return bytes
    }
}
