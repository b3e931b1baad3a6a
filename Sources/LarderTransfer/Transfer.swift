import CCurl
import LarderHTTP
import NIOCore

/// One fetch on its loop: what libcurl's callbacks tell of it, and what its receiver is to hear.
///
/// ```
/// queued ─▶ resolving ─▶ connecting ─▶ awaitingHead ─▶ receiving ─▶ over
///    └──────(a connection is reused)───────▲   │
///                ▲──(it died unanswered)───────┘
/// ```
///
/// Not `Sendable`: belongs to the thread of its loop. libcurl's callbacks run inside a call of
/// libcurl and only note what happened; the loop acts, and calls the receiver, after that call has
/// returned.
///
/// Memory: at most `Transfer.outboxLimit` and one read of libcurl wait here for a receiver that
/// paused, and one more read inside libcurl. Over HTTP/2 libcurl 7.88 may hold what the origin sent
/// before it heard of the pause, up to the window of the stream.
final class Transfer {
    enum Phase {
        case queued, resolving, connecting, awaitingHead, receiving, over
    }

    /// What libcurl's write callback is told.
    enum Verdict {
        case taken, hold, abort
    }

    /// How much lies in the outbox at most before the origin is stopped.
    static let outboxLimit = 131_072
    /// The limit of the outbox where codings are undone: libcurl then keeps all that came of a
    /// read, and copies it each time that some of it is taken.
    static let decodedLimit = 524_288

    let order: FetchOrder
    /// The request's own: read six times, and out of the request it is a copy each time.
    let options: TransferOptions
    let content: RequestContent?
    let observer: (any TransferObserver)?
    /// How much sent content the observer knows of.
    var toldSent: UInt64 = 0
    /// nil: nobody looks at what it takes.
    let measuring: Measuring?
    var isMeasured = false
    /// When it was given to the upstream, and when to libcurl; 0 where nobody measures.
    var started: MonotonicTime { self.order.started }
    var launched: MonotonicTime
    /// When content was last handed to libcurl; nil: never.
    private(set) var lastSent: MonotonicTime?
    /// Handshakes that libcurl began for it.
    var handshakes = 0
    /// Its place among those that may have a connection; nil: it has none, or needs none.
    var destination: ConnectionQueue.Destination?
    /// It waits for a connection, and would not take one.
    var isPassedOver = false
    /// Its observer is suspended, as far as the loop knows: no time runs but the resource's.
    var isStandingStill = false
    /// Whether the origin's connection can bear more than one request at a time; unknown where it
    /// could not anyhow.
    private(set) var sharing = ConnectionQueue.Sharing.unknown
    private(set) var hasHead = false
    /// What tells that the response is whole where the connection's end ends it; nil: something else does.
    private(set) var closure: TLSClosure?
    /// It came to its end as it should.
    var isWhole = false
    /// Codings of the content are being undone.
    private(set) var isDecoding = false
    /// `Proxy-Authenticate` of the answer to CONNECT.
    private(set) var challenges = ProxyChallenges()
    let way: Way
    /// The request bears a login of its connection, by which libcurl does not know one from another.
    let logsConnectionIn: Bool
    /// The request's head is one that libcurl does not send in one piece by itself.
    let hasLargeHead: Bool
    /// HTTP/2 may be agreed on: it bears requests of many on one connection, and no login of that.
    ///
    /// Nor a large head: nghttp2 takes none above 64 KiB (NGHTTP2_MAX_HEADERSLEN), and with its error
    /// libcurl 7.88 fails others on the same connection.
    let mayBeHTTP2: Bool
    /// Whether libcurl speaks FTP for it.
    let isFTP: Bool
    unowned let loop: TransferLoop
    /// The handle while libcurl has the transfer.
    var easy: EasyHandle?
    let outbox: Outbox
    var phase = Phase.queued
    /// The receiver wants nothing further for now.
    var isPaused = false
    /// libcurl was told to hold the body back.
    var isHeld = false
    /// The socket of which libcurl wanted no more while it was.
    var heldSocket: Int32?
    /// libcurl has told of its socket since its request began.
    var hasKnownSocket = false
    /// The name that it waits to have looked up.
    var awaitedName: String?
    /// Since when, or since it first did.
    var nameAwaitedSince: MonotonicTime?
    /// It is among those that may look a name up.
    var hasLookupPlace = false
    /// Its name was looked up for it, and not known from before.
    var hasLookedUp = false
    /// The loop will look at this transfer when libcurl has returned.
    var isTouched = false
    /// The loop has let go of it.
    var isForgotten = false
    /// Something moved since the loop last looked: a wait begins anew.
    var hasProgressed = false
    /// Why the transfer must fail, found out by ourselves: overrides what libcurl makes of it.
    private(set) var failure: UpstreamFailure?
    /// The answer is whole although libcurl does not know it.
    private(set) var isAnsweredEarly = false
    /// libcurl must no longer wait for content: the origin gave leave to send it, or answered
    /// without it.
    var mustReleaseContent = false
    /// The answer is one after which no content need be sent: what is waited for is the origin's.
    private(set) var needsNoContent = false
    /// The origin will close the connection behind the answer.
    private(set) var endsConnection = false

