import CCurl
import Glibc
import LarderHTTP

/// How libcurl says that a transfer ended.
struct CurlEnd {
    var code: CURLcode
    /// `errno` of the last failed connect (CURLINFO_OS_ERRNO).
    var systemError: Int32 = 0
    /// libcurl's sentence, perhaps empty.
    var detail: String
    /// The status of the last answer to a CONNECT, 0 without one (CURLINFO_HTTP_CONNECTCODE).
    var connectStatus = 0
    /// By which kinds of login the parent lets in (CURLINFO_PROXYAUTH_AVAIL).
    var parentSchemes = 0
    /// What went wrong with SOCKS (CURLINFO_PROXY_ERROR).
    var proxyError: CURLproxycode = CURLPX_OK
    /// The certificate of an https parent was not to be trusted.
    var distrustsParent: Bool
    /// What OpenSSL found wrong with the origin's certificate (CURLINFO_SSL_VERIFYRESULT).
    var verifyResult = 0
    /// The request had a client certificate to show.
    var hasIdentity = false

    /// CURLE_TOO_LARGE of libcurl 8.6 and later: a line that is too long, or too many of them.
    static let tooLarge = CURLcode(rawValue: 100)

    /// - Parameter code: nothing is wrong unless it says so.
    init(code: CURLcode = CURLE_OK, detail: String = "", distrustsParent: Bool = false) {
        self.code = code
        self.detail = detail
        self.distrustsParent = distrustsParent
    }

    /// Asks the handle for what belongs to a code that it ended with.
    init(_ code: CURLcode, of easy: EasyHandle) {
        self.init(code: code)
        guard code != CURLE_OK else { return }
        self.systemError = Int32(clamping: easy.number(CURLINFO_OS_ERRNO) ?? 0)
        self.detail = easy.errorDetail
        self.connectStatus = easy.number(CURLINFO_HTTP_CONNECTCODE) ?? 0
        self.parentSchemes = easy.parentSchemes
        self.proxyError = CURLproxycode(
            rawValue: UInt32(clamping: easy.number(CURLINFO_PROXY_ERROR) ?? 0))
        self.verifyResult = easy.number(CURLINFO_SSL_VERIFYRESULT) ?? 0
        self.distrustsParent = (easy.number(CURLINFO_PROXY_SSL_VERIFYRESULT) ?? 0) != 0
    }
}

