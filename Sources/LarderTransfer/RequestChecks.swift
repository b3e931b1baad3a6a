import LarderHTTP

/// What must hold of a request before libcurl gets it: nothing in it may end a line, name another
/// host or mean something else to libcurl's URL parser.
enum RequestChecks {
    /// - Parameter isDial: the origin alone is wanted, which is what CONNECT names.
    static func check(_ request: Request, isDial: Bool = false) throws(UpstreamFailure) {
        guard self.isHost(request.uri.host), request.uri.port != 0 else {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "not a host and a port")
        }
        guard self.isTarget(request.uri, request.method) else {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "not a request target")
        }
        if isDial { return }
        if let user = request.uri.userInfo, !user.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "user information that is no text")
        }
        let method = request.method.rawValue.utf8
        guard !method.isEmpty, method.allSatisfy(ASCII.isToken), request.method != .connect else {
            throw UpstreamFailure(
                .proxyInternalError, party: .client, cause: .unsupported,
                detail: "a method that cannot be fetched with")
        }
        if request.uri.scheme == .ftp, request.method != .get, request.method != .head {
            throw UpstreamFailure(
                .proxyConfigurationError, party: .client, cause: .unsupported,
                detail: "ftp resources can only be read (GET, HEAD)")
        }
    }

    /// Whether a request without content says so (RFC 9110 §8.6).
    static func announcesEmptyContent(_ request: Request) -> Bool {
        switch request.method {
        case .post, .put, .patch: true
        case .get, .head: false
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
                    self.isHexDigit($0) || $0 == ASCII.colon || $0 == UInt8(ascii: ".")
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
        return target.utf8.first == UInt8(ascii: "/")
            && target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "#") }
    }

    /// Text without its percent-encoding (RFC 3986 §2.1); nil where it is broken or would hold a
    /// control character, which could end a line of the FTP control connection.
    static func percentDecoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(), self.isHexDigit(high),
                self.isHexDigit(low)
            else { return nil }
            bytes.append(self.hexValue(high) << 4 | self.hexValue(low))
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || ASCII.lowercased(byte) &- 0x61 < 6
    }

    private static func hexValue(_ digit: UInt8) -> UInt8 {
        ASCII.isDigit(digit) ? digit & 0x0F : (ASCII.lowercased(digit) & 0x0F) + 9
    }
}
