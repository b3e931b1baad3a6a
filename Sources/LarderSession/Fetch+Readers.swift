import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// What the store says.
extension Fetch: ObjectSinkObserver {
    func sink(written offset: UInt64) {
        self.filling.sinkWritten(offset)
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let isStored = if case .visible = outcome { true } else { false }
        self.filling.stopSink(isWhole: isStored)
        var turnedAway: PolicyReason?
        switch outcome {
        case .visible: self.session.live.stored.add()
        case .abandoned(let why):
            self.session.live.storesAbandoned.add()
            turnedAway = why.policyReason
            if let turnedAway { self.session.live.reasons.add(turnedAway) }
        }
        let (isOver, storing, outdated) = self.state.withLock { state in
            state.sinkIsOver = true
            state.isRelayingStored = false
            state.turnedAway = turnedAway
            state.ending = FetchEnding(
                outcome, isPart: state.storing?.isAddition == true, isBroken: state.isPart)
            return (
                state.upstreamIsOver, state.storing.take(),
                Swift.exchange(&state.outdated, with: [])
            )
        }
        if isStored { for name in outdated { self.drop(name.key, name.id, but: self.filling) } }
        // The filling may have been given it between both, on another thread.
        if case .abandoned = outcome { self.filling.stopSink() }
        // Before its own end is noted: only others' are of interest.
        if case .visible = outcome, let storing, !storing.isAddition,
            self.session.storings.hasEnded(storing.key, since: self.order.mark)
        {
            PartMerge.start(self.session, self.policy, storing.key, storing.head)
        }
        if case .abandoned(let why) = outcome, why.isStores, let storing, !storing.isAddition,
            storing.head.extent == nil
        {
            self.supersedeLate(by: storing.head.status)
        }
        // Before the filling can no longer be found: one of both knows the response always.
        if let storing { self.session.storings.end(storing) }
        if isOver {
            self.over()
        } else if self.filling.bytesSinceDeserted != nil {
            self.deserted()
        }
        storing?.release()
    }
}

extension FetchEnding {
    /// How a fetch ended of which the store says this.
    ///
    /// - Parameters:
    ///   - isPart: it was to be added to a stored part.
    ///   - isBroken: what came of it was kept as a part, as it broke off.
    fileprivate init(_ outcome: SinkOutcome, isPart: Bool, isBroken: Bool) {
        self =
            switch outcome {
            case .visible where isBroken: .brokenOff
            case .visible: isPart ? .partStored : .stored
            // By whoever wrote, because the body broke off.
            case .abandoned(.byWriter): .brokenOff
            case .abandoned(let why): .turnedAway(why)
            }
    }
}

/// What the clients do.
extension Fetch: FillingControl {
    func resume() {
        let upstream = self.state.withLock { state in
            if state.upstream == nil { state.resumesWhenBegun = true }
            return state.upstream
        }
        upstream?.resume()
    }

    /// Goes on without clients where the rest is small and will be of use to the next one.
    func deserted() {
        let (isRelaying, isSettled, isStored, isOwned, announced, expectsContent) =
            self.state.withLock { state in
                (
                    state.machine.isRelaying, state.isSettled, state.isRelayingStored,
                    state.isOwned, state.announced, state.expectsContent
                )
            }
        // Its end comes with its head: cancelled, it would cost the connection.
        if isRelaying, !expectsContent { return }
        // Its owner is about to be asked; then it is looked again.
        if isRelaying, !isSettled, self.order.owner != nil { return }
        if self.isUserAgents, !self.order.isBackground {
            self.cancel()
            return
        }
        if self.order.isBackground, isStored || !isRelaying { return }
        if isOwned, isStored, self.order.owner?.keepsFetch == true { return }
        if !isRelaying, self.mayBeWorthFinishing {
            // The head decides, unless it keeps others waiting.
            return self.offerEnd()
        }
        var remaining: UInt64 = 0
        if case .known(let length) = announced {
            let received = self.filling.bytesReceived
            remaining = length > received ? length - received : 0
        }
        if isStored, remaining <= self.session.configuration.finishAfterClientLeft.bytes { return }
        self.cancel()
    }

    func doubted() {
        if !self.order.isBackground { self.offerEnd() }
    }

    private func offerEnd() {
        let upstream = self.state.withLock { state in
            state.mayEndForAnother = true
            return state.machine.isRelaying ? nil : state.upstream
        }
        upstream?.mayEndForAnother()
    }

    /// Ends the fetch for another that waits for its connection, where no head has come and no client is
    /// there for certain.
    ///
    /// A client that has closed its connection looks like one that only sends nothing more: the latter
    /// hears why it gets nothing.
    ///
    /// - Parameter number: the request that is in the way.
    func endsForAnother(_ number: Int) -> Bool {
        let mayEnd = self.state.withLock { $0.requests == number && !$0.machine.isRelaying }
        guard mayEnd, !self.order.isBackground else { return false }
        return self.cancel() || self.cancelDoubted()
    }

    private func cancelDoubted() -> Bool {
        let failure = UpstreamFailure(
            .connectionLimitReached, party: .larder,
            detail: "the connection to the host went to a client that had not closed its own")
        guard self.filling.failDoubted(self.clientFailure(failure)) else { return false }
        self.state.withLock { $0.machine.cancel() }
        self.cancelUpstream()
        _ = self.filling.finished(.failed(.upstream(failure)))
        self.upstreamEnded()
        return true
    }

    /// Whether there may come what is stored without anybody to read it, as far as the request tells.
    private var mayBeWorthFinishing: Bool {
        let request = self.order.request
        return request.method == .get && self.order.body == nil
            && self.session.configuration.finishAfterClientLeft.bytes > 0
            && !CacheControl(request.fields).noStore
    }

    /// The store gets a while to make progress before the storing is given up.
    func heldUpBySink(at written: UInt64) {
        let token = self.session.timers.schedule(
            after: self.session.configuration.storePatience
        ) { [weak self] in
            guard let self, let now = self.filling.patienceOver() else { return }
            if now > written { return self.heldUpBySink(at: now) }
            self.session.live.storesTooSlow.add()
            self.filling.giveUpSink()
        }
        self.state.withLock { state in
            let old = state.patience
            state.patience = token
            return old
        }?.cancel()
    }

    /// Clients that take nothing get a while before they lose what others wait for.
    ///
    /// A program's own task may rest as long as the program likes.
    func heldUpByClients() {
        guard !self.isUserAgents else { return }
        let token = self.session.timers.schedule(
            after: self.session.configuration.clientPatience
        ) { [weak self] in
            guard let self else { return }
            self.session.live.clientsCutOff.add(UInt64(self.filling.laggardsTimeOver()))
        }
        self.state.withLock { state in
            let old = state.clientPatience
            state.clientPatience = token
            return old
        }?.cancel()
    }
}
