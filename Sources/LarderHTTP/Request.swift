/// How much content a message announces.
package enum BodyLength: Hashable, Sendable {
    case none
    /// That many bytes, known beforehand (`Content-Length`).
    case known(UInt64)
    /// Known when it has ended (chunked, or the close of the connection).
    case unknown

    /// How many bytes there will be, 0 where there is no body; nil where that is not known.
    package var knownBytes: UInt64? {
        switch self {
        case .none: 0
        case .known(let count): count
        case .unknown: nil
        }
    }
}

/// A request as a session and an upstream see it: the message, without its framing.
///
/// `fields` holds end-to-end fields only: no hop-by-hop field, nothing that `Connection` names, no
/// `Host` (the authority is the URI's), no `Content-Length`, `Transfer-Encoding` or `Expect`.
///
/// A value that lies behind one reference, made anew when it is changed: it goes from hand to hand
/// through exchange, fetch, order and transfer, and each copy of a dozen references would be
/// counted up and down one by one. What lies there never changes, so that to read it takes no check
/// for exclusive access: a miss reads some eighty parts. Those that hold references are lent.
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

    /// A request with what else belongs to it, made once: to change one later makes it anew, which
    /// costs some 2,500 instructions.
    package init(
        method: Method, uri: TargetURI, fields: Fields, bodyLength: BodyLength,
        transfer: TransferOptions, observer: (any TransferObserver)?, cookies: RequestCookies?
    ) {
        self.storage = RequestStorage(
            RequestParts(
                method: method, uri: uri, fields: fields, bodyLength: bodyLength,
                expectsContinue: false, transfer: transfer, observer: observer, cookies: cookies))
    }

    package var method: Method {
        _read { yield self.storage.parts.method }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.method
        }
    }

    package var uri: TargetURI {
        _read { yield self.storage.parts.uri }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.uri
        }
    }

    package var fields: Fields {
        _read { yield self.storage.parts.fields }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.fields
        }
    }

    package var bodyLength: BodyLength {
        get { self.storage.parts.bodyLength }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.bodyLength
        }
    }

    /// The client sent `Expect: 100-continue`: it waits for leave to send the content.
    package var expectsContinue: Bool {
        get { self.storage.parts.expectsContinue }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.expectsContinue
        }
    }

    /// It is sent with a credential of the session's, in whatever field or way.
    package var isAuthorized: Bool {
        get { self.storage.parts.isAuthorized }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.isAuthorized
        }
    }

    /// What stands in `fields` as digests; nil where the session adds no secret.
    package var sealed: SealedFields? {
        get { self.storage.parts.sealed }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.sealed
        }
    }

    /// Which addresses its origin's name may lead it to; nil: any.
    package var destinations: (any DestinationPolicy)? {
        get { self.storage.parts.destinations }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.destinations
        }
    }

    /// How much of the time for the whole resource requests before it have used, which led to it.
    package var elapsed: Duration {
        get { self.storage.parts.elapsed }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.elapsed
        }
    }

    /// The handshake that the upstream is to authenticate its connection with.
    package var connectionAuthentication: ConnectionAuthentication? {
        get { self.storage.parts.connectionAuthentication }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.connectionAuthentication
        }
    }

    /// What it wants of the upstream by itself.
    package var transfer: TransferOptions {
        get { self.storage.parts.transfer }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.transfer
        }
    }

    /// Looks on; nil: nobody.
    package var observer: (any TransferObserver)? {
        get { self.storage.parts.observer }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.observer
        }
    }

    /// What its client says of cookies by itself; nil: what can be told from `fields`.
    package var cookies: RequestCookies? {
        get { self.storage.parts.cookies }
        _modify {
            var parts = self.taken()
            defer { self.storage = RequestStorage(parts) }
            yield &parts.cookies
        }
    }

    /// The same with other fields.
    package func with(_ fields: Fields) -> Request {
        var request = self
        request.fields = fields
        return request
    }

    /// The same with other fields, in which something stands for secrets: made anew once.
    package func with(_ fields: Fields, sealed: SealedFields, isAuthorized: Bool) -> Request {
        var parts = self.storage.parts
        parts.fields = fields
        parts.sealed = sealed
        parts.isAuthorized = isAuthorized
        return Request(storage: RequestStorage(parts))
    }

    private init(storage: RequestStorage) {
        self.storage = storage
    }

    /// Takes the parts out, to be changed in place where nobody else has them.
    private mutating func taken() -> RequestParts {
        defer { self.storage = .vacant }
        return self.storage.parts
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
    var destinations: (any DestinationPolicy)?
}

private final class RequestStorage: Sendable {
    let parts: RequestParts

    /// In the place of what is being changed.
    static let vacant = RequestStorage(
        RequestParts(
            method: .get, uri: TargetURI(scheme: .http, host: "", pathAndQuery: "/"),
            fields: Fields(), bodyLength: .none, expectsContinue: false))

    init(_ parts: RequestParts) {
        self.parts = parts
    }
}

extension Request {
    /// Whether its answer is one to credentials (RFC 9111 §3.5): the client's or the session's.
    package var bearsCredentials: Bool {
        self.isAuthorized || self.fields.has(.authorization)
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
    /// Whether it sets cookies, be their lines still there or not.
    package var setsCookies: Bool {
        self.hasSetCookies || self.fields.lines.contains { $0.known == .setCookie }
    }

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
