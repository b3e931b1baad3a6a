/// What a cache did with a request: the member that Larder adds to `Cache-Status` (RFC 9211).
package struct CacheStatus: Sendable, Equatable {
    /// Why a request went forward (RFC 9211 §2.2).
    package enum Forward: String, Sendable, CaseIterable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    /// What came of asking the next hop about a stored response.
    package enum Validation: Sendable {
        /// It still holds.
        case confirmed
        /// There is another response in its place.
        case replaced
        /// It stands in for an answer that failed, or did not come.
        case standIn
    }

    /// Answered from the cache without going forward (RFC 9211 §2.1).
    package var hit: Bool
    package var forward: Forward?
    /// The status that the next hop answered with, where it was forwarded (§2.3).
    package var forwardStatus: StatusCode?
    /// Remaining freshness in seconds; negative when stale (§2.4).
    package var ttl: Int64?
    /// The response is being stored (§2.5).
    package var stored: Bool
    /// The request was answered by another request's fetch (§2.6).
    package var collapsed: Bool
    /// The stored body lay in memory; for logs, the field has no word for it.
    package var isFromMemory = false
    /// Nil where nothing stored was asked about; for logs, too.
    package var validation: Validation?
    /// The cache's key for the response (§2.7); nil where the configuration keeps it back, as it may
    /// tell a client what others asked for.
    package var key: String?
    /// A token that names the rule that decided (§2.8).
    package var detail: String?

    package init(
        hit: Bool = false, forward: Forward? = nil, forwardStatus: StatusCode? = nil,
        ttl: Int64? = nil, stored: Bool = false, collapsed: Bool = false, detail: String? = nil
    ) {
        self.hit = hit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.ttl = ttl
        self.stored = stored
        self.collapsed = collapsed
        self.detail = detail
    }

    /// What `ttl` says of a remaining freshness: whole seconds, rounded down, so that what is stale by
    /// less than a second does not count as fresh.
    package static func ttl(of remaining: Duration) -> Int64 {
        let (seconds, attoseconds) = remaining.components
        return attoseconds < 0 ? seconds.subtractingReportingOverflow(1).partialValue : seconds
    }

    /// The list member as it stands in the field: `larder; fwd=uri-miss; fwd-status=200; stored`.
    ///
    /// - Parameter name: the cache's name; what is no token is written as a string.
    package func member(named name: String) -> String {
        var fields = Fields()
        self.append(to: &fields, named: name)
        return fields.string(FieldName(.cacheStatus)) ?? ""
    }

    /// Adds the field to those of an answer, as it goes with every one: written where it stays.
    package func append(to fields: inout Fields, named name: String) {
        let name = StructuredField.tokenOrString(name)
        let key = self.key.map { StructuredField.string($0) } ?? ""
        let detail = self.detail.map { StructuredField.tokenOrString($0) } ?? ""
        var most = name.utf8.count + key.utf8.count + detail.utf8.count + Self.mostWords
        if self.ttl != nil { most += Self.mostTTL }
        fields.append(.cacheStatus, named: "Cache-Status", atMost: most) { out in
            out.append(text: name)
            self.write(key: key, detail: detail, into: &out)
        }
    }

    // Both in one function, or all of it is copied into each closure on the way.
    @inline(__always)
    private func write(key: String, detail: String, into out: inout OutputSpan<UInt8>) {
        if self.hit { out.append(text: "; hit") }
        if let forward = self.forward {
            out.append(text: "; fwd=")
            out.append(text: forward.rawValue)
        }
        if let status = self.forwardStatus {
            out.append(text: "; fwd-status=")
            out.append(decimal: UInt64(status.rawValue))
        }
        if let ttl = self.ttl {
            out.append(text: ttl < 0 ? "; ttl=-" : "; ttl=")
            out.append(decimal: ttl.magnitude)
        }
        if self.stored { out.append(text: "; stored") }
        if self.collapsed { out.append(text: "; collapsed") }
        if !key.isEmpty {
            out.append(text: "; key=")
            out.append(text: key)
        }
        if !detail.isEmpty {
            out.append(text: "; detail=")
            out.append(text: detail)
        }
    }

    /// More than all takes but name, key, detail and `ttl`.
    private static let mostWords = 160
    private static let mostTTL = 32
}
