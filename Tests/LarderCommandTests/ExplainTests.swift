import ArgumentParser
import LarderConfig
import LarderControl
import LarderDaemon
import LarderHTTP
import LarderPolicy
import Testing

@testable import larder

@Suite("larder explain --response reads heads as curl writes them")
struct ResponseFileTests {
    private static func parse(_ text: String) throws(CommandFailure) -> ResponseHead {
        try ResponseFile.parse(Array(text.utf8), name: "f")
    }

    @Test(
        "of one head or several, ended by LF or CR LF, the last counts",
        arguments: [
            ("HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", 200, "1"),
            ("HTTP/1.1 200 OK\nA: 1\n", 200, "1"), ("HTTP/1.1 200\nA:1", 200, "1"),
            ("HTTP/2 200 \r\nA: 1\r\n\r\n", 200, "1"), ("HTTP/3 404 \nA:\t1 \n\n", 404, "1"),
            ("HTTP/1.1 301 Moved\r\nA: 0\r\n\r\nHTTP/2 200 \r\nA: 1\r\n\r\n", 200, "1"),
            (
                "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 103 Early\r\n\r\n"
                    + "HTTP/1.1 404 No\r\nA: 1\r\n\r\n", 404, "1"
            ),
            ("\n\nHTTP/1.0 200 OK\nA: 1\n\n", 200, "1"),
            // Content, as of curl -i.
            ("HTTP/1.1 200 OK\r\nA: 1\r\n\r\n<p>\r\nHTTP/1.1 500 x\r\nA: 2\r\n", 200, "1"),
            ("HTTP/1.1 200 OK\r\nA: 1\r\n\r\n\r\nNo colon\r\n", 200, "1"),
        ])
    func heads(_ text: String, _ status: UInt16, _ value: String) throws {
        let head = try Self.parse(text)
        #expect(head.status.rawValue == status)
        #expect(head.fields.string("A") == value)
        #expect(head.fields.count == 1)
    }

    @Test("repeated fields stay apart, and an empty value is one")
    func fields() throws {
        let head = try Self.parse("HTTP/1.1 200 OK\nSet-Cookie: a\nSet-Cookie: b\nX:\n")
        #expect(head.fields.pairs.map(\.name) == ["Set-Cookie", "Set-Cookie", "X"])
        #expect(head.fields.pairs.map(\.value) == ["a", "b", ""])
    }

    @Test(
        "what is no head is one line with its number",
        arguments: [
            ("", "f: holds no response head"), ("\n\n", "f: holds no response head"),
            ("GET / HTTP/1.1\n", "f:1: no status line such as HTTP/1.1 200 OK"),
            ("\n<html>\n", "f:2: no status line such as HTTP/1.1 200 OK"),
            ("HTTP/9 200 OK\n", "f:1: no version of HTTP that is known here"),
            ("HTTP/ 200 OK\n", "f:1: no version of HTTP that is known here"),
            ("HTTP/1.1\n", "f:1: no status code of three digits"),
            ("HTTP/1.1 20 OK\n", "f:1: no status code of three digits"),
            ("HTTP/1.1 099 OK\n", "f:1: no status code of three digits"),
            ("HTTP/1.1 2000 OK\n", "f:1: no status code of three digits"),
            ("HTTP/1.1 200 OK\nA: 1\nnonsense\n", "f:3: a field line without a colon"),
            ("HTTP/1.1 200 OK\n: 1\n", "f:2: a field name that is no token"),
            ("HTTP/1.1 200 OK\nA B: 1\n", "f:2: a field name that is no token"),
            ("HTTP/1.1 200 OK\nA : 1\n", "f:2: a field name that is no token"),
            ("HTTP/1.1 200 OK\nA: 1\n b\n", "f:3: a folded field line"),
            ("HTTP/1.1 200 OK\nA: \u{1}\n", "f:2: a control character in a field value"),
            ("HTTP/1.1 301 x\r\n\r\nHTTP/1.1 x\r\n", "f:3: no status code of three digits"),
        ])
    func malformed(_ text: String, _ cause: String) {
        do throws(CommandFailure) {
            _ = try Self.parse(text)
            Issue.record("was read: \(text)")
        } catch {
            #expect(error.status == .data)
            #expect(error.causes.count == 1)
            #expect(error.causes[0].hasPrefix(cause), "\(error.causes)")
        }
    }

