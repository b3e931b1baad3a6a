package import LarderHTTP
package import LarderPolicy
package import NIOCore

/// Performs exchanges: a session, seen by one of its doors.
///
/// `Session` is the implementation; the proxy's own tests script another.
package protocol ExchangeSession: AnyObject, Sendable {
    /// Begins an exchange and returns at once; never blocks. Any thread.
    ///
    /// The client may hear its answer before `perform` returns: that is what a hit from memory does.
    ///
    /// - Parameters:
    ///   - request: the client's request, hop-by-hop fields removed and `Via` added.
    ///   - body: its content, where `request.bodyLength` is not `.none`. Its first `next` means that
    ///     the content is wanted (the moment for `100 Continue`); it is never asked for when the
    ///     answer needs none of it.
    func perform(
        _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) -> any Exchange

    /// Gives an answer that this session gave before once more, and counts it like any other; nil,
    /// and nothing is counted, where it does not stand any more: then the request is to be performed.
    ///
    /// - Parameter cachePolicy: as in the options of the exchange that it was first given in.
    func again(
        _ standing: StandingAnswer, cachePolicy: RequestCachePolicy?
    ) -> StandingAnswer.Repetition?

    /// Whether a request has to go by way of `perform`, and may not ask its origin for another
    /// protocol: a rule decides with which credential it goes, or that it does not go without.
    ///
    /// Any thread; never blocks.
    func mustPerform(_ request: Request) -> Bool

    /// How exchanges that say nothing themselves use the cache, now.
    var cachePolicy: RequestCachePolicy { get }

    /// Whether transfers go on when their clients have left, also after a restart: then it has to be
    /// told who asks (`ExchangeOptions.requester`).
    var keepsTransfers: Bool { get }

    /// Who makes the connections of tunnels and upgrades where parent proxies lead to their
    /// destinations; nil: the door makes them itself.
    var dialer: (any TunnelDialer)? { get }
}

extension ExchangeSession {
    package var dialer: (any TunnelDialer)? { nil }

    package func again(
        _ standing: StandingAnswer, cachePolicy: RequestCachePolicy?
    ) -> StandingAnswer.Repetition? { nil }

    package func mustPerform(_ request: Request) -> Bool { false }

    package var cachePolicy: RequestCachePolicy { .useProtocol }

    package var keepsTransfers: Bool { false }
}

/// What somebody who is not connected any more may have still.
package struct RequesterLeave: Sendable {
    /// As `ExchangeOptions.permits`.
    package var permits: (@Sendable (Method, TargetURI) -> Bool)?
    /// As `Request.destinations`.
    package var destinations: (any DestinationPolicy)?

    package init(
        permits: (@Sendable (Method, TargetURI) -> Bool)? = nil,
        destinations: (any DestinationPolicy)? = nil
    ) {
        self.permits = permits
        self.destinations = destinations
    }
}

/// What a door asks of one exchange beside the request itself.
package struct ExchangeOptions: Sendable {
    /// Takes the place of the session's own policy; nil: that one.
    package var cachePolicy: RequestCachePolicy?
    /// Whether this client may have a target that a redirection names, where the session follows
    /// redirections itself: by access rules, and never Larder's own addresses.
    ///
    /// nil: none. Called on any thread; must not block.
    package var permits: (@Sendable (Method, TargetURI) -> Bool)?
    /// Whether another client's fetch for the same thing will do; false: each asks for itself.
    package var collapses = true
    /// Whether the door can make use of an answer that stands (`Answer.standing`).
    package var keepsStanding = false
    /// Has a say in what of the answer is stored; nil: the rules of caching alone decide.
    package var storing: (any StoringGate)?
    /// Whether an origin's answer, too, may be told inside `perform`: one that is stored always may.
    package var mayBeAnsweredAtOnce = false
    /// Where the request comes from, equal for those who share what one client may have of an origin's
    /// connections; nil: from nobody who shares them.
    package var source: Int?
    /// Who asks; told only where the session keeps transfers, which go on without him.
    package var requester: Requester?
    /// Owns the fetch that the exchange leads, where its response is stored; nil: its clients do.
    package var owner: (any FetchOwner)?

    package init(
        cachePolicy: RequestCachePolicy? = nil,
        permits: (@Sendable (Method, TargetURI) -> Bool)? = nil,
        storing: (any StoringGate)? = nil
    ) {
        self.cachePolicy = cachePolicy
        self.permits = permits
        self.storing = storing
    }
}

