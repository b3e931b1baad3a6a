/// What is stored of a response that is not all there.
package struct PartialObject: Codable, Sendable, Equatable {
    /// The first and the last byte of each part.
    package var ranges: [ClosedRange<UInt64>]
    package var completeLength: UInt64?

    package init(ranges: [ClosedRange<UInt64>], completeLength: UInt64?) {
        self.ranges = ranges
        self.completeLength = completeLength
    }
}

/// A response in the memory tier.
package struct MemoryObject: Codable, Sendable, Equatable {
    /// Names it among the objects of its session.
    package var id: UInt64
    package var partition: String
    package var method: String
    package var url: String
    package var status: Int
    package var bytes: UInt64
    package var ageMilliseconds: Int64
    /// Negative when stale.
    package var freshForMilliseconds: Int64
    package var hits: UInt64
    /// Whether the disk tier has it, too.
    package var isOnDisk: Bool
    /// nil where the response is complete.
    package var partial: PartialObject?
    package var lastUsedMicroseconds: Int64?
    /// When it was stored, in microseconds since 1970, where the disk tier is about to have it under
    /// a name that is not known yet: so it can be told there.
    package var landingMicroseconds: Int64?
    /// The request's fields that select this variant.
    ///
    /// nil where there can be no other, and where they are longer than ``longestVariant``: a line has
    /// its bound.
    package let variant: [ControlField]?

    /// Bytes of names and values, and as much for each field as JSON has around them.
    private static let longestVariant = 16_384

    package init(
        id: UInt64, partition: String = "", method: String = "GET", url: String, status: Int,
        bytes: UInt64, ageMilliseconds: Int64, freshForMilliseconds: Int64, hits: UInt64,
        isOnDisk: Bool, partial: PartialObject? = nil, lastUsedMicroseconds: Int64? = nil,
        landingMicroseconds: Int64? = nil, variant: [ControlField]? = nil
    ) {
        self.id = id
        self.partition = partition
        self.method = method
        self.url = url
        self.status = status
        self.bytes = bytes
        self.ageMilliseconds = ageMilliseconds
        self.freshForMilliseconds = freshForMilliseconds
        self.hits = hits
        self.isOnDisk = isOnDisk
        self.partial = partial
        self.lastUsedMicroseconds = lastUsedMicroseconds
        self.landingMicroseconds = landingMicroseconds
        self.variant = Self.estimate(variant) <= Self.longestVariant ? variant : nil
    }

    /// How long the fields of a variant are in a line, characters that are escaped apart.
    static func estimate(_ variant: [ControlField]?) -> Int {
        (variant ?? []).reduce(0) { $0 + 24 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

/// A fetch under way that clients share.
package struct FetchRecord: Codable, Sendable, Equatable {
    package var session: String
    /// nil where the session is not split by principal.
    package var principal: String?
    package var url: String
    /// How many receive it.
    package var clients: Int
    package var bytesReceived: UInt64

    package init(
        session: String, principal: String?, url: String, clients: Int, bytesReceived: UInt64
    ) {
        self.session = session
        self.principal = principal
        self.url = url
        self.clients = clients
        self.bytesReceived = bytesReceived
    }
}

/// What was asked for offline and was not stored.
package struct MissingURL: Codable, Sendable, Equatable {
    package var session: String
    package var method: String
    package var url: String
    /// How often it was asked for.
    package var count: UInt64
    package var firstMicroseconds: Int64
    package var lastMicroseconds: Int64
    /// Who asked, where the session is split by principal.
    package var principal: String?

    package init(
        session: String, method: String, url: String, count: UInt64, firstMicroseconds: Int64,
        lastMicroseconds: Int64
    ) {
        self.session = session
        self.method = method
        self.url = url
        self.count = count
        self.firstMicroseconds = firstMicroseconds
        self.lastMicroseconds = lastMicroseconds
    }
}

/// What a purge did.
package struct PurgeOutcome: Codable, Sendable, Equatable {
    package var session: String
    package var removed: Int

    package init(session: String, removed: Int) {
        self.session = session
        self.removed = removed
    }
}

/// What a compaction did.
package struct CompactionOutcome: Codable, Sendable, Equatable {
    package var session: String
    /// Bytes of the file.
    package var before: UInt64
    package var after: UInt64

    package init(session: String, before: UInt64, after: UInt64) {
        self.session = session
        self.before = before
        self.after = after
    }
}

/// What a reload did.
package struct ReloadOutcome: Codable, Sendable, Equatable {
    /// Settings that changed but wait for a restart.
    package var needingRestart: [String]
    /// What of the file can have no effect, or another than was meant; nil: nothing.
    package var warnings: [String]?

    package init(needingRestart: [String], warnings: [String] = []) {
        self.needingRestart = needingRestart
        self.warnings = warnings.isEmpty ? nil : warnings
    }
}

/// Why a request could not be done.
///
/// ```
/// {"code":"failed","kind":"unavailable","message":"…"}
/// ```
///
/// `kind` came later: older commands, which know no codes but those of their time, read `code`.
package struct ControlFailure: Codable, Sendable, Equatable {
    package enum Code: String, Codable, Sendable, CaseIterable {
        case unknownVersion, malformed, noSuchSession, invalid, noSpace, failed
        /// What the request names is not there: a record, or a file that was to be read.
        case notFound, noInput
        /// Not now: something else is at it, or it ends.
        case unavailable
        /// The disk did not keep it, or failed.
        case inputOutput

        /// What commands that do not know it read in its place.
        fileprivate var former: Code {
            switch self {
            case .unavailable, .inputOutput: .failed
            case .unknownVersion, .malformed, .noSuchSession, .invalid, .noSpace, .failed,
                .notFound, .noInput:
                self
            }
        }
    }

    private enum Key: String, CodingKey { case code, kind, message }

    package var code: Code
    /// One sentence for people; a configuration's problems are separated by line breaks.
    package var message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        let words = [
            try values.decodeIfPresent(String.self, forKey: .kind),
            try values.decode(String.self, forKey: .code),
        ]
        let known = words.compactMap { word in word.flatMap { Code(rawValue: $0) } }
        // Of a later release: that it failed is known, and why is in the message.
        self.code = known.first ?? .failed
        self.message = try values.decode(String.self, forKey: .message)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        let former = self.code.former
        try values.encode(former.rawValue, forKey: .code)
        if former != self.code { try values.encode(self.code.rawValue, forKey: .kind) }
        try values.encode(self.message, forKey: .message)
    }
}
