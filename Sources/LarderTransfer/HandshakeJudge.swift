import CCurl
import COpenSSL
import LarderHTTP

/// Looks into the handshakes of one connection on behalf of an observer.
///
/// Belongs to the connection's SSL_CTX, which libcurl makes for each connection and frees with it:
/// SSL_CTX_set_ex_data(3) holds a reference, and gives it back when the context goes. The transfer
/// that made the connection may be gone long before, also in the midst of the handshake.
///
/// Not `Sendable`: libcurl does its TLS on the loop's thread. The callbacks neither throw nor call
/// libcurl.
@safe final class HandshakeJudge {
    private weak var transfer: Transfer?
    private let host: String
    private let port: UInt16
    /// The server that was accepted; nil before.
    private(set) var accepted: TLSPeer?
    /// The handshake was broken off for want of a client certificate: OpenSSL asks again while libcurl
    /// closes the connection.
    private var isBrokenOff = false

    private init(_ transfer: Transfer) {
        self.transfer = transfer
        self.host = transfer.request.uri.host
        self.port = transfer.request.uri.port
    }

    /// The place of a judge in a context; negative where OpenSSL has no memory for it.
    private static let index: Int32 = {
        unsafe copenssl_ctx_ex_index { _, judge, _, _, _, _ in
            guard let judge = unsafe judge else { return }
            unsafe Unmanaged<HandshakeJudge>.fromOpaque(judge).release()
        }
    }()

    /// Has a new connection judged; false where OpenSSL refuses.
    static func install(in context: UnsafeMutableRawPointer, for transfer: Transfer) -> Bool {
        let context = OpaquePointer(context)
        guard Self.index >= 0 else { return false }
        let judge = HandshakeJudge(transfer)
        let pointer = unsafe Unmanaged.passRetained(judge).toOpaque()
        guard unsafe SSL_CTX_set_ex_data(context, Self.index, pointer) == 1 else {
            unsafe Unmanaged<HandshakeJudge>.fromOpaque(pointer).release()
            return false
        }
        unsafe SSL_CTX_set_cert_verify_callback(context, Self.verify, pointer)
        if transfer.options.identity == nil {
            unsafe SSL_CTX_set_client_cert_cb(context, Self.wantsCertificate)
        }
        return true
    }

    /// The judge of a connection; nil where nobody looked into it.
    static func of(_ ssl: OpaquePointer) -> HandshakeJudge? {
        guard Self.index >= 0, let context = unsafe SSL_get_SSL_CTX(ssl),
            let pointer = unsafe SSL_CTX_get_ex_data(context, Self.index)
        else { return nil }
        return unsafe Unmanaged<HandshakeJudge>.fromOpaque(pointer).takeUnretainedValue()
    }

    // MARK: The server

    /// SSL_CTX_set_cert_verify_callback(3): "return 1 to indicate successful verification, and a value
    /// <= 0 otherwise"; the error in the context decides about the alert.
    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 =
        { store, context in
            guard let store = unsafe store, let context = unsafe context else { return 0 }
            let judge = unsafe Unmanaged<HandshakeJudge>.fromOpaque(context).takeUnretainedValue()
            return unsafe judge.judge(store) ? 1 : 0
        }

    private func judge(_ store: OpaquePointer) -> Bool {
        let (peer, error) = unsafe Self.examine(store, host: self.host, port: self.port)
        if let cause = self.objection(to: peer) {
            if error == X509_V_OK {
                unsafe X509_STORE_CTX_set_error(
                    store,
                    peer.fault == .wrongHost
                        ? X509_V_ERR_HOSTNAME_MISMATCH : X509_V_ERR_APPLICATION_VERIFICATION)
            }
            self.transfer?.fail(Self.failure(cause, peer))
            return false
        }
        self.accepted = peer
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        // What the verification left there is not to be taken for a later failure.
        ERR_clear_error()
        return true
    }

    /// Why a server is not let past; nil: it is.
    private func objection(to peer: TLSPeer) -> UpstreamFailure.Cause? {
        guard let transfer = self.transfer, let observer = transfer.observer else {
            // A second handshake on a connection that others use by now: nobody is there to ask.
            let isKnown = self.accepted?.certificates.first == peer.certificates.first
            return isKnown && self.accepted != nil ? nil : peer.fault?.cause
        }
        return Self.objection(of: observer, to: peer)
    }