    @Test("any bytes are a head or a failure")
    func junk() {
        var generator = SystemRandomNumberGenerator()
        let pieces = ["HTTP/1.1 200 OK", "\r\n", "\n", "A: b", ":", " ", "HTTP/2 ", "\u{0}", "é"]
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                pieces[Int.random(in: pieces.indices, using: &generator)]
            }.joined()
            if let head = try? Self.parse(text) { #expect(head.status.rawValue >= 100) }
        }
    }
}

@Suite("The page of larder explain")
struct ExplainTextTests {
    private static let now = Timestamp(seconds: 1_700_000_100)

    private static func head(_ fields: Fields, varying: Fields = Fields()) -> StoredHead {
        let received = Timestamp(seconds: 1_700_000_090)
        return StoredHead(
            status: .ok, fields: fields, varyingFields: varying, requestTime: received,
            responseTime: received)
    }

    private static func page(
        _ question: ExplainQuestion, _ heads: [StoredHead],
        _ configuration: PolicyConfiguration = PolicyConfiguration()
    ) throws -> (record: ExplanationRecord, text: String) {
        let request = try question.request()
        let lengths = heads.map { _ in UInt64(100) }
        let record = ExplanationRecord(
            Explanation(
                request: request, candidates: heads, bodyLengths: lengths, now: self.now,
                configuration: configuration),
            of: request, session: "default", bodyLengths: lengths, history: nil)
        return (record, ExplainText.lines(record).joined(separator: "\n"))
    }

    struct Case: Sendable {
        let name: String
        let method: String
        let fields: [ControlField]
        let held: [StoredHead]
        let verdict: ExplanationRecord.Verdict
        let words: [String]

        init(
            _ name: String, _ method: String, _ fields: [(String, String)],
            _ held: [StoredHead], _ verdict: ExplanationRecord.Verdict, _ words: [String]
        ) {
            self.name = name
            self.method = method
            self.fields = fields.map { ControlField(name: $0.0, value: $0.1) }
            self.held = held
            self.verdict = verdict
            self.words = words
        }

        /// Of a plain GET.
        init(
            _ name: String, _ held: [StoredHead], _ verdict: ExplanationRecord.Verdict,
            _ words: [String]
        ) {
            self.init(name, "GET", [], held, verdict, words)
        }
    }

    private static let fresh = Self.head(["Cache-Control": "max-age=60", "ETag": "\"a\""])
    private static let part = {
        var part = Self.fresh
        part.extent = StoredExtent(completeLength: 100, ranges: [10..<20])
        return part
    }()

