import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// What the client gets, and what is noted of it.
extension ClientExchange {
    /// Answers from a stored response.
    func serve(
        _ object: StoredObject, status: CacheStatus, because reason: PolicyReason?,
        now: Timestamp, isValidated: Bool = false, failure: ProxyStatus? = nil,
        origin: NextHop = NextHop(), on ground: StandingGround? = nil
    ) {
        var status = status
        status.key = self.shownKey
        guard
            var stored = StoredExchangeAnswer.make(
                object, for: self.request, now: now, status: status, isValidated: isValidated,
                configuration: self.configuration)
        else { return self.leadUnconditionally() }
        self.session.store.noteUse(object.id, of: object.key, at: now)
        self.session.live.bytesFromStore.add(stored.bodyBytes)
        if let failure, self.configuration.role == .intermediary {
            let member = failure.member(named: self.configuration.cacheName)
            stored.answer.head.fields.append("Proxy-Status", member)
        }
        stored.answer.origin = origin
        guard !self.session.recent.isOff || self.keepsStanding else {
            return self.answer(stored.answer)
        }
        let noted = self.remembered(
            stored.answer, at: now, because: reason, storage: nil, error: failure?.error)
        self.session.recent.note(noted)
        if let ground, let range = stored.range {
            stored.answer.standing = StandingAnswer(
                rules: self.rules, asked: self.askedPolicy, key: self.key, range: range,
                exchange: noted, ground: ground, now: now)
        }
        self.answer(stored.answer)
    }

    func answer(_ answer: Answer) {
        var source: (any BodySource)?
        if case .source(let body) = answer.body { source = body }
        guard self.state.withLock({ $0.machine.answer(with: source) }) else {
            source?.cancel()
            return
        }
        guard self.request.sealed != nil else { return self.client.exchange(answered: answer) }
        var told = answer
        told.acts = self.acts
        self.client.exchange(answered: told)
    }

    func fail(_ failure: ExchangeFailure) {
        guard self.state.withLock({ $0.machine.answer(with: nil) }) else { return }
        self.session.live.failed.add()
        self.note(failure)
        var told = failure
        told.acts = self.acts
        self.client.exchange(failed: told)
    }
}

extension ClientExchange {
    /// The key as `Cache-Status` shows it; nil where it is not to be shown.
    var shownKey: String? {
        guard self.configuration.showsCacheKey else { return nil }
        let parts = self.key.parts
        return "\(parts.method) \(parts.uri)"
    }

    func note(_ failure: ExchangeFailure) {
        let reason = self.state.withLock { $0.reason }
        self.note(failure, at: self.session.clock.now(), because: reason)
    }
}

