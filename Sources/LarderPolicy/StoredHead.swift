package import LarderHTTP

/// A stored response without its body: all that policy needs to decide on its reuse.
///
/// Written by the fetch that stored it, replaced as a whole when a 304 freshens it. A value behind
/// one reference: heads are handed on many times with each hit and hardly ever changed, and to copy
/// field by field meant a dozen references counted up and down each time.
package struct StoredHead: Sendable, Equatable {
    private struct Parts: Sendable, Equatable {
        var method: Method
        var status: StatusCode
        var reason: String
        var fields: Fields
        var varyingFields: Fields
        var requestTime: Timestamp
        var responseTime: Timestamp
        var storedTime: Timestamp
        var isInvalidated: Bool
        var answersCredentials: Bool
        var extent: StoredExtent?
        var pathAndQuery: String?
        var attachment: StoredAttachment?
        var staysInMemory = false
        var facts: HeadFacts
        var searchDigest: Int?

        mutating func readFields() {
            self.facts = HeadFacts(of: self.fields, receivedAt: self.responseTime)
            self.readSearch()
        }

        /// Of few responses: those that answer several queries.
        mutating func readSearch() {
            self.searchDigest = self.pathAndQuery.map { self.facts.noVarySearch.digest(of: $0) }
        }
    }

    private final class Content: Sendable {
        let parts: Parts

        init(_ parts: Parts) {
            self.parts = parts
        }
    }

    private var content: Content

    package init(
        method: Method = .get, status: StatusCode, reason: String = "", fields: Fields,
        varyingFields: Fields = Fields(), requestTime: Timestamp, responseTime: Timestamp,
        storedTime: Timestamp? = nil, isInvalidated: Bool = false,
        answersCredentials: Bool = false, extent: StoredExtent? = nil, pathAndQuery: String? = nil
    ) {
        self.init(
            method: method, status: status, reason: reason, fields: fields,
            varyingFields: varyingFields, requestTime: requestTime, responseTime: responseTime,
            storedTime: storedTime, isInvalidated: isInvalidated,
            answersCredentials: answersCredentials, extent: extent,
            pathAndQuery: pathAndQuery, directives: nil)
    }

    /// - Parameter directives: what `Cache-Control` among the fields says, where that was read.
    init(
        method: Method = .get, status: StatusCode, reason: String = "", fields: Fields,
        varyingFields: Fields = Fields(), requestTime: Timestamp, responseTime: Timestamp,
        storedTime: Timestamp? = nil, isInvalidated: Bool = false,
        answersCredentials: Bool = false, extent: StoredExtent? = nil, pathAndQuery: String? = nil,
        directives: ResponseDirectives?
    ) {
        var parts = Parts(
            method: method, status: status, reason: reason, fields: fields,
            varyingFields: varyingFields, requestTime: requestTime,
            responseTime: responseTime, storedTime: storedTime ?? responseTime,
            isInvalidated: isInvalidated, answersCredentials: answersCredentials,
            extent: extent, pathAndQuery: pathAndQuery,
            facts: HeadFacts(of: fields, receivedAt: responseTime, directives: directives))
        parts.readSearch()
        self.content = Content(parts)
    }

    package static func == (a: StoredHead, b: StoredHead) -> Bool {
        a.content === b.content || a.content.parts == b.content.parts
    }

    private mutating func change(_ change: (inout Parts) -> Void) {
        var parts = self.content.parts
        change(&parts)
        self.content = Content(parts)
    }
}

extension StoredHead {
    /// The method of the request that it answers.
    package var method: Method {
        get { self.content.parts.method }
        set { self.change { $0.method = newValue } }
    }

    package var status: StatusCode {
        get { self.content.parts.status }
        set { self.change { $0.status = newValue } }
    }

    package var reason: String {
        get { self.content.parts.reason }
        set { self.change { $0.reason = newValue } }
    }

    /// End-to-end fields in the order received, without those that RFC 9111 §3.1 excludes;
    /// `Content-Length` is kept where the origin sent it.
    package var fields: Fields {
        get { self.content.parts.fields }
        set {
            self.change {
                $0.fields = newValue
                $0.readFields()
            }
        }
    }

    /// The fields of the original request that `Vary` names, as they were sent; a name without a
    /// line here was absent.
    ///
    /// Empty where the response has no `Vary`.
    package var varyingFields: Fields {
        get { self.content.parts.varyingFields }
        set { self.change { $0.varyingFields = newValue } }
    }

    /// When the request that led to the response was sent (RFC 9111 §4.2.3 `request_time`).
    package var requestTime: Timestamp {
        get { self.content.parts.requestTime }
        set { self.change { $0.requestTime = newValue } }
    }

    /// When its head was received (`response_time`).
    package var responseTime: Timestamp {
        get { self.content.parts.responseTime }
        set {
            self.change {
                $0.responseTime = newValue
                $0.readFields()
            }
        }
    }

    /// When it was first stored; a freshening does not change it.
    package var storedTime: Timestamp {
        get { self.content.parts.storedTime }
        set { self.change { $0.storedTime = newValue } }
    }

    /// Forces validation before every reuse, whatever the fields say: an unsafe request or a purge
    /// made it so (RFC 9111 §4.4 "mark as invalid").
    package var isInvalidated: Bool {
        get { self.content.parts.isInvalidated }
        set { self.change { $0.isInvalidated = newValue } }
    }

    /// A request with credentials led to it, or to what updated it: unless its directives allow that,
    /// it is nobody else's in a shared cache (RFC 9111 §3.5).
    ///
    /// Whether they do is asked at each use, as settings change what is stored and what counts.
    package var answersCredentials: Bool {
        get { self.content.parts.answersCredentials }
        set { self.change { $0.answersCredentials = newValue } }
    }

    /// Which bytes of the representation are stored, where not all of them are
    /// (RFC 9111 §3.3); nil for a complete response.
    ///
    /// `status` and `fields` are those of the whole then: 200, and no `Content-Range`.
    package var extent: StoredExtent? {
        get { self.content.parts.extent }
        set { self.change { $0.extent = newValue } }
    }

    /// Path and query of the request that it answers, where the key says less than that: the
    /// response has `No-Vary-Search`.
    package var pathAndQuery: String? {
        get { self.content.parts.pathAndQuery }
        set {
            self.change {
                $0.pathAndQuery = newValue
                $0.readSearch()
            }
        }
    }

    /// What whoever stored it added.
    package var attachment: StoredAttachment? {
        get { self.content.parts.attachment }
        set { self.change { $0.attachment = newValue } }
    }

    /// It is kept in memory alone: no lower tier ever gets it.
    package var staysInMemory: Bool {
        get { self.content.parts.staysInMemory }
        set { self.change { $0.staysInMemory = newValue } }
    }

    /// Stands for what of `pathAndQuery` matters, read once for all copies of this head; nil where the
    /// response answers one target alone.
    var searchDigest: Int? { self.content.parts.searchDigest }

    /// What `fields` say, read once for all copies of this head.
    var facts: HeadFacts { self.content.parts.facts }
}
