import LarderCredentials
import LarderHTTP
import LarderPolicy
import NIOCore
import Synchronization

/// What the head of a response leads to.
extension ChainedFetch {
    /// - Parameter body: all of it, where it has come with the head.
    func headReceived(
        _ number: Int, _ head: ResponseHead, _ bodyLength: BodyLength,
        _ connection: UpstreamConnectionFacts, body: ByteBuffer? = nil
    ) -> UpstreamDemand {
        guard self.isCurrent(number) else { return .more }
        let course = self.state.withLock { $0.course }
        var head = head
        if let cookies = self.chain.conduct.cookies, head.fields.contains(FieldName(.setCookie)) {
            // Policy is to know of them also where their lines are gone.
            head.hasSetCookies = true
            self.state.withLock { $0.tookCookies = true }
            cookies.takeCookies(
                from: &head, for: self.chain.hop(self.request, self.sealed, course),
                at: self.chain.clock.now())
        }
        let next = self.next(after: head, course)
        if case .tooMany = next { return self.failTooMany(number) }
        let action = self.state.withLock { state in
            state.machine.headReceived(number, leadsTo: next.kind, bodyLength: bodyLength)
        }
        switch action {
        case .discard: return .more
        case .relay:
            return self.relayWhenKept(
                RelayedHead(
                    head: head, bodyLength: bodyLength, connection: connection, body: body))
        case .drain:
            self.take(next, head)
            if body == nil { self.limitDrain(of: number) }
            return .more
        case .sendNext:
            self.take(next, head)
            self.breakOff()
            return .pause
        }
    }

    /// What the client may see of an interim response.
    ///
    /// Its cookies are not taken, as RFC 6265bis §3 lets a client ignore them in a 1xx: the final
    /// response sets those that count. Where the session keeps cookies, they are its business.
    func shown(informational head: ResponseHead) -> ResponseHead {
        guard let cookies = self.chain.conduct.cookies, !cookies.showsSetCookie else { return head }
        var head = head
        head.fields.remove(FieldName(.setCookie))
        return head
    }

    /// What follows a response.
    private enum Next {
        case nothing
        case answer(SentCredential)
        /// The same once more, with its content at once.
        case withoutExpectation
        case redirection(Redirection.Target)
        case tooMany

        var kind: ChainMachine.Next {
            switch self {
            case .nothing, .tooMany: .nothing
            case .answer, .withoutExpectation: .answer
            case .redirection: .redirection
            }
        }
    }

    private func take(_ next: Next, _ head: ResponseHead) {
        switch next {
        case .nothing, .tooMany: break
        case .withoutExpectation: self.state.withLock { $0.course.refusesExpectation = true }
        case .answer(let answer):
            let isRenewal = self.state.withLock { state in
                state.answer = answer
                return state.sent.last?.scheme == .digest && answer.scheme == .digest
            }
            self.note(isRenewal ? .nonceRenewed : .challengeAnswered)
        case .redirection(let target):
            let policy = self.chain.conduct.policy.resolved(for: self.request.uri)
            self.state.withLock { state in
                state.course.follow(target, of: head, by: policy)
                state.sent = []
            }
            self.note(.redirectFollowed)
        }
    }

    private func next(after head: ResponseHead, _ course: ChainCourse) -> Next {
        if head.status.rawValue == 401 { return self.challenged(by: head, course) }
        if head.status.rawValue == 417, self.hasOwnExpectation(course) {
            return .withoutExpectation
        }
        self.noteAcceptance(head, course)
        guard self.chain.conduct.followsRedirects else { return .nothing }
        var isRefused = false
        let verdict = Redirection.judge(
            head,
            to: Redirection.Origin(
                uri: course.uri, method: course.method, hasContent: course.hasContent,
                mayRepeat: self.body?.isRepeatable ?? true, number: course.number),
            permits: { method, uri in
                let isPermitted = self.sealed.permits(method, uri)
                isRefused = !isPermitted
                return isPermitted
            })
        if isRefused { self.state.withLock { $0.course.isRefused = true } }
        switch verdict {
        case .none: return .nothing
        case .passedOn(let why):
            self.note(why)
            return .nothing
        case .tooMany: return .tooMany
        case .follows where self.setsClientsCookies(head, course):
            self.note(.redirectSetsCookie)
            return .nothing
        case .follows(let target):
            if course.hasContent, !target.dropsContent, !self.rewindsBody() { return .nothing }
            return .redirection(target)
        }
    }

    /// Whether the request that was refused bore an expectation that the client's had not
    /// (RFC 9110 §10.1.1).
    private func hasOwnExpectation(_ course: ChainCourse) -> Bool {
        course.hasContent && !course.refusesExpectation && !self.request.expectsContinue
            && self.body?.hasBegun == false && self.state.withLock { $0.machine.mayAnswer }
    }

