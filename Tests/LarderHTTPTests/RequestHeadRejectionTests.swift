import LarderHTTP
import NIOCore
import Testing

/// A request that must be refused.
///
/// `\n` in the text stands for CRLF.
struct BadRequest: Sendable, CustomTestStringConvertible {
    var bytes: [UInt8]
    var reason: HeadError.Reason
    var status: UInt16

    init(_ text: String, _ reason: HeadError.Reason, _ status: UInt16 = 400) {
        self.bytes = wire(text)
        self.reason = reason
        self.status = status
    }

    var testDescription: String {
        "\(self.reason.rawValue): \(String(decoding: self.bytes.prefix(70), as: UTF8.self))"
    }

    private static func line(_ line: String, _ reason: HeadError.Reason, _ status: UInt16 = 400)
        -> BadRequest
    {
        BadRequest("\(line)\nHost: h\n\n", reason, status)
    }

    private static func fields(_ fields: String, _ reason: HeadError.Reason, _ status: UInt16 = 400)
        -> BadRequest
    {
        BadRequest("POST / HTTP/1.1\nHost: h\n\(fields)\n\n", reason, status)
    }

    private static func raw(_ bytes: [UInt8], _ reason: HeadError.Reason) -> BadRequest {
        var bad = BadRequest("", reason)
        bad.bytes = bytes
        return bad
    }

    static let lines: [BadRequest] = [
        BadRequest("GET / HTTP/1.1\u{D}Host: h\n\n", .bareCR),
        BadRequest("GET / HTTP/1.1\nHost: h\nX: a\u{D}b\n\n", .bareCR),
        BadRequest("GET / HTTP/1.1\nHost: h\n\u{D}\u{D}\n", .bareCR),
        raw(Array("GET / HTTP/1.1\nHost: h\n\n".utf8), .bareLF),
        raw(Array("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n".utf8), .bareLF),
        raw(Array("GET / HTTP/1.1\r\nHost: h\r\n\n".utf8), .bareLF),
        raw(Array("\nGET / HTTP/1.1\r\n".utf8), .bareLF),
        raw(Array("\r\rGET".utf8), .bareCR),
        BadRequest("\n\n\n\n\nGET / HTTP/1.1\nHost: h\n\n", .emptyLines),
        raw([0x16, 0x03, 0x01, 0x02], .badMethod),
    ]

    static let requestLines: [BadRequest] = [
        line(" GET / HTTP/1.1", .badMethod), line("G(T / HTTP/1.1", .badMethod),
        line("GET", .badMethod), line("GET\t/ HTTP/1.1", .badMethod),
        line("G\u{0}T / HTTP/1.1", .badMethod), line("GÉT / HTTP/1.1", .badMethod),
        line("GET /", .badRequestLine), line("GET  / HTTP/1.1", .badRequestLine),
        line("GET /  HTTP/1.1", .badRequestLine), line("GET / HTTP/1.1 ", .badRequestLine),
        line("GET /a b HTTP/1.1", .badRequestLine), line("GET / ", .badVersion),
        line("GET / http/1.1", .badVersion), line("GET / HTTP/1", .badVersion),
        line("GET / HTTP/1.1x", .badVersion), line("GET / HTTP/11", .badVersion),
        line("GET / HTTP/1.10", .badVersion), line("GET / HTTP/a.b", .badVersion),
        line("GET / HTTP/1,1", .badVersion), line("GET / HTTP/1.1\t", .badVersion),
        line("GET / HTTP/2.0", .unsupportedVersion, 505),
        line("PRI * HTTP/2.0", .unsupportedVersion, 505),
        line("GET / HTTP/0.9", .unsupportedVersion, 505),
    ]

