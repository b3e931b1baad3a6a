import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// A request past every cache: from the load straight to the upstream, and the answer straight back.
///
/// ```
/// fetch ─▶ informational* ─▶ head ─▶ pieces, read ahead by a window ─▶ end | failed
/// ```
///
/// What a session does beside caching is left of it: cookies. It stands in the place of the exchange
/// that a `Session` performs, whose look-up, verdicts and filling cost a third of a small request
/// where there is nothing to find and nothing to share.
final class UncachedExchange: Exchange {
    /// As much as a session reads ahead for one reader.
    private static let window = 262_144

    fileprivate enum Stage { case asking, answered, over }

    fileprivate struct State {
        var stage = Stage.asking
        var upstream: (any UpstreamFetch)?
        /// `resume` came before the upstream had said that it is under way.
        var resumesWhenBegun = false
        /// In the order in which they came; those before `read` are read.
        var pieces: [ByteBuffer] = []
        var read = 0
        var waitingBytes = 0
        var isPaused = false
        /// Nobody wants it any more.
        var isCancelled = false
        /// What comes behind the pieces.
        var ending: BodyStep?
        var wake: (@Sendable () -> Void)?
        /// The reader has been told to wait.
        var isAwaited = false
    }

    private let request: Request
    private let cookies: (any HopCookies)?
    private let clock: any WallClock
    private let client: any ExchangeClient
    let mayBeAnsweredAtOnce: Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - request: without content.
    ///   - cookies: that keep no answer waiting; nil: none.
    ///   - mayBeAnsweredAtOnce: the client may hear the answer before `begin` has returned.
    init(
        _ request: Request, cookies: (any HopCookies)?, clock: any WallClock,
        client: any ExchangeClient, mayBeAnsweredAtOnce: Bool = false
    ) {
        self.request = request
        self.cookies = cookies
        self.clock = clock
        self.client = client
        self.mayBeAnsweredAtOnce = mayBeAnsweredAtOnce
    }

    /// Begins; once.
    func begin(by upstream: any Upstream) {
        let fetch = upstream.fetch(self.completed(), body: nil, receiver: self)
        let (isUnwanted, resumes) = self.state.withLock { state in
            guard !state.isCancelled else { return (true, false) }
            // It may have been answered, and all be over, before `fetch` returned.
            if state.stage != .over, state.ending == nil { state.upstream = fetch }
            defer { state.resumesWhenBegun = false }
            return (false, state.resumesWhenBegun)
        }
        if isUnwanted {
            fetch.cancel()
        } else if resumes {
            fetch.resume()
        }
    }

    /// The request with the cookies that go with it.
    private func completed() -> Request {
        var request = self.request
        guard let cookies = self.cookies, cookies.mayAddCookies else { return request }
        cookies.addCookies(to: &request.fields, for: self.hop, at: self.clock.now())
        return request
    }

    func cancel() {
        let upstream = self.state.withLock { state in
            state.stage = .over
            state.isCancelled = true
            state.pieces = []
            state.read = 0
            state.wake = nil
            return state.upstream.take()
        }
        upstream?.cancel()
    }

    /// How many bytes lie here, and in how many places, those of pieces that are read included.
    var holding: (bytes: Int, places: Int) {
        self.state.withLock { state in
            (state.pieces.reduce(0) { $0 + $1.readableBytes }, state.pieces.count)
        }
    }

    /// The request, as cookies look at it.
    private var hop: Hop {
        Hop(
            method: self.request.method, uri: self.request.uri, client: self.request.fields,
            cookies: self.request.cookies)
    }
}

// MARK: - What the upstream says

extension UncachedExchange: UpstreamReceiver {
    func upstream(informational head: ResponseHead) {
        var head = head
        HopByHop.strip(&head.fields)
        self.client.exchange(informational: head)
    }

    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand {
        let isWanted = self.state.withLock { state in
            guard state.stage == .asking else { return false }
            state.stage = .answered
            return true
        }
        guard isWanted else { return .pause }
        self.answer(head, bodyLength, connection, body: .source(self))
        return .more
    }

    var takesWholeResponses: Bool { true }

    func upstream(whole response: WholeResponse) {
        let isWanted = self.state.withLock { state in
            defer {
                state.stage = .over
                state.upstream = nil
            }
            return state.stage == .asking
        }
        guard isWanted else { return }
        self.answer(
            response.head, response.bodyLength, response.connection,
            body: response.body.readableBytes > 0 ? .resident(response.body) : .none)
    }

