import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// What the origin says.
extension Fetch: UpstreamReceiver {
    func upstream(informational head: ResponseHead) {
        var head = head
        HopByHop.strip(&head.fields)
        self.order.client?.exchange(informational: head)
    }

    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand {
        self.answered(with: head, bodyLength, connection, body: nil)
        return .more
    }

    var takesWholeResponses: Bool { true }

    func upstream(whole response: WholeResponse) {
        self.answered(
            with: response.head, response.bodyLength, response.connection, body: response.body)
        // Where that did not take the body with the head, or does not want it at all.
        guard self.state.withLock({ $0.machine.isRelaying }) else { return }
        if response.body.readableBytes > 0 { _ = self.upstream(piece: response.body) }
        self.upstream(finished: Fields())
    }

    /// - Parameter body: all of it, where it is there already.
    private func answered(
        with head: ResponseHead, _ bodyLength: BodyLength, _ connection: UpstreamConnectionFacts,
        body: ByteBuffer?
    ) {
        let now = self.session.clock.now()
        let earlier = self.state.withLock { state in
            defer { state.connection = connection }
            return state.connection
        }
        let isAnswer = head.status == .notModified && self.conditional != nil
        let selected =
            isAnswer
            ? Validation.selected(
                by: head, among: self.order.stored.map(\.head), matching: self.matching,
                answering: self.order.request
            ).filter { self.isOfSameResource(self.order.stored[$0].head, head) } : []
        let isForClient =
            isAnswer && selected.isEmpty && Validation.isForClient(head, of: self.order.request)
        let standIn =
            StaleOnError.isFailure(head.status)
            ? self.standIn(hasAnswered: true, at: now) : nil
        let fit = self.fit(head, bodyLength)
        let continues =
            RedirectionTrail.continues(earlier.ledTo, connection.ledTo)
            && self.continues(head, bodyLength)
        let action = self.state.withLock { state in
            state.machine.headReceived(
                head.status, selects: !selected.isEmpty, isForClient: isForClient,
                staleAllowed: standIn != nil, fit: fit, continues: continues)
        }
        switch action {
        case .freshen: self.freshen(with: head, indices: selected, now: now)
        case .serveStale:
            if let (object, reason) = standIn {
                self.standIn(
                    object, because: reason, for: ProxyStatus(receivedStatus: head.status))
            }
        case .repeatUnconditionally:
            self.state.withLock { $0.upstream.take() }?.cancel()
            let request = self.order.request
            self.send(Validation.keepingRange(Validation.unconditional(request), of: request))
        case .repeatAsAsked: self.repeatAsAsked()
        case .splice:
            self.splice(
                head, bodyLength: bodyLength, origin: connection.remoteAddress, now: now)
        case .breakSplice: self.breakSplice()
        case .continueBody: self.continueBody()
        case .breakOff: self.abandonRest()
        case .relay:
            self.relay(
                head, bodyLength: bodyLength, body: body, origin: connection.remoteAddress,
                now: now)
        case .discard: break
        }
    }

    func upstream(piece: ByteBuffer) -> UpstreamDemand {
        guard self.state.withLock({ $0.machine.isRelaying }) else { return .more }
        guard self.isWithinLength(piece) else { return .pause }
        self.session.live.bytesFromOrigins.add(UInt64(piece.readableBytes))
        let demand = self.filling.received(piece)
        if !self.order.isBackground, let extra = self.filling.bytesSinceDeserted,
            extra > self.session.configuration.finishAfterClientLeft.bytes, self.cancel()
        {
            return .pause
        }
        return demand
    }

    func upstream(finished trailers: Fields) {
        let isCounted = self.isCounted
        if !isCounted, self.state.withLock({ $0.isSpliced || $0.resumptions > 0 }) {
            return self.upstream(
                failed: UpstreamFailure(
                    .httpResponseIncomplete, detail: "less content than Content-Range says"))
        }
        guard self.state.withLock({ $0.machine.finished() }) else { return }
        var trailers = trailers
        if !trailers.isEmpty {
            let names = self.state.withLock { $0.keptBack }
            trailers.keep { section, line in !names.contain(line, of: section) }
        }
        self.state.withLock { $0.storing }?.handedOver()
        // Into the store first: a client that hears of the end may ask again at once.
        if isCounted {
            self.filling.writingSink?.commit(trailers: trailers)
        } else {
            self.filling.writingSink?.abandon()
        }
        _ = self.filling.finished(.complete(trailers))
        self.upstreamEnded()
    }

    func upstream(failed failure: UpstreamFailure) {
        let standIn =
            failure.party == .client
            ? nil : self.standIn(hasAnswered: false, at: self.session.clock.now())
        let mayResume = self.mayResume(after: failure)
        let action = self.state.withLock {
            $0.machine.failed(staleAllowed: standIn != nil, mayResume: mayResume)
        }
        switch action {
        case .serveStale:
            if let (object, reason) = standIn {
                self.standIn(
                    object, because: reason,
                    for: ProxyStatus(
                        error: failure.kind.rawValue, nextHop: failure.nextHop,
                        details: failure.detail))
            }
        case .fail:
            self.rest()
            self.leaveTable()
            self.settle(.failed(self.clientFailure(failure)), sink: nil)
            _ = self.filling.finished(.failed(.upstream(failure)))
            self.upstreamEnded()
        case .resume: self.resumeBody(after: failure)
        case .breakOff: self.breakOff(.upstream(failure))
        case .nothing: break
        }
    }
}
