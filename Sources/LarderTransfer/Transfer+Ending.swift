import CCurl
import LarderHTTP

/// How a transfer ends: what libcurl says of it, what was found out beside that, and what the receiver
/// is to hear.
extension Transfer {
    /// Its receiver is told of the end before libcurl's handle is taken back and made ready for the
    /// next transfer (a tenth of a request's instructions): who waits wakes up meanwhile.
    ///
    /// Where it is measured that comes first, as libcurl is asked.
    var isToldFirst: Bool {
        self.isWhole && self.content == nil && self.dial == nil && self.phase == .over
            && self.measuring == nil
    }

    /// Nothing happened that libcurl 7.88 remembers in the handle and that may matter for a later
    /// transfer with the same options.
    ///
    /// It counts attempts, notes what connecting and names came to, and keeps the buffer of a transfer
    /// whose connection others went on using: a handle that has one refuses CURLOPT_BUFFERSIZE.
    var leavesHandleAsItWas: Bool {
        self.isWhole && self.attempts == 1 && !self.hasOpenedSocket && !self.isMultiplexed
    }

    /// Takes the end of the transfer into the outbox.
    func end(_ end: CurlEnd) {
        let outcome = self.outcome(end)
        self.phase = .over
        if case .failed(let failure) = outcome {
            self.outbox.end(.failed(self.named(failure)))
        } else {
            self.isWhole = true
            self.outbox.end(outcome)
        }
    }

    /// Ends the transfer with a failure found out by the loop; what was received stays before it.
    func end(_ failure: UpstreamFailure) {
        self.phase = .over
        self.outbox.end(.failed(self.named(failure)))
    }

    /// Ends a dial with what was dialled for.
    func end(_ socket: DialledSocket) {
        self.phase = .over
        self.outbox.end(.connected(socket))
    }

    /// Names the parent that the failure was met on the way through.
    private func named(_ failure: UpstreamFailure) -> UpstreamFailure {
        guard let parent = self.way.parent, failure.isOfAll else { return failure }
        var failure = failure
        failure.hop = NextHop(address: parent.authority, isParent: true)
        failure.detail += " (through the parent \(parent.authority))"
        return failure
    }

    private func outcome(_ end: CurlEnd) -> Outbox.Ending {
        if let failure = self.failure { return .failed(failure) }
        if let detail = self.dataObjection, end.code != CURLE_OK {
            return .failed(UpstreamFailure(.destinationUnavailable, detail: detail))
        }
        if let detail = self.addressObjection, !self.hasOpenedSocket {
            return .failed(Self.prohibited(detail))
        }
        if self.isFTP { return self.ftpOutcome(end) }
        guard self.isAnsweredEarly || end.code == CURLE_OK else {
            var end = end
            end.hasIdentity = self.options.identity != nil
            var failure =
                ParentFailure.of(end, self.way, hadLogin: self.hasLogin)
                ?? end.failure(
                    isHeadComplete: self.assembler.isHeadComplete,
                    hasBegun: self.assembler.hasBegun)
            if self.isDecoding, end.code == CURLE_OUT_OF_MEMORY {
                // What libcurl keeps for a receiver that paused has a bound.
                failure = UpstreamFailure(
                    .httpProtocolError, cause: .badContentCoding,
                    detail: "the content grows beyond all bounds when its coding is undone")
            }
            if failure.cause == .proxyAuthenticationRequired {
                failure.proxyChallenges = self.challenges.values
            }
            if failure.kind == .tlsProtocolError {
                // Where it is for the versions, libcurl does not say which.
                failure.detail += "; \(self.loop.configuration.tlsVersions.text) was offered"
            }
            return .failed(failure)
        }
        // Nothing came behind a challenge: libcurl has no answer to it.
        if let (head, length) = self.assembler.takeHeld() { self.headEnded(head, length) }
        if let failure = self.failure { return .failed(failure) }
        return self.wholeOutcome
    }

    /// libcurl found no fault: look for ourselves.
    ///
    /// It reports a connection that ended inside a head as success.
    private var wholeOutcome: Outbox.Ending {
        guard self.assembler.isHeadComplete else {
            return .failed(
                UpstreamFailure(
                    self.assembler.hasBegun ? .httpResponseIncomplete : .connectionTerminated,
                    cause: .connectionLost,
                    detail: "the connection ended before the response's head did"))
        }
        if case .known(let length) = self.announced, length != self.received {
            return .failed(
                UpstreamFailure(
                    .httpResponseIncomplete, cause: .partialContent,
                    detail: "\(self.received) of \(length) bytes came"))
        }
        if self.closure?.hasCome == false {
            return .failed(
                UpstreamFailure(
                    .httpResponseIncomplete, cause: .partialContent,
                    detail: "the TLS connection ended without close_notify, the only sign that all "
                        + "of a response without a length has come (RFC 9112 §9.8)"))
        }
        do throws(UpstreamFailure) {
            return .finished(trailers: try self.assembler.trailers())
        } catch {
            return .failed(error)
        }
    }

    private func ftpOutcome(_ end: CurlEnd) -> Outbox.Ending {
        if !self.options.reportsFTPRefusals, self.outbox.isEmpty, self.received == 0,
            let refusal = FTPResponse.refusal(end.code)
        {
            let facts = UpstreamConnectionFacts(remoteAddress: self.remoteAddress)
            let body = FTPResponse.body(of: refusal)
            let length = UInt64(body.utf8.count)
            let isHead = self.request.method == .head
            self.outbox.append(
                Outbox.Head(
                    head: refusal, bodyLength: isHead ? .none : .known(length), connection: facts))
            if !isHead {
                var body = body
                body.withUTF8 {
                    unsafe self.outbox.append(UnsafeRawBufferPointer($0), expected: length)
                }
            }
            return .finished(trailers: Fields())
        }
        guard end.code == CURLE_OK else {
            let parental = ParentFailure.of(end, self.way, hadLogin: self.hasLogin)
            let hasBegun = self.received > 0
            return .failed(
                parental ?? end.failure(isHeadComplete: hasBegun, hasBegun: hasBegun))
        }
        // An empty file: no byte of it called for a head.
        if self.received == 0 { self.ftpHeadEnded() }
        self.phase = .over
        return .finished(trailers: Fields())
    }
}
