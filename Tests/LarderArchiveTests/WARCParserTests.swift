import LarderHTTP
import NIOCore
import Testing

@testable import LarderArchive

@Suite("WARC records (ISO 28500:2017 §4)")
struct WARCParserTests {
    private struct Reading: Equatable {
        var types: [String] = []
        var blocks: [String] = []
        var offsets: [UInt64] = []
        var ends = 0
        var error: WARCError?
    }

    private static let archive =
        "WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 4\r\n\r\nab\r\n\r\n\r\n"
        + "WARC/1.0\r\nwarc-type: Response\r\nWARC-Target-URI: <http://a/>\r\nX: one\r\n\ttwo\r\n"
        + "Content-Length: 0\r\n\r\n\r\n\r\n"
        + "WARC/1.1\nWARC-Type: request\nContent-Length: 3\n\nxyz\n\n"

    private func read(_ text: String, piece: Int = .max) -> Reading {
        var reading = Reading()
        var parser = WARCParser()
        var buffer = ByteBuffer()
        var rest = Array(text.utf8)[...]
        do throws(WARCError) {
            while !rest.isEmpty {
                buffer.writeBytes(rest.prefix(piece))
                rest = rest.dropFirst(piece)
                events: while true {
                    switch try parser.next(&buffer) {
                    case .head(let head):
                        reading.types.append(head.type)
                        reading.offsets.append(parser.offset)
                        reading.blocks.append("")
                    case .block(let bytes):
                        reading.blocks[reading.blocks.count - 1] += String(buffer: bytes)
                    case .end: reading.ends += 1
                    case .needMore: break events
                    }
                }
            }
        } catch {
            reading.error = error
        }
        return reading
    }

    @Test("are read, whatever the pieces they come in", arguments: [1, 2, 3, 7, 50, Int.max])
    func pieces(_ piece: Int) {
        let reading = self.read(Self.archive, piece: piece)
        #expect(reading.types == ["warcinfo", "response", "request"])
        #expect(reading.blocks == ["ab\r\n", "", "xyz"])
        #expect(reading.offsets == [0, 60, 160])
        #expect(reading.ends == 3)
        #expect(reading.error == nil)
    }

    @Test("have fields that may be folded, and a URI that may stand in brackets")
    func fields() throws {
        var parser = WARCParser()
        var buffer = ByteBuffer(bytes: Self.archive.utf8.dropFirst(60))
        guard case .head(let head) = try parser.next(&buffer) else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.string("X") == "one two")
        #expect(head.targetURI == "http://a/")
    }

    @Test(
        "are refused where their framing is lost, with the place",
        arguments: [
            ("HTTP/1.1 200 OK\r\n\r\n", .noVersion, 1, 0),
            ("WARC/0.18\r\nContent-Length: 0\r\n\r\n", .unknownVersion, 1, 0),
            ("WARC/1.1\r\nWARC-Type: a\r\n\r\n", .noLength, 1, 0),
            ("WARC/1.1\r\nContent-Length: -1\r\n\r\n", .noLength, 1, 0),
            ("WARC/1.1\r\nContent-Length: 9223372036854775808\r\n\r\n", .noLength, 1, 0),
            ("WARC/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .noLength, 1, 0),
            ("WARC/1.1\r\nno colon\r\nContent-Length: 0\r\n\r\n", .badField, 1, 0),
            ("WARC/1.1\r\nContent-Length: 1\r\n\r\nabc", .noEnd, 1, 0),
            ("WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\nx", .noVersion, 2, 35),
        ] as [(String, WARCError.Reason, UInt64, UInt64)])
    func refused(_ text: String, _ reason: WARCError.Reason, _ record: UInt64, _ offset: UInt64) {
        for piece in [1, 5, Int.max] {
            let error = self.read(text, piece: piece).error
            #expect(error == WARCError(reason: reason, record: record, offset: offset), "\(text)")
        }
    }

    @Test("with an endless head are refused before they fill memory")
    func endless() {
        let text = "WARC/1.1\r\nX: " + String(repeating: "a", count: 70_000)
        #expect(self.read(text, piece: 1_000).error?.reason == .headTooLarge)
    }
}

@Suite("What Larder writes of a stored response")
struct ArchivedResponseTests {
    private static func response(_ change: (inout ArchivedResponse) -> Void) -> ArchivedResponse {
        let time = Timestamp(microseconds: 1_700_000_000_123_456)
        var response = ArchivedResponse(
            uri: TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/x?y"), status: .ok,
            reason: "Fine", fields: ["Content-Type": "text/plain", "ETag": "\"e\""],
            requestTime: time - .milliseconds(20), responseTime: time,
            storedTime: time + .seconds(1), lastUsed: time + .seconds(60), contentLength: 5)
        change(&response)
        return response
    }