    func upstream(piece: ByteBuffer) -> UpstreamDemand {
        let (demand, wake) = self.state.withLock { state in
            guard state.stage == .answered else { return (UpstreamDemand.pause, state.takeWake()) }
            state.append(piece)
            state.isPaused = state.waitingBytes >= Self.window
            return (state.isPaused ? .pause : .more, state.takeWake())
        }
        wake?()
        return demand
    }

    func upstream(finished trailers: Fields) {
        self.end(.end(trailers: trailers))
    }

    func upstream(failed failure: UpstreamFailure) {
        let isUnanswered = self.state.withLock { state in
            guard state.stage == .asking else { return false }
            state.stage = .over
            state.upstream = nil
            return true
        }
        guard isUnanswered else { return self.end(.failed(.upstream(failure))) }
        var told = ExchangeFailure(failure)
        if told.party != .client, told.nextHop == nil { told.nextHop = self.request.uri.host }
        self.client.exchange(failed: told)
    }

    private func end(_ ending: BodyStep) {
        let wake = self.state.withLock { state in
            state.upstream = nil
            state.ending = ending
            return state.takeWake()
        }
        wake?()
    }

    private func answer(
        _ head: ResponseHead, _ bodyLength: BodyLength, _ connection: UpstreamConnectionFacts,
        body: Answer.Body
    ) {
        guard let cookies = self.cookies, head.fields.contains(FieldName(.setCookie)) else {
            return self.tell(head, bodyLength, connection, body: body)
        }
        var taken = head
        taken.hasSetCookies = true
        cookies.takeCookies(from: &taken, for: self.hop, at: self.clock.now())
        self.tell(taken, bodyLength, connection, body: body)
    }

    private func tell(
        _ head: ResponseHead, _ bodyLength: BodyLength, _ connection: UpstreamConnectionFacts,
        body: Answer.Body
    ) {
        let isBodyless =
            self.request.method == .head || head.status.forbidsContent
            || bodyLength == .known(0) || bodyLength == .none
        self.client.exchange(
            answered: Answer(
                head: head, bodyLength: ForwardedHead.announcedLength(head, bodyLength),
                body: isBodyless ? .none : body,
                cacheStatus: CacheStatus(forward: .bypass, forwardStatus: head.status),
                origin: connection.nextHop))
    }
}

// MARK: - The body of the answer

extension UncachedExchange: BodySource {
    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { if $0.stage == .answered { $0.wake = wake } }
    }

    func next() -> BodyStep {
        let (step, resumed) = self.state.withLock { $0.next(window: Self.window) }
        resumed?.resume()
        return step
    }
}

extension UncachedExchange.State {
    /// Pieces below this size are gathered in one buffer: each would keep its whole allocation alive,
    /// many times its size.
    private static let smallPiece = 4_096
    private static let gatheredLimit = 32_768
    /// How many places of pieces that are read leave together: each piece is moved a bounded number
    /// of times.
    private static let mostRead = 32

    fileprivate mutating func append(_ piece: ByteBuffer) {
        self.waitingBytes += piece.readableBytes
        let last = self.pieces.count - 1
        guard piece.readableBytes < Self.smallPiece, last >= self.read,
            self.pieces[last].readableBytes <= Self.gatheredLimit
        else { return self.pieces.append(piece) }
        self.pieces[last].writeImmutableBuffer(piece)
    }

    fileprivate mutating func takeWake() -> (@Sendable () -> Void)? {
        guard self.isAwaited else { return nil }
        self.isAwaited = false
        return self.wake
    }

    /// The next step of the body, and the fetch that is to go on, where it is.
    fileprivate mutating func next(window: Int) -> (BodyStep, (any UpstreamFetch)?) {
        guard self.stage == .answered else { return (.failed(.cancelled), nil) }
        guard self.read < self.pieces.count else {
            guard let ending = self.ending else {
                self.isAwaited = true
                return (.pending, nil)
            }
            self.stage = .over
            self.wake = nil
            return (ending, nil)
        }
        let piece = self.pieces[self.read]
        // Let go of at once: a reader that never quite catches up would keep all of a body alive.
        self.pieces[self.read] = ByteBuffer()
        self.read += 1
        if self.read == self.pieces.count {
            self.pieces.removeAll(keepingCapacity: true)
            self.read = 0
        } else if self.read >= Self.mostRead {
            self.pieces.removeFirst(self.read)
            self.read = 0
        }
        self.waitingBytes -= piece.readableBytes
        guard self.isPaused, self.waitingBytes <= window / 2 else { return (.piece(piece), nil) }
        self.isPaused = false
        if self.upstream == nil { self.resumesWhenBegun = true }
        return (.piece(piece), self.upstream)
    }
}
