import COpenSSL
package import LarderHTTP

/// The client's end of TLS over bytes that somebody else carries.
///
/// ```
/// handshake ─▶ (wants bytes | asks, and is answered) ─▶ … ─▶ established ─▶ read, write ─▶ goodbye
/// ```
///
/// What comes is fed to it, what is to go out taken from it; it never waits, and knows no socket. Who
/// trusts the server, and which certificate is shown, is asked in the midst of the handshake, which
/// rests meanwhile (SSL_set_retry_verify(3), SSL_set_cert_cb(3)).
///
/// Not `Sendable`: one caller at a time.
@safe package final class TLSConversation {
    package enum Question: Sendable {
        case server(TLSPeer)
        case certificate(issuers: [[UInt8]])
    }

    package enum Progress: Sendable {
        case wantsBytes
        case asks(Question)
        case established
        case failed(UpstreamFailure)
    }

    package enum Piece: Sendable {
        case bytes([UInt8])
        /// Not now.
        case nothing
        /// The peer has said that nothing more comes.
        case end
        case failed(UpstreamFailure)
    }

    private let context: OpaquePointer
    private let ssl: OpaquePointer
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    private let host: String
    private let port: UInt16
    private var question: Question?
    private var verdict: (peer: TLSPeer, verdict: TLSVerdict)?
    private var isIdentityDecided = false
    private var hasIdentity = false
    private var cause: UpstreamFailure.Cause?
    /// The server that was let past.
    package private(set) var peer: TLSPeer?

    /// Throws where OpenSSL refuses what is needed.
    ///
    /// - Parameter host: as in `TargetURI`: what the certificate must be for.
    package init(host: String, port: UInt16, versions: TLSVersions) throws(TransferError) {
        self.host = host
        self.port = port
        CurlLibrary.prepare()
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else {
            throw Self.refusal("SSL_CTX_new")
        }
        guard let ssl = unsafe Self.prepare(context, versions) else {
            unsafe SSL_CTX_free(context)
            throw Self.refusal("SSL_new")
        }
        let incoming = unsafe BIO_new(BIO_s_mem())
        let outgoing = unsafe BIO_new(BIO_s_mem())
        guard let incoming = unsafe incoming, let outgoing = unsafe outgoing else {
            unsafe BIO_free(incoming)
            unsafe BIO_free(outgoing)
            unsafe SSL_free(ssl)
            unsafe SSL_CTX_free(context)
            throw Self.refusal("BIO_new")
        }
        unsafe SSL_set_bio(ssl, incoming, outgoing)
        unsafe self.context = context
        unsafe self.ssl = ssl
        unsafe self.incoming = incoming
        unsafe self.outgoing = outgoing
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_cert_verify_callback(context, Self.verify, own)
        unsafe SSL_set_cert_cb(ssl, Self.wantsCertificate, own)
        unsafe SSL_set_connect_state(ssl)
        // Names alone are sent (RFC 6066 §3).
        guard !self.isAddress else { return }
        guard unsafe copenssl_set_host_name(ssl, host) == 1 else {
            throw Self.refusal("SSL_set_tlsext_host_name")
        }
    }

    deinit {
        unsafe SSL_free(self.ssl)
        unsafe SSL_CTX_free(self.context)
    }

    private static func refusal(_ function: String) -> TransferError {
        ERR_clear_error()
        return TransferError(.library, detail: "\(function) failed")
    }

    private static func prepare(
        _ context: OpaquePointer, _ versions: TLSVersions
    ) -> OpaquePointer? {
        guard
            unsafe copenssl_set_versions(
                context, versions.minimum.number, versions.maximum?.number ?? 0) == 1,
            unsafe SSL_CTX_set_default_verify_paths(context) == 1
        else { return nil }
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        return unsafe SSL_new(context)
    }

    private var isAddress: Bool {
        self.host.utf8.first == UInt8(ascii: "[")
            || self.host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
    }

    // MARK: The handshake

    /// Goes on with the handshake as far as it goes.
    package func handshake() -> Progress {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(self.ssl)
        if result == 1 { return .established }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ: return .wantsBytes
        case SSL_ERROR_WANT_RETRY_VERIFY, SSL_ERROR_WANT_X509_LOOKUP:
            if let question = self.question { return .asks(question) }
            return self.failure
        default:
            ERR_clear_error()
            return self.failure
        }
    }

    private var failure: Progress {
        .failed(
            UpstreamFailure(
                self.cause == nil ? .tlsProtocolError : .tlsCertificateError, cause: self.cause,
                detail: "the handshake failed"))
    }

    /// Answers the question about the server.
    package func decide(_ verdict: TLSVerdict, on peer: TLSPeer) {
        self.verdict = (peer, verdict)
        self.question = nil
    }

    /// Answers the question for a certificate; false where it is none that can be shown.
    ///
    /// - Parameter identity: nil: none is shown.
    package func show(_ identity: TLSIdentity?) -> Bool {
        self.isIdentityDecided = true
        self.question = nil
        guard let identity else { return true }
        defer { ERR_clear_error() }
        let parts: ClientIdentityParts
        do throws(ClientIdentityFault) {
            parts =
                identity.form == .pkcs12
                ? try ClientIdentityReader.pkcs12(identity.certificate, password: identity.password)
                : try ClientIdentityReader.pem(
                    certificates: identity.certificate,
                    key: identity.key.isEmpty ? identity.certificate : identity.key,
                    password: identity.password)
        } catch {
            return false
        }
        self.hasIdentity = self.use(parts)
        return self.hasIdentity
    }

    private func use(_ parts: ClientIdentityParts) -> Bool {
        for (index, der) in parts.certificates.enumerated() {
            guard let certificate = unsafe X509Handle(der: der) else { return false }
            defer { unsafe certificate.free() }
            let isTaken =
                index == 0
                ? unsafe SSL_use_certificate(self.ssl, certificate.pointer) == 1
                : unsafe copenssl_add_chain_certificate(self.ssl, certificate.pointer) == 1
            guard isTaken else { return false }
        }
        let key = unsafe parts.key.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &cursor, bytes.count)
        }
        guard let key = unsafe key else { return false }
        defer { unsafe EVP_PKEY_free(key) }
        return unsafe SSL_use_PrivateKey(self.ssl, key) == 1
    }

    /// SSL_CTX_set_cert_verify_callback(3): "the callback may also call SSL_set_retry_verify(3) … and
    /// return 1", which makes the handshake rest.
    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 =
        { store, context in
            guard let store = unsafe store, let context = unsafe context else { return 0 }
            let own = unsafe Unmanaged<TLSConversation>.fromOpaque(context).takeUnretainedValue()
            return unsafe own.judge(store) ? 1 : 0
        }

    private func judge(_ store: OpaquePointer) -> Bool {
        let (peer, error) = unsafe HandshakeJudge.examine(
            store, host: self.host, port: self.port)
        ERR_clear_error()
        guard let (judged, verdict) = self.verdict, judged == peer else {
            self.question = .server(peer)
            return unsafe copenssl_suspend_verification(copenssl_ssl_of(store)) > 0
        }
        self.cause =
            switch verdict {
            case .trusted: nil
            case .bySystem: peer.fault?.cause
            case .refused, .undecided: .certificateRefused
            }
        guard self.cause == nil else {
            if error == X509_V_OK {
                unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            }
            return false
        }
        self.peer = peer
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return true
    }

    /// SSL_set_cert_cb(3): "A negative return value will suspend the handshake".
    private static let wantsCertificate:
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, context in
            guard let ssl = unsafe ssl, let context = unsafe context else { return 0 }
            let own = unsafe Unmanaged<TLSConversation>.fromOpaque(context).takeUnretainedValue()
            if own.isIdentityDecided { return 1 }
            own.question = .certificate(issuers: unsafe HandshakeJudge.issuers(ssl))
            return -1
        }

    // MARK: Bytes

    /// Takes bytes of the peer's; false where there is no memory for them.
    package func feed(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= Int32.max else { return false }
        if unsafe bytes.isEmpty { return true }
        let count = Int32(bytes.count)
        return unsafe BIO_write(self.incoming, bytes.baseAddress, count) == count
    }

    /// What is to go out.
    package func takeOutput() -> [UInt8] {
        let count = unsafe BIO_ctrl_pending(self.outgoing)
        guard count > 0, count <= Int32.max else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, taken in
            let result = unsafe BIO_read(self.outgoing, buffer.baseAddress, Int32(count))
            taken = Swift.max(0, Int(result))
        }
    }

    /// What the peer wrote: one record at most.
    package func read() -> Piece {
        ERR_clear_error()
        var result: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, taken in
            result = unsafe SSL_read(self.ssl, buffer.baseAddress, Int32(buffer.count))
            taken = Swift.max(0, Int(result))
        }
        if result > 0 { return .bytes(bytes) }
        switch unsafe SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ: return .nothing
        case SSL_ERROR_ZERO_RETURN: return .end
        default:
            let cause = self.alertCause
            ERR_clear_error()
            return .failed(
                UpstreamFailure(
                    cause == nil ? .connectionTerminated : .tlsCertificateError, cause: cause,
                    detail: "the connection failed"))
        }
    }

    /// What the peer means that ended the connection with an alert.
    private var alertCause: UpstreamFailure.Cause? {
        CertificateAlert.cause(
            ofNumber: ERR_GET_REASON(ERR_peek_last_error()) - SSL_AD_REASON_OFFSET,
            hasIdentity: self.hasIdentity)
    }

    /// Enciphers bytes; false where the connection is not fit for it any more.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        ERR_clear_error()
        guard bytes.count <= Int32.max else { return false }
        if unsafe bytes.isEmpty { return true }
        let count = Int32(bytes.count)
        // Into memory: whole, or not at all.
        return unsafe SSL_write(self.ssl, bytes.baseAddress, count) == count
    }

    /// Says that nothing more will be written (RFC 8446 §6.1).
    package func sayGoodbye() {
        ERR_clear_error()
        _ = unsafe SSL_shutdown(self.ssl)
        ERR_clear_error()
    }
}

extension TLSVersion {
    fileprivate var number: Int32 {
        switch self {
        case .v10: TLS1_VERSION
        case .v11: TLS1_1_VERSION
        case .v12: TLS1_2_VERSION
        case .v13: TLS1_3_VERSION
        }
    }
}