/// An exchange under way, as its client holds it.
package protocol Exchange: AnyObject, Sendable {
    /// The client has gone, or wants no more. Any thread, at any time, also twice.
    func cancel()
    /// The client sends nothing more: it waits for its answer, or has gone. Any thread, at any time.
    func clientMayHaveGone()
}

extension Exchange {
    package func clientMayHaveGone() {}
}

/// Whoever wants the answer: a connection of the proxy, a task of the library.
///
/// `informational* · (answered | failed)`; called on any thread, possibly inside `perform`; must not
/// block.
package protocol ExchangeClient: AnyObject, Sendable {
    /// A 1xx response (never 100 or 101) to be relayed.
    func exchange(informational head: ResponseHead)
    func exchange(answered answer: Answer)
    func exchange(failed failure: ExchangeFailure)
}

/// The answer to a request.
package struct Answer: Sendable {
    /// The content that follows the head.
    package enum Body: Sendable {
        /// No content is sent (HEAD, 204, 304), whatever `bodyLength` announces.
        case none
        /// The whole content, in memory.
        case resident(ByteBuffer)
        /// The content, pulled. Whoever holds the answer must attach and read it, or cancel it.
        case source(any BodySource)
    }

    /// Status and end-to-end fields, with `Age`, `Date` and `Cache-Status` as they should be sent;
    /// without `Content-Length`, `Transfer-Encoding`, `Connection` and `Via`.
    package var head: ResponseHead
    /// What to announce: for an answer to HEAD, what a GET would have got.
    package var bodyLength: BodyLength
    package var body: Body
    package var cacheStatus: CacheStatus
    /// Whom the request was sent to, for the log.
    package var origin: NextHop
    /// What the session did by itself on the way to it, in order; for the log.
    package var acts: [SessionAct] = []
    /// By which the same request can be answered again; nil where it has to be decided anew.
    package var standing: StandingAnswer?

    package init(
        head: ResponseHead, bodyLength: BodyLength, body: Body, cacheStatus: CacheStatus,
        origin: NextHop = NextHop()
    ) {
        self.head = head
        self.bodyLength = bodyLength
        self.body = body
        self.cacheStatus = cacheStatus
        self.origin = origin
    }
}

/// Why an exchange has no answer from an origin or a store.
///
/// The door turns it into its own form: the proxy into a response with `Proxy-Status` and a problem
/// document, the library into a `URLError`.
package struct ExchangeFailure: Error, Sendable, Equatable {
    /// The status with which HTTP says it: 502, 503, 504, and so on.
    package var status: StatusCode
    /// The proxy error type (RFC 9209 §2.3), where one fits.
    package var error: ProxyErrorType?
    /// For people: one line, no secrets.
    package var detail: String
    package var party: UpstreamFailure.Party
    package var cacheStatus: CacheStatus
    /// The host that was asked (RFC 9209 §2.1.2); nil where none was.
    package var nextHop: String?
    /// Whom the request was sent to, or was to be; for the log.
    ///
    /// nil: nobody, or it was not found.
    package var origin: NextHop?
    /// What the session did by itself before it failed, in order; for the log.
    package var acts: [SessionAct] = []
    /// The upstream's own, where it failed.
    package var upstream: UpstreamFailure?

    /// Whether whoever asks the same again would be told the same (``UpstreamFailure/isOfAll``).
    var isOfAll: Bool { self.upstream?.isOfAll ?? (self.party != .client) }

    package init(
        status: StatusCode, error: ProxyErrorType?, detail: String, party: UpstreamFailure.Party,
        cacheStatus: CacheStatus, nextHop: String? = nil
    ) {
        self.status = status
        self.error = error
        self.detail = detail
        self.party = party
        self.cacheStatus = cacheStatus
        self.nextHop = nextHop
    }
}
