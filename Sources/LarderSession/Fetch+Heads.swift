import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// What a head leads to: a stored response that holds or stands in, or the origin's own.
extension Fetch {
    /// A stored response that may stand in for what the origin failed to give, and by which rule.
    ///
    /// Only one that was to be validated: with nothing to validate, nothing stored is what was asked
    /// for.
    ///
    /// - Parameter hasAnswered: it did give an answer, a failure.
    func standIn(hasAnswered: Bool, at now: Timestamp) -> (StoredObject, PolicyReason)? {
        guard let index = self.order.validating, self.order.stored.indices.contains(index) else {
            return nil
        }
        let object = self.order.stored[index]
        guard Variance.matches(object.head, self.order.request, configuration: self.policy),
            self.covers(object),
            !self.session.isInvalidated(object.head, at: self.order.request.uri),
            let reason = StaleOnError.permits(
                object.head, request: self.order.request, hasAnswered: hasAnswered, now: now,
                configuration: self.policy, policy: self.order.cachePolicy)
        else { return nil }
        return (object, reason)
    }

    /// What the clients hear when no answer has come.
    func clientFailure(_ failure: UpstreamFailure) -> ExchangeFailure {
        var head: StoredHead?
        if let index = self.order.validating, self.order.stored.indices.contains(index) {
            head = self.order.stored[index].head
        }
        return ExchangeFailure(failure, validating: head, configuration: self.policy)
    }

    /// No further validation in the background for a while, as this one has failed.
    func rest() {
        guard self.order.isBackground else { return }
        self.session.fillings.noteFailedValidation(
            self.order.key, at: self.session.clock.now(),
            for: self.session.configuration.validationPause)
    }

    /// Ends with a stored response: one that still holds, or stands in.
    func settle(_ stored: Filling.Stored) {
        if let reason = stored.reason { self.session.live.reasons.add(reason) }
        if !stored.isValidated { self.rest() }
        let now = self.session.clock.now()
        // Who comes next would wait in vain, and validates for himself.
        if stored.isValidated, self.order.isEntered, !self.order.isBackground,
            !Reuse.isReusable(stored.object.head.whole, now: now, configuration: self.policy)
        {
            self.noteUnshared(at: now)
        }
        // Whatever body still comes is of no use to anybody.
        self.cancelUpstream()
        self.leaveTable()
        self.settle(.stored(stored), sink: nil)
        _ = self.filling.finished(.complete(Fields()))
        self.upstreamEnded()
    }

    /// Passes the origin's own answer on, and into the store where it may go.
    ///
    /// - Parameter body: all of it, where it is there already.
    func relay(
        _ head: ResponseHead, bodyLength: BodyLength, body: ByteBuffer? = nil, origin: NextHop,
        now: Timestamp
    ) {
        let requestTime = self.state.withLock { $0.requestTime }
        let request = self.answered(self.order.request)
        self.invalidate(by: head, now: now)
        if request.method == .head { self.compare(head, now: now) }
        // Read once for all that follows from them.
        let directives = ResponseDirectives(head.fields, configuration: self.policy)
        let verdict = Storability.judge(
            request: request, response: head, bodyLength: bodyLength, now: now,
            configuration: self.policy, directives: directives)
        var shared: StoredHead?
        var part: StoredHead?
        var reason: PolicyReason?
        var sink: (any ObjectSink)?
        let known: UInt64? = if case .known(let bytes) = bodyLength { bytes } else { nil }
        self.expect(bodyLength, of: head.status)
        if body == nil { self.noteResumption(head, bodyLength) }
        switch verdict {
        // Nor does it say anything of what is stored.
        case _ where self.state.withLock({ $0.connection.isForThisClient }): break
        case .storable where self.isTurnedAway(head, bodyLength):
            reason = .gateRefuses
            self.supersede(by: head.status)
        case .storable where head.status == .partialContent:
            (sink, part, reason) = self.beginStoringPart(head, bodyLength, now: now)
        case .storable:
            var stored = StoredHead(
                storing: head, to: request, requestTime: requestTime, responseTime: now,
                configuration: self.policy, directives: directives)
            self.noteTrail(in: &stored)
            if self.spoilsStored(stored) {
                reason = .keepsStored
            } else {
                reason = self.policy.ruleEffects(on: stored, request: request).first?.reason
                shared = stored
                sink = self.beginStoring(stored, length: known, among: self.order.stored)
                if sink == nil { self.supersede(by: head.status) }
                self.session.live.reasons.add(
                    Storability.grounds(
                        request: request, response: head, configuration: self.policy,
                        directives: directives))
            }
        case .notStorable(let because):
            reason = because
            self.supersede(by: head.status)
        }
        if body == nil {
            self.noteKeptBack(
                head, directives.control, isShared: sink != nil || shared != nil || part != nil)
        }
        if let reason { self.session.live.reasons.add(reason) }
        // Counted where it was heard.
        if sink == nil { reason = self.refusal(of: shared == nil ? nil : known) ?? reason }
        // Of a part only its length tells whether it is what its head says.
        let content = head.status == .partialContent ? nil : body
        let response = Filling.Response(
            head: head, receivedAt: now, bodyLength: bodyLength,
            announcedLength: ForwardedHead.announcedLength(head, bodyLength),
            shared: shared, part: part, isStored: sink != nil, reason: reason, origin: origin,
            content: content)
        if let content {
            return self.settle(response, content, sink: sink, now: now)
        }
        if sink != nil, shared != nil { self.offerToOwner(length: known) }
        self.settle(.response(response), sink: sink)
        self.noteSharing(of: response, now: now)
        self.afterSettling()
    }

