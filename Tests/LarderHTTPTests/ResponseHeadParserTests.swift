import LarderHTTP
import NIOCore
import Testing

extension Reading where Message == ResponseHead {
    static func responses(
        _ pieces: [ArraySlice<UInt8>], limits: HeadLimits = HeadLimits(), lenient: Bool = false
    ) -> Self {
        var parser = ResponseHeadParser(limits: limits, lenientLineEnds: lenient)
        var buffer = ByteBuffer()
        var reading = Reading()
        do throws(HeadError) {
            for piece in pieces {
                buffer.writeBytes(piece)
                while let head = try parser.parse(&buffer) { reading.messages.append(head) }
            }
        } catch {
            reading.error = error
            return reading
        }
        reading.rest = Array(buffer.readableBytesView)
        return reading
    }
}

@Suite("Response heads (RFC 9112 §4, §5)")
struct ResponseHeadParserTests {
    struct Valid: Sendable {
        var text: String
        var head: ResponseHead

        init(
            _ text: String, _ status: UInt16, _ reason: String = "",
            _ version: HTTPVersion = .http11, _ fields: Fields = [:]
        ) {
            self.text = text
            self.head = ResponseHead(
                status: StatusCode(status), reason: reason, version: version, fields: fields)
        }
    }

    @Test(
        "are read whole, split at every byte, and glued",
        arguments: [
            Valid("HTTP/1.1 200 OK\n\n", 200, "OK"), Valid("HTTP/1.1 200 \n\n", 200),
            Valid("HTTP/1.1 200\n\n", 200), Valid("HTTP/2 204 \n\n", 204, "", .http2),
            Valid("HTTP/3 204\n\n", 204, "", .http3),
            Valid("HTTP/1.0 999 a  b\t\n\n", 999, "a  b\t", .http10),
            Valid("HTTP/1.1 100 Über\n\n", 100, "Über"),
            Valid(
                "HTTP/1.1 200 OK\nA: 1\na:2\nB:\n\n", 200, "OK", .http11,
                ["A": "1", "a": "2", "B": ""]),
            Valid(
                "HTTP/1.1 200 OK\nA: 1\n 2\n\t3\nB:\n  x\n\n", 200, "OK", .http11,
                ["A": "1   2  \t3", "B": "x"]),
            Valid("HTTP/1.1 200 OK\nA: 1\n  \n\n", 200, "OK", .http11, ["A": "1"]),
            Valid(
                "HTTP/1.1 200 OK\nContent-Length: 1\nA: 1\n 2\n\n", 200, "OK", .http11,
                ["Content-Length": "1", "A": "1   2"]),
        ])
    func valid(_ sample: Valid) throws {
        let bytes = wire(sample.text)
        let expected = Reading(messages: [sample.head])
        #expect(Reading.responses([bytes[...]]) == expected)
        for pieces in splits(bytes) { #expect(Reading.responses(pieces) == expected) }
        #expect(try responseHead(bytes) == sample.head)

        let glued = Reading(messages: [sample.head, sample.head], rest: Array("HTTP".utf8))
        for pieces in splits(bytes + bytes + Array("HTTP".utf8)) {
            #expect(Reading.responses(pieces) == glued)
        }
        // A block is one head and nothing else.
        for end in bytes.indices {
            #expect(throws: HeadError.self) {
                try responseHead(Array(bytes[..<end]))
            }
        }
        #expect(throws: HeadError.self) {
            try responseHead(bytes + [0x41])
        }
    }

    @Test(
        "whose phrase is no UTF-8 have that of their status in its place (RFC 9112 §4)",
        arguments: [
            ("200 Tr\u{E8}s bien", "OK"), ("404 \u{FF}", "Not Found"), ("299 \u{C3}", "Successful"),
            ("200 Tr\u{C3}\u{A8}s bien", "Très bien"), ("200 \u{EF}\u{BF}\u{BD}", "\u{FFFD}"),
        ])
    func phrase(_ latin1: String, _ expected: String) throws {
        let line = latin1.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        let head = try responseHead(wire("HTTP/1.1 ") + line + wire("\n\n"))
        #expect(head.reason == expected)
    }

    @Test(
        "that are bad are the origin's fault: 502",
        arguments: [
            ("HTTP/1.1 99 x\n\n", .badStatusLine), ("HTTP/1.1 1000 x\n\n", .badStatusLine),
            ("HTTP/1.1 099 x\n\n", .badStatusLine), ("HTTP/1.1  200 x\n\n", .badStatusLine),
            ("HTTP/1.1 20x\n\n", .badStatusLine), ("HTTP/1.1\n\n", .badStatusLine),
            ("HTTP/1.1 \n\n", .badStatusLine), ("HTTP/1.1 200x\n\n", .badStatusLine),
            ("HTTP/1.1 +20 x\n\n", .badStatusLine), ("HTTP/1.1 200 \u{1}\n\n", .badStatusLine),
            ("ICY 200 OK\n\n", .badVersion), ("HTTP/1 200 OK\n\n", .badVersion),
            ("http/1.1 200 OK\n\n", .badVersion), ("HTTP/1.11 200 OK\n\n", .badVersion),
            ("HTTP/9 200 OK\n\n", .unsupportedVersion),
            ("HTTP/0.9 200 OK\n\n", .unsupportedVersion),
            ("HTTP/1.1 200 OK\n A: 1\n\n", .foldedLine),
            // Who does not join them finds another end of the content.
            ("HTTP/1.1 200 OK\nTransfer-Encoding:\n chunked\n\n", .foldedLine),
            ("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\t\n\n", .foldedLine),
            ("HTTP/1.1 200 OK\nA: 1\n 2\nContent-Length:\n 5\nB: 1\n\n", .foldedLine),
            ("HTTP/1.1 200 OK\nContent-Length: 1\n 5\n\n", .foldedLine),
            ("HTTP/1.1 200 OK\nA : 1\n\n", .spaceBeforeColon),
            ("HTTP/1.1 200 OK\nA\n\n", .missingColon),
            ("HTTP/1.1 200 OK\n: x\n\n", .emptyFieldName),
            ("HTTP/1.1 200 OK\nA: \u{0}\n\n", .badFieldValue),
            ("HTTP/1.1 200 OK\nA: 1\n \u{1}\n\n", .badFieldValue),
            ("HTTP/1.1 200 OK\nA: a\u{D}b\n\n", .bareCR),
        ] as [(String, HeadError.Reason)])
    func bad(_ text: String, _ reason: HeadError.Reason) {
        let bytes = wire(text)
        for lenient in [false, true] {
            let whole = Reading.responses([bytes[...]], lenient: lenient)
            #expect(whole.error?.reason == reason)
            #expect(whole.error?.status == .badGateway)
            for pieces in splits(bytes) {
                #expect(Reading.responses(pieces, lenient: lenient) == whole)
            }
        }
    }

    @Test("may have bare LF line ends only where that is asked for (§2.2)")
    func lineEnds() throws {
        let bytes = Array("HTTP/1.1 200 OK\nA: 1\r\nB: 2\n 3\n\nbody".utf8)
        #expect(Reading.responses([bytes[...]]).error?.reason == .bareLF)
        let whole = Reading.responses([bytes[...]], lenient: true)
        #expect(whole.messages.first?.fields == ["A": "1", "B": "2  3"])
        #expect(whole.rest == Array("body".utf8))
        for pieces in splits(bytes) {
            #expect(Reading.responses(pieces, lenient: true) == whole)
        }
    }

    @Test("have limits")
    func limits() {
        let limits = HeadLimits(startLine: 20, head: 60, fieldCount: 2)
        func reason(_ text: String) -> HeadError.Reason? {
            let bytes = wire(text)
            let whole = Reading.responses([bytes[...]], limits: limits)
            for pieces in splits(bytes) {
                #expect(Reading.responses(pieces, limits: limits) == whole)
            }
            return whole.error?.reason
        }
        #expect(reason("HTTP/1.1 200 1234567\n\n") == nil)
        #expect(reason("HTTP/1.1 200 12345678\n\n") == .startLineTooLong)
        #expect(reason("HTTP/1.1 200 \nA:\nB:\n x\n\n") == nil)
        #expect(reason("HTTP/1.1 200 \nA:\nB:\nC:\n\n") == .tooManyFields)
        let open = "HTTP/1.1 200 \nA: " + String(repeating: "x", count: 42)  // 60 bytes
        #expect(reason(open) == .headTooLarge)
        #expect(reason(String(open.dropLast())) == nil)
    }

    @Test("a block of trailer fields is read by the same rules")
    func trailerBlock() throws {
        let fields = try trailerFields(wire("A: 1\nB: 2\n 3\n"))
        #expect(fields == ["A": "1", "B": "2   3"])
        #expect(try trailerFields([]).isEmpty)
        for bad in ["A", "A: 1", "A: 1\n\nB: 2\n", "A : 1\n"] {
            #expect(throws: HeadError.self) { try trailerFields(wire(bad)) }
        }
    }
}