    /// The parent is given a login.
    var hasLogin = false
    /// How an HTTP parent is given it.
    var parentLogin: Parent.Authentication?
    let assembler: ResponseAssembler
    private(set) var announced = BodyLength.unknown
    private(set) var received: UInt64 = 0
    private(set) var attempts = 0
    /// libcurl came as far as a request, whatever became of it.
    private(set) var hasBegunRequest = false
    private(set) var hasOpenedSocket = false
    /// Why an address was not tried: the request must not go there.
    var addressObjection: String?
    /// Why an FTP server's address for its data was not tried.
    var dataObjection: String?
    private(set) var remoteAddress = ""

    /// The place of what it waits for now.
    let waiting: WaitEntry
    /// The place of the wait for its end; nil where that has no limit.
    let lifetime: WaitEntry?
    /// The place of looking whether content is still needed; nil where there is none.
    let contentWaiting: WaitEntry?

    init(_ order: FetchOrder, content: RequestContent?, loop: TransferLoop) {
        self.order = order
        self.observer = order.request.observer
        self.measuring = order.isMeasured ? Measuring(begun: order.begun) : nil
        self.launched = order.started
        self.content = content
        self.loop = loop
        self.outbox = Outbox(loop.pieces)
        let request = order.request
        // Read once: each reading from another module is a call and a copy.
        let (uri, options) = (request.uri, request.transfer)
        self.options = options
        self.waiting = WaitEntry(id: order.fetch.id, idle: options.idleTimeout)
        let isLimited =
            options.resourceTimeout != nil || loop.configuration.resourceTimeout != nil
        self.lifetime =
            isLimited ? WaitEntry(id: order.fetch.id, resource: options.resourceTimeout) : nil
        self.contentWaiting = content.map { _ in WaitEntry(id: order.fetch.id) }
        self.way = Way(
            to: uri, isDial: order.dial != nil, for: order.dial?.scheme, loop.configuration.parents)
        let isHandshake = request.connectionAuthentication != nil
        self.logsConnectionIn = !isHandshake && request.logsConnectionIn
        self.isFTP = order.scheme == .ftp && !self.way.isRelay
        var challenges: Set<UInt16> = isHandshake ? [401] : []
        let loggedIn = self.way.parent?.authentication != Parent.Authentication.none
        if self.way.isRelay, loggedIn || options.proxyAuthorization != nil {
            challenges.insert(407)
        }
        self.hasLargeHead = RequestChecks.headSize(request) > RequestChecks.smallHead
        self.mayBeHTTP2 =
            order.scheme == .https && loop.configuration.http2 && !isHandshake
            && !self.logsConnectionIn && !self.hasLargeHead
        self.assembler = ResponseAssembler(
            method: request.method, mayBeHTTP2: self.mayBeHTTP2,
            acceptsBareLF: options.acceptsBareLF, challenges: challenges, last: loop.lastHead,
            configuration: loop.configuration)
    }

    // MARK: Noted by libcurl's callbacks

    func socketOpened() {
        self.hasOpenedSocket = true
        self.loop.socketOpened(self)
        switch self.phase {
        case .queued, .resolving:
            self.phase = .connecting
        case .awaitingHead where !self.isFTP:
            self.phase = .connecting  // The reused connection had died.
        case .awaitingHead, .connecting, .receiving, .over:
            return  // Another address is tried, or a data connection made.
        }
        self.loop.touch(self)
    }

