/// A request line, taken apart (RFC 9112 §3).
///
/// `method SP request-target SP HTTP-version`, with exactly one space at each place: the lenient
/// reading that the RFC permits makes it uncertain where a target ends.
struct RequestLine: Sendable {
    let method: Method
    let target: RequestTarget
    /// What an http or https target had before its host (`RequestHead.userInfo`).
    let userInfo: String?
    let version: HTTPVersion

    init(parsing line: Span<UInt8>) throws(HeadError) {
        var methodEnd = 0
        while methodEnd < line.count, ASCII.isToken(line[methodEnd]) { methodEnd &+= 1 }
        guard methodEnd > 0, methodEnd < line.count, line[methodEnd] == ASCII.space else {
            throw HeadError(.badMethod, "the request line does not begin with a method")
        }
        let targetStart = methodEnd + 1
        guard
            let targetEnd = line.firstIndex(of: ASCII.space, in: targetStart..<line.count),
            targetEnd > targetStart
        else {
            throw HeadError(.badRequestLine, "the request line is not method, target, version")
        }
        // The version first: it decides whether the rest means what we think it does.
        let version = try Self.version(line, in: targetEnd + 1..<line.count)
        guard version.major == 1 else {
            throw HeadError(.unsupportedVersion, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        }
        let method = Method(token: line.extracting(0..<methodEnd))
        self.method = method
        self.version = version
        let target = try RequestTarget(
            parsing: line.extracting(targetStart..<targetEnd), for: method)
        (self.target, self.userInfo) = target.splitUserInfo
    }

    private static func version(
        _ line: Span<UInt8>, in range: Range<Int>
    ) throws(HeadError) -> HTTPVersion {
        do throws(HeadError) {
            return try HTTPVersion(parsing: line.extracting(range))
        } catch {
            // No version has a space in it: then it is the line that is wrong.
            guard line.firstIndex(of: ASCII.space, in: range) == nil else {
                throw HeadError(
                    .badRequestLine, "the request line is not method, target, version")
            }
            throw error
        }
    }
}

extension HTTPVersion {
    /// `HTTP/` and two digits with a dot between them (RFC 9112 §2.3); case-sensitive.
    init(parsing bytes: Span<UInt8>) throws(HeadError) {
        let prefix: [5 of UInt8] = [0x48, 0x54, 0x54, 0x50, 0x2F]
        guard bytes.count == 8, ASCII.isDigit(bytes[5]), bytes[6] == UInt8(ascii: "."),
            ASCII.isDigit(bytes[7]), prefix.indices.allSatisfy({ prefix[$0] == bytes[$0] })
        else {
            throw HeadError(.badVersion, "the HTTP version is malformed")
        }
        self.init(major: bytes[5] &- 0x30, minor: bytes[7] &- 0x30)
    }
}

extension RequestTarget {
    /// Reads a target in the form that its method asks for (RFC 9112 §3.2).
    init(parsing bytes: Span<UInt8>, for method: Method) throws(HeadError) {
        if method == .connect {
            guard bytes.count > 0, bytes[0] != UInt8(ascii: "/") else {
                throw HeadError(.targetForm, "CONNECT needs a target of the form host:port")
            }
            let authority = try Authority(parsing: bytes)
            guard let port = authority.port else {
                throw HeadError(.badPort, "CONNECT needs a port")
            }
            self = .authority(host: authority.host, port: port)
            return
        }
        if bytes.count == 1, bytes[0] == UInt8(ascii: "*") {
            guard method == .options else {
                throw HeadError(.targetForm, "the target * is for OPTIONS only")
            }
            self = .asterisk
        } else if bytes.count > 0, bytes[0] == UInt8(ascii: "/") {
            self = .origin(try PathAndQuery.read(bytes, 0..<bytes.count))
        } else {
            self = .absolute(
                try TargetURI(
                    absolute: bytes, emptyPath: method == .options ? "*" : "/", isTyped: true))
        }
    }
}
