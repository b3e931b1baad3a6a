import LarderCredentials
import LarderHTTP
import NIOCore
import Synchronization

/// One fetch of a session that takes part in it: the driver of `ChainMachine`.
///
/// To its fetch it is the upstream, to the upstream it is the receiver of each request in turn. Kept
/// alive by the upstream while that has something to say.
final class ChainedFetch: UpstreamFetch {
    struct State: ~Copyable {
        var machine = ChainMachine()
        var course: ChainCourse
        var upstream: (any UpstreamFetch)?
        /// What went out for the present target, the last one last.
        var sent: [SentCredential] = []
        /// The request under way bears the last of these.
        var isSentNow = false
        /// The answer to a challenge that the next request brings.
        var answer: SentCredential?
        var answered: Fields?
        var isAuthorized: Bool
        var isCancelled = false
        var mayEndForAnother = false
        var resumesWhenBegun = false
        /// The session has taken cookies from a response on the way.
        var tookCookies = false
        var held = HeldHead.passedOn
        /// The time in which a response that leads on has to run off.
        var drain: (any TimerToken)?
    }

    let chain: RequestChain
    let request: Request
    let sealed: SealedFields
    let body: RepeatableBody?
    let receiver: any UpstreamReceiver
    private let began: Timestamp
    let state: Mutex<State>

    init(
        _ chain: RequestChain, request: Request, sealed: SealedFields, body: (any BodySource)?,
        receiver: any UpstreamReceiver
    ) {
        self.chain = chain
        self.request = request
        self.sealed = sealed
        self.body = body.map { RepeatableBody($0) }
        self.receiver = receiver
        self.began = chain.clock.now()
        self.state = Mutex(
            State(course: ChainCourse(request), isAuthorized: request.bearsCredentials))
    }

    func start() {
        self.sendNext()
    }

    /// Counts an act, and notes it for those who ask about this exchange.
    func note(_ act: SessionAct) {
        self.chain.conduct.acts.add(act)
        self.sealed.note(act.rawValue)
    }

    /// Sends what is next; the one before has ended, or is of no use.
    func sendNext() {
        let (course, answer) = self.state.withLock { ($0.course, $0.answer.take()) }
        let now = self.chain.clock.now()
        let step = self.chain.step(self.request, self.sealed, course, answer: answer, at: now)
        for act in step.acts { self.note(act) }
        let (number, drain) = self.state.withLock { state -> (Int?, (any TimerToken)?) in
            let drain = state.drain.take()
            guard let number = state.machine.sends() else { return (nil, drain) }
            // The client's own cookies do not get so far.
            state.course.sends(
                secrets: step.credential != nil || step.request.fields.contains(FieldName(.cookie)))
            state.upstream = nil
            state.isSentNow = step.sent != nil
            if let sent = step.sent { state.sent.append(sent) }
            // Also one that nobody knew of when the request was prepared.
            if step.credential != nil { state.isAuthorized = true }
            state.answered = step.answered
            return (number, drain)
        }
        drain?.cancel()
        guard let number else { return }
        if let refusal = step.refusal {
            self.note(.credentialMissing)
            return self.failed(number, refusal)
        }
        var request = step.request
        // The time for the whole resource is one for all requests that it takes.
        request.elapsed = max(.zero, now - self.began)
        if self.body?.hasBegun == true { request.expectsContinue = false }
        let upstream = self.chain.upstream.fetch(
            request, body: course.hasContent ? self.body?.reader() : nil,
            receiver: Receiver(self, number))
        self.adopt(upstream, number)
    }

    private func adopt(_ upstream: any UpstreamFetch, _ number: Int) {
        let (isStale, resumes, mayEnd) = self.state.withLock { state in
            guard state.machine.isCurrent(number), !state.isCancelled else {
                return (true, false, false)
            }
            state.upstream = upstream
            defer { state.resumesWhenBegun = false }
            return (false, state.resumesWhenBegun, state.mayEndForAnother)
        }
        if isStale {
            upstream.cancel()
        } else if resumes {
            upstream.resume()
        }
        if !isStale, mayEnd { upstream.mayEndForAnother() }
    }

    // MARK: What the fetch does

    func resume() {
        let upstream = self.state.withLock { state -> (any UpstreamFetch)? in
            guard state.held.resumed() else { return nil }
            if state.upstream == nil { state.resumesWhenBegun = true }
            return state.upstream
        }
        upstream?.resume()
    }

    func cancel() {
        let (upstream, drain) = self.state.withLock { state in
            state.isCancelled = true
            state.machine.cancel()
            state.held.cancelled()
            return (state.upstream.take(), state.drain.take())
        }
        drain?.cancel()
        upstream?.cancel()
        self.body?.cancel()
    }

