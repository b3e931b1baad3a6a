extension UpstreamFailure {
    /// What went wrong, finer than the words of RFC 9209: whoever has to name it to a program tells
    /// it from this.
    package enum Cause: String, Hashable, Sendable, CaseIterable {
        // MARK: The request

        /// Its target is none that can be fetched.
        case badURL
        /// A scheme, or a method for the scheme, that no upstream speaks.
        case unsupported
        /// Its own content broke off, or has another length than announced.
        case requestContent
        /// Its head is larger than any that is sent.
        case requestHead

        // MARK: The way

        case hostNotFound
        case proxyNotFound
        /// No route leads anywhere: the machine is not connected.
        case notConnected
        case cannotConnect
        case connectionLost
        /// Nothing moved for as long as the request is ready to wait.
        case idleTimeout
        /// It was not over after the time for the whole resource.
        case resourceTimeout
        /// As many connections as allowed were in use for too long.
        case connectionLimit
        /// The parent answered 407; `proxyChallenges` has its lines.
        case proxyAuthenticationRequired
        /// The parent refuses or fails otherwise.
        case proxy

        // MARK: TLS

        /// No handshake: versions, ciphers, a peer that speaks something else.
        case secureConnection
        case certificateExpired
        case certificateNotYetValid
        case certificateUnknownRoot
        case certificateWrongHost
        case certificateRevoked
        case certificateUntrusted
        /// The observer refused the server.
        case certificateRefused
        /// The observer wants to ask somebody first (`TLSVerdict.undecided`).
        case certificateUndecided
        /// The server refuses the client certificate, or it cannot be used.
        case clientCertificateRejected
        /// The server does not go on without one.
        case clientCertificateRequired
        /// The observer wants to ask somebody for one first.
        case clientCertificateUndecided

        // MARK: The answer

        /// It is not what the protocol allows.
        case badResponse
        case headTooLarge
        /// It was cut off.
        case partialContent
        /// What it is coded in could not be undone.
        case badContentCoding
        /// FTP.
        case loginDenied
        /// FTP.
        case fileNotFound
    }
}

extension TLSFault {
    /// What a request fails with that is not let past it.
    package var cause: UpstreamFailure.Cause {
        switch self {
        case .expired: .certificateExpired
        case .notYetValid: .certificateNotYetValid
        case .unknownRoot: .certificateUnknownRoot
        case .wrongHost: .certificateWrongHost
        case .revoked: .certificateRevoked
        case .untrusted: .certificateUntrusted
        }
    }
}