    /// Passes on a response that is whole: who waits for it hears of head and body at once, when the
    /// store has both and the fetch is over.
    private func settle(
        _ response: Filling.Response, _ body: ByteBuffer, sink: (any ObjectSink)?, now: Timestamp
    ) {
        let storing = self.state.withLock { state in
            _ = state.machine.finished()
            return state.storing
        }
        self.session.live.bytesFromOrigins.add(UInt64(clamping: body.readableBytes))
        if self.order.isBackground { self.noteInBackground(.response(response)) }
        let waiters = self.filling.settle(whole: response, sink: sink)
        self.noteSharing(of: response, now: now)
        if sink != nil {
            // It may have ended before the filling had it.
            if self.state.withLock({ $0.sinkIsOver }) { self.filling.stopSink() }
            storing?.handedOver()
            if body.readableBytes > 0 { self.filling.writingSink?.write(body) }
            self.filling.writingSink?.commit(trailers: Fields())
        }
        self.upstreamEnded()
        self.filling.tell(waiters, of: .response(response))
    }

    /// Notes the fields that trailers may not have: those that `Connection` names, and of a response
    /// that is stored, and may have other readers, those that its directives name.
    private func noteKeptBack(_ head: ResponseHead, _ control: CacheControl, isShared: Bool) {
        var names = HopByHop.namedFields(head.fields)
        if isShared {
            names = names.with(control.noCacheFields)
            if self.policy.kind == .shared { names = names.with(control.privateFields) }
        }
        guard !names.isEmpty else { return }
        self.state.withLock { $0.keptBack = names }
    }

    /// Whether the fetch is for the program itself.
    var isUserAgents: Bool { self.session.role == .userAgent }

    /// Tells those who wait, and those who ask later where nobody does.
    func settle(_ outcome: Filling.Outcome, sink: (any ObjectSink)?) {
        if self.order.isBackground { self.noteInBackground(outcome) }
        self.filling.settle(outcome, sink: sink)
    }

    /// What may have happened before the filling had what it was settled with.
    func afterSettling() {
        self.state.withLock { $0.isSettled = true }
        if self.state.withLock({ $0.sinkIsOver }) { self.filling.stopSink() }
        if self.filling.bytesSinceDeserted != nil { self.deserted() }
    }

    /// How the body would be gone on with where it breaks off, and whether what came of it stays.
    private func noteResumption(_ head: ResponseHead, _ bodyLength: BodyLength) {
        if self.isUserAgents { return }
        let resumption = Resumption(head, bodyLength: bodyLength, to: self.order.request)
        var isKept = false
        var bytesStored: UInt64 = 0
        if head.status == .ok || head.status == .partialContent,
            let validator = StrongValidator(of: head.fields)
        {
            // The beginning of what is stored whole already must not take its place.
            isKept = !self.order.stored.contains {
                $0.head.extent == nil && validator.matches($0.head.fields)
            }
            // Nor that of what is stored further than it came itself; a 206 is added to that.
            if head.status == .ok {
                bytesStored = self.bytesStored(under: validator)
            }
        }
        self.state.withLock { state in
            state.resumption = resumption
            state.isKept = isKept
            state.bytesStored = bytesStored
        }
    }

    /// How many bytes a stored part has that a response under this validator would take the place of.
    private func bytesStored(under validator: StrongValidator) -> UInt64 {
        self.matching.lazy.map { self.order.stored[$0].head }
            .filter { validator.matches($0.fields) }
            .compactMap { $0.extent?.storedBytes }.max() ?? 0
    }

    /// A failure that only the settings would keep must not take the place of what is stored: stale as
    /// that is, it may be validated or stand in when the failure is over.
    ///
    /// Of another failure, or what only the settings keep, neither is to be expected.
    private func spoilsStored(_ head: StoredHead) -> Bool {
        guard head.status.isServerError, self.isNegative(head, at: head.responseTime) else {
            return false
        }
        let stored = self.order.stored.map(\.head)
        return Variance.replaced(
            by: head, to: self.order.request, among: stored, configuration: self.policy
        ).contains { index in
            !stored[index].status.isServerError
                && !self.isNegative(stored[index], at: head.responseTime)
        }
    }

    private func isNegative(_ head: StoredHead, at now: Timestamp) -> Bool {
        Freshness.of(head, at: now, configuration: self.policy).source == .negative
    }

    func expect(_ length: BodyLength, of status: StatusCode) {
        let isBodyless =
            self.order.request.method == .head || status.forbidsContent || length == .none
            || length == .known(0)
        self.state.withLock { state in
            state.announced = length
            state.expectsContent = !isBodyless
        }
    }

    /// Where a response can be no other client's, those who come next need not wait for each other.
    private func noteSharing(of response: Filling.Response, now: Timestamp) {
        guard self.order.isEntered else { return }
        // The gap is another representation's by now: who comes next must see for himself.
        if self.filling.gap != nil { return self.leaveTable() }
        if response.isShared {
            return self.session.fillings.forgetUnshared(self.order.key)
        }
        self.leaveTable()
        // What is said of one range need not be true of another, nor of the whole.
        if self.filling.part != nil, !response.head.status.isSuccessful { return }
        guard self.order.isBackground else {
            return self.noteUnshared(at: now)
        }
        // Nobody waited for it; but what was to be validated is no younger than it was.
        if !response.isStored { self.rest() }
    }

    private func noteUnshared(at now: Timestamp) {
        self.session.fillings.noteUnshared(
            self.order.key, at: now, for: self.session.snapshot.values.uncollapsedTime)
    }
}