@Suite("Framing of responses (RFC 9112 §6.3)")
struct ResponseFramingTests {
    struct Case: Sendable {
        var method: Method = .get
        var status: UInt16 = 200
        var version: HTTPVersion = .http11
        var fields: Fields
        var expected: BodyLength
    }

    @Test(
        "the length is what the rules say, in their order",
        arguments: [
            Case(method: .head, fields: ["Content-Length": "5"], expected: .none),
            Case(method: .head, fields: ["Transfer-Encoding": "chunked"], expected: .none),
            Case(status: 204, fields: ["Content-Length": "5"], expected: .none),
            Case(status: 304, fields: ["Content-Length": "5"], expected: .none),
            Case(status: 103, fields: [:], expected: .none),
            Case(method: .connect, fields: ["Content-Length": "5"], expected: .none),
            Case(
                method: .connect, status: 403, fields: ["Content-Length": "5"], expected: .known(5)),
            Case(fields: ["Content-Length": "0"], expected: .known(0)),
            Case(fields: ["Content-Length": "5", "content-length": "5"], expected: .known(5)),
            Case(
                fields: ["Content-Length": "9223372036854775807"],
                expected: .known(UInt64(Int64.max))),
            Case(fields: ["Transfer-Encoding": "chunked"], expected: .unknown),
            Case(fields: ["Transfer-Encoding": "gzip"], expected: .unknown),
            Case(fields: [:], expected: .unknown),
            Case(version: .http10, fields: [:], expected: .unknown),
            Case(version: .http2, fields: ["Content-Length": "7"], expected: .known(7)),
        ])
    func length(_ c: Case) throws {
        let head = ResponseHead(status: StatusCode(c.status), version: c.version, fields: c.fields)
        #expect(try MessageFraming.responseBody(of: head, to: c.method) == c.expected)
    }

