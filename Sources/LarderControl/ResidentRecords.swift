import FoundationEssentials

/// Responses in the memory tier that the disk tier has, too, by their names there.
///
/// Two lists of one length, which is bounded: what a listing of the disk needs to know of the tier
/// above it, in a tenth of the bytes that whole objects would take.
package struct ResidentCopies: Codable, Sendable, Equatable {
    package var ids: [UInt64]
    /// How often each was used, as the memory tier counts it.
    package var hits: [UInt64]

    /// How many go into one line at most.
    package static let limit = 2048

    package init(ids: [UInt64] = [], hits: [UInt64] = []) {
        self.ids = ids
        self.hits = hits
    }
}

/// Objects on their way, gathered until they make a line of some length: a line each would cost a
/// write and a reading each.
package struct ObjectBatch: Sendable {
    private var objects: [MemoryObject] = []
    private var bytes = 0

    /// Room for at least one object with the longest URL, which JSON can make six times as long.
    private static let enough = ControlCodec.longestLine / 8
    /// What an object takes beside its texts and its ranges.
    private static let bytesEach = 400

    package init() {}

    package var isEmpty: Bool { self.objects.isEmpty }

    /// Takes an object; answers those that are to be sent now.
    package mutating func add(_ object: MemoryObject) -> [MemoryObject]? {
        let bytes = Self.estimate(object)
        let full = !self.objects.isEmpty && self.bytes + bytes > Self.enough ? self.take() : nil
        self.objects.append(object)
        self.bytes += bytes
        return full
    }

    /// The objects that wait.
    package mutating func take() -> [MemoryObject] {
        defer { (self.objects, self.bytes) = ([], 0) }
        return self.objects
    }

    private static func estimate(_ object: MemoryObject) -> Int {
        let texts = object.url.utf8.count + object.partition.utf8.count + object.method.utf8.count
        return Self.bytesEach + 6 * texts + 48 * (object.partial?.ranges.count ?? 0)
            + 2 * MemoryObject.estimate(object.variant)
    }
}

/// One response in the memory tier, with all that is known of it but its body.
package struct ResidentResponse: Codable, Sendable, Equatable {
    /// Names it among the responses in memory.
    package var id: UInt64
    /// Its name in the disk tier; nil where that does not have it.
    package var diskID: UInt64?
    package var partition: String
    package var method: String
    package var url: String
    /// The request's fields that select this variant; a name with no value was absent.
    package var variant: [ControlField]
    package var status: Int
    package var reason: String
    package var fields: [ControlField]
    package var trailers: [ControlField]
    package var requestTimeMicroseconds: Int64
    package var responseTimeMicroseconds: Int64
    package var storedTimeMicroseconds: Int64
    package var lastUsedMicroseconds: Int64
    package var lifetimeMilliseconds: Int64
    /// What the lifetime comes from, as a word.
    package var lifetimeSource: String
    package var currentAgeMilliseconds: Int64
    package var isInvalidated: Bool
    package var bodyBytes: UInt64
    /// nil where the response is complete.
    package var partial: PartialObject?
    package var hits: UInt64

    package init(
        id: UInt64, diskID: UInt64? = nil, partition: String = "", method: String = "GET",
        url: String, variant: [ControlField] = [], status: Int, reason: String = "",
        fields: [ControlField] = [], trailers: [ControlField] = [],
        requestTimeMicroseconds: Int64, responseTimeMicroseconds: Int64,
        storedTimeMicroseconds: Int64, lastUsedMicroseconds: Int64, lifetimeMilliseconds: Int64,
        lifetimeSource: String, currentAgeMilliseconds: Int64, isInvalidated: Bool = false,
        bodyBytes: UInt64, partial: PartialObject? = nil, hits: UInt64
    ) {
        self.id = id
        self.diskID = diskID
        self.partition = partition
        self.method = method
        self.url = url
        self.variant = variant
        self.status = status
        self.reason = reason
        self.fields = fields
        self.trailers = trailers
        self.requestTimeMicroseconds = requestTimeMicroseconds
        self.responseTimeMicroseconds = responseTimeMicroseconds
        self.storedTimeMicroseconds = storedTimeMicroseconds
        self.lastUsedMicroseconds = lastUsedMicroseconds
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.lifetimeSource = lifetimeSource
        self.currentAgeMilliseconds = currentAgeMilliseconds
        self.isInvalidated = isInvalidated
        self.bodyBytes = bodyBytes
        self.partial = partial
        self.hits = hits
    }
}

/// A piece of a body, in base64 on its way.
package struct BodyPiece: Codable, Sendable, Equatable {
    private var content: Data

    /// The largest: in base64 it fits a line with room to spare.
    package static let largest = 192 << 10

    package init(_ bytes: [UInt8]) {
        self.content = Data(bytes)
    }

    package var bytes: [UInt8] { Array(self.content) }
}

/// The trouble that a disk tier had last.
package struct DiskTrouble: Codable, Sendable, Equatable {
    /// One line, for people.
    package var cause: String
    package var microseconds: Int64
    /// Whether it stores again.
    package var isOver: Bool

    package init(cause: String, microseconds: Int64, isOver: Bool) {
        self.cause = cause
        self.microseconds = microseconds
        self.isOver = isOver
    }
}