extension ClientExchange: FillingWaiter {
    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool) {
        let (forward, asked, splicing, reach) = self.state.withLock {
            ($0.forward, $0.reason, $0.splicing, $0.reach)
        }
        if !leads, let splicing, !outcome.isFailureOfAll {
            return self.filling(outcome, brings: splicing, reader, forward, because: asked)
        }
        switch outcome {
        case .response(let response):
            if !leads, let reach {
                return self.take(
                    from: response, reader, within: reach, forward: forward, because: asked)
            }
            guard leads || self.mayReuse(response.shared) else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.relay(
                response, reader: reader, leads: leads, forward: forward, because: asked)
        case .spliced(let spliced):
            guard leads, let reader else {
                reader?.cancel()
                return self.fetchAlone()
            }
            self.splice(
                spliced, reader: reader, leads: leads, forward: forward, because: asked)
        case .stored(let stored):
            guard leads || self.isServed(by: stored) else { return self.fetchAlone() }
            guard self.covers(stored.object) else {
                // Another one than was asked about, and would be again.
                return self.leadUnconditionally()
            }
            self.serve(stored, leads: leads, forward: forward, because: asked)
        case .failed(let failure)
        where !leads && failure.error == .httpRequestDenied && !failure.isOfAll:
            // That client must not go where the host leads; this one is asked for itself.
            self.fetchAlone()
        case .failed(let failure) where !leads:
            self.filling(failed: failure, forward, because: asked)
        case .failed(let failure):
            self.fail(failure, leads: true, forward: forward, because: asked)
        }
    }

    func fail(
        _ failure: ExchangeFailure, leads: Bool, forward: CacheStatus.Forward,
        because asked: PolicyReason?
    ) {
        var failure = failure
        failure.cacheStatus.forward = forward
        failure.cacheStatus.collapsed = !leads
        failure.cacheStatus.detail = asked?.rawValue
        if failure.party == .origin || failure.party == .client && failure.isOfAll,
            let upstream = failure.upstream, upstream.kind.isBehindName
        {
            failure.origin = upstream.hop ?? NextHop(of: self.request.uri)
        }
        if failure.party != .client, failure.nextHop == nil {
            failure.nextHop = self.request.uri.host
        }
        self.fail(failure)
    }

    /// Makes use of what another client's fetch brings of the missing bytes, or fetches them alone.
    func filling(
        _ outcome: Filling.Outcome, brings splicing: Fetch.Splicing, _ reader: FillingReader?,
        _ forward: CacheStatus.Forward, because asked: PolicyReason?
    ) {
        guard case .spliced(var spliced) = outcome, let reader,
            // As of a 304: it is everybody's who waited for it, where that may be, but for what has changed
            // meanwhile.
            !self.session.isInvalidated(spliced.object.head, at: self.request.uri),
            self.session.mayShow(spliced.object.head, for: self.request),
            self.isReusable(spliced.object.head),
            let answer = splicing.splice.answer(from: spliced.part)
        else {
            reader?.cancel()
            let (stored, index) = self.state.withLock { state in
                (state.stored, state.stored.firstIndex { $0.id == splicing.object.id })
            }
            return self.lead(stored, index, isEntered: false)
        }
        spliced.answer = answer
        self.splice(spliced, reader: reader, leads: false, forward: forward, because: asked)
    }

    /// Answers from the store what went to the origin.
    func serve(
        _ stored: Filling.Stored, leads: Bool, forward: CacheStatus.Forward,
        because asked: PolicyReason?
    ) {
        let now = self.session.clock.now()
        let freshness = Freshness.of(stored.object.head, at: now, configuration: self.policy)
        if stored.isValidated {
            self.session.live.validated.add()
        } else {
            self.session.live.hits.add()
            self.session.live.staleHits.add()
        }
        let reason = stored.reason ?? asked
        var object = stored.object
        if leads, let own = stored.own { object.head = own }
        var status = CacheStatus(
            forward: forward, forwardStatus: stored.status,
            ttl: CacheStatus.ttl(of: freshness.remaining), collapsed: !leads,
            detail: reason?.rawValue)
        status.validation = stored.isValidated ? .confirmed : .standIn
        self.serve(
            object, status: status, because: reason, now: now,
            isValidated: stored.isValidated && leads, failure: stored.failure,
            origin: stored.origin)
    }

    /// Whether what another client's request made of a stored response answers this one.
    func isServed(by stored: Filling.Stored) -> Bool {
        let head = stored.object.head
        // Its fetch may have begun before one of its groups was invalidated, and this request after.
        guard !self.session.isInvalidated(head, at: self.request.uri),
            Variance.matches(head, self.request, configuration: self.policy),
            self.session.mayShow(head, for: self.request)
        else { return false }
        guard stored.isValidated else {
            return StaleOnError.permits(
                head, request: self.request, hasAnswered: stored.status != nil,
                now: self.session.clock.now(), configuration: self.policy,
                policy: self.cachePolicy) != nil
        }
        // What it has then is for the one client alone that asked.
        if stored.reason == .requestAuthorization || stored.reason == .responsePrivate {
            return false
        }
        return Storability.forbidsKeeping(head.fields, configuration: self.policy) == nil
            && self.isReusable(head)
    }

    /// Whether what another client's request has validated need not be validated for this one.
    private func isReusable(_ head: StoredHead) -> Bool {
        Reuse.isReusable(
            head.whole, now: self.session.clock.now(), configuration: self.policy)
    }

    /// Passes on what the origin answers, while it comes in.
    ///
    /// - Parameter taking: what of an answer to another client is the answer to this one; nil: all.
    func relay(
        _ response: Filling.Response, reader: FillingReader?, leads: Bool,
        forward: CacheStatus.Forward, because asked: PolicyReason?, taking: Taking? = nil
    ) {
        let now = self.session.clock.now()
        var status = CacheStatus(
            forward: forward, forwardStatus: response.head.status, stored: response.isStored,
            collapsed: !leads, detail: (response.reason ?? asked)?.rawValue)
        status.key = self.shownKey
        if self.state.withLock({ $0.validates }) {
            status.validation = response.head.status == .notModified ? .confirmed : .replaced
        }
        var own: ResponseHead?
        if let shared = taking?.head ?? response.shared {
            let freshness = Freshness.of(shared, at: now, configuration: self.policy)
            status.ttl = CacheStatus.ttl(of: freshness.remaining)
            if !leads {
                // As from the store: without the fields that are the first client's alone.
                own = StoredAnswer.head(
                    for: shared, to: self.request.method, outcome: taking?.outcome ?? .full,
                    bodyLength: taking?.length ?? 0, age: freshness.currentAge, now: now,
                    configuration: self.policy)
            }
        }
        var head = own ?? self.shown(response)
        if self.configuration.role == .intermediary {
            status.append(to: &head.fields, named: self.configuration.cacheName)
        }
        var body = Answer.Body.none
        let isBodyless =
            self.request.method == .head || head.status.forbidsContent
            || response.bodyLength == .known(0) || response.bodyLength == .none
        let bytes = taking?.bytes
        if !isBodyless, let content = response.content {
            body = .resident(bytes.flatMap { content.slice($0) } ?? content)
        } else if !isBodyless, let reader {
            body = .source(bytes.map { BoundedBody(reader, length: $0.length) } ?? reader)
        } else {
            reader?.cancel()
        }
        if leads { self.session.live.forwarded.add() } else { self.session.live.collapsed.add() }
        let answer = Answer(
            head: head, bodyLength: bytes.map { .known($0.length) } ?? response.announcedLength,
            body: body, cacheStatus: status, origin: response.origin)
        self.note(answer, at: now, because: asked, storage: response.whyNotStored)
        self.answer(answer)
    }

    /// The origin's head as it goes to the client.
    private func shown(_ response: Filling.Response) -> ResponseHead {
        guard self.session.role == .intermediary else { return response.head }
        return ForwardedHead.make(
            response.head, receivedAt: response.receivedAt, dates: self.session.dates)
    }
}

extension ByteBuffer {
    /// So many of its bytes, counted from the first.
    fileprivate func slice(_ range: Range<UInt64>) -> ByteBuffer? {
        self.getSlice(
            at: self.readerIndex + Int(clamping: range.lowerBound),
            length: Int(clamping: range.length))
    }
}