    static let targets: [BadRequest] = [
        line("GET * HTTP/1.1", .targetForm), line("GET a HTTP/1.1", .targetForm),
        line("GET :80 HTTP/1.1", .targetForm), line("GET h:80 HTTP/1.1", .unknownScheme),
        line("CONNECT / HTTP/1.1", .targetForm), line("CONNECT h HTTP/1.1", .badPort),
        line("CONNECT h: HTTP/1.1", .badPort), line("CONNECT h:0 HTTP/1.1", .badPort),
        line("CONNECT * HTTP/1.1", .badHost), line("CONNECT u@h:1 HTTP/1.1", .badHost),
        line("CONNECT http://h:80/ HTTP/1.1", .badPort),
        line("OPTIONS ** HTTP/1.1", .targetForm),
        line("GET gopher://h/ HTTP/1.1", .unknownScheme),
        line("GET javascript:1 HTTP/1.1", .unknownScheme),
        line("GET http:/h/ HTTP/1.1", .badTarget), line("GET http: HTTP/1.1", .badTarget),
        line("GET http:// HTTP/1.1", .badHost), line("GET http:///x HTTP/1.1", .badHost),
        line("GET http://@h/ HTTP/1.1", .userInfo),
        line("GET http://a\"b@h/ HTTP/1.1", .userInfo),
        line("GET http://a%4@h/ HTTP/1.1", .badPercentEncoding),
        line("GET ftp://a@b@h/ HTTP/1.1", .badHost),
        line("GET ftp://a%4@h/ HTTP/1.1", .badPercentEncoding),
        line("GET ftp://a\"b@h/ HTTP/1.1", .userInfo),
        line("GET /\u{1} HTTP/1.1", .badTarget), line("GET /#\u{1} HTTP/1.1", .badTarget),
        line("GET /\u{7F} HTTP/1.1", .badTarget), line("GET /é\u{1} HTTP/1.1", .badTarget),
        line("GET /a\u{0}b HTTP/1.1", .badTarget), line("GET /a\tb HTTP/1.1", .badTarget),
        line("GET /% HTTP/1.1", .badPercentEncoding),
        line("GET /%4 HTTP/1.1", .badPercentEncoding),
        line("GET /%g0 HTTP/1.1", .badPercentEncoding),
        line("GET /%4?1 HTTP/1.1", .badPercentEncoding),
    ]

    static let fieldLines: [BadRequest] = [
        fields("X : y", .spaceBeforeColon), fields("X\t: y", .spaceBeforeColon),
        fields("X", .missingColon), fields("X y", .missingColon), fields(": y", .emptyFieldName),
        fields("X y: z", .badFieldName), fields("X\u{0}: z", .badFieldName),
        fields("X(: z", .badFieldName), fields("É: z", .badFieldName),
        fields("X: a\u{0}", .badFieldValue), fields("X: a\u{8}b", .badFieldValue),
        fields("X: \u{7F}", .badFieldValue), fields("X: \u{B}", .badFieldValue),
        fields("X: a\n b", .foldedLine), fields("X: a\n\tb", .foldedLine),
        fields("X: a\n ", .foldedLine),
        BadRequest("GET / HTTP/1.1\n Host: h\n\n", .foldedLine),
    ]

    static let hosts: [BadRequest] =
        [
            BadRequest("GET / HTTP/1.1\n\n", .missingHost),
            BadRequest("GET http://h/ HTTP/1.1\n\n", .missingHost),
            fields("Host: h", .repeatedHost), fields("hOST: other", .repeatedHost),
            BadRequest("GET / HTTP/1.0\nHost: h\nHost: h\n\n", .repeatedHost),
            BadRequest("GET http://h/ HTTP/1.1\nHost: i\n\n", .hostMismatch),
            BadRequest("GET http://h/ HTTP/1.1\nHost: h:81\n\n", .hostMismatch),
            BadRequest("GET https://h/ HTTP/1.1\nHost: h:80\n\n", .hostMismatch),
            BadRequest("GET http://h:81/ HTTP/1.1\nHost: h\n\n", .hostMismatch),
            BadRequest("CONNECT h:443 HTTP/1.1\nHost: i:443\n\n", .hostMismatch),
            BadRequest("CONNECT h:443 HTTP/1.1\nHost: h:80\n\n", .hostMismatch),
        ]
        + [
            "", "a b", "a,b", "h/", "u@h", "h?x", "h%41", "h!", "é", "[::1", "[::1]x",
            "[]", "[1]", "[fe80::1%25eth0]", "[v1.x]", "1", "1.2.3", "127.1", "0x7f.1", "1.2.3.4.5",
            "256.1.1.1", "01.2.3.4", "1.2.3.4.", "a.0x", "a\\b", "<h>",
            String(repeating: "a", count: 256),
        ].map { BadRequest("GET / HTTP/1.1\nHost: \($0)\n\n", .badHost) }
        + ["hx", "h.", "h:81", "h:8", "i", "[h]:80"].map {
            BadRequest(
                "GET http://h/ HTTP/1.1\nHost: \($0)\n\n",
                $0 == "[h]:80" ? .badHost : .hostMismatch)
        }
        + ["h:0", "h:8x", "h:80:80", "h:99999", "hx:0"].map {
            BadRequest("GET http://h/ HTTP/1.1\nHost: \($0)\n\n", .badPort)
        }
        + [
            "h:65536", "h:0", "h:-1", "h:+1", "h:8 0", "h:8x", "h:80:80", "h:99999999999999999999",
            "[::1]:0",
        ].map { BadRequest("GET / HTTP/1.1\nHost: \($0)\n\n", .badPort) }

