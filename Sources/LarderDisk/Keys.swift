import LarderStore

/// The hash of a cache key: finds the place, proves nothing.
struct KeyHash: Hashable, Sendable {
    var high: UInt64
    var low: UInt64

    static let length = 16

    /// As keys in `objects` begin.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.length)
        bytes.append(bigEndian: self.high)
        bytes.append(bigEndian: self.low)
        return bytes
    }

    /// The same bytes where they stay.
    var packed: [16 of UInt8] {
        InlineArray { ($0 < 8 ? self.high : self.low).byte($0 & 7) }
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

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.length)
        bytes.append(bigEndian: self.hash.high)
        bytes.append(bigEndian: self.hash.low)
        bytes.append(bigEndian: ~self.id.rawValue)
        return bytes
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

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(12)
        bytes.append(bigEndian: self.id.rawValue)
        bytes.append(bigEndian: self.index)
        return bytes
    }

    /// The same bytes where they stay: each piece that is read takes a key.
    var packed: [12 of UInt8] {
        InlineArray { $0 < 8 ? self.id.rawValue.byte($0) : self.index.byte($0 - 8) }
    }
}

/// A key in `queue`, `main`, `ghosts`, `pending` or `garbage`: one number.
enum NumberKey {
    static func bytes(_ number: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8)
        bytes.append(bigEndian: number)
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

    init(key: ObjectKey, charge: UInt64?) {
        self.key = key
        self.charge = charge
    }

    init?(_ bytes: Span<UInt8>) {
        guard bytes.count == Self.length || bytes.count == ObjectKey.length,
            let key = ObjectKey(bytes.extracting(0..<ObjectKey.length))
        else { return nil }
        self.init(key: key, charge: bytes.littleEndian(ObjectKey.length))
    }

    var bytes: [UInt8] {
        var bytes = self.key.bytes
        if let charge = self.charge { bytes.append(littleEndian: charge) }
        return bytes
    }
}