    /// Whether a redirection sets cookies that only the client can keep, and send along to its target:
    /// cookies are its business where the session has no jar.
    ///
    /// Those of an origin that the client did not ask would not be told to it in any case.
    private func setsClientsCookies(_ head: ResponseHead, _ course: ChainCourse) -> Bool {
        self.chain.conduct.cookies == nil && head.fields.contains(FieldName(.setCookie))
            && course.uri.hasSameOrigin(as: self.request.uri)
    }

    /// The credential that went out with the request under way.
    private var sentNow: SentCredential? {
        self.state.withLock { $0.isSentNow ? $0.sent.last : nil }
    }

    private func noteAcceptance(_ head: ResponseHead, _ course: ChainCourse) {
        guard let sent = self.sentNow, let credentials = self.chain.conduct.rules.credentials,
            Self.showsAcceptance(head.status)
        else { return }
        let asked = ChallengedRequest(method: course.method, uri: course.uri)
        if !credentials.accepted(sent, by: head, for: asked) {
            self.note(.originUnproven)
        }
    }

    /// Whether the origin has looked at a credential and found it good: not where it did not get so
    /// far.
    private static func showsAcceptance(_ status: StatusCode) -> Bool {
        switch status.rawValue {
        case 400, 401, 407, 408, 421, 429, 431, 500...: false
        default: true
        }
    }

    /// What a 401 leads to: an answer, once, or nothing.
    private func challenged(by head: ResponseHead, _ course: ChainCourse) -> Next {
        let plan = self.chain.plan(self.sealed, course)
        switch plan {
        case .clients, .none, .refuses: return .nothing
        case .injects:
            self.note(.credentialRefused)
            return .nothing
        case .answers, .answersFromStore: break
        }
        guard let credentials = self.chain.conduct.rules.credentials else { return .nothing }
        let challenges = Challenges(head.fields)
        if !challenges.faults.isEmpty { self.note(.challengeMalformed) }
        let sent = self.state.withLock { state in state.machine.mayAnswer ? state.sent : nil }
        let content = course.hasContent ? self.body?.whole : []
        let answer = sent.flatMap {
            credentials.answer(
                challenges, to: self.chain.asked(course, plan, content: content), after: $0)
        }
        if let last = self.sentNow, !Self.renews(answer, last) {
            credentials.refused(last, at: course.uri)
            // A challenge of another realm says only that it was sent in vain.
            if answer == nil || !last.isPreemptive { self.note(.credentialRefused) }
        } else if answer == nil,
            credentials.withholds(
                challenges, self.chain.asked(course, plan, content: content))
        {
            self.note(.credentialWithheld)
        }
        guard let answer else { return .nothing }
        if course.hasContent, !self.rewindsBody() { return .nothing }
        return .answer(answer)
    }

    /// Whether an answer says that only the nonce was wrong with the one before.
    private static func renews(_ answer: SentCredential?, _ last: SentCredential) -> Bool {
        guard let answer else { return false }
        return answer.scheme == .digest && last.scheme == .digest
            && answer.credential == last.credential && answer.space == last.space
    }

    private func rewindsBody() -> Bool {
        guard let body = self.body, !body.rewind() else { return true }
        self.note(.contentNotRepeatable)
        return false
    }

    // MARK: Passing on

    func relay(_ response: RelayedHead) -> UpstreamDemand {
        let (course, isAuthorized, answered) = self.state.withLock { state in
            (state.course, state.isAuthorized, state.answered)
        }
        // Nobody sends what a redirection has made superfluous.
        if course.hasContent { self.body?.release() } else { self.body?.cancel() }
        var (head, connection) = (response.head, response.connection)
        connection.isAuthorized = isAuthorized
        connection.answered = answered
        connection.changed = course.changed(after: head.status)
        if self.chain.conduct.followsRedirects { connection.ledTo = course.ledTo }
        connection.isForThisClient = course.isRefused
        if course.number > 0 {
            RedirectedHead.adapt(&head, from: course.uri, to: self.request.uri)
            RedirectedHead.keepMethod(course.method, in: &head, asked: self.request.method)
            RedirectedHead.restrict(
                &head, forbidsStoring: course.forbidsStoring, isPrivate: course.isPrivate,
                targeted: self.chain.conduct.policy.targetedFields)
            if course.setsCookies { head.hasSetCookies = true }
            for value in course.vary { head.fields.append("Vary", value) }
        }
        guard let body = response.body else {
            return self.receiver.upstream(
                head: head, bodyLength: response.bodyLength, connection: connection)
        }
        let isWanted = self.state.withLock { $0.machine.ended($0.machine.number) == .relay }
        guard isWanted else { return .pause }
        self.receiver.upstream(
            whole: WholeResponse(
                head: head, bodyLength: response.bodyLength, connection: connection, body: body))
        self.over()
        return .pause
    }

    private func failTooMany(_ number: Int) -> UpstreamDemand {
        self.note(.redirectLimit)
        let upstream = self.state.withLock { $0.upstream.take() }
        self.failed(
            number,
            UpstreamFailure(
                .proxyLoopDetected, detail: "more than \(Redirection.limit) redirections in a row"))
        upstream?.cancel()
        return .pause
    }
}
