import LarderHTTP

/// What must hold of a request before libcurl gets it: nothing in it may end a line, name another
/// host or mean something else to libcurl's URL parser.
package enum RequestChecks {
    /// Up to so many bytes of fields and target a head goes out in one piece, over HTTP/2, too, with what
    /// is added to it.
    static let smallHead = 61_440
    /// Larger ones libcurl does not send (DYN_HTTP_REQUEST is 1 MiB).
    static let largestHead = 1_000_000
    /// Longer ones are left out where `CurlLibrary.omitsLongFields`; with room for what is before a value.
    static let longestField = 306_000

    /// How many bytes the head has on the way to the origin, what Larder and libcurl add aside.
    static func headSize(_ request: Request) -> Int {
        request.fields.bytes.count + request.uri.pathAndQuery.utf8.count
    }

    /// - Parameters:
    ///   - isDial: the origin alone is wanted, which is what CONNECT names.
    ///   - knowsHost: host and port are those of a request that was checked.
    static func check(
        _ request: Request, isDial: Bool = false, knowsHost: Bool = false
    ) throws(UpstreamFailure) {
        let (uri, method) = (request.uri, request.method)
        guard knowsHost || self.isHost(uri.host), uri.port != 0 else {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "not a host and a port")
        }
        guard self.isTarget(uri, method) else {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "not a request target")
        }
        if isDial { return }
        try self.checkSize(request, omitsLongFields: CurlLibrary.omitsLongFields)
        if let user = uri.userInfo, !user.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "user information that is no text")
        }
        // What nearly every request has need not be spelled.
        if method == .get || method == .head { return }
        let name = method.rawValue.utf8
        guard !name.isEmpty, name.allSatisfy(ASCII.isToken), method != .connect else {
            throw UpstreamFailure(
                .proxyInternalError, party: .client, cause: .unsupported,
                detail: "a method that cannot be fetched with")
        }
        if uri.scheme == .ftp {
            throw UpstreamFailure(
                .proxyConfigurationError, party: .client, cause: .unsupported,
                detail: "ftp resources can only be read (GET, HEAD)")
        }
    }

    /// Throws where libcurl would not send the head whole.
    static func checkSize(
        _ request: Request, omitsLongFields: Bool
    ) throws(UpstreamFailure) {
        let size = self.headSize(request)
        guard size > self.longestField else { return }
        let excess: String
        if size > self.largestHead {
            excess = "a request head of more than 1 MB"
        } else if omitsLongFields,
            request.fields.lines.contains(where: { $0.valueLength > self.longestField })
        {
            excess = "a field of more than 300 KB in a request"
        } else {
            return
        }
        throw UpstreamFailure(
            .requestHeadTooLarge, party: .client, cause: .requestHead,
            detail:
                "\(excess), with the cookies that are added to it, which is not sent to any origin")
    }

    /// Whether a request without content says so (RFC 9110 §8.6).
    static func announcesEmptyContent(_ request: Request) -> Bool {
        switch request.method {
        case .get, .head: false
        case .post, .put, .patch: true
        default: request.bodyLength == .known(0)
        }
    }

    /// A `reg-name`, an IPv4 address or a bracketed IPv6 address (RFC 3986 §3.2.2).
    static func isHost(_ host: String) -> Bool {
        let bytes = host.utf8
        guard let first = bytes.first, bytes.count <= 255 else { return false }
        if first == UInt8(ascii: "[") {
            return bytes.last == UInt8(ascii: "]")
                && bytes.dropFirst().dropLast().allSatisfy {
                    ASCII.hexDigit($0) != nil || $0 == ASCII.colon || $0 == UInt8(ascii: ".")
                }
        }
        return bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._~".utf8.contains(byte)
            }
        }
    }

    private static func isTarget(_ uri: TargetURI, _ method: Method) -> Bool {
        let target = uri.pathAndQuery
        if target == "*" { return method == .options && uri.scheme != .ftp }
        let bytes = target.utf8.span
        guard !bytes.isEmpty, bytes[0] == UInt8(ascii: "/") else { return false }
        for i in bytes.indices {
            let byte = bytes[i]
            if byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "#") { return false }
        }
        return true
    }
}