    func mayEndForAnother() {
        let upstream = self.state.withLock { state in
            state.mayEndForAnother = true
            return state.upstream
        }
        upstream?.mayEndForAnother()
    }

    // MARK: What the upstream says

    /// Hears one request's answer.
    private final class Receiver: UpstreamReceiver {
        private let fetch: ChainedFetch
        private let number: Int

        init(_ fetch: ChainedFetch, _ number: Int) {
            self.fetch = fetch
            self.number = number
        }

        func upstream(informational head: ResponseHead) {
            guard self.fetch.isCurrent(self.number) else { return }
            self.fetch.receiver.upstream(informational: self.fetch.shown(informational: head))
        }

        func upstream(
            head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
        ) -> UpstreamDemand {
            self.fetch.headReceived(self.number, head, bodyLength, connection)
        }

        var takesWholeResponses: Bool { self.fetch.receiver.takesWholeResponses }
        var mayBeAnsweredAtOnce: Bool { self.fetch.receiver.mayBeAnsweredAtOnce }
        var client: Int? { self.fetch.receiver.client }

        func upstream(whole response: WholeResponse) {
            self.fetch.wholeReceived(self.number, response)
        }

        func upstream(piece: ByteBuffer) -> UpstreamDemand {
            self.fetch.pieceReceived(self.number, piece)
        }

        func upstream(finished trailers: Fields) {
            self.fetch.finished(self.number, trailers)
        }

        func upstream(failed failure: UpstreamFailure) {
            self.fetch.failed(self.number, failure)
        }

        func endsForAnother() -> Bool {
            self.fetch.isCurrent(self.number) && self.fetch.receiver.endsForAnother()
        }
    }

    func isCurrent(_ number: Int) -> Bool {
        self.state.withLock { $0.machine.isCurrent(number) }
    }

    func pieceReceived(_ number: Int, _ piece: ByteBuffer) -> UpstreamDemand {
        let bytes = UInt64(piece.readableBytes)
        switch self.state.withLock({ $0.machine.pieceReceived(number, bytes: bytes) }) {
        case .relay: return self.receiver.upstream(piece: piece)
        case .swallow, .discard: return .more
        case .sendNext:
            self.breakOff()
            return .pause
        }
    }

    /// Hears head, body and end in one; what is the client's is passed on in one, too.
    func wholeReceived(_ number: Int, _ response: WholeResponse) {
        _ = self.headReceived(
            number, response.head, response.bodyLength, response.connection, body: response.body)
        // The client's is over when it has been passed on, which cookies may put off.
        guard self.state.withLock({ $0.machine.isDraining(number) }) else { return }
        self.finished(number, Fields())
    }

    func finished(_ number: Int, _ trailers: Fields) {
        switch self.state.withLock({ $0.machine.ended(number) }) {
        case .relay:
            self.receiver.upstream(finished: trailers)
            self.over()
        case .sendNext: self.sendNext()
        case .discard: break
        }
    }

    func failed(_ number: Int, _ failure: UpstreamFailure) {
        let isHeardNow = self.state.withLock { state in
            !state.machine.isCurrent(number) || state.held.failed(failure)
        }
        guard isHeardNow else { return }
        switch self.state.withLock({ $0.machine.ended(number) }) {
        case .relay: self.failed(failure)
        case .sendNext: self.sendNext()
        case .discard: break
        }
    }

    /// Says that the fetch has failed, which ends it.
    func failed(_ failure: UpstreamFailure) {
        let course = self.state.withLock { $0.course }
        var failure = failure
        if course.number > 0, failure.hop == nil, failure.party != .client {
            failure.hop = NextHop(of: course.uri)
        }
        self.receiver.upstream(failed: failure)
        self.over()
        self.body?.cancel()
    }

    /// Has what is left of a response keep the next request waiting for a moment at most, however it
    /// comes: its connection is worth no more.
    func limitDrain(of number: Int) {
        let token = self.chain.timers.schedule(after: ChainMachine.drainPatience) { [weak self] in
            guard let self, self.state.withLock({ $0.machine.drainOverdue(number) }) else { return }
            self.breakOff()
        }
        let isOver = self.state.withLock { state in
            guard state.machine.isDraining(number) else { return true }
            state.drain = token
            return false
        }
        if isOver { token.cancel() }
    }

    /// Ends the request under way, and goes on with the next.
    func breakOff() {
        let upstream = self.state.withLock { $0.upstream.take() }
        upstream?.cancel()
        self.sendNext()
    }

    func over() {
        self.state.withLock { $0.upstream = nil }
        self.body?.release()
    }
}
