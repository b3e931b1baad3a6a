/// The rules for path and query of a target.
///
/// What `#` begins is no part of it (RFC 9110 §7.1): some clients send the fragment of what they were
/// given. Every other visible ASCII character may stand there, also those that RFC 3986 wants encoded
/// (`"`, `<`, `>`, `\`, `^`, `` ` ``, `{`, `|`, `}`): browsers send them, other proxies pass them on,
/// and nothing here gives them a meaning. Bytes beyond ASCII, which curl and PHP send as they were
/// typed, come out encoded, as browsers and the URLs in pages have them: so both are one resource. A `%`
/// in the path must begin an encoded byte, since origins decode paths; a query is opaque, and a stray
/// `%` in it is common and harmless.
enum PathAndQuery {
    static func read(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(HeadError) -> String {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "#"), in: range) else {
            return try self.text(bytes, range)
        }
        for i in end..<range.upperBound where bytes[i] <= ASCII.space || bytes[i] == 0x7F {
            throw Self.forbiddenByte
        }
        return try self.text(bytes, range.lowerBound..<end)
    }

    private static var forbiddenByte: HeadError {
        HeadError(.badTarget, "the target holds a space or a control character")
    }

    private static func text(
        _ bytes: Span<UInt8>, _ range: Range<Int>
    ) throws(HeadError) -> String {
        try self.isASCII(bytes, range) ? bytes.text(range) : self.encoded(bytes.extracting(range))
    }

    /// Whether no byte is to be encoded.
    private static func isASCII(
        _ bytes: Span<UInt8>, _ range: Range<Int>
    ) throws(HeadError) -> Bool {
        var inQuery = false
        var all: UInt8 = 0
        // Its own span, so that the bounds are seen to hold.
        let bytes = bytes.extracting(range)
        for i in bytes.indices {
            let byte = bytes[i]
            all |= byte
            guard byte > ASCII.space, byte != 0x7F else {
                throw Self.forbiddenByte
            }
            if byte == UInt8(ascii: "?") {
                inQuery = true
            } else if byte == UInt8(ascii: "%"), !inQuery {
                guard i + 2 < bytes.count, ASCII.hexDigit(bytes[i + 1]) != nil,
                    ASCII.hexDigit(bytes[i + 2]) != nil
                else {
                    throw HeadError(.badPercentEncoding, "a % in the path begins no encoded byte")
                }
            }
        }
        return all < 0x80
    }

    private static func encoded(_ bytes: Span<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for i in bytes.indices {
            let byte = bytes[i]
            if byte < 0x80 {
                out.append(byte)
            } else {
                out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension TargetURI {
    /// Reads a URI in absolute form (RFC 9112 §3.2.2).
    ///
    /// `http`, `https` and `ftp` are known. User information is refused but for ftp (RFC 9110
    /// §4.2.4), a fragment left out (§7.1). Scheme and host come out in lower case, an empty port as
    /// the scheme's own, an empty path as `/`.
    package init(absolute bytes: Span<UInt8>) throws(HeadError) {
        try self.init(absolute: bytes, emptyPath: "/")
    }

    /// Reads a URI in absolute form from text; nil where it is none.
    ///
    /// For settings and the command line.
    package init?(text: String) {
        do throws(HeadError) {
            try self.init(absolute: Array(text.utf8).span)
        } catch {
            return nil
        }
    }

    /// - Parameters:
    ///   - emptyPath: what the lack of both path and query means: `*` for OPTIONS (RFC 9112 §3.2.4),
    ///     else `/`.
    ///   - isTyped: a person has given it to the client, so that its user information is a login and
    ///     hides nothing.
    init(
        absolute bytes: Span<UInt8>, emptyPath: String, isTyped: Bool = false
    ) throws(HeadError) {
        guard let colon = bytes.firstIndex(of: ASCII.colon, in: 0..<bytes.count), colon > 0 else {
            throw HeadError(.targetForm, "the target is neither a path nor an absolute URI")
        }
        let scheme = try Scheme(parsing: bytes.extracting(0..<colon))
        let slash = UInt8(ascii: "/")
        guard colon + 2 < bytes.count, bytes[colon + 1] == slash, bytes[colon + 2] == slash else {
            throw HeadError(.badTarget, "no // after the scheme")
        }
        let start = colon + 3
        var end = start
        var at: Int?
        while end < bytes.count, !Self.endsAuthority(bytes[end]) {
            if bytes[end] == UInt8(ascii: "@"), at == nil { at = end }
            end &+= 1
        }
        var hostStart = start
        var userInfo: String?
        if let at {
            guard scheme == .ftp || isTyped && at > start else {
                throw HeadError(.userInfo, "user information in an http or https target")
            }
            userInfo = try Self.userInfo(bytes, start..<at)
            hostStart = at + 1
        }
        let authority = try Authority(parsing: bytes.extracting(hostStart..<end))
        let rest = try PathAndQuery.read(bytes, end..<bytes.count)
        self.init(
            scheme: scheme, userInfo: userInfo, host: authority.host, port: authority.port,
            pathAndQuery: rest.isEmpty
                ? emptyPath : rest.utf8.first == UInt8(ascii: "/") ? rest : "/" + rest)
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// `*( unreserved / pct-encoded / sub-delims / ":" )` (RFC 3986 §3.2.1), kept encoded.
    private static func userInfo(
        _ bytes: Span<UInt8>, _ range: Range<Int>
    ) throws(HeadError) -> String {
        let marks = "-._~!$&'()*+,;=:%".utf8
        for i in range {
            let byte = bytes[i]
            let isLetter = ASCII.lowercased(byte) &- UInt8(ascii: "a") < 26
            guard isLetter || ASCII.isDigit(byte) || marks.contains(byte) else {
                throw HeadError(.userInfo, "the user information holds a forbidden character")
            }
            if byte == UInt8(ascii: "%") {
                guard i + 2 < range.upperBound, ASCII.hexDigit(bytes[i + 1]) != nil,
                    ASCII.hexDigit(bytes[i + 2]) != nil
                else {
                    throw HeadError(.badPercentEncoding, "a stray % in the user information")
                }
            }
        }
        return bytes.text(range)
    }
}

extension Scheme {
    /// Reads a scheme, case set aside (RFC 3986 §3.1).
    init(parsing bytes: Span<UInt8>) throws(HeadError) {
        if bytes.equalsIgnoringCase("http") {
            self = .http
        } else if bytes.equalsIgnoringCase("https") {
            self = .https
        } else if bytes.equalsIgnoringCase("ftp") {
            self = .ftp
        } else {
            throw HeadError(.unknownScheme, "the target's scheme is none of http, https, ftp")
        }
    }
}
