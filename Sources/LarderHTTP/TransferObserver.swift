/// Looks on while an upstream performs a request, and has a say in whom it trusts.
///
/// Called on the upstream's threads; must not block. A request that no upstream performs (a hit)
/// has nothing to tell.
package protocol TransferObserver: AnyObject, Sendable {
    /// How many bytes of the content have been handed to the kernel or the TLS library, in all.
    func transfer(sent total: UInt64)
    /// What it took; after the last call to the receiver, also where that was a failure, and where it
    /// was cancelled.
    func transfer(measured measurement: TransferMeasurement)
    /// The request waits for a connection, of which one that becomes free is given to others while
    /// `isSuspended`; or it was found suspended when the time that it may wait for its origin was up.
    ///
    /// - Parameter changed: to be called when `isSuspended` has changed; any thread, also when the
    ///   request does not wait any more.
    func transferWaits(_ changed: @escaping @Sendable () -> Void)
    /// Whether nothing is to be transmitted now, and no time runs but the whole resource's; read while
    /// the request waits for a connection, and when it has waited too long for anything else.
    ///
    /// Must become false at the latest when nobody wants the request any more. False unless it says
    /// otherwise.
    var isSuspended: Bool { get }
    /// How long ago the request's last suspension ended: it has waited for nothing longer than that.
    /// nil: it never was suspended; read when it has waited too long.
    ///
    /// Nil unless it says otherwise.
    var resumedAgo: Duration? { get }
    /// Whether it looks at the measurement; read once, when the fetch begins.
    ///
    /// Where it does not, nothing is measured, and the measurement says nothing. True unless it says
    /// otherwise.
    var readsMeasurement: Bool { get }
    /// Whether it is asked about servers at all; read once, when the fetch begins.
    ///
    /// Being asked costs a whole handshake for each new connection: a resumed session of TLS shows
    /// no certificate. True unless it says otherwise.
    var evaluatesServers: Bool { get }
    /// Whether a server is trusted; called in the midst of the handshake of a new connection, and
    /// where the request would use one again that somebody else trusted against the system's rules.
    func transfer(evaluates server: TLSPeer) -> TLSVerdict
    /// A server wants a client certificate, and the request has none (`TransferOptions.identity`).
    ///
    /// - Parameter issuers: the names that it accepts, DER.
    /// - Returns: false to go on without; true to break the handshake off, in order to ask somebody.
    func transfer(wantsCertificateFrom issuers: [[UInt8]], host: String, port: UInt16) -> Bool
}

extension TransferObserver {
    package var readsMeasurement: Bool { true }
    package var evaluatesServers: Bool { true }
    package var isSuspended: Bool { false }
    package var resumedAgo: Duration? { nil }
    package func transferWaits(_ changed: @escaping @Sendable () -> Void) {}
}

/// A server as its certificates show it.
package struct TLSPeer: Sendable, Hashable {
    package var host: String
    package var port: UInt16
    /// The server's own first, DER.
    package var certificates: [[UInt8]]
    /// What is wrong with it by the system's rules, name of the host included; nil: nothing.
    package var fault: TLSFault?

    package init(host: String, port: UInt16, certificates: [[UInt8]], fault: TLSFault?) {
        self.host = host
        self.port = port
        self.certificates = certificates
        self.fault = fault
    }
}

/// What is wrong with a server's certificate.
package enum TLSFault: String, Sendable, Hashable, CaseIterable {
    case expired, notYetValid, unknownRoot, wrongHost, revoked, untrusted
}

/// What somebody says about a server's certificate.
package enum TLSVerdict: Sendable, Hashable {
    /// As the system's rules say.
    case bySystem
    case trusted
    case refused
    /// The handshake is to be broken off, and somebody asked; the request fails with
    /// `tls_certificate_error`.
    case undecided
}