    /// The request is about to go out; false where it must not.
    ///
    /// libcurl by itself sends a request again, up to five times, when a reused connection ends
    /// without an answer. A request that may not be sent twice gets a new connection for that
    /// reason (CURLOPT_FRESH_CONNECT); this is the place that makes sure, whatever libcurl's reason.
    ///
    /// What answers a challenge is no repetition: the origin, or parent, has refused what came first.
    func requestBegins(address: String, port: Int32) -> Bool {
        self.hasBegunRequest = true
        self.hasKnownSocket = false
        if self.assembler.requestBegins() { self.attempts = 0 }
        self.attempts += 1
        // Over HTTP/2 libcurl asks again by HTTP/1.1 where the origin wants that, however late.
        guard !self.assembler.isHeadComplete else {
            self.fail(.malformed("a response that was broken off to be asked for anew"))
            return false
        }
        guard self.isFTP || self.attempts <= self.mostAttempts else {
            self.fail(
                UpstreamFailure(
                    .connectionTerminated, cause: .connectionLost,
                    detail: "the connection ended without an answer; not sent again"))
            return false
        }
        if let objection = self.objection(to: address) ?? self.objectionToConnection() {
            self.fail(objection)
            return false
        }
        // Where this connection has died, others that are idle may have died of the same; and one that
        // is retired is the first that libcurl would choose again.
        if self.attempts == self.mostAttempts - 1, self.mayBeSentAnew {
            self.easy?.connectAnew(true)
        }
        self.markSocket()
        self.remoteAddress = self.loop.peer.text(of: address, port: port)
        self.phase = .awaitingHead
        self.loop.touch(self)
        return true
    }

    /// A line of a head or a trailer section; false ends the transfer.
    func line(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // In nearly all lines of most heads nothing is to be noted.
        if self.phase == .awaitingHead, unsafe self.assembler.repeats(bytes) { return true }
        if self.isFTP {
            self.hasProgressed = true
            self.loop.touch(self)
            return true  // Replies on the control connection: libcurl reads them.
        }
        if self.isBeforeRequest {
            unsafe self.challenges.line(bytes)
            return true
        }
        if let measuring = self.measuring, unsafe bytes.starts(with: "HTTP/".utf8) {
            measuring.responseBegan = .read()
        }
        do throws(UpstreamFailure) {
            switch unsafe try self.assembler.line(bytes) {
            case .nothing:
                return true
            case .leave:
                self.releaseContent()
            case .informational(let head):
                self.outbox.append(informational: head)
                self.hasProgressed = true
            case .head(let head, let length):
                self.headEnded(head, length)
                if self.failure != nil { return false }
            }
        } catch {
            self.fail(error)
            return false
        }
        self.loop.touch(self)
        return true
    }

    /// Bytes of the body, or a part of a head that libcurl has not taken up yet.
    func body(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        switch unsafe self.assembler.shown(bytes) {
        case .content: break
        case .head: return .taken
        case .lastHead:
            self.easy?.showsHeads(false)
            return .taken
        case .refused:
            self.fail(.malformed("a line that is folded before any field"))
            return .abort
        }
        if self.isFTP, self.phase != .receiving {
            // "Headers" that libcurl makes up for a file that was only asked about.
            if self.request.method == .head { return .taken }
            self.ftpHeadEnded()
        }
        // libcurl shows no content of a challenge that it answers.
        if let (head, length) = self.assembler.takeHeld() { self.headEnded(head, length) }
        if self.failure != nil { return .abort }
        let limit = self.isDecoding ? Self.decodedLimit : Self.outboxLimit
        guard bytes.count <= limit - self.outbox.byteCount else {
            self.isHeld = true
            self.loop.held(self)
            return .hold
        }
        var expected: UInt64?
        switch self.announced {
        case .unknown: break
        case .none:
            self.fail(.malformed("content where none may be"))
            return .abort
        case .known(let length):
            guard self.received <= length, UInt64(bytes.count) <= length - self.received else {
                self.fail(.malformed("more content than announced"))
                return .abort
            }
            expected = length - self.received
        }
        self.received &+= UInt64(bytes.count)
        unsafe self.outbox.append(bytes, expected: expected)
        // libcurl may have no need of content any more, and would wait for a paused source for ever.
        if expected == UInt64(bytes.count) {
            if self.content?.isPending == true { self.goOnSending() }
            self.forbidReuseOfExcess()
        }
        self.hasProgressed = true
        self.loop.touch(self)
        return .taken
    }

