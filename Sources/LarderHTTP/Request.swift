/// How much content a message announces.
package enum BodyLength: Hashable, Sendable {
    case none
    /// That many bytes, known beforehand (`Content-Length`).
    case known(UInt64)
    /// Known when it has ended (chunked, or the close of the connection).
    case unknown
}

/// A request as a session and an upstream see it: the message, without its framing.
///
/// `fields` holds end-to-end fields only: no hop-by-hop field, nothing that `Connection` names, no
/// `Host` (the authority is the URI's), no `Content-Length`, `Transfer-Encoding` or `Expect`.
package struct Request: Sendable {
    package var method: Method
    package var uri: TargetURI
    package var fields: Fields
    package var bodyLength: BodyLength
    /// The client sent `Expect: 100-continue`: it waits for leave to send the content.
    package var expectsContinue: Bool
    /// It is sent with a credential of the session's, in whatever field or way.
    package var isAuthorized = false
    /// What stands in `fields` as digests; nil where the session adds no secret.
    package var sealed: SealedFields?
    /// How much of the time for the whole resource requests before it have used, which led to it.
    package var elapsed = Duration.zero
    /// The handshake that the upstream is to authenticate its connection with.
    package var connectionAuthentication: ConnectionAuthentication?
    /// What it wants of the upstream by itself.
    package var transfer = TransferOptions()
    /// Looks on; nil: nobody.
    package var observer: (any TransferObserver)?
    /// What its client says of cookies by itself; nil: what can be told from `fields`.
    package var cookies: RequestCookies?

    package init(
        method: Method = .get, uri: TargetURI, fields: Fields = Fields(),
        bodyLength: BodyLength = .none, expectsContinue: Bool = false
    ) {
        self.method = method
        self.uri = uri
        self.fields = fields
        self.bodyLength = bodyLength
        self.expectsContinue = expectsContinue
    }
}

extension Request {
    /// Whether its answer is one to credentials (RFC 9111 §3.5): the client's or the session's.
    package var bearsCredentials: Bool {
        self.isAuthorized || self.fields.contains(FieldName(.authorization))
    }
}

/// The head of a response: status and fields, as received from an origin or to be sent on.
package struct ResponseHead: Sendable, Equatable {
    package var status: StatusCode
    /// Empty where the protocol has none (HTTP/2) or the origin sent none.
    package var reason: String
    package var version: HTTPVersion
    package var fields: Fields
    /// It set cookies that a session has kept for itself: their lines may be gone from `fields`, and
    /// what holds for responses that set cookies holds for it nevertheless.
    package var hasSetCookies = false

    package init(
        status: StatusCode, reason: String = "", version: HTTPVersion = .http11,
        fields: Fields = Fields()
    ) {
        self.status = status
        self.reason = reason
        self.version = version
        self.fields = fields
    }
}
