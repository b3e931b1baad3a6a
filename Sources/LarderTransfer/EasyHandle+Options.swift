import CCurl
import Glibc
import LarderHTTP

/// What a request wants for itself (`TransferOptions`), in libcurl's options.
extension EasyHandle {
    /// With a coding undone, each byte that is read may become a thousand and more, and libcurl keeps
    /// what a receiver that paused cannot take: it reads less at a time.
    private static let decodedRead = 16_384

    func setOptions(_ transfer: Transfer) {
        let options = transfer.options
        if options.decodesContent { self.set(CURLOPT_BUFFERSIZE, Self.decodedRead) }
        if let longest = transfer.longestConnecting {
            self.set(CURLOPT_CONNECTTIMEOUT_MS, longest.inMilliseconds)
        }
        if let identity = options.identity, !transfer.isPlain { self.setIdentity(identity) }
        if transfer.isJudged { self.setJudgement() }
    }

    /// Has the codings of the content undone that libcurl knows; that no field is added for it is seen
    /// to with the fields.
    func setDecoding(_ request: Request) {
        guard request.transfer.decodesContent else { return }
        self.set(CURLOPT_HTTP_CONTENT_DECODING, true)
        self.set(CURLOPT_ACCEPT_ENCODING, "")
    }

    /// The weight of a stream (RFC 7540 §5.3.2): 16, the default, for the middle of priorities, and
    /// from there by equal steps of a ratio to 1 and to 256.
    static func weight(of priority: Float) -> Int {
        guard !priority.isNaN else { return 16 }
        return Int(exp2f(8 * Swift.min(1, Swift.max(0, priority))).rounded())
    }

    /// Gives libcurl the certificate, by which it tells connections apart.
    ///
    /// It neither uses one nor resumes a session that another certificate, or none, was shown on.
    private func setIdentity(_ identity: TLSIdentity) {
        let form = identity.form == .pem ? "PEM" : "P12"
        self.set(CURLOPT_SSLCERTTYPE, form)
        self.set(CURLOPT_SSLCERT_BLOB, blob: identity.certificate)
        if identity.form == .pem, !identity.key.isEmpty {
            self.set(CURLOPT_SSLKEYTYPE, form)
            self.set(CURLOPT_SSLKEY_BLOB, blob: identity.key)
        }
        guard !identity.password.isEmpty || identity.form == .pkcs12 else { return }
        var password = Array(identity.password.utf8)
        self.set(CURLOPT_KEYPASSWD, wiping: &password)
    }

    /// Has the observer asked about the server (`HandshakeJudge`), the name of the host included.
    ///
    /// So libcurl's own check of the name is off, by which it also tells these connections from those
    /// that nobody judged. And no session is resumed: a resumed one shows no certificate.
    private func setJudgement() {
        self.set(CURLOPT_SSL_VERIFYHOST, 0)
        self.set(CURLOPT_SSL_SESSIONID_CACHE, false)
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.set(CURLOPT_SSL_CTX_DATA, pointer: context)
        self.note(
            unsafe ccurl_set_ssl_ctx_callback(
                self.pointer, CURLOPT_SSL_CTX_FUNCTION, Self.contextCallback))
    }

    private static let contextCallback: ccurl_ssl_ctx_callback = { _, tls, context in
        guard let tls = unsafe tls, let transfer = unsafe EasyHandle.transfer(context) else {
            return CURLE_SSL_CONNECT_ERROR
        }
        guard transfer.isOwnHandshake() else { return CURLE_OK }
        return unsafe HandshakeJudge.install(in: tls, for: transfer)
            ? CURLE_OK : CURLE_SSL_CONNECT_ERROR
    }

    private func set(_ option: CURLoption, blob octets: [UInt8]) {
        var octets = octets
        unsafe octets.withUnsafeMutableBytes { bytes in
            var blob = unsafe curl_blob(
                data: bytes.baseAddress, len: bytes.count, flags: ccurl_blob_copy)
            self.note(unsafe ccurl_set_blob(self.pointer, option, &blob))
        }
    }

    // MARK: Facts

    /// The TLS of the connection in use, lent; only while libcurl performs the transfer.
    var tls: OpaquePointer? {
        guard CurlLibrary.usesOpenSSL else { return nil }
        var session: UnsafeMutablePointer<curl_tlssessioninfo>?
        let code = unsafe ccurl_get_session(self.pointer, CURLINFO_TLS_SSL_PTR, &session)
        guard code == CURLE_OK, let session = unsafe session,
            unsafe session.pointee.backend == CURLSSLBACKEND_OPENSSL,
            let pointer = unsafe session.pointee.internals
        else { return nil }
        return OpaquePointer(pointer)
    }

    /// A text that libcurl has; nil where it is empty.
    func text(_ info: CURLINFO) -> String? {
        var text: UnsafePointer<CChar>?
        guard unsafe ccurl_get_string(self.pointer, info, &text) == CURLE_OK,
            let text = unsafe text
        else { return nil }
        let string = unsafe String(cString: text)
        return string.isEmpty ? nil : string
    }
}
