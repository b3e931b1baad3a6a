import LarderHTTP
import LarderPolicy
import NIOCore

/// A stored response in the memory tier, with what ties it to the lower one.
struct MemoryEntry: Sendable {
    var object: StoredObject
    /// Its id in the lower tier, once that has it.
    var lowerID: ObjectID?
    /// Whether the lower tier is about to show it.
    var isLanding = false
    /// It came up with the lookup that found it below, and that one's use is still to be told: a hit of
    /// the lower tier.
    var awaitsUse = false
    /// Another one whenever anything that is stored under the key has changed, and never one that
    /// the part has given before.
    var revision: UInt64 = 0

    /// Whether `id` names it, in either tier.
    func isNamed(_ id: ObjectID) -> Bool {
        self.object.id == id || self.lowerID == id
    }

    /// - Returns: whether it is a hit of this tier, and the id in the lower one.
    mutating func noteUse(at time: Timestamp) -> (isHit: Bool, lowerID: ObjectID?) {
        let isHit = !self.awaitsUse
        self.awaitsUse = false
        self.object.hits &+= 1
        if time > self.object.lastUsed { self.object.lastUsed = time }
        return (isHit, self.lowerID)
    }

    /// Whether it comes before `other` in an answer: the most recent response first, as RFC 9111
    /// §4 has it chosen.
    func precedes(_ other: MemoryEntry) -> Bool { self.object.precedes(other.object) }
}

extension StoredObject {
    func precedes(_ other: StoredObject) -> Bool {
        if self.head.responseTime != other.head.responseTime {
            return self.head.responseTime > other.head.responseTime
        }
        if self.head.requestTime != other.head.requestTime {
            return self.head.requestTime > other.head.requestTime
        }
        return self.id > other.id
    }

    /// Whether both are copies of one response, stored at once in two tiers.
    ///
    /// A 304 changes neither the moment of storing nor the body.
    func isCopy(of other: StoredObject) -> Bool {
        self.head.storedTime == other.head.storedTime && self.bodyLength == other.bodyLength
            && self.head.method == other.head.method
            && self.head.varyingFields == other.head.varyingFields
    }
}

/// What an entry costs: the bytes that the process really holds for it.
enum MemoryCost {
    /// Bookkeeping of an entry: its place in the table of entries and in the index, the node of
    /// the eviction policy, the storage objects of body and fields with what the allocator adds.
    ///
    /// Measured as the growth of the resident set over 40,000 entries, less what is counted below:
    /// 420 bytes with neither fields nor body, 510 with a body, 610 with ten fields too. The rest
    /// is 448 for what the fields say, which is kept beside them, and some for what varies. Evicted
    /// entries that are remembered are not in it: their table is taken from the capacity at once.
    static let perEntry: UInt64 = 1088

    /// What each part of a partial body costs: its place, its range, and the storage object of its
    /// bytes.
    static let perPart: UInt64 = 128

    static func of(_ object: StoredObject) -> UInt64 {
        var bytes = Self.perEntry
        if let body = object.body.resident {
            bytes += Self.of(body)
        } else if let parts = object.body as? MemoryParts {
            bytes += parts.buffers.reduce(0) { $0 + Self.of($1) + Self.perPart }
        }
        bytes += UInt64(object.key.bytes.capacity)
        bytes += UInt64(object.head.reason.utf8.count)
        bytes += UInt64(object.head.fields.heldBytes)
        bytes += UInt64(object.head.varyingFields.heldBytes)
        bytes += UInt64(object.trailers.heldBytes)
        bytes += UInt64(object.head.attachment?.bytes.capacity ?? 0)
        return bytes
    }

    /// The storage of a body, which `ByteBuffer` rounds up to a power of two, unless it is
    /// `LentMemory`, of which it takes whole pages.
    ///
    /// malloc(3) maps what is larger than 128 KiB by itself, so that the pages behind the last byte
    /// written are never touched and take no memory.
    private static func of(_ body: ByteBuffer) -> UInt64 {
        let capacity = UInt64(body.storageCapacity)
        let page: UInt64 = 4096
        guard capacity.nonzeroBitCount == 1 || capacity < UInt64(CollectedBody.lentSizes.lowerBound)
        else {
            return (capacity + page - 1) / page * page
        }
        guard capacity > 128 << 10 else { return capacity }
        return min(capacity, (UInt64(body.readableBytes) + page) / page * page)
    }
}
