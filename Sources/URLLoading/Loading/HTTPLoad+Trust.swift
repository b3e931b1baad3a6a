import Foundation
import LarderHTTP
import Synchronization

/// What a load knows of the servers that it met, and what it was told about them.
struct LoadTrust: Sendable {
    /// What the handshake was broken off for.
    enum Question: Sendable {
        case server(TLSPeer)
        case certificate(issuers: [[UInt8]], host: String, port: UInt16)
    }

    var question: Question?
    /// The last server that showed its certificates.
    var peer: TLSPeer?
    /// What was said about it, for this load alone.
    var verdict: (peer: TLSPeer, verdict: TLSVerdict)?
    /// The certificate to be shown; nil: none.
    var identity: TLSIdentity?
    /// It is the one that the session showed before, and nobody has been asked.
    var isIdentityKnown = false
    /// Where it was asked for, if the session is to show it again once it has been accepted.
    var keepsIdentity: (host: String, port: UInt16)?
    /// A certificate was asked for, and the answer is known.
    var isIdentityDecided = false
    /// A server wanted a certificate.
    var wantsIdentity = false

    /// The certificate that the next attempt shows.
    ///
    /// - Parameter known: the session's for the server.
    mutating func shows(known: TLSIdentity?) -> TLSIdentity? {
        guard !self.isIdentityDecided else { return self.identity }
        self.identity = known
        self.isIdentityKnown = known != nil
        return known
    }
}

extension HTTPLoad {
    var evaluatesServers: Bool { self.asks }

    func transfer(evaluates server: TLSPeer) -> TLSVerdict {
        guard self.asks else { return self.noteServer(server) }
        let known = self.engine.remember { $0.verdict(on: server) }
        return self.state.withLock { state in
            state.trust.peer = server
            // What the system found nothing wrong with it may find wrong by now.
            if let verdict = known, verdict == .trusted || server.fault == nil { return verdict }
            if let (peer, verdict) = state.trust.verdict, peer == server { return verdict }
            state.trust.question = .server(server)
            return .undecided
        }
    }

    private func noteServer(_ server: TLSPeer) -> TLSVerdict {
        self.state.withLock { $0.trust.peer = server }
        return .bySystem
    }

    func transfer(wantsCertificateFrom issuers: [[UInt8]], host: String, port: UInt16) -> Bool {
        self.state.withLock { state in
            state.trust.wantsIdentity = true
            guard self.asks, !state.trust.isIdentityDecided else { return false }
            state.trust.question = .certificate(issuers: issuers, host: host, port: port)
            return true
        }
    }

    /// Asks whoever the observer is about what the handshake was broken off for.
    func ask(_ trust: LoadTrust) {
        switch trust.question {
        case nil: self.attempt()
        case .server(let peer):
            self.observer.load(challenged: TLSChallenge.serverTrust(peer)) {
                self.decided(TLSChallenge.verdict($0, $1, on: peer), on: peer)
            }
        case .certificate(let issuers, let host, let port):
            let challenge = TLSChallenge.clientCertificate(
                from: issuers, host: host, port: port, storage: self.engine.credentials)
            self.observer.load(challenged: challenge) { disposition, credential in
                self.decided(
                    TLSChallenge.identity(disposition, credential),
                    keepingFor: credential?.persistence == URLCredential.Persistence.none
                        ? nil : (host, port))
            }
        }
    }

    private func decided(_ decision: TLSChallenge.Decision<TLSVerdict>, on peer: TLSPeer) {
        guard case .goOn(let verdict) = decision else { return self.refuse(decision) }
        // What the system refuses is asked about again: another time the answer may differ.
        if verdict == .trusted || peer.fault == nil {
            self.engine.remember { $0.remember(verdict, on: peer) }
        }
        self.state.withLock { state in
            state.trust.verdict = (peer, verdict)
            state.trust.question = nil
        }
        self.attempt()
    }

    private func decided(
        _ decision: TLSChallenge.Decision<TLSIdentity?>,
        keepingFor place: (host: String, port: UInt16)?
    ) {
        guard case .goOn(let identity) = decision else { return self.refuse(decision) }
        self.state.withLock { state in
            state.trust.identity = identity
            state.trust.keepsIdentity = identity == nil ? nil : place
            state.trust.isIdentityDecided = true
            state.trust.question = nil
        }
        self.attempt()
    }

    /// A response has come: what was shown on the way is shown again.
    func identityIsAccepted() {
        let (place, identity) = self.state.withLock { state in
            (state.trust.keepsIdentity.take(), state.trust.identity)
        }
        guard let place, let identity else { return }
        self.engine.remember { $0.remember(identity, for: place.host, place.port) }
    }

    /// The server did not take what the session shows it: the next load asks again.
    func identityIsRefused(_ trust: LoadTrust) {
        guard trust.isIdentityKnown, let identity = trust.identity,
            let url = self.order.request.url,
            let uri = try? TargetURI(loading: url)
        else { return }
        self.engine.remember { $0.forget(identity, for: uri.host, uri.port) }
    }

    private func refuse<Answer>(_ decision: TLSChallenge.Decision<Answer>) {
        guard case .fail(let error) = decision else { return }
        self.refuse(error)
    }
}
