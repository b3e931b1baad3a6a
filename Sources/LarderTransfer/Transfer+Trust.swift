import COpenSSL
import LarderHTTP

/// Whom a transfer's observer trusts.
extension Transfer {
    /// The observer is asked about the server.
    var isJudged: Bool {
        self.scheme == .https && self.dial == nil && CurlLibrary.usesOpenSSL
            && self.loop.configuration.verifiesCertificates
            && self.observer?.evaluatesServers == true
    }

    /// Whether the handshake that begins is with the origin.
    ///
    /// libcurl asks for each; with an https parent, that one's comes first, and is by the system's
    /// rules.
    func isOwnHandshake() -> Bool {
        guard self.way.parent?.kind == .https else { return true }
        self.handshakes += 1
        return self.handshakes % 2 == 0
    }

    /// What ALPN has agreed on (RFC 7301): others need not wait for the first response to know it.
    private static func speaksHTTP2(_ tls: OpaquePointer) -> Bool {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        unsafe SSL_get0_alpn_selected(tls, &name, &length)
        let bytes = unsafe UnsafeBufferPointer(start: name, count: Int(length))
        return unsafe bytes.elementsEqual("h2".utf8)
    }

    /// Looks at the TLS of the connection that the request is about to go out on; why it must not.
    ///
    /// Connections that somebody's observer let past are used again by those alone whose observer
    /// does so, too.
    func objectionToConnection() -> UpstreamFailure? {
        guard self.scheme == .https, self.observer != nil || self.mayBeHTTP2,
            let tls = unsafe self.easy?.tls
        else { return nil }
        unsafe self.noteTLS(tls)
        if !self.hasOpenedSocket, self.isJudged, let observer = self.observer,
            let peer = unsafe HandshakeJudge.of(tls)?.accepted, peer.fault != nil,
            let cause = HandshakeJudge.objection(of: observer, to: peer)
        {
            return HandshakeJudge.failure(cause, peer)
        }
        if self.mayBeHTTP2 { self.learn(isShared: unsafe Self.speaksHTTP2(tls)) }
        return nil
    }
}
