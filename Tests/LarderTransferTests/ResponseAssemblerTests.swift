import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("The assembly of a response's head (RFC 9112 §4, §5)")
struct ResponseAssemblerTests {
    /// Feeds lines as libcurl hands them on: each with its end.
    private func feed(
        _ text: String, to assembler: ResponseAssembler
    ) throws(UpstreamFailure) -> [ResponseAssembler.Event] {
        var events: [ResponseAssembler.Event] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: ASCII.lf).map { $0 + 1 } ?? rest.endIndex
            let line = Array(rest[..<end])
            rest = rest[end...]
            let result = unsafe line.withUnsafeBytes {
                bytes -> Result<ResponseAssembler.Event, UpstreamFailure> in
                do throws(UpstreamFailure) {
                    return .success(unsafe try assembler.line(bytes))
                } catch {
                    return .failure(error)
                }
            }
            events.append(try result.get())
        }
        return events
    }

    /// What comes of a head, as text: an error's kind, or what there is to know.
    private func outcome(_ text: String, by assembler: ResponseAssembler) -> String {
        do throws(UpstreamFailure) {
            return try self.feed(text, to: assembler).map { event in
                switch event {
                case .nothing: ""
                case .leave: "leave"
                case .informational(let head): "\(head.status.rawValue) \(head.fields.pairs)"
                case .head(let head, let length):
                    "\(head.status.rawValue) \(head.reason) \(head.version) "
                        + "\(head.fields.pairs) \(length)"
                }
            }.joined()
        } catch {
            return "\(error.kind)"
        }
    }

    @Test("reads a head that repeats the one before it, in whole or in part, as any other")
    func repetition() {
        let line = "X-Long: \(String(repeating: "x", count: 5000))\r\n"
        let rests = [
            "", "Date: a\r\n", "Date: ab\r\n", "Date: a\r\nA: b\r\n", "A: b\r\nDate: a\r\n",
            "Content-Length: 7\r\n", "Content-Length: 8\r\n", "Set-Cookie: a=b\r\n", line,
            "a b\r\n",
            "Date: a\r\n\rA: b\r\n", " folded: a\r\n", "Date: a\r\n folded\r\n", "Date: a\n",
            "Transfer-Encoding: chunked\r\n", "Content-Length: 7\r\nContent-Length: 8\r\n",
        ]
        let starts = [
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 Ok\r\n", "HTTP/1.1 304 Not Modified\r\n",
            "HTTP/2 200 \r\n",
            "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", "HTTP/1.1 101 Switching\r\n",
        ]
        let heads = starts.flatMap { start in rests.map { start + $0 + "\r\n" } }
        let configuration = TransferConfiguration()
        let last = LastHead()
        var generator = SystemRandomNumberGenerator()
        var before = heads[0]
        for _ in 0..<4000 {
            // Every other one is the one before it.
            let text = Bool.random(using: &generator) ? before : heads.randomElement() ?? before
            before = text
            let method = Bool.random(using: &generator) ? Method.get : .head
            let (mayBeHTTP2, bareLF) = (
                Bool.random(using: &generator), Bool.random(using: &generator)
            )
            func assembler(_ last: LastHead) -> ResponseAssembler {
                ResponseAssembler(
                    method: method, mayBeHTTP2: mayBeHTTP2, acceptsBareLF: bareLF, last: last,
                    configuration: configuration)
            }
            let (own, other) = (assembler(LastHead()), assembler(last))
            let expected = self.outcome(text, by: own)
            #expect(self.outcome(text, by: other) == expected, "\(method) \(text.debugDescription)")
            #expect(own.isHeadComplete == other.isHeadComplete && own.hasBegun == other.hasBegun)
        }
    }

    @Test(
        "keeps a head that came twice, and hands it to heads that come between each other's lines")
    func interleaved() throws {
        let last = LastHead()
        let configuration = TransferConfiguration()
        func assembler() -> ResponseAssembler {
            ResponseAssembler(method: .get, last: last, configuration: configuration)
        }
        let texts = ["a", "b"].map { "HTTP/1.1 200 OK\r\nServer: s\r\nETag: \"\($0)\"\r\n\r\n" }
        for text in texts + texts { _ = try self.feed(text, to: assembler()) }
        _ = try self.feed(texts[1], to: assembler())
        #expect(last.reading(of: last.block, for: .get) != nil)
        #expect(last.reading(of: last.block, for: .head) == nil)
        #expect(last.reading(of: Array(texts[1].utf8), for: .get) == nil)
        let (one, other) = (assembler(), assembler())
        // CR LF is one `Character`.
        _ = try self.feed(String(texts[1].dropLast()), to: one)
        #expect(one.hasBegun)
        // Meanwhile the head that is kept is another.
        _ = try self.feed(texts[0], to: other)
        guard case .head(let head, _)? = try self.feed("\r\n", to: one).last else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.string("ETag") == "\"b\"")
        for text in ["Set-Cookie: a=b\r\n", "X: \(String(repeating: "x", count: 4100))\r\n"] {
            let head = "HTTP/1.1 200 OK\r\n\(text)\r\n"
            _ = try self.feed(head, to: assembler())
            #expect(last.block.isEmpty)
        }
    }

    private func head(
        _ text: String, _ method: Method = .get
    ) throws(UpstreamFailure) -> (ResponseHead, BodyLength)? {
        let assembler = ResponseAssembler(method: method, configuration: TransferConfiguration())
        for event in try self.feed(text, to: assembler) {
            if case .head(let head, let length) = event { return (head, length) }
        }
        return nil
    }

    @Test("takes lines that end in LF alone only where that is wanted (RFC 9112 §2.2)")
    func bareLF() throws {
        let text = "HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\r\n\n"
        #expect(throws: UpstreamFailure.self) { try self.head(text) }
        let assembler = ResponseAssembler(
            method: .get, acceptsBareLF: true, configuration: TransferConfiguration())
        let events = try self.feed(text, to: assembler)
        guard case .head(let head, let length)? = events.last else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.string("X-A") == "b")
        #expect(length == .known(2))
    }

    @Test(
        "bounds the heads before the final one in sum (RFC 9110 §15.2)",
        arguments: ["100 Continue", "102 Processing", "103 Early Hints"])
    func informational(_ status: String) throws {
        var configuration = TransferConfiguration()
        configuration.maximumHead = .kibibytes(1)
        let head = "HTTP/1.1 \(status)\r\nX-Pad: \(String(repeating: "x", count: 60))\r\n\r\n"
        let fit = 1024 / head.utf8.count
        // The final one is bounded by itself.
        let final = "HTTP/1.1 200 OK\r\nX-Pad: \(String(repeating: "x", count: 900))\r\n\r\n"
        let assembler = ResponseAssembler(method: .get, configuration: configuration)
        _ = try self.feed(String(repeating: head, count: fit), to: assembler)
        guard case .head? = try self.feed(final, to: assembler).last else {
            Issue.record("no head")
            return
        }
        let endless = ResponseAssembler(method: .get, configuration: configuration)
        let failure = #expect(throws: UpstreamFailure.self) {
            try self.feed(String(repeating: head, count: fit + 1), to: endless)
        }
        #expect(failure?.kind == .httpResponseHeaderSectionSize)
    }

    @Test(
        "finds where the content ends (RFC 9112 §6.3)",
        arguments: [
            ("HTTP/1.1 200 OK\r\n\r\n", Method.get, BodyLength.unknown),
            ("HTTP/1.1 200\r\n\r\n", .get, .unknown),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .get, .known(0)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 007 \r\n\r\n", .get, .known(7)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 7, 7\r\nContent-Length: 7\r\n\r\n", .get,
                .known(7)
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", .get, .unknown),
            ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", .head, .none),
            ("HTTP/1.1 204 No\r\nContent-Length: 7\r\n\r\n", .get, .none),
            ("HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", .get, .none),
            (
                "HTTP/2 200 \r\ncontent-length: 9223372036854775807\r\n\r\n", .get,
                .known(1 << 63 - 1)
            ),
        ])
    func lengths(_ text: String, _ method: Method, _ expected: BodyLength) throws {
        #expect(try self.head(text, method)?.1 == expected)
    }

    @Test(
        "refuses what breaks the grammar",
        arguments: [
            "HTTP/1.1 200 OK\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
            "http/1.1 200 OK\r\n\r\n", "HTTP/4 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "\r\n",
            "HTTP/1.1 200 O\u{1}K\r\n\r\n", "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA b\r\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\n c: d\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 7,\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        ])
    func refusals(_ text: String) {
        #expect {
            _ = try self.head(text)
        } throws: { error in
            (error as? UpstreamFailure)?.kind == .httpProtocolError
        }
    }

    @Test("keeps names and values byte for byte")
    func bytes() throws {
        let found = try self.head("HTTP/1.1 299 Ünusual\r\nX-a: \t b  c \t\r\nX-A:\r\n\r\n")
        let head = try #require(found?.0)
        #expect(head.reason == "Ünusual")
        #expect(head.fields.pairs.map(\.name) == ["X-a", "X-A"])
        #expect(head.fields.pairs.map(\.value) == ["b  c", ""])
    }

    @Test("counts every byte against the bound, trailers too")
    func bound() throws {
        var configuration = TransferConfiguration()
        configuration.maximumHead = ByteCount(40)
        let fits = "HTTP/1.1 200 OK\r\nA: 3456789012345678\r\n\r\n"
        let beyond = "HTTP/1.1 200 OK\r\nA: 3456789012345678901\r\n\r\n"
        var assembler = ResponseAssembler(method: .get, configuration: configuration)
        #expect(throws: Never.self) { try self.feed(fits, to: assembler) }
        #expect(assembler.isHeadComplete)
        #expect(throws: UpstreamFailure.self) {
            try self.feed(String(repeating: "A: b\r\n", count: 7), to: assembler)
        }
        assembler = ResponseAssembler(method: .get, configuration: configuration)
        #expect(throws: UpstreamFailure.self) { try self.feed(beyond, to: assembler) }
    }

    @Test(
        "dates of ftp files are IMF-fixdates (RFC 9110 §5.6.7)",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (-1, nil), (.max, nil),
        ] as [(Int64, String?)])
    func dates(_ seconds: Int64, _ expected: String?) {
        #expect(FTPResponse.date(seconds) == expected)
    }
}