    private static let cases: [ArchivedResponse] = [
        Self.response { _ in },
        Self.response { $0.fields.append("Content-Length", "5") },
        Self.response { $0.fields = ["Content-Length": "5", "X": "y"] },
        Self.response { $0.fields = ["Content-Length": "5, 5", "X": "y"] },
        Self.response { $0.fields = ["Content-Length": "5", "Content-Length": "5,5", "X": "y"] },
        Self.response {
            $0.status = .noContent; $0.contentLength = 0
        },
        Self.response {
            $0.varyingFields = ["Accept-Language": "de", "Range": "x", "Host": "b"]
            $0.trailers = ["X-Sum": "1", "Y": "a: b"]
            $0.hits = .max
            $0.isInvalidated = true
            $0.answersCredentials = true
            $0.partition = "someone"
        },
        Self.response {
            $0.fields = ["Content-Length": "900", "X": "y"]
            $0.part = .init(range: 100..<105, completeLength: 900, index: 1, count: 3)
        },
        Self.response {
            $0.part = .init(range: 100..<105, completeLength: nil, index: 0, count: 1)
        },
    ]

    @Test("is read back as it was", arguments: cases.indices)
    func again(_ index: Int) throws {
        let written = Self.cases[index]
        var fields = written.larderFields(object: "o")
        fields.append("WARC-Target-URI", written.uri.description)
        fields.append("WARC-Date", WARCDate.format(written.responseTime))
        let record = WARCHead(type: "response", contentLength: 0, fields: fields)
        #expect(ArchivedResponse.isOwn(record))
        let head = try ResponseHeadParser.parse(block: written.responseHead().span)
        #expect(head.fields.string("Content-Length") == (written.contentLength == 0 ? nil : "5"))
        #expect((head.status == .partialContent) == (written.part != nil))
        // Not by our parser, which refuses a second Host: these are the lines as they stand.
        var request = Fields()
        for line in String(decoding: written.requestHead(), as: UTF8.self)
            .split(separator: "\r\n").dropFirst()
        {
            let parts = line.split(separator: ":", maxSplits: 1)
            request.append(String(parts[0]), String(parts[1].dropFirst()))
        }
        let read = try ArchivedResponse(
            record, head, request: request, contentLength: written.contentLength)
        #expect(read == written)
    }

    @Test("with anything missing is damaged, and not made up")
    func damaged() throws {
        let written = Self.cases[7]
        let head = try ResponseHeadParser.parse(block: written.responseHead().span)
        var fields = written.larderFields(object: "o")
        fields.append("WARC-Target-URI", written.uri.description)
        fields.append("WARC-Date", WARCDate.format(written.responseTime))
        for name in [
            "Larder-Request-Time", "Larder-Stored-Time", "Larder-Part", "Larder-Status",
            "WARC-Date", "WARC-Target-URI",
        ] {
            var less = fields
            less.remove(FieldName(name))
            #expect(throws: ArchivedResponse.Damage.self, "\(name)") {
                try ArchivedResponse(
                    WARCHead(type: "response", contentLength: 0, fields: less), head,
                    request: ["Host": "a"], contentLength: 5)
            }
        }
        for length in ["+900", "900, 901", "", "none, none", "x"] {
            var other = fields
            other.remove(FieldName("Larder-Content-Length"))
            other.append("Larder-Content-Length", length)
            #expect(throws: ArchivedResponse.Damage.fields, "\(length)") {
                try ArchivedResponse(
                    WARCHead(type: "response", contentLength: 0, fields: other), head,
                    request: ["Host": "a"], contentLength: 5)
            }
        }
    }

    @Test("is read back without how it was used, which no store takes")
    func unused() throws {
        let written = Self.cases[0]
        var fields = written.larderFields(object: "o")
        fields.append("WARC-Target-URI", written.uri.description)
        fields.append("WARC-Date", WARCDate.format(written.responseTime))
        fields.remove(FieldName("Larder-Hits"))
        fields.remove(FieldName("Larder-Last-Used"))
        let read = try ArchivedResponse(
            WARCHead(type: "response", contentLength: 0, fields: fields),
            try ResponseHeadParser.parse(block: written.responseHead().span),
            request: ["Host": "a"], contentLength: 5)
        #expect(read.hits == 0)
        #expect(read.lastUsed == written.responseTime)
    }
}