    static func objection(
        of observer: any TransferObserver, to peer: TLSPeer
    ) -> UpstreamFailure.Cause? {
        switch observer.transfer(evaluates: peer) {
        case .trusted: nil
        case .bySystem: peer.fault?.cause
        case .refused: .certificateRefused
        case .undecided: .certificateUndecided
        }
    }

    static func failure(_ cause: UpstreamFailure.Cause, _ peer: TLSPeer) -> UpstreamFailure {
        let fault = peer.fault.map { ", by the system's rules: \($0.rawValue)" } ?? ""
        return UpstreamFailure(
            .tlsCertificateError, cause: cause,
            detail: "the server's certificate was not accepted\(fault)")
    }

    /// Who the server says it is, and what the system's rules say to that.
    ///
    /// - Returns: beside it what the verification itself came to, which knows nothing of the host.
    static func examine(
        _ store: OpaquePointer, host: String, port: UInt16
    ) -> (peer: TLSPeer, error: Int32) {
        let isVerified = unsafe X509_verify_cert(store) == 1
        let error = unsafe X509_STORE_CTX_get_error(store)
        let leaf = unsafe X509_STORE_CTX_get0_cert(store)
        var fault = isVerified ? nil : TLSFault(verifyResult: error) ?? .untrusted
        if fault == nil, unsafe !Self.isName(host, in: leaf) { fault = .wrongHost }
        let peer = TLSPeer(
            host: host, port: port, certificates: unsafe Self.chain(store, leaf), fault: fault)
        return (peer, error)
    }

    /// Whether a certificate is for the host that was asked for (RFC 9110 §4.3.4).
    private static func isName(_ host: String, in certificate: OpaquePointer?) -> Bool {
        guard let certificate = unsafe certificate else { return false }
        if host.utf8.first == UInt8(ascii: "[") {
            let address = String(host.dropFirst().dropLast())
            return unsafe X509_check_ip_asc(certificate, address, 0) == 1
        }
        // An IPv4 address is one that the function can read as such; -2 says that it cannot.
        switch unsafe X509_check_ip_asc(certificate, host, 0) {
        case 1: return true
        case -2: break
        default: return false
        }
        return unsafe X509_check_host(certificate, host, host.utf8.count, 0, nil) == 1
    }

    /// The certificates as the server sent them, its own first, DER.
    private static func chain(_ store: OpaquePointer, _ leaf: OpaquePointer?) -> [[UInt8]] {
        var chain: [[UInt8]] = []
        for index in 0..<Swift.max(0, unsafe copenssl_chain_count(store)) {
            let certificate = unsafe copenssl_chain_certificate(store, index)
            if let der = unsafe Self.der(of: certificate) { chain.append(der) }
        }
        if chain.isEmpty, let der = unsafe Self.der(of: leaf) { chain.append(der) }
        return chain
    }

    private static func der(of certificate: OpaquePointer?) -> [UInt8]? {
        guard let certificate = unsafe certificate else { return nil }
        return unsafe OpenSSLOctets.encoded { unsafe i2d_X509(certificate, $0) }
    }

    // MARK: The client's certificate

    /// The names that a server accepts, DER.
    static func issuers(_ ssl: OpaquePointer) -> [[UInt8]] {
        var issuers: [[UInt8]] = []
        for index in 0..<Swift.max(0, unsafe copenssl_issuer_count(ssl)) {
            guard let name = unsafe copenssl_issuer(ssl, index) else { continue }
            if let der = unsafe OpenSSLOctets.encoded({ unsafe i2d_X509_NAME(name, $0) }) {
                issuers.append(der)
            }
        }
        return issuers
    }

    /// SSL_CTX_set_client_cert_cb(3): "If no certificate is to be sent, 0 must be returned … A
    /// negative return value will suspend the handshake", which libcurl takes for its failure.
    private static let wantsCertificate:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?,
            UnsafeMutablePointer<OpaquePointer?>?
        ) -> Int32 = { ssl, _, _ in
            guard let ssl = unsafe ssl, let judge = unsafe HandshakeJudge.of(ssl),
                let transfer = judge.transfer, let observer = transfer.observer
            else { return 0 }
            if judge.isBrokenOff { return -1 }
            let breaksOff = observer.transfer(
                wantsCertificateFrom: unsafe HandshakeJudge.issuers(ssl), host: judge.host,
                port: judge.port)
            guard breaksOff else { return 0 }
            judge.isBrokenOff = true
            transfer.fail(
                UpstreamFailure(
                    .tlsCertificateError, cause: .clientCertificateUndecided,
                    detail: "the server wants a client certificate"))
            return -1
        }
}
