package import NIOCore

/// A way to origins: a request in; a head and body pieces out, or a failure.
///
/// The session engine knows origins only through this port; libcurl is behind one implementation,
/// scripted answers behind another.
package protocol Upstream: Sendable {
    /// Begins a fetch and returns at once.
    ///
    /// The receiver's methods are called on the upstream's own threads, for one fetch one after the
    /// other, possibly before `fetch` returns. The request goes to the origin as it stands, but
    /// for framing, `Host` and connection fields, which are the upstream's.
    ///
    /// - Parameter body: the content, where `request.bodyLength` is not `.none`.
    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch

    /// Who makes connections for tunnels where they must not be made directly; nil: nobody has to.
    ///
    /// An upstream in front of another passes on what that one says.
    var dialer: (any TunnelDialer)? { get }
}

extension Upstream {
    package var dialer: (any TunnelDialer)? { nil }
}

/// A fetch under way.
///
/// Its methods may be called from any thread, at any time, also after its end.
package protocol UpstreamFetch: AnyObject, Sendable {
    /// Takes back a `.pause`.
    func resume()
    /// Ends the fetch; the receiver hears nothing more, except for a call that is already under way.
    func cancel()
    /// Nobody waits for the answer just now: where another fetch waits for the connection, the receiver
    /// is asked to end this one (``UpstreamReceiver/endsForAnother()``).
    func mayEndForAnother()
}

extension UpstreamFetch {
    package func mayEndForAnother() {}
}

/// Whether more of a body is wanted now.
package enum UpstreamDemand: Sendable {
    case more
    /// Deliver nothing further until `resume`. What was delivered counts as taken.
    case pause
}

/// What happened at the connection that carried a response.
package struct UpstreamConnectionFacts: Sendable, Equatable {
    /// The origin's (or parent's) address and port as text; empty where unknown.
    package var remoteAddress: String
    package var reused: Bool
    package var version: HTTPVersion
    /// Whether that is a parent proxy on the way to the origin.
    package var isParent = false
    /// The request that was answered bore a credential, or one of those before it that led here.
    package var isAuthorized = false
    /// What stood in the request that was answered in the place of the lines of `Cookie`,
    /// `Authorization` and its own names in the one that was handed over, digests for secrets; nil
    /// where it was the same.
    package var answered: Fields?
    /// What unsafe requests on the way have changed, beside what the one that was handed over has.
    package var changed: [TargetURI] = []
    /// Where redirections led that were followed, in order; nil where none would have been.
    package var ledTo: [TargetURI]?
    /// The response is a redirection that was not followed as the client may not be led there: another
    /// one would get what it leads to.
    package var isForThisClient = false

    package init(
        remoteAddress: String = "", reused: Bool = false, version: HTTPVersion = .http11
    ) {
        self.remoteAddress = remoteAddress
        self.reused = reused
        self.version = version
    }
}

/// Whom a request was sent to.
package struct NextHop: Hashable, Sendable {
    /// With its port; empty where nobody was asked, or it is not known.
    package var address: String
    /// A parent proxy, and not the origin itself.
    package var isParent: Bool

    package init(address: String = "", isParent: Bool = false) {
        self.address = address
        self.isParent = isParent
    }

    /// The server that a URI names, whatever its address.
    package init(of uri: TargetURI) {
        self.init(address: "\(uri.host):\(uri.port)")
    }

    /// As `Proxy-Status` has it (RFC 9209 §2.1.2): a parent with its port, an origin without.
    package var name: String {
        guard !self.isParent, let colon = self.address.lastIndex(of: ":"),
            self.address.last != "]"
        else { return self.address }
        return String(self.address[..<colon])
    }
}

extension UpstreamConnectionFacts {
    /// Whom the request was sent to.
    package var nextHop: NextHop {
        NextHop(address: self.remoteAddress, isParent: self.isParent)
    }
}

/// A response of which all had come before its receiver heard anything of it.
package struct WholeResponse: Sendable {
    package var head: ResponseHead
    package var bodyLength: BodyLength
    package var connection: UpstreamConnectionFacts
    /// The body exactly as the origin coded it, transfer coding removed; empty where there is none.
    package var body: ByteBuffer

    package init(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts,
        body: ByteBuffer
    ) {
        self.head = head
        self.bodyLength = bodyLength
        self.connection = connection
        self.body = body
    }
}

