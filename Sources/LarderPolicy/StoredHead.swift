package import LarderHTTP

/// A stored response without its body: all that policy needs to decide on its reuse.
///
/// Written by the fetch that stored it, replaced as a whole when a 304 freshens it.
package struct StoredHead: Sendable, Equatable {
    /// The method of the request that it answers.
    package var method: Method
    package var status: StatusCode
    package var reason: String
    /// End-to-end fields in the order received, without those that RFC 9111 §3.1 excludes;
    /// `Content-Length` is kept where the origin sent it.
    package var fields: Fields { didSet { self.readFields() } }
    /// The fields of the original request that `Vary` names, as they were sent; a name without a
    /// line here was absent.
    ///
    /// Empty where the response has no `Vary`.
    package var varyingFields: Fields
    /// When the request that led to the response was sent (RFC 9111 §4.2.3 `request_time`).
    package var requestTime: Timestamp
    /// When its head was received (`response_time`).
    package var responseTime: Timestamp { didSet { self.readFields() } }
    /// When it was first stored; a freshening does not change it.
    package var storedTime: Timestamp
    /// Forces validation before every reuse, whatever the fields say: an unsafe request or a purge
    /// made it so (RFC 9111 §4.4 "mark as invalid").
    package var isInvalidated: Bool
    /// Which bytes of the representation are stored, where not all of them are
    /// (RFC 9111 §3.3); nil for a complete response.
    ///
    /// `status` and `fields` are those of the whole then: 200, and no `Content-Range`.
    package var extent: StoredExtent?
    /// Path and query of the request that it answers, where the key says less than that: the
    /// response has `No-Vary-Search`.
    package var pathAndQuery: String?
    /// What whoever stored it added.
    package var attachment: StoredAttachment?
    /// It is kept in memory alone: no lower tier ever gets it.
    package var staysInMemory = false
    /// What `fields` say, read once for all copies of this head.
    private(set) var facts: HeadFacts

    package init(
        method: Method = .get, status: StatusCode, reason: String = "", fields: Fields,
        varyingFields: Fields = Fields(), requestTime: Timestamp, responseTime: Timestamp,
        storedTime: Timestamp? = nil, isInvalidated: Bool = false,
        extent: StoredExtent? = nil, pathAndQuery: String? = nil
    ) {
        self.method = method
        self.status = status
        self.reason = reason
        self.fields = fields
        self.varyingFields = varyingFields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.storedTime = storedTime ?? responseTime
        self.isInvalidated = isInvalidated
        self.extent = extent
        self.pathAndQuery = pathAndQuery
        self.facts = HeadFacts(of: fields, receivedAt: responseTime)
    }

    private mutating func readFields() {
        self.facts = HeadFacts(of: self.fields, receivedAt: self.responseTime)
    }
}