    static let cases: [Case] = [
        Case(
            "fresh hit", [fresh], .hit,
            [
                "from the cache", "fresh (RFC 9111 §4.2)", "remaining", "50.000 s",
                "Cache-Control: max-age=60 (RFC 9111 §5.2.2.1)", "sends    the whole response",
                "made it a hit: it is one, until its lifetime is over",
            ]),
        Case(
            "stale", [head(["Cache-Control": "max-age=5", "ETag": "\"a\""])], .validate,
            ["after asking the origin", "lifetime-over (RFC 9111 §4.2)", "-5.000 s", "stale"]),
        Case(
            "vary miss", "GET", [("Accept-Language", "de"), ("Cookie", "id=mine")],
            [
                head(
                    ["Vary": "Accept-Language, Cookie", "Cache-Control": "max-age=60"],
                    varying: ["Accept-Language": "en", "Cookie": "id=theirs"])
            ], .fetch,
            [
                "fwd=vary-miss", "no-matching-variant (RFC 9111 §4.1)",
                "vary accept-language  differs: stored \"en\", asked \"de\"",
                "vary cookie           differs (values not shown)", "variant  none of 1",
            ]),
        Case("nothing stored", [], .fetch, ["nothing-stored (RFC 9111 §4)", "fwd=uri-miss"]),
        Case(
            "POST", "POST", [], [fresh], .fetch,
            ["method-not-cacheable (RFC 9111 §4)", "fwd=method"]),
        Case(
            "Range", "GET", [("Range", "bytes=0-9")], [fresh], .hit,
            ["sends    206, bytes 0-9", "asks for a part (RFC 9110 §14.2)"]),
        Case(
            "Range of which a part is stored", "GET", [("Range", "bytes=0-99")], [part], .validate,
            [
                "from what is stored, and the rest from the origin (fwd=partial)",
                "sends    206, bytes 0-99", "bytes 10-19, selected",
            ]),
        Case("HEAD", "HEAD", [], [fresh], .hit, ["sends    the head"]),
        Case(
            "content", "GET", [("Content-Length", "5")], [fresh], .fetch,
            ["request-content (RFC 9110 §9.3.1)", "fwd=bypass"]),
        Case(
            "content in chunks", "GET", [("Transfer-Encoding", "chunked")], [fresh], .fetch,
            ["request-content (RFC 9110 §9.3.1)", "fwd=bypass"]),
        Case(
            "no-cache", "GET", [("Cache-Control", "no-cache")], [fresh], .validate,
            ["request-no-cache (RFC 9111 §5.2.1.4)", "request   no-cache"]),
        Case(
            "no-store", "GET", [("Cache-Control", "no-store")], [fresh], .fetch,
            ["request-no-store (RFC 9111 §5.2.1.5)"]),
        Case(
            "only-if-cached", "GET", [("Cache-Control", "only-if-cached")], [], .refuse,
            [
                "504, without asking", "only-if-cached (RFC 9111 §5.2.1.7)",
                "beneath  nothing-stored",
            ]
        ),
        Case(
            "conditional", "GET", [("If-None-Match", "\"a\"")], [fresh], .hit,
            ["sends    304, as the client's copy still holds"]),
        Case(
            "stale while revalidate",
            [head(["Cache-Control": "max-age=5, stale-while-revalidate=60"])], .staleHit,
            ["from the cache, though stale; the origin is asked behind it", "RFC 5861 §3"]),
        Case(
            "heuristic",
            [
                head([
                    "Last-Modified": "Mon, 13 Nov 2023 22:14:50 GMT",
                    "Date": "Tue, 14 Nov 2023 22:14:50 GMT",
                ])
            ], .hit, ["8640.000 s", "10 % of Date less Last-Modified", "RFC 9111 §4.2.2"]),
        Case(
            "Authorization", "GET", [("Authorization", "Basic c2VjcmV0")], [fresh], .hit,
            ["keeps the answer out of a shared cache", "RFC 9111 §3.5"]),
    ]

    @Test("shows verdict, rules, variants, numbers and remedy", arguments: cases)
    func page(_ c: Case) throws {
        let question = ExplainQuestion(
            session: "default", method: c.method, url: "http://h.example/x", fields: c.fields)
        let (record, text) = try Self.page(question, c.held)
        #expect(record.verdict == c.verdict)
        for word in c.words { #expect(text.contains(word), "\(c.name): \(word)\n\(text)") }
        let last = try #require(text.split(separator: "\n").last)
        #expect(last.hasPrefix("What would have made it a hit: "))
        #expect(!text.contains("id=") && !text.contains("c2VjcmV0"))
        let json = try JSONLine.of(record)
        #expect(!json.contains("id=") && !json.contains("c2VjcmV0"))
    }

    @Test("names the cache rule that fits, also where nothing is stored")
    func cacheRule() throws {
        var configuration = PolicyConfiguration()
        configuration.rules = [
            CacheRule(name: "other", paths: [Wildcard("/y")], minimum: .seconds(60)),
            CacheRule(
                name: "pinned", place: "larder.yaml:7", paths: [Wildcard("/x")],
                minimum: .seconds(60)),
        ]
        let question = ExplainQuestion(session: "default", url: "http://h.example/x")
        let resolved = configuration.resolved(for: try question.request().uri)
        let text = try Self.page(question, [], resolved).text
        #expect(
            text.contains("configuration  cache rule \"pinned\"  fits the URL (larder.yaml:7)"))
        #expect(!text.contains("other"))
    }

