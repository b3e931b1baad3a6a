import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// What the origin says.
extension Fetch {
    /// Hears the answer to one request, which is over for it when the next one is sent: what still
    /// comes of it then would be taken for the next one's.
    final class Receiver: UpstreamReceiver {
        private let fetch: Fetch
        private let number: Int

        init(_ fetch: Fetch, _ number: Int) {
            self.fetch = fetch
            self.number = number
        }

        func upstream(informational head: ResponseHead) {
            self.fetch.informed(self.number, head)
        }

        func upstream(
            head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
        ) -> UpstreamDemand {
            self.fetch.answered(self.number, with: head, bodyLength, connection, body: nil)
            return .more
        }

        var takesWholeResponses: Bool { true }
        var mayBeAnsweredAtOnce: Bool { self.fetch.order.mayBeAnsweredAtOnce }
        var client: Int? { self.fetch.order.source }

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

        func endsForAnother() -> Bool { self.fetch.endsForAnother(self.number) }
    }

    private func isCurrent(_ number: Int) -> Bool {
        self.state.withLock { $0.requests == number }
    }

    private func informed(_ number: Int, _ head: ResponseHead) {
        guard self.isCurrent(number) else { return }
        var head = head
        HopByHop.strip(&head.fields)
        self.order.client?.exchange(informational: head)
    }

    private func wholeReceived(_ number: Int, _ response: WholeResponse) {
        self.answered(
            number, with: response.head, response.bodyLength, response.connection,
            body: response.body)
        // Where that did not take the body with the head, or does not want it at all.
        guard self.state.withLock({ $0.requests == number && $0.machine.isRelaying }) else {
            return
        }
        if response.body.readableBytes > 0 { _ = self.pieceReceived(number, response.body) }
        self.finished(number, Fields())
    }

    /// - Parameter body: all of it, where it is there already.
    private func answered(
        _ number: Int, with head: ResponseHead, _ bodyLength: BodyLength,
        _ connection: UpstreamConnectionFacts, body: ByteBuffer?
    ) {
        let now = self.session.clock.now()
        let (isCurrent, ledTo) = self.state.withLock { state -> (Bool, [TargetURI]?) in
            guard state.requests == number else { return (false, nil) }
            let ledTo = state.connection.ledTo
            state.connection = connection
            return (true, ledTo)
        }
        guard isCurrent else { return }
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
            RedirectionTrail.continues(ledTo, connection.ledTo)
            && self.continues(head, bodyLength)
        let action = self.state.withLock { state in
            state.machine.headReceived(
                head.status, selects: !selected.isEmpty, isForClient: isForClient,
                staleAllowed: standIn != nil, fit: fit, continues: continues)
        }
        switch action {
        case .freshen:
            self.freshen(
                with: head, indices: selected, origin: connection.nextHop, now: now)
        case .serveStale:
            if let (object, reason) = standIn {
                self.settle(
                    Filling.Stored(
                        object, because: reason, for: head.status, from: connection.nextHop,
                        at: self.order.request.uri))
            }
        case .repeatUnconditionally:
            let request = self.order.request
            self.send(Validation.keepingRange(Validation.unconditional(request), of: request))
        case .repeatAsAsked: self.repeatAsAsked()
        case .splice:
            self.splice(
                head, bodyLength: bodyLength, origin: connection.nextHop, now: now)
        case .breakSplice: self.breakSplice()
        case .continueBody: self.continueBody()
        case .breakOff: self.abandonRest()
        case .relay:
            self.relay(
                head, bodyLength: bodyLength, body: body, origin: connection.nextHop,
                now: now)
        case .discard: break
        }
    }

    private func pieceReceived(_ number: Int, _ piece: ByteBuffer) -> UpstreamDemand {
        let (isCurrent, isRelaying) = self.state.withLock {
            ($0.requests == number, $0.machine.isRelaying)
        }
        // Who sent the next request cancels this one, or who sent this one and comes back late.
        guard isCurrent else { return .pause }
        guard isRelaying else { return .more }
        guard self.isWithinLength(piece) else { return .pause }
        self.session.live.bytesFromOrigins.add(UInt64(piece.readableBytes))
        let demand = self.filling.received(piece)
        if !self.order.isBackground, let extra = self.filling.bytesSinceDeserted,
            !self.isKeptByOwner,
            extra > self.session.configuration.finishAfterClientLeft.bytes, self.cancel()
        {
            return .pause
        }
        return demand
    }

    /// Goes on without a client, whatever is missing.
    private var isKeptByOwner: Bool {
        self.state.withLock { $0.isOwned && $0.isRelayingStored }
            && self.order.owner?.keepsFetch == true
    }

    private func finished(_ number: Int, _ trailers: Fields) {
        guard self.isCurrent(number) else { return }
        let isCounted = self.isCounted
        if !isCounted, self.state.withLock({ $0.mayHaveBrokenOff }) {
            return self.failed(
                number,
                UpstreamFailure(
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

    private func failed(_ number: Int, _ failure: UpstreamFailure) {
        guard self.isCurrent(number) else { return }
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
                self.settle(
                    Filling.Stored(
                        object, because: reason, for: failure, at: self.order.request.uri))
            }
        case .fail:
            // What is denied to one client is not to others.
            if failure.isOfAll { self.rest() }
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