/// Hears what comes of one fetch.
///
/// `informational* · head · piece* · (finished | failed)`, or `failed` at any point before.
/// `finished` and `failed` are the last call, and exactly one of them comes unless cancelled.
/// Who takes whole responses may hear one of these in the place of `head · piece* · finished`.
package protocol UpstreamReceiver: AnyObject, Sendable {
    /// A 1xx response other than 100 and 101.
    func upstream(informational head: ResponseHead)
    /// The final response's head. `bodyLength` is what its framing announces.
    ///
    /// `fields` come as the origin sent them, hop-by-hop fields included, without `Content-Length`
    /// and `Transfer-Encoding` changed: whoever stores or relays them removes what must not travel.
    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand
    /// Bytes of the body exactly as the origin coded them (transfer coding removed).
    func upstream(piece: ByteBuffer) -> UpstreamDemand
    /// The body is whole, by its own framing.
    func upstream(finished trailers: Fields)
    func upstream(failed failure: UpstreamFailure)
    /// Whether a response that is whole may come in one call.
    var takesWholeResponses: Bool { get }
    /// Whether that call, where it is taken, may come on the thread that calls `fetch`, before it returns.
    var mayBeAnsweredAtOnce: Bool { get }
    /// By whom the fetch counts among those that want a connection to the same origin: each client has a
    /// share; nil: it is for none, or they are not told apart. Read once.
    var client: Int? { get }
    /// A response without trailers, all of it in memory; the last call.
    func upstream(whole response: WholeResponse)
    /// Another fetch waits for the connection of this one, of which was said that it may end for that.
    ///
    /// - Returns: whether it was cancelled; not where somebody waits for it again.
    func endsForAnother() -> Bool
}

extension UpstreamReceiver {
    package var takesWholeResponses: Bool { false }
    package var mayBeAnsweredAtOnce: Bool { false }
    package var client: Int? { nil }

    package func upstream(whole response: WholeResponse) {}
    package func endsForAnother() -> Bool { false }
}

/// Why a fetch failed, in the words of RFC 9209 §2.3 where they exist.
package struct UpstreamFailure: Error, Hashable, Sendable {
    /// The proxy error types of RFC 9209 §2.3 that an upstream can produce.
    package enum Kind: Hashable, Sendable, CaseIterable {
        case dnsTimeout
        case dnsError
        case destinationNotFound
        case destinationUnavailable
        case destinationIPUnroutable
        case connectionRefused
        case connectionTerminated
        case connectionTimeout
        case connectionReadTimeout
        case connectionWriteTimeout
        case connectionLimitReached
        case tlsProtocolError
        case tlsCertificateError
        case httpResponseIncomplete
        case httpResponseHeaderSectionSize
        case httpResponseBodySize
        case httpResponseTimeout
        case httpProtocolError
        case proxyInternalError
        case proxyConfigurationError
        case proxyLoopDetected
        /// The host leads to an address that this client must not reach.
        case httpRequestDenied
        /// The request's own content failed on its way in: the client's fault.
        case requestBodyFailed
        /// The request's head, with what is added to it, is larger than any that is sent: the client's fault.
        case requestHeadTooLarge
    }

    /// Who must change something for the request to succeed.
    package enum Party: String, Hashable, Sendable { case client, origin, larder }

    /// A bound of the configuration: on what is waited for, or on how large a head may be.
    package enum Limit: Hashable, Sendable, CaseIterable {
        case resolve, connect, response, stall, head, fieldCount
        /// On silence, of the session.
        case idle
    }

    package var kind: Kind
    package var party: Party
    /// For people and logs: one line, no secrets, no line breaks.
    package var detail: String
    /// The parent proxy that was to lead to the origin, or the server that redirections led to; nil
    /// where it was the request's own.
    package var hop: NextHop?
    /// Its name (``NextHop/name``).
    package var nextHop: String? { self.hop?.name }
    /// Finer than the kind; nil: there is no more to it.
    package var cause: Cause?
    /// The bound that was passed; nil where none was, or one of another's.
    package var limit: Limit?
    /// What a parent answered CONNECT with; nil where it did not, or was not asked.
    package var receivedStatus: StatusCode?
    /// The values of `Proxy-Authenticate` in a parent's 407 to CONNECT.
    package var proxyChallenges: [String] = []

    /// Whether whoever asks the same again would be told the same, who he is aside: of what the client's own
    /// request is to blame for only what a parent refuses.
    package var isOfAll: Bool { self.party != .client || self.cause == .proxy }

    package init(
        _ kind: Kind, party: Party = .origin, cause: Cause? = nil, detail: String
    ) {
        self.kind = kind
        self.party = party
        self.cause = cause
        self.detail = detail
    }
}
