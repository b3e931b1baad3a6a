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
///
/// A value that lies behind one reference, copied when it is changed: it goes from hand to hand
/// through exchange, fetch, order and transfer, and each copy of a dozen references would be
/// counted up and down one by one.
package struct Request: Sendable {
    private var storage: RequestStorage

    package init(
        method: Method = .get, uri: TargetURI, fields: Fields = Fields(),
        bodyLength: BodyLength = .none, expectsContinue: Bool = false
    ) {
        self.storage = RequestStorage(
            RequestParts(
                method: method, uri: uri, fields: fields, bodyLength: bodyLength,
                expectsContinue: expectsContinue))
    }

    package var method: Method {
        get { self.storage.parts.method }
        _modify { yield &self.own.parts.method }
    }

    package var uri: TargetURI {
        get { self.storage.parts.uri }
        _modify { yield &self.own.parts.uri }
    }

    package var fields: Fields {
        get { self.storage.parts.fields }
        _modify { yield &self.own.parts.fields }
    }

    package var bodyLength: BodyLength {
        get { self.storage.parts.bodyLength }
        _modify { yield &self.own.parts.bodyLength }
    }

    /// The client sent `Expect: 100-continue`: it waits for leave to send the content.
    package var expectsContinue: Bool {
        get { self.storage.parts.expectsContinue }
        _modify { yield &self.own.parts.expectsContinue }
    }

    /// It is sent with a credential of the session's, in whatever field or way.
    package var isAuthorized: Bool {
        get { self.storage.parts.isAuthorized }
        _modify { yield &self.own.parts.isAuthorized }
    }

    /// What stands in `fields` as digests; nil where the session adds no secret.
    package var sealed: SealedFields? {
        get { self.storage.parts.sealed }
        _modify { yield &self.own.parts.sealed }
    }

    /// How much of the time for the whole resource requests before it have used, which led to it.
    package var elapsed: Duration {
        get { self.storage.parts.elapsed }
        _modify { yield &self.own.parts.elapsed }
    }

    /// The handshake that the upstream is to authenticate its connection with.
    package var connectionAuthentication: ConnectionAuthentication? {
        get { self.storage.parts.connectionAuthentication }
        _modify { yield &self.own.parts.connectionAuthentication }
    }

    /// What it wants of the upstream by itself.
    package var transfer: TransferOptions {
        get { self.storage.parts.transfer }
        _modify { yield &self.own.parts.transfer }
    }

    /// Looks on; nil: nobody.
    package var observer: (any TransferObserver)? {
        get { self.storage.parts.observer }
        _modify { yield &self.own.parts.observer }
    }

    /// What its client says of cookies by itself; nil: what can be told from `fields`.
    package var cookies: RequestCookies? {
        get { self.storage.parts.cookies }
        _modify { yield &self.own.parts.cookies }
    }

    /// The storage, nobody else's: to be changed.
    private var own: RequestStorage {
        mutating get {
            if !isKnownUniquelyReferenced(&self.storage) {
                self.storage = RequestStorage(self.storage.parts)
            }
            return self.storage
        }
    }
}

private struct RequestParts: Sendable {
    var method: Method
    var uri: TargetURI
    var fields: Fields
    var bodyLength: BodyLength
    var expectsContinue: Bool
    var isAuthorized = false
    var sealed: SealedFields?
    var elapsed = Duration.zero
    var connectionAuthentication: ConnectionAuthentication?
    var transfer = TransferOptions()
    var observer: (any TransferObserver)?
    var cookies: RequestCookies?
}

/// `@unchecked`: it is changed only through a `Request` that alone refers to it.
private final class RequestStorage: @unchecked Sendable {
    var parts: RequestParts

    init(_ parts: RequestParts) {
        self.parts = parts
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