    /// Room in libcurl's buffer for the next bytes of the request's content.
    func fill(_ target: UnsafeMutableRawBufferPointer) -> RequestContent.Fill {
        guard let content = self.content else { return .end }
        let fill = unsafe content.fill(target)
        self.loop.touch(self)
        switch fill {
        case .bytes:
            self.hasProgressed = true
            if self.measuring != nil { self.lastSent = .read() }
        case .abort(let failure): self.fail(failure)
        case .pause, .end: break
        }
        return fill
    }

    /// Has the transfer end with a failure of our own finding, whatever libcurl makes of it.
    func fail(_ failure: UpstreamFailure) {
        if self.failure == nil { self.failure = failure }
        self.loop.touch(self)
    }

    // MARK: Heads

    func headEnded(_ head: ResponseHead, _ length: BodyLength) {
        if self.way.isRelay, head.status.rawValue == 407,
            !self.options.receivesProxyChallenges, let parent = self.way.parent
        {
            // It is for us, not for our client, who could not answer it.
            return self.fail(
                ParentFailure.loginWanted(
                    by: parent, hadLogin: self.hasLogin, offered: self.easy?.parentSchemes ?? 0))
        }
        if self.isAnsweredWithoutContent, head.status.rawValue < 400, let parent = self.way.parent {
            return self.fail(ParentFailure.notAsked(by: parent))
        }
        if self.endsWithTLS(head, length), let tls = unsafe self.easy?.tls {
            self.closure = unsafe TLSClosure.watch(tls)
        }
        let length = self.decodedLength(of: head, length)
        self.announced = length
        self.phase = .receiving
        self.hasHead = true
        if head.version.major >= 2 || self.mayBeHTTP2 {
            self.learn(isShared: head.version.major >= 2)
        }
        var facts = UpstreamConnectionFacts(
            remoteAddress: self.remoteAddress, reused: !self.hasOpenedSocket,
            version: head.version)
        facts.isParent = self.way.parent != nil
        self.outbox.append(Outbox.Head(head: head, bodyLength: length, connection: facts))
        switch length {
        case .known(1...): break
        case .known, .none, .unknown: self.easy?.listenForExcess()
        }
        guard let content = self.content else { return }
        // HEAD with content goes out as an upload, to which libcurl expects an answer with a body.
        if self.request.method == .head { self.isAnsweredEarly = true }
        self.needsNoContent = head.status.rawValue >= 300
        let isChunked = head.fields.contains(FieldName(.transferEncoding))
        self.endsConnection =
            !HopByHop.keepsAlive(head.fields, version: head.version)
            || (length == .unknown && !isChunked)
        guard content.isPending else { return }
        if self.needsNoContent {
            // libcurl sends no more, or only until it has read all where the connection will be closed,
            // but would wait for a paused source for ever. What was withheld remains so.
            self.goOnSending()
        } else if content.isWithheld {
            self.releaseContent()
        }
    }

    /// The length of the content as it will be handed over, whose codings are undone if that can be.
    private func decodedLength(of head: ResponseHead, _ length: BodyLength) -> BodyLength {
        guard self.options.decodesContent, length != .none else { return length }
        let codings = ContentCodings.of(head.fields)
        guard !codings.isEmpty else { return length }
        guard CurlLibrary.undoes(codings) else {
            // libcurl would fail at the first byte (CURLE_BAD_CONTENT_ENCODING).
            self.easy?.set(CURLOPT_HTTP_CONTENT_DECODING, false)
            return length
        }
        self.isDecoding = true
        return .unknown
    }

    /// Requests to the same origin need no connection of their own, or do.
    func learn(isShared: Bool) { self.sharing = isShared ? .shared : .none }

    var isMultiplexed: Bool { self.sharing == .shared }

    func ftpHeadEnded() {
        let length = self.easy?.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T).flatMap(
            UInt64.init(exactly:))
        let head = FTPResponse.head(
            for: self.request.uri, length: length,
            modified: self.easy?.offset(CURLINFO_FILETIME_T))
        self.announced =
            self.request.method == .head ? .none : length.map { .known($0) } ?? .unknown
        self.phase = .receiving
        self.hasHead = true
        self.outbox.append(
            Outbox.Head(
                head: head, bodyLength: self.announced,
                connection: UpstreamConnectionFacts(
                    remoteAddress: self.remoteAddress, reused: !self.hasOpenedSocket)))
    }
}