    @Test("lists what the session remembers, the last one first")
    func history() throws {
        let question = ExplainQuestion(session: "default", url: "http://h.example/x")
        var record = try Self.page(question, []).record
        var miss = RecentRecord(
            timeMicroseconds: 1_700_000_000_000_000, method: "GET", status: 200, isHit: false)
        miss.forward = "uri-miss"
        miss.forwardStatus = 200
        miss.storage = ReasonRecord(reason: "response-no-store", source: "RFC 9111 §5.2.2.5")
        miss.bytes = 2048
        record.history = [miss]
        let text = ExplainText.lines(record).joined(separator: "\n")
        #expect(text.contains("2023-11-14 22:13:20 UTC  GET"))
        #expect(text.contains("fwd=uri-miss, origin 200, not stored"))
        #expect(text.contains("2 KiB  response-no-store (RFC 9111 §5.2.2.5)"))
        miss.isBackground = true
        miss.acts = [ReasonRecord(reason: "credential-injected", source: "injections")]
        record.history = [miss]
        record.acts = [ReasonRecord(reason: "credential-missing", source: "injections")]
        #expect(
            ExplainText.lines(record).contains {
                $0.contains("(RFC 9111 §5.2.2.5), credential-injected (injections)")
            })
        #expect(
            ExplainText.lines(record).contains {
                $0.hasPrefix("  to origin") && $0.hasSuffix("credential-missing (injections)")
            })
        #expect(
            ExplainText.lines(record).contains {
                $0.contains("in the background, fwd=uri-miss, origin 200")
            })
        record.history = []
        #expect(ExplainText.lines(record).contains("  none remembered"))
    }

    @Test("says that https comes by tunnels, unless it was asked for in another way")
    func tunnels() throws {
        let question = ExplainQuestion(session: "default", url: "https://h.example/x")
        var (record, text) = try Self.page(question, [])
        #expect(text.contains("of which nothing is stored"))
        record.history = [
            RecentRecord(timeMicroseconds: 0, method: "GET", status: 200, isHit: false)
        ]
        text = ExplainText.lines(record).joined(separator: "\n")
        #expect(!text.contains("of which nothing is stored"))
        let plain = ExplainQuestion(session: "default", url: "http://h.example/x")
        #expect(!(try Self.page(plain, []).text.contains("of which nothing is stored")))
    }

    @Test(
        "leaves out what is too long, and variants that do not fit into a line, but the selected one",
        arguments: [(1, 1, 0), (64, 64, 0), (200, 65, 135)])
    func long(_ stored: Int, _ listed: Int, _ unlisted: Int) throws {
        let long = String(repeating: "ä", count: 1000)
        let names = (0..<20).map { "sec-ch-\($0)" }
        let heads = (1...stored).map { number in
            var varying = Fields()
            for name in names { varying.append(name, long + "\(number)") }
            return Self.head(
                [
                    "Vary": names.joined(separator: ", "), "ETag": "\"\(long)\"",
                    "Cache-Control": "max-age=60",
                ], varying: varying)
        }
        let question = ExplainQuestion(
            session: "default", url: "http://h.example/x",
            fields: names.map { ControlField(name: $0, value: long + "\(stored)") })
        var record = try Self.page(question, heads).record
        #expect(record.variants.count == stored)
        let varying = try #require(record.variants.last?.varying.first)
        #expect(varying.stored == String(repeating: "ä", count: 128) + "…")
        #expect(varying.stored == varying.presented && varying.result == "same")
        try record.fitLine()
        let line = try ControlCodec.line(ControlReply.explanation(record))
        #expect(line.count <= ControlCodec.longestLine)
        #expect(record.variants.last?.isSelected == true)
        #expect(record.variants.count + (record.unlistedVariants ?? 0) == stored)
        #expect(record.variants.count <= listed && (record.unlistedVariants ?? 0) >= unlisted)
        let text = ExplainText.lines(record).joined(separator: "\n")
        #expect(text.contains("variant  \(record.variants.count) of \(stored)"))
        #expect(text.contains("more variants are not shown") == (record.unlistedVariants != nil))
    }

    @Test("cuts remedies that name fields at length, as no variant fewer makes room for them")
    func longRemedies() throws {
        let heads = (0..<40).map { number in
            let name = String(repeating: "x", count: 20_000) + "\(number)"
            var varying = Fields()
            varying.append(name, "1")
            return Self.head(["Vary": name, "Cache-Control": "max-age=60"], varying: varying)
        }
        let question = ExplainQuestion(session: "default", url: "http://h.example/x")
        var record = try Self.page(question, heads).record
        #expect(record.remedies.first?.utf8.count == 1024 + "…".utf8.count)
        try record.fitLine()
        let line = try ControlCodec.line(ControlReply.explanation(record))
        #expect(line.count <= ControlCodec.longestLine)
        #expect(record.variants.count == 40)
    }

    @Test(
        "tells of one variant in a line, whatever its origin names in Vary",
        arguments: [128, 16_000])
    func longVary(_ count: Int) throws {
        let long = String(repeating: "\"", count: 300)
        let names = (0..<count).map { "sec-ch-" + String(repeating: "x", count: 300) + "\($0)" }
        var varying = Fields()
        for name in names.prefix(128) { varying.append(name, long) }
        let head = Self.head(
            ["Vary": names.joined(separator: ","), "Cache-Control": "max-age=60"],
            varying: varying)
        let question = ExplainQuestion(session: "default", url: "http://h.example/x")
        var record = try Self.page(question, [head]).record
        try record.fitLine()
        let line = try ControlCodec.line(ControlReply.explanation(record))
        #expect(line.count <= ControlCodec.longestLine)
        #expect(record.variants.count == 1)
    }

    @Test("a stranger's bytes do not reach the terminal")
    func harmless() throws {
        let head = Self.head(["Vary": "Accept", "ETag": "\"\u{9b}x\""], varying: ["Accept": "é"])
        let question = ExplainQuestion(
            session: "default", url: "http://h.example/x",
            fields: [ControlField(name: "Accept", value: "b")])
        let text = try Self.page(question, [head]).text
        #expect(!text.unicodeScalars.contains { $0.value == 0x9B || $0.value == 0x1B })
    }

    @Test(
        "what is no request is refused",
        arguments: [
            ("gopher://h/", "GET", "A", "is no URL"), ("http://h/", "GE T", "A", "is no method"),
            ("http://h/", "GET", "A B", "is no field name"),
            ("http://h/", "GET", "A\n", "is no field name"),
            ("http://h/", "GET", "Content-Length", "Content-Length is not a number"),
        ])
    func refused(_ url: String, _ method: String, _ name: String, _ words: String) {
        let question = ExplainQuestion(
            session: "default", method: method, url: url,
            fields: [ControlField(name: name, value: "x")])
        do throws(ControlRefusal) {
            _ = try question.request()
            Issue.record("was taken")
        } catch {
            #expect(error.failure.code == .invalid)
            #expect(error.failure.message.contains(words))
        }
    }

    @Test("fields of the connection are left out, as at a door")
    func hopByHop() throws {
        let question = ExplainQuestion(
            session: "default", url: "http://u/x",
            fields: [("Connection", "close, X-A"), ("X-A", "1"), ("Host", "h"), ("X-B", "2")]
                .map { ControlField(name: $0.0, value: $0.1) })
        #expect(try question.request().fields.pairs.map(\.name) == ["X-B"])
    }

    @Test("Larder-Cache-Policy says how the request uses the cache, and is no field of it")
    func cachePolicy() throws {
        func question(_ word: String) -> ExplainQuestion {
            ExplainQuestion(
                session: "default", url: "http://h.example/x",
                fields: [ControlField(name: "larder-cache-policy", value: word)])
        }
        #expect(try question("reload-revalidating").cachePolicy() == .reloadRevalidating)
        #expect(try question("reload-revalidating").request().fields.count == 0)
        #expect(try ExplainQuestion(session: "", url: "http://h/").cachePolicy() == nil)
        #expect(throws: ControlRefusal.self) { try question("reload").cachePolicy() }
    }
}

@Suite("larder explain --reasons lists the words of the log and of Cache-Status")
struct ReasonTextTests {
    @Test("each with where it is written and what it takes", arguments: [60, 100])
    func lines(_ width: Int) {
        for reason in PolicyReason.allCases {
            let lines = ReasonText.lines(reason, width: width)
            #expect(lines[0] == "\(reason.rawValue) (\(reason.section))")
            #expect(lines.count > 1 && lines.allSatisfy { $0.count <= width }, "\(lines)")
            let remedy = lines.dropFirst().map { $0.drop { $0 == " " } }.joined(separator: " ")
            #expect(remedy == reason.remedy)
        }
    }
}