    @Test(
        "faulty framing is the origin's fault",
        arguments: [
            (["Content-Length": "5", "content-length": "6"], .repeatedContentLength),
            (["Content-Length": "5, 6"], .repeatedContentLength),
            (["Content-Length": ""], .badContentLength),
            (["Content-Length": "-1"], .badContentLength),
            (["Content-Length": "1", "Transfer-Encoding": "chunked"], .bothLengths),
            (["Transfer-Encoding": "chunked, gzip"], .chunkedNotLast),
            (["Transfer-Encoding": "gzip, chunked"], .unknownTransferCoding),
            (["Transfer-Encoding": "chunked;x"], .badTransferEncoding),
        ] as [(Fields, HeadError.Reason)])
    func faulty(_ fields: Fields, _ reason: HeadError.Reason) {
        let error = #expect(throws: HeadError.self) {
            try MessageFraming.responseBody(
                of: ResponseHead(status: .ok, fields: fields), to: .get)
        }
        #expect(error?.reason == reason)
        #expect(error?.status == .badGateway)
    }

    @Test("Transfer-Encoding in HTTP/1.0 is faulty (§6.1)")
    func oldVersion() {
        let head = ResponseHead(
            status: .ok, version: .http10, fields: ["Transfer-Encoding": "chunked"])
        let error = #expect(throws: HeadError.self) {
            try MessageFraming.responseBody(of: head, to: .get)
        }
        #expect(error?.reason == .transferEncodingVersion)
    }

    @Test("chunked is told from until-close")
    func chunked() throws {
        func isChunked(_ fields: Fields) throws -> Bool {
            try MessageFraming.isChunked(ResponseHead(status: .ok, fields: fields))
        }
        #expect(try isChunked(["Transfer-Encoding": "Chunked"]))
        #expect(try !isChunked(["Transfer-Encoding": "gzip"]))
        #expect(try !isChunked([:]))
    }
}
