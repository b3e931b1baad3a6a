import LarderHTTP
import LarderPolicy

/// Where a stored response is.
enum CacheTier: String, Encodable {
    case memory, disk
    /// In both.
    case both = "memory+disk"
}

/// The first and the last byte of a part.
struct CacheRange: Encodable, Equatable {
    var first: UInt64
    var last: UInt64
}

/// What is stored of a response that is not all there (RFC 9111 §3.3).
struct CachePartial: Encodable, Equatable {
    var ranges: [CacheRange]
    var storedBytes: UInt64
    /// The length of the whole, where it is known.
    var completeLength: UInt64?

    /// Reads as `partial, 3 ranges, 12 KiB of 4 MiB`.
    var text: String {
        let whole = self.completeLength.map(Human.size) ?? "unknown length"
        let ranges = Human.count(UInt64(self.ranges.count), "range")
        return "partial, \(ranges), \(Human.size(self.storedBytes)) of \(whole)"
    }
}

/// A stored response in a listing.
struct CacheRow: Equatable {
    /// Names it among those of its tier; not shown.
    var id: UInt64 = 0
    /// The principal whose it is; empty where the session is not split.
    var partition = ""
    var method = "GET"
    var url: String
    var status: Int
    var bytes: UInt64
    var ageMilliseconds: Int64
    /// What is left of its freshness; zero or less when it is stale.
    var freshForMilliseconds: Int64
    var hits: UInt64
    var lastUsedMicroseconds: Int64 = 0
    var tier: CacheTier
    /// nil where all of it is there.
    var partial: CachePartial?
    /// The request's fields that select this variant; empty where there can be no other.
    var variant: [CacheField] = []

    var isFresh: Bool { self.freshForMilliseconds > 0 }
}

/// A row of what is on disk, and when that was stored.
struct StoredRow: Equatable {
    var row: CacheRow
    /// A 304 does not change it: it tells a response that is also known by another name.
    var storedMicroseconds: Int64
}

/// A field line.
struct CacheField: Encodable, Equatable {
    var name: String
    var value: String
}

/// All about one stored response but its body.
struct CacheObject: Encodable, Equatable {
    /// How its freshness is reckoned (RFC 9111 §4.2).
    struct Freshness: Encodable, Equatable {
        var lifetimeMilliseconds: Int64
        /// What the lifetime comes from, as a word: `max-age` or `heuristic`, say.
        var source: String
        var currentAgeMilliseconds: Int64

        var remainingMilliseconds: Int64 {
            let (left, overflow) = self.lifetimeMilliseconds.subtractingReportingOverflow(
                self.currentAgeMilliseconds)
            return overflow ? .max : left
        }
    }

    /// Names it among those of its tier.
    var id: UInt64
    var partition = ""
    var method: String
    var url: String
    /// The request's fields that select this variant; a name with no value was absent.
    var variant: [CacheField]
    var status: Int
    var reason: String
    var fields: [CacheField]
    var trailers: [CacheField]
    var requestTimeMicroseconds: Int64
    var responseTimeMicroseconds: Int64
    var storedTimeMicroseconds: Int64
    var lastUsedMicroseconds: Int64
    var freshness: Freshness
    /// It must be validated before it is used, whatever its freshness.
    var isInvalidated: Bool
    var bodyBytes: UInt64
    /// nil where all of it is there.
    var partial: CachePartial?
    var hits: UInt64
    var tier: CacheTier
    /// In hexadecimal; nil where the body could not be read, or is not all there.
    var sha256: String?
}

/// The disk tier's figures, as its file tells them.
struct CacheFigures: Encodable, Equatable {
    var objects: UInt64
    var bodyBytes: UInt64
    var usedBytes: UInt64
    var fileBytes: UInt64
    var capacityBytes: UInt64
    var hits: UInt64
    var evictions: UInt64
    var damaged: UInt64
    /// What the disk refused, since the file was made.
    var failures: UInt64 = 0
    /// Bodies that are being written or deleted.
    var pending: UInt64 = 0
    var garbage: UInt64 = 0
    /// The process that writes to it now.
    var writer: Int32?
    /// What the file holds and does not use.
    var freeBytes: UInt64 = 0
}

/// A session's cache on disk, looked into from outside the proxy.
protocol CacheReading {
    /// What is stored for GET on a URI, for an explanation to a principal; "" where the session is
    /// not split.
    func heads(
        for uri: TargetURI, principal: String
    ) throws -> [(head: StoredHead, bodyLength: UInt64)]
    /// Calls `body` with every stored response that fits, in no particular order, until it answers
    /// false; and `step` now and then, with how many it came by since.
    func forEach(
        _ filter: ListFilter, step: (Int) throws -> Void, _ body: (StoredRow) throws -> Bool
    ) throws
    /// The stored responses to GET for a URL, the most recent first, without digests.
    func objects(for url: String) throws -> [CacheObject]
    /// Hands over the body of what `objects` gave, piece by piece.
    func readBody(of object: CacheObject, _ piece: ([UInt8]) throws -> Void) throws
    func figures() throws -> CacheFigures
    /// Removes stored responses, where no proxy is running that could; answers how many.
    ///
    /// - Parameter principal: whose; nil: those of all.
    /// - Throws: where another process writes to the cache.
    func purge(_ selection: CacheSelection, principal: String?) async throws -> Int
}
