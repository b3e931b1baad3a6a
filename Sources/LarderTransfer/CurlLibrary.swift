import CBlocks
import CCurl
import COpenSSL

/// What is done once in a process before any thread uses libcurl, and what this libcurl can do.
enum CurlLibrary {
    /// How the initialisation went (curl_global_init_mem(3)).
    static let state: CURLcode = {
        // The threads that upstreams share live until the process ends. OpenSSL would free its
        // tables at exit(3), under the hands of a thread that is in the midst of a handshake.
        let code = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        guard code == 1 else { return CURLE_FAILED_INIT }
        // Where the program has initialised libcurl before, that goes on with its own memory.
        return unsafe curl_global_init_mem(
            ccurl_global_all, larder_blocks_take, larder_blocks_give, larder_blocks_resize,
            larder_blocks_copy, larder_blocks_take_zeroed)
    }()

    /// To be called before OpenSSL is used for the first time, whatever for: later it no longer hears
    /// that it is not to free anything.
    static func prepare() { _ = self.state }

    /// Whether libcurl's TLS is the OpenSSL that this is linked with: otherwise a handshake cannot be
    /// looked into.
    static let usesOpenSSL: Bool = {
        guard let info = unsafe curl_version_info(ccurl_version_now),
            let name = unsafe info.pointee.ssl_version
        else { return false }
        // With more than one backend the one in use is the one without parentheses.
        return unsafe String(cString: name).split(separator: " ").contains {
            $0.hasPrefix("OpenSSL/\(OPENSSL_VERSION_MAJOR).")
        }
    }()

    /// Whether a handle may be used for another request after it has received a response's fields.
    ///
    /// Before 8.1.1 a line that is folded before any field is appended to the last field of the
    /// response before, which has been freed: an origin could write over this process's memory
    /// (https://github.com/curl/curl/pull/11103). `FirstFieldGuard` sees to that where it can.
    static let forgetsFields = Self.forgetsFields(Self.version)

    static func forgetsFields(_ version: UInt32) -> Bool { version >= 0x08_01_01 }

    /// Whether a field with a value of more than 300 KiB is left out of a request, and nothing said.
    ///
    /// 8.14 does so where it looks for the value's end (`Curl_add_custom_headers`), with what came with
    /// 8.12; 7.88 does not.
    static let omitsLongFields = Self.version >= 0x08_0C_00

    /// As 0xXXYYZZ (curl_version_info(3)); 0 where it does not say.
    static let version: UInt32 = {
        guard let info = unsafe curl_version_info(ccurl_version_now) else { return 0 }
        return unsafe info.pointee.version_num
    }()

    /// Whether an entry of CURLOPT_HTTPHEADER(3) may be of several lines.
    ///
    /// It is sent as it stands, says the manual, but later versions are to refuse CR and LF
    /// (https://github.com/curl/curl/pull/22309): so libcurl is asked.
    static let takesJoinedLines: Bool = {
        guard Self.state == CURLE_OK, let easy = unsafe curl_easy_init() else { return false }
        defer { unsafe curl_easy_cleanup(easy) }
        let list = RequestFieldList()
        guard list.append("A".utf8.span, "b".utf8.span),
            list.append("C".utf8.span, "d".utf8.span, isJoined: true)
        else { return false }
        return unsafe ccurl_set_list(easy, CURLOPT_HTTPHEADER, list.link()) == CURLE_OK
    }()

    /// The content codings that libcurl undoes (RFC 9110 §8.4.1), in lower case.
    static let contentCodings: Set<String> = {
        guard let info = unsafe curl_version_info(ccurl_version_now) else { return [] }
        let features = unsafe Int(info.pointee.features)
        var codings: Set<String> = []
        if features & ccurl_version_libz != 0 { codings.formUnion(["gzip", "x-gzip", "deflate"]) }
        if features & ccurl_version_brotli != 0 { codings.insert("br") }
        if features & ccurl_version_zstd != 0 { codings.insert("zstd") }
        return codings
    }()

    /// Whether libcurl undoes codings that lie one upon the other: all of them or none, as those that it
    /// knows may lie beneath one that it does not know.
    static func undoes(_ codings: [String]) -> Bool {
        codings.allSatisfy(self.contentCodings.contains)
    }
}
