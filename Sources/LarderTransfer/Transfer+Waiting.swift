import CCurl
import COpenSSL
import LarderHTTP

/// What follows from a transfer's request, its way and its phase.
extension Transfer {
    var fetch: CurlFetch { self.order.fetch }
    var request: Request { self.order.request }
    var scheme: Scheme { self.order.scheme }
    var receiver: any UpstreamReceiver { self.order.receiver }
    /// Who waits for a bare connection; nil for a fetch.
    var dial: SocketDial? { self.order.dial }

    /// Whether what the origin sends stands on the connection as it is: no TLS around it, and it
    /// speaks only when asked.
    var isPlain: Bool {
        guard self.dial == nil else { return false }
        return self.way.isRelay
            ? self.way.parent?.kind == .http : self.scheme == .http
    }

    /// What is heard now is the parent's answer to CONNECT.
    var isBeforeRequest: Bool {
        switch self.phase {
        case .queued, .resolving, .connecting: self.way.isTunnel
        case .awaitingHead, .receiving, .over: false
        }
    }

    /// Whether its connection bears one exchange after the other, as the head of its answer says.
    var isAnsweredInHTTP1: Bool {
        self.hasHead && !self.isMultiplexed && !self.isFTP && self.dial == nil
    }

    /// Has libcurl close the connection when all of the answer is there, where TLS holds more than
    /// that: libcurl reads no more than was announced.
    func forbidReuseOfExcess() {
        guard !self.isPlain, self.isAnsweredInHTTP1, let easy = self.easy,
            let tls = unsafe easy.tls, unsafe SSL_pending(tls) > 0
        else { return }
        easy.set(CURLOPT_FORBID_REUSE, true)
    }

    /// Whether the request may go out a second time, over a new connection, when a reused one died
    /// without a byte of answer (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    var mayBeResent: Bool {
        self.request.method.isIdempotent && self.content == nil
    }

    /// How often it may go out.
    ///
    /// What failed when it was sent again is not sent a third time (RFC 9110 §9.2.2), but over HTTP/2: an
    /// origin that retires a connection, or has no room for another stream, has not looked at what it turns
    /// away, and may do so with many at a time.
    var mostAttempts: Int {
        guard self.mayBeResent else { return 1 }
        return self.mayShareConnection && self.sharing != .none ? 3 : 2
    }

    /// Whether it is sent again though libcurl gives up: over HTTP/2 it tells a connection that is
    /// retired under its requests (GOAWAY, RFC 9113 §6.8) from no other that breaks.
    func goesOn(after code: CURLcode) -> Bool {
        switch code {
        case CURLE_HTTP2, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            self.isMultiplexed && self.mayShareConnection && self.attempts < self.mostAttempts
                && self.phase == .awaitingHead && self.failure == nil && !self.assembler.hasBegun
        default: false
        }
    }

    /// Whether what is sent for the last time goes over a connection of its own.
    ///
    /// Not where that would be the answer to a challenge, which may be for the same connection.
    var mayBeSentAnew: Bool {
        if self.mayShareConnection { return true }
        guard case .direct = self.way, self.mayBeResent else { return false }
        return !self.isFTP && self.dial == nil && !self.logsConnectionIn
            && self.request.connectionAuthentication == nil
    }

    /// Whether it may go over a connection that others use at the same time.
    ///
    /// What must not be sent twice makes its own (CURLOPT_FRESH_CONNECT(3)), and so does what a login
    /// of the connection to the parent is for.
    var mayShareConnection: Bool {
        guard self.mayBeHTTP2, self.mayBeResent else { return false }
        guard let parent = self.way.parent else { return true }
        return parent.authentication != .negotiate
            && self.options.proxyAuthorization?.scheme != .ntlm
            && !self.loop.configuration.parents.hasOtherLogins(parent)
    }

    /// Whether its content is one that trailers can follow.
    ///
    /// Not where the content may be sent twice: libcurl 7.88 would begin the second time where the
    /// trailers of the first ended.
    var mayHaveTrailers: Bool {
        guard let content = self.content, content.length == nil else { return false }
        return !content.isKept
    }

    /// Whether a final answer is one to a request without its content.
    ///
    /// libcurl sends that first, for the parent to ask for a login of one kind alone; to NTLM's it has the
    /// answer already on a connection that was used before. A parent that does not ask passes it on, and
    /// libcurl 7.88 is content with what comes back.
    var isAnsweredWithoutContent: Bool {
        guard let content = self.content, content.sent == 0, self.way.isRelay,
            self.easy?.parentSchemes == 0
        else { return false }
        return switch self.parentLogin {
        case .digest: true
        case .ntlm: self.hasOpenedSocket
        case .any, .basic, .negotiate, .none?, nil: false
        }
    }

    /// Gives the connection that the request goes out on the request's traffic class, whatever the
    /// one before it had.
    func markSocket() {
        let trafficClass = self.options.trafficClass
        guard trafficClass != nil || self.loop.poller.hasClasses,
            let socket = self.easy?.activeSocket
        else { return }
        self.loop.poller.mark(socket, trafficClass)
    }

    /// How long libcurl may be about a connection, where that is not the configuration's; behind our own
    /// limits, as that is.
    ///
    /// libcurl's time goes on while a request is suspended, and would end it when it is resumed: where
    /// that can be, ours alone counts.
    var longestConnecting: Duration? {
        if self.observer != nil { return .seconds(7 * 86_400) }
        return self.options.idleTimeout.map { $0 + $0 + .seconds(1) }
    }

    /// Whether nobody is to hear anything of it now, and it only waits.
    var isQuiet: Bool {
        switch self.phase {
        case .queued, .resolving, .connecting, .awaitingHead:
            self.outbox.isEmpty && self.content == nil && !self.isMultiplexed
                && !self.isAnsweredEarly && !self.mustReleaseContent && !self.isHeld
        case .receiving, .over: false
        }
    }

    /// Whether what it waited for has come, at least a part of it, since the loop last looked.
    func hasMoved(since wait: Wait) -> Bool {
        self.hasProgressed || self.wantedWait != wait
    }

    /// Has the loop tell libcurl to ask for content again, once it has returned.
    func goOnSending() { self.mustReleaseContent = true }

    /// Goes on sending content, with the origin's leave or without it.
    func releaseContent() {
        self.content?.release()
        self.goOnSending()
    }

    /// Whether libcurl, which waits for content, may have read all of the answer without a word.
    ///
    /// Where the connection is closed behind it, libcurl 7.88 then sends no more, but does not end
    /// before it is told to go on; and of an answer without a length nobody else knows where it ends.
    var mayBeOver: Bool {
        self.phase == .receiving && self.endsConnection && !self.isHeld && !self.isMultiplexed
            && self.content?.isPending == true
    }

    /// What the transfer waits for now, if for anything that has a limit.
    var wantedWait: Wait? {
        guard !self.isStandingStill else { return nil }
        return switch self.phase {
        case .queued:
            if self.isPassedOver { nil } else { self.awaitedName == nil ? .connection : .name }
        case .resolving: .name
        case .connecting: self.way.isTunnel ? .tunnel : .handshake
        case .awaitingHead:
            if let content = self.content, content.isWithheld {
                .leave
            } else if let content = self.content, !content.isOver {
                content.isPending ? nil : .sending
            } else {
                self.isFTP ? .receiving : .head
            }
        case .receiving:
            // An origin that reads content while it answers may be waiting for that.
            self.isPaused || self.isHeld
                || (!self.needsNoContent && self.content?.isPending == true) ? nil : .receiving
        case .over: nil
        }
    }
}
