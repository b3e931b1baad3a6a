import CCurl
import COpenSSL
import Glibc
import LarderHTTP

extension CurlEnd {
    /// What a program may do something about in a `CURLE_` code (libcurl-errors(3)); nil: nothing.
    ///
    /// The one place that says so. The error type and the party at fault come from `failure`, which
    /// groups the codes by what HTTP calls them.
    var cause: UpstreamFailure.Cause? {
        switch self.code {
        case CURLE_URL_MALFORMAT: .badURL
        case CURLE_UNSUPPORTED_PROTOCOL: self.isAboutVersion ? .badResponse : .unsupported
        case CURLE_COULDNT_RESOLVE_HOST: .hostNotFound
        case CURLE_COULDNT_RESOLVE_PROXY: .proxyNotFound
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: self.connectCause
        case CURLE_NO_CONNECTION_AVAILABLE: .connectionLimit
        case CURLE_OPERATION_TIMEDOUT, CURLE_FTP_ACCEPT_TIMEOUT: .idleTimeout
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_FAIL_REWIND:
            self.alertCause ?? .connectionLost
        case CURLE_PARTIAL_FILE: .partialContent
        case CURLE_HTTP2_STREAM, CURLE_HTTP2, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR:
            .connectionLost
        case CURLE_SSL_CONNECT_ERROR: self.alertCause ?? .secureConnection
        case CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED, CURLE_SSL_CIPHER: .secureConnection
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            self.certificateCause
        case CURLE_SSL_CLIENTCERT:
            self.hasIdentity ? .clientCertificateRejected : .clientCertificateRequired
        case CURLE_SSL_CERTPROBLEM: .clientCertificateRejected
        case CURLE_BAD_CONTENT_ENCODING: .badContentCoding
        case CURLE_WEIRD_SERVER_REPLY, CURLE_CHUNK_FAILED, CURLE_RANGE_ERROR,
            CURLE_HTTP_RETURNED_ERROR, CURLE_TOO_MANY_REDIRECTS, CURLE_FTP_WEIRD_PASS_REPLY,
            CURLE_FTP_WEIRD_PASV_REPLY, CURLE_FTP_WEIRD_227_FORMAT, CURLE_FTP_CANT_GET_HOST,
            CURLE_FTP_COULDNT_SET_TYPE, CURLE_FTP_BAD_FILE_LIST:
            .badResponse
        case CURLE_OUT_OF_MEMORY, Self.tooLarge: .headTooLarge
        case CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: .loginDenied
        case CURLE_REMOTE_FILE_NOT_FOUND, CURLE_REMOTE_ACCESS_DENIED, CURLE_FTP_COULDNT_RETR_FILE:
            .fileNotFound
        case CURLE_PROXY: .proxy
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR: .requestContent
        default: nil
        }
    }

    /// libcurl says "unsupported protocol" of HTTP/0.9 and of versions that it does not know, too.
    private var isAboutVersion: Bool { self.detail.contains("HTTP") }

    private var connectCause: UpstreamFailure.Cause {
        switch self.systemError {
        case ENETUNREACH, ENETDOWN: .notConnected
        case ETIMEDOUT: .idleTimeout
        default: .cannotConnect
        }
    }

    private var certificateCause: UpstreamFailure.Cause {
        // libcurl checks the name itself, once the chain has passed, and leaves no result behind.
        let isName = self.detail.contains("certificate subject name")
        // What libcurl says of the alert that a certificate has expired, where it finds nothing wrong with
        // the server's: then it is the client's.
        if self.hasIdentity, self.detail.contains("certificate verification failed") {
            return .clientCertificateRejected
        }
        if isName || self.verifyResult == 0 { return .certificateWrongHost }
        return (TLSFault(verifyResult: Int32(clamping: self.verifyResult)) ?? .untrusted).cause
    }

    private var alertCause: UpstreamFailure.Cause? {
        CertificateAlert.cause(inText: self.detail, hasIdentity: self.hasIdentity)
    }
}

extension TLSFault {
    /// What an error of OpenSSL's verification says (X509_STORE_CTX_get_error(3)); nil: none.
    init?(verifyResult: Int32) {
        switch verifyResult {
        case X509_V_OK: return nil
        case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CRL_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CRL_NOT_YET_VALID: self = .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            self = .unknownRoot
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: self = .wrongHost
        case X509_V_ERR_CERT_REVOKED: self = .revoked
        default: self = .untrusted
        }
    }
}