    static let framing: [BadRequest] =
        [
            fields("Content-Length: 1\nTransfer-Encoding: chunked", .bothLengths),
            fields("Transfer-Encoding: chunked\nContent-Length: 1", .bothLengths),
            fields("Content-Length: 1\nContent-Length: 1", .repeatedContentLength),
            fields("Content-Length: 1\nContent-Length: 2", .repeatedContentLength),
            fields("Transfer-Encoding: gzip", .chunkedNotLast),
            fields("Transfer-Encoding: identity", .chunkedNotLast),
            fields("Transfer-Encoding: chunked, gzip", .chunkedNotLast),
            fields("Transfer-Encoding: chunked, chunked", .chunkedNotLast),
            fields("Transfer-Encoding: chunked\nTransfer-Encoding: chunked", .chunkedNotLast),
            fields("Transfer-Encoding: gzip, chunked", .unknownTransferCoding, 501),
            fields(
                "Transfer-Encoding: x;q=\"1\"\nTransfer-Encoding: CHUNKED", .unknownTransferCoding,
                501),
            fields("Transfer-Encoding:", .badTransferEncoding),
            fields("Transfer-Encoding: ,chunked", .badTransferEncoding),
            fields("Transfer-Encoding: chunked,", .chunkedNotLast).with(.badTransferEncoding),
            fields("Transfer-Encoding: chunked;a=b", .badTransferEncoding),
            fields("Transfer-Encoding: chunked x", .badTransferEncoding),
            fields("Transfer-Encoding: \"chunked\"", .badTransferEncoding),
            BadRequest("POST / HTTP/1.0\nTransfer-Encoding: chunked\n\n", .transferEncodingVersion),
        ]
        + [
            "", "+1", "-1", "1, 1", "1,1", "0x1", "1 1", "1.0", "a", "1a", "\"1\"",
            "9223372036854775808", "18446744073709551616", "99999999999999999999999",
        ].map { fields("Content-Length: \($0)", .badContentLength) }

    private func with(_ reason: HeadError.Reason) -> BadRequest {
        var copy = self
        copy.reason = reason
        return copy
    }
}

@Suite("Refused requests (RFC 9112 §2.2, §3, §5, §6.3)")
struct RequestHeadRejectionTests {
    private func check(_ sample: BadRequest) {
        let whole = Reading.requests([sample.bytes[...]])
        #expect(whole.error?.reason == sample.reason)
        #expect(whole.error?.status == StatusCode(sample.status))
        #expect(whole.messages.isEmpty)
        for pieces in splits(sample.bytes) { #expect(Reading.requests(pieces) == whole) }

        // After a good one on the same connection, the good one is still read.
        let good = wire("GET / HTTP/1.1\nHost: good\n\n")
        let glued = Reading.requests([(good + sample.bytes)[...]])
        #expect(glued.messages.count == 1)
        #expect(glued.error == whole.error)
    }

    @Test("lines that do not end in CRLF (§2.2)", arguments: BadRequest.lines)
    func lines(_ sample: BadRequest) { self.check(sample) }

    @Test("request lines (§3)", arguments: BadRequest.requestLines)
    func requestLines(_ sample: BadRequest) { self.check(sample) }

    @Test("request targets (§3.2)", arguments: BadRequest.targets)
    func targets(_ sample: BadRequest) { self.check(sample) }

    @Test("field lines (§5)", arguments: BadRequest.fieldLines)
    func fieldLines(_ sample: BadRequest) { self.check(sample) }

    @Test("Host (§3.2, RFC 9110 §7.2)", arguments: BadRequest.hosts)
    func hosts(_ sample: BadRequest) { self.check(sample) }

    @Test("framing (§6)", arguments: BadRequest.framing)
    func framing(_ sample: BadRequest) { self.check(sample) }
}

@Suite("Limits of a request head (RFC 9112 §3, RFC 6585 §5)")
struct RequestHeadLimitTests {
    private let limits = HeadLimits(startLine: 20, head: 60, fieldCount: 2, emptyLines: 1)