extension CurlEnd {
    /// What a `CURLE_` code means as an error type of RFC 9209, and whose fault it is
    /// (libcurl-errors(3)).
    ///
    /// The one place that does; `cause` says beside it what a program may do about the same code,
    /// in groups of its own: an HTTP/2 connection whose framing breaks is a protocol error here,
    /// and a connection lost there.
    ///
    /// - Parameters:
    ///   - isHeadComplete: the receiver has, or will have, a head: the response was cut.
    ///   - hasBegun: part of an answer came, be it of its head.
    func failure(isHeadComplete: Bool, hasBegun: Bool) -> UpstreamFailure {
        switch self.code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            return self.failure(.dnsError)
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_NO_CONNECTION_AVAILABLE:
            return self.connectFailure
        case CURLE_OPERATION_TIMEDOUT:
            // Our own times are shorter; this is libcurl's limit on the connection, behind them.
            return self.failure(hasBegun ? .connectionReadTimeout : .connectionTimeout)
        case CURLE_SEND_FAIL_REWIND:
            // Our callback's refusal is all that libcurl tells. It may be a connection that ended, or over
            // HTTP/2 a request that was not taken (REFUSED_STREAM, GOAWAY).
            return self.failure(
                hasBegun ? .httpResponseIncomplete : .connectionTerminated,
                saying: "it was to be sent again, and content that has gone out is not kept")
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            return self.failure(hasBegun ? .httpResponseIncomplete : .connectionTerminated)
        case CURLE_PARTIAL_FILE:
            return self.failure(.httpResponseIncomplete)
        case CURLE_HTTP2 where self.detail.isEmpty && !isHeadComplete:
            // libcurl says no more of a connection that the origin retires (GOAWAY).
            return self.failure(
                .httpProtocolError,
                saying: "the HTTP/2 connection broke, or was retired, before the answer; "
                    + "not sent again")
        case CURLE_HTTP2_STREAM, CURLE_HTTP2, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR:
            return self.failure(isHeadComplete ? .httpResponseIncomplete : .httpProtocolError)
        case CURLE_OUT_OF_MEMORY:
            // What libcurl 7.88 says of a line beyond the 100 KiB that it is ready to hold. Memory
            // that is truly at its end would end the process, not this call.
            return self.failure(
                isHeadComplete ? .httpProtocolError : .httpResponseHeaderSectionSize,
                saying: "a line of more than 100 KiB")
        case Self.tooLarge:
            return self.failure(
                isHeadComplete ? .httpProtocolError : .httpResponseHeaderSectionSize)
        case CURLE_FILESIZE_EXCEEDED:
            return self.failure(.httpResponseBodySize)
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED:
            return self.failure(.tlsProtocolError)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            return self.failure(.tlsCertificateError)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING,
            CURLE_TOO_MANY_REDIRECTS, CURLE_RANGE_ERROR, CURLE_CHUNK_FAILED,
            CURLE_HTTP_RETURNED_ERROR:
            // libcurl says "unsupported protocol" of HTTP/0.9 and of versions that it does not know.
            return self.failure(.httpProtocolError)
        case CURLE_BAD_FUNCTION_ARGUMENT where hasBegun:
            // What libcurl 7.88 says of a first field line that continues none before it.
            return self.failure(.httpProtocolError)
        case CURLE_URL_MALFORMAT:
            return self.failure(.destinationNotFound, .client)
        case CURLE_REMOTE_ACCESS_DENIED, CURLE_LOGIN_DENIED, CURLE_REMOTE_FILE_NOT_FOUND,
            CURLE_AUTH_ERROR:
            return self.failure(.destinationUnavailable)
        case CURLE_FTP_WEIRD_PASS_REPLY, CURLE_FTP_WEIRD_PASV_REPLY, CURLE_FTP_WEIRD_227_FORMAT,
            CURLE_FTP_CANT_GET_HOST, CURLE_FTP_COULDNT_SET_TYPE, CURLE_FTP_COULDNT_RETR_FILE,
            CURLE_QUOTE_ERROR, CURLE_FTP_ACCEPT_FAILED, CURLE_FTP_PRET_FAILED,
            CURLE_FTP_BAD_FILE_LIST, CURLE_FTP_PORT_FAILED, CURLE_FTP_COULDNT_USE_REST:
            return self.failure(hasBegun ? .httpResponseIncomplete : .httpProtocolError)
        case CURLE_FTP_ACCEPT_TIMEOUT:
            return self.failure(.connectionTimeout)
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR, CURLE_ABORTED_BY_CALLBACK, CURLE_WRITE_ERROR:
            // Where a callback of ours ended the transfer it has noted why, and this is not asked;
            // CURLE_UPLOAD_FAILED is content of unknown length for an HTTP/1.0 origin.
            return self.failure(.proxyInternalError, .larder)
        case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_CLIENTCERT, CURLE_PROXY, CURLE_NOT_BUILT_IN:
            return self.failure(.proxyConfigurationError, .larder)
        default:
            // CURLE_FAILED_INIT, CURLE_BAD_FUNCTION_ARGUMENT, codes of other protocols: ours.
            return self.failure(.proxyInternalError, .larder)
        }
    }

    private var connectFailure: UpstreamFailure {
        switch self.systemError {
        case ECONNREFUSED: self.failure(.connectionRefused)
        case ETIMEDOUT: self.failure(.connectionTimeout)
        case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT:
            self.failure(.destinationIPUnroutable)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            self.failure(.connectionLimitReached, .larder)
        default: self.failure(.destinationUnavailable)
        }
    }

    /// - Parameter words: in the place of libcurl's, where those say too little.
    private func failure(
        _ kind: UpstreamFailure.Kind, _ party: UpstreamFailure.Party = .origin,
        saying words: String? = nil
    ) -> UpstreamFailure {
        var text = words ?? self.detail
        if text.isEmpty {
            text = unsafe curl_easy_strerror(self.code).map { unsafe String(cString: $0) } ?? ""
        }
        return UpstreamFailure(
            kind, party: party, cause: self.cause,
            detail: "\(text) (libcurl \(self.code.rawValue))")
    }
}
