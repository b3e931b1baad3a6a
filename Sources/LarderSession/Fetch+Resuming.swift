import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A body that broke off: asked for again from where it did, or kept as the part that it is.
extension Fetch {
    /// How often one body is asked for again.
    private static let mostResumptions = 2

    /// Whether the rest may be asked for: somebody is still reading, and the origin alone failed.
    func mayResume(after failure: UpstreamFailure) -> Bool {
        switch failure.kind {
        case .connectionTerminated, .connectionReadTimeout, .httpResponseIncomplete: break
        default: return false
        }
        guard failure.party == .origin, !self.order.isBackground,
            self.filling.bytesSinceDeserted == nil
        else { return false }
        let received = self.filling.bytesReceived
        return self.state.withLock { state in
            guard let resumption = state.resumption, !state.isCancelled else { return false }
            return state.resumptions < Self.mostResumptions && received < resumption.length
        }
    }

    func resumeBody(after failure: UpstreamFailure) {
        let received = self.filling.bytesReceived
        let asking = self.state.withLock { state -> Request? in
            state.resumptions += 1
            state.upstream = nil
            state.brokenOff = failure
            state.asked = state.resumption?.request(self.order.request, after: received)
            return state.asked
        }
        guard let asking else { return self.breakOff(.upstream(failure)) }
        self.send(asking)
    }

    /// Whether the head that came is that of the missing rest.
    func continues(_ head: ResponseHead, _ bodyLength: BodyLength) -> Bool {
        let begun = self.state.withLock { state -> (Resumption, Request)? in
            guard let resumption = state.resumption, let asked = state.asked else { return nil }
            return (resumption, asked)
        }
        guard let (resumption, asked) = begun else { return false }
        return resumption.isContinued(
            by: head, bodyLength: bodyLength, to: asked, after: self.filling.bytesReceived)
    }

    /// The rest is not to be had: the representation has changed, or the origin knows no ranges.
    func abandonRest() {
        let failure = self.state.withLock { $0.brokenOff }
        self.cancelUpstream()
        self.breakOff(failure.map { .upstream($0) } ?? .cancelled)
    }

    func continueBody() {
        self.session.live.bodiesResumed.add()
        self.state.withLock { state in
            // The length of the rest is known to be right only once it has come.
            state.counted = state.resumption?.length
        }
        if self.filling.bytesSinceDeserted != nil { self.deserted() }
    }

    /// Ends the body where it is.
    ///
    /// What came of it stays, where its bytes can be told from those of another representation.
    func breakOff(_ failure: BodyFailure) {
        let received = self.filling.bytesReceived
        let sink = self.filling.finished(.failed(failure))
        self.keepOrAbandon(sink, received: received)
        self.upstreamEnded()
    }

    func keepOrAbandon(_ sink: (any ObjectSink)?, received: UInt64) {
        guard let sink else { return }
        self.state.withLock { $0.storing }?.handedOver()
        let (isKept, completeLength) = self.state.withLock { state in
            (state.isKept && received > state.bytesStored, state.resumption?.completeLength)
        }
        guard isKept else { return sink.abandon() }
        self.session.live.partsKept.add()
        self.state.withLock { $0.isPart = true }
        sink.keep(completeLength: completeLength)
    }

    /// A body that is longer than its head said.
    ///
    /// - Returns: whether its pieces are still to be passed on.
    func isWithinLength(_ piece: ByteBuffer) -> Bool {
        let received = self.filling.bytesReceived
        let (exceeds, isSpliced) = self.state.withLock { state -> (Bool, Bool) in
            guard let counted = state.counted else { return (false, false) }
            let left = counted > received ? counted - received : 0
            let exceeds = UInt64(piece.readableBytes) > left
            if exceeds {
                // Which of its bytes are right nobody can say.
                state.isKept = false
                state.counted = nil
            }
            return (exceeds, state.isSpliced || state.resumptions > 0)
        }
        guard exceeds else { return true }
        guard isSpliced else {
            self.filling.giveUpSink()
            return true
        }
        let failure = UpstreamFailure(
            .httpResponseBodySize, detail: "more content than Content-Range says")
        self.state.withLock { $0.machine.cancel() }
        self.cancelUpstream()
        self.breakOff(.upstream(failure))
        return false
    }

    /// Whether the body, whole by its own framing, is as long as its head said.
    var isCounted: Bool {
        let received = self.filling.bytesReceived
        return self.state.withLock { $0.counted.map { $0 == received } ?? true }
    }
}