    private func read(_ text: String) -> Reading<RequestHead> {
        let bytes = wire(text)
        let whole = Reading.requests([bytes[...]], limits: self.limits)
        for pieces in splits(bytes) {
            #expect(Reading.requests(pieces, limits: self.limits) == whole)
        }
        return whole
    }

    @Test("the request line may be as long as the limit, not longer")
    func startLine() {
        #expect(self.read("GET /12345 HTTP/1.1\nHost: h\n\n").messages.count == 1)  // 19 bytes
        #expect(self.read("GET /123456 HTTP/1.1\nHost: h\n\n").messages.count == 1)  // 20
        let error = self.read("GET /1234567 HTTP/1.1\nHost: h\n\n").error
        #expect(error?.reason == .startLineTooLong)
        #expect(error?.status == StatusCode(414))
        #expect(self.read(String(repeating: "A", count: 22)).error?.reason == .startLineTooLong)
        #expect(self.read(String(repeating: "A", count: 21)).error == nil)
    }

    @Test("the head may be as large as the limit, not larger")
    func head() {
        let start = "GET / HTTP/1.1\nHost: h\nX: "  // 16 + 9 + 3 bytes
        #expect(self.read(start + String(repeating: "x", count: 28) + "\n\n").messages.count == 1)
        let error = self.read(start + String(repeating: "x", count: 29) + "\n\n").error
        #expect(error?.reason == .headTooLarge)
        #expect(error?.status == StatusCode(431))
        // Refused as soon as it is certain: with the byte that reaches the limit.
        let open = start + String(repeating: "x", count: 32)
        #expect(self.read(open).error?.reason == .headTooLarge)
        #expect(self.read(String(open.dropLast())).error == nil)
    }

    @Test("so many field lines, not more")
    func fieldCount() {
        #expect(self.read("GET / HTTP/1.1\nHost: h\nA:\n\n").messages.count == 1)
        let error = self.read("GET / HTTP/1.1\nHost: h\nA:\nB:\n\n").error
        #expect(error?.reason == .tooManyFields)
        #expect(error?.status == StatusCode(431))
    }

    @Test("empty lines before each request are counted anew")
    func emptyLines() {
        let request = "\nGET / HTTP/1.1\nHost: h\n\n"
        #expect(self.read(request + request + request).messages.count == 3)
        #expect(self.read(request + "\n" + request).error?.reason == .emptyLines)
    }

    @Test("absurd limits are brought to what works")
    func absurd() {
        let text = wire("GET / HTTP/1.1\nHost: h\n\n")
        let huge = HeadLimits(startLine: .max, head: .max, fieldCount: .max, emptyLines: .max)
        #expect(Reading.requests([text[...]], limits: huge).messages.count == 1)
        let none = HeadLimits(startLine: -1, head: -1, fieldCount: -1, emptyLines: -1)
        #expect(Reading.requests([text[...]], limits: none).error != nil)
    }

    @Test("every reason has a token of its own and an error status")
    func reasons() {
        let tokens = HeadError.Reason.allCases.map(\.rawValue)
        #expect(Set(tokens).count == tokens.count)
        for reason in HeadError.Reason.allCases {
            #expect(reason.rawValue.utf8.allSatisfy(ASCII.isToken))
            #expect(reason.status.isClientError || reason.status.isServerError)
        }
    }
}
