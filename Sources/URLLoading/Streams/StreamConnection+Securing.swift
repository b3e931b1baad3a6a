import Foundation
import LarderHTTP
import LarderTransfer

// TLS over a connection that stands (RFC 8446), and the giving away of its streams.

extension StreamConnection {
    // MARK: TLS

    func secure() {
        guard let settings = self.settings,
            let port = UInt16(exactly: self.place.port)
        else { return self.fail(.cancelled) }
        do throws(TransferError) {
            self.tls = try TLSConversation(
                host: self.place.host, port: port,
                versions: TransferConfiguration(settings).tlsVersions)
        } catch {
            self.owner?.failed(
                URLError(.secureConnectionFailed, userInfo: [NSUnderlyingErrorKey: error]))
            return
        }
        self.isSecuring = true
        self.limitHandshake()
        self.handshake()
    }

    func handshake() {
        guard let tls = self.tls else { return }
        let progress = tls.handshake()
        // Also what says to the peer why it failed.
        self.pump()
        guard !self.isOver else { return }
        switch progress {
        case .wantsBytes: self.watch()
        case .established:
            self.isSecuring = false
            self.endHandshakeLimit()
            self.perform(self.machine.secured())
            // What came with the end of the handshake.
            if !self.isOver { self.decipher(tls) }
        case .asks(let question): self.ask(question, of: tls)
        case .failed(let failure): self.fail(failure)
        }
    }

    /// The task's delegate decides (§6.1); without one the system's rules do.
    private func ask(_ question: TLSConversation.Question, of tls: TLSConversation) {
        guard let owner = self.owner else { return }
        // The peer may say what it likes meanwhile: it waits in the socket, and is not waited for.
        self.isSecuring = false
        self.endHandshakeLimit()
        self.watch()
        switch question {
        case .server(let peer):
            owner.asks(TLSChallenge.serverTrust(peer, protocol: self.challengeProtocol)) {
                let decision = TLSChallenge.verdict($0, $1, on: peer)
                self.queue.async { self.decided(decision) { $0.decide($1, on: peer) } }
            }
        case .certificate(let issuers):
            self.shown.wantsIdentity = true
            let challenge = TLSChallenge.clientCertificate(
                from: issuers, host: self.place.host, port: UInt16(clamping: self.place.port),
                protocol: self.challengeProtocol, storage: self.settings?.urlCredentialStorage)
            owner.asks(challenge) {
                let decision = TLSChallenge.identity($0, $1)
                self.queue.async {
                    self.decided(decision) { tls, identity in
                        self.shown.identity = identity
                        if !tls.show(identity) { self.fail(.clientCertificateRejected) }
                    }
                }
            }
        }
    }

    /// The protocol of a challenge's space: that of the handshake's URL for a WebSocket, none for a
    /// stream.
    private var challengeProtocol: String { self.place.scheme?.rawValue ?? "" }

    private func decided<Answer>(
        _ decision: TLSChallenge.Decision<Answer>, _ use: (TLSConversation, Answer) -> Void
    ) {
        guard !self.isOver, let tls = self.tls else { return }
        switch decision {
        case .fail(let error): self.owner?.failed(error)
        case .goOn(let answer):
            use(tls, answer)
            guard !self.isOver else { return }
            self.isSecuring = true
            self.limitHandshake()
            self.handshake()
        }
    }

    /// A peer that says nothing is not waited for longer than for an answer to a request: neither from
    /// the beginning on, nor from when somebody who was asked has decided.
    private func limitHandshake() {
        guard let limit = Duration(interval: self.settings?.timeoutIntervalForRequest ?? 0) else {
            return
        }
        self.limitHandshake(limit, rest: limit)
    }

    private func endHandshakeLimit() {
        self.handshakeTimer?.cancel()
        self.handshakeTimer = nil
    }

    /// - Parameter rest: what is left of the limit.
    private func limitHandshake(_ limit: Duration, rest: Duration) {
        let timer = DispatchSource.makeTimerSource(queue: self.queue)
        timer.schedule(deadline: .now() + .microseconds(Int(clamping: rest.inMicroseconds)))
        timer.setEventHandler { [weak self] in
            guard let self, !self.isOver, self.isSecuring else { return }
            guard let more = self.owner?.patience(beyond: limit) else {
                return self.fail(.timedOut)
            }
            self.limitHandshake(limit, rest: more)
        }
        timer.activate()
        self.handshakeTimer = timer
    }

    // MARK: Streams

    /// Gives the connection away as two streams; the task is done.
    func giveAway(_ left: Data) {
        guard let socket = self.socket, let owner = self.owner else { return }
        // The conversation is used by the streams alone from here on.
        nonisolated(unsafe) let tls = self.tls
        self.tls = nil
        self.socket = nil
        socket.handOver { descriptor in
            owner.captured(unsafe CapturedConnection(descriptor, tls, left))
        }
    }
}
