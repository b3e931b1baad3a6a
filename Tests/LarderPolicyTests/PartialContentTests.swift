import LarderHTTP
import LarderPolicy
import Testing

@Suite("What a 206 holds (RFC 9110 §15.3.7, §14.4)")
struct PartialContentTests {
    typealias Part = PartialContent.Part

    struct Case: Sendable {
        let text: String
        let asked: String
        let length: BodyLength
        let content: PartialContent

        init(
            _ text: String, asked: String = "Range: bytes=0-9", length: BodyLength = .known(10),
            _ content: PartialContent
        ) {
            self.text = text
            self.asked = asked
            self.length = length
            self.content = content
        }
    }

    static let ten = PartialContent.part(Part(range: 0..<10, completeLength: 100))
    static let contradictory = PartialContent.notStorable(.contradictory)

    static let cases: [Case] = [
        Case("Content-Range: bytes 0-9/100", ten),
        Case("content-range: BYTES 0-9/100", ten),
        Case("Content-Range: bytes 0-9/100", length: .unknown, ten),
        Case("Content-Range: bytes 0-9/100 | Content-Range: bytes 0-9/100", ten),
        Case(
            "Content-Range: bytes 0-9/*", .part(Part(range: 0..<10, completeLength: nil))),
        Case(
            "Content-Range: bytes 90-99/100", .part(Part(range: 90..<100, completeLength: 100))),
        // Several ranges asked for, one given (§15.3.7.2).
        Case("Content-Range: bytes 0-9/100", asked: "Range: bytes=0-4,5-9", ten),
        Case(
            "Content-Range: bytes 9223372036854775797-9223372036854775806/9223372036854775807",
            .part(
                Part(
                    range: 9_223_372_036_854_775_797..<9_223_372_036_854_775_807,
                    completeLength: 9_223_372_036_854_775_807))),
        Case("", contradictory),
        Case("Content-Range: bytes 0-9/100", asked: "", contradictory),
        Case("Content-Range: bytes 0-9/100", length: .known(9), contradictory),
        Case("Content-Range: bytes 0-9/100", length: .known(11), contradictory),
        Case("Content-Range: bytes 0-9/100", length: .none, contradictory),
        Case("Content-Range: bytes 0-9/9", contradictory),
        Case("Content-Range: bytes 9-0/100", contradictory),
        Case("Content-Range: bytes 0-9", contradictory),
        Case("Content-Range: bytes 0-9/", contradictory),
        Case("Content-Range: bytes -9/100", contradictory),
        Case("Content-Range: bytes 0-/100", contradictory),
        Case("Content-Range: bytes */100", contradictory),
        Case("Content-Range: bytes=0-9/100", contradictory),
        Case("Content-Range: items 0-9/100", contradictory),
        Case("Content-Range: bytes 0-9/100, bytes 0-9/100", contradictory),
        Case("Content-Range: bytes 0-9/100 | Content-Range: bytes 0-9/101", contradictory),
        Case("Content-Range: bytes 0-9/9223372036854775808", contradictory),
        Case("Content-Range: bytes 0-9/18446744073709551616", contradictory),
        Case(
            "Content-Range: bytes 18446744073709551605-18446744073709551614/*", contradictory),
        Case(
            "Content-Range: bytes 18446744073709551606-18446744073709551615/*", contradictory),
        Case("Content-Type: multipart/byteranges; boundary=x", .notStorable(.multipartResponse)),
        Case("Content-Type: Multipart/Byteranges", .notStorable(.multipartResponse)),
        Case(
            "Content-Type: multipart/byteranges; boundary=x | Content-Range: bytes 0-9/100",
            contradictory),
    ]

    @Test("is read with exact arithmetic", arguments: cases)
    func read(_ c: Case) {
        let content = PartialContent.read(
            response(c.text, status: 206), bodyLength: c.length, to: request(c.asked))
        #expect(content == c.content)
    }

    @Test("is stored as a part of a 200 (RFC 9111 §3.3)")
    func head() {
        let head = StoredHead(
            storing: response(
                "Content-Range: bytes 0-9/100 | Content-Length: 10 | ETag: \"a\"", status: 206),
            part: Part(range: 0..<10, completeLength: 100), to: request("Range: bytes=0-9"),
            requestTime: t0, responseTime: t0)
        #expect(head.status == .ok)
        #expect(head.fields.string("Content-Range") == nil)
        #expect(head.fields.string("Content-Length") == "100")
        #expect(head.fields.string("ETag") == "\"a\"")
        #expect(head.extent == StoredExtent(completeLength: 100, ranges: [0..<10]))
        #expect(head.completeLength(bodyLength: 7) == 100)
        #expect(stored().completeLength(bodyLength: 7) == 7)
        var unknown = head
        unknown.extent = StoredExtent(completeLength: nil, ranges: [0..<10])
        #expect(unknown.completeLength(bodyLength: 7) == nil)
    }

    @Test(
        "that answers If-Range may lack fields (RFC 9110 §15.3.7)",
        arguments: [
            ("Range: bytes=0-9", "", true), ("Range: bytes=0-9 | If-Range: \"a\"", "", false),
            ("Range: bytes=0-9 | If-Range: \"a\"", "Content-Type: a/b", true),
        ])
    func fields(_ asked: String, _ text: String, _ hasAll: Bool) {
        #expect(
            PartialContent.hasAllFields(response(text, status: 206), to: request(asked)) == hasAll)
    }

    @Test(
        "is stored by the rules for a 200 (RFC 9111 §3.3)",
        arguments: [
            ("Cache-Control: max-age=60", "", nil), ("ETag: \"a\"", "", nil),
            ("", "", .noFreshnessNoValidator), ("Cache-Control: no-store", "", .responseNoStore),
            ("Cache-Control: private", "", .responsePrivate),
            ("Cache-Control: max-age=60", "Authorization: x", .requestAuthorization),
            ("Cache-Control: max-age=60", "Cache-Control: no-store", .requestNoStore),
            ("Cache-Control: max-age=60, must-understand", "", nil),
            ("Cache-Control: max-age=60 | Vary: *", "", .varyAny),
            ("Cache-Control: max-age=60 | ETag: \"a\" | ETag: \"b\"", "", .contradictory),
        ] as [(String, String, PolicyReason?)])
    func storability(_ text: String, _ asked: String, _ reason: PolicyReason?) {
        let verdict = Storability.judge(
            request: request("Range: bytes=0-9 | \(asked)"),
            response: response("Content-Range: bytes 0-9/100 | \(text)", status: 206),
            bodyLength: .known(10), now: t0, configuration: .shared)
        #expect(verdict == reason.map { .notStorable($0) } ?? .storable)
    }
}

@Suite("Strong validators and what they put together (RFC 9110 §8.8.2.2, §15.3.7.3)")
struct CombinationTests {
    @Test(
        "are a strong tag, or without any tag a date a second old",
        arguments: [
            ("ETag: \"a\"", "\"a\""), ("ETag: W/\"a\"", nil), ("ETag: a", nil), ("", nil),
            ("ETag: \"a\" | ETag: \"b\"", nil), ("ETag: \"a\" | Last-Modified: @-9", "\"a\""),
            ("Last-Modified: @-1 | Date: @0", "Tue, 14 Nov 2023 22:13:19 GMT"),
            ("Last-Modified: @0 | Date: @0", nil), ("Last-Modified: @1 | Date: @0", nil),
            ("Last-Modified: @-9", nil), ("Last-Modified: then | Date: @0", nil),
            ("Last-Modified: @-9 | Date: @0 | ETag: W/\"a\"", nil),
            ("Last-Modified: @-9 | Last-Modified: @-8 | Date: @0", nil),
        ] as [(String, String?)])
    func validator(_ text: String, _ value: String?) {
        let validator = StrongValidator(of: fields(text))
        #expect(validator.map { String(decoding: $0.ifRange, as: UTF8.self) } == value)
    }

    struct Case: Sendable {
        let held: String
        let extent: StoredExtent?
        let text: String
        let part: PartialContent.Part
        let says: Combination

        init(
            _ held: String,
            _ extent: StoredExtent? = StoredExtent(
                completeLength: 100, ranges: [0..<10]),
            new text: String, at range: Range<UInt64> = 10..<20, of length: UInt64? = 100,
            _ says: Combination
        ) {
            self.held = held
            self.extent = extent
            self.text = text
            self.part = PartialContent.Part(range: range, completeLength: length)
            self.says = says
        }
    }

    static let tag = "ETag: \"a\""
    static let date = "Last-Modified: @-9 | Date: @0"
    static let open = StoredExtent(completeLength: nil, ranges: [0..<10])

    static let cases: [Case] = [
        Case(tag, new: tag, .extends(index: 0)), Case(date, new: date, .extends(index: 0)),
        Case(tag, new: "ETag: \"b\"", .begins), Case(tag, new: "ETag: W/\"a\"", .begins),
        Case(tag, new: "", .begins), Case("", new: tag, .begins), Case("", new: "", .begins),
        Case("ETag: W/\"a\"", new: "ETag: W/\"a\"", .begins),
        Case(date, new: "Last-Modified: @-8 | Date: @0", .begins),
        Case("Last-Modified: @0 | Date: @0", new: "Last-Modified: @0 | Date: @9", .begins),
        Case(date, new: date + " | ETag: \"a\"", .begins),
        Case(tag + " | " + date, new: date, .begins),
        // Other codings of the same file, with validators that are not as good as they should be.
        Case(date, new: date + " | Content-Encoding: gzip", .begins),
        Case(date + " | Content-Encoding: gzip", new: date, .begins),
        Case(tag, new: tag + " | Content-Encoding: gzip", .begins),
        Case(
            tag + " | Content-Encoding: gzip", new: tag + " | Content-Encoding: gzip",
            .extends(index: 0)),
        // Lengths that contradict each other.
        Case(tag, new: tag, of: 101, .begins), Case(tag, new: tag, of: nil, .extends(index: 0)),
        Case(tag, new: tag, at: 90..<101, of: nil, .begins),
        Case(tag, open, new: tag, .extends(index: 0)),
        Case(tag, open, new: tag, at: 0..<5, of: 5, .begins),
        Case(tag, open, new: tag, of: nil, .extends(index: 0)),
        // A stored whole of a hundred bytes.
        Case(tag, nil, new: tag, .extends(index: 0)), Case(tag, nil, new: tag, of: 99, .begins),
        Case(tag, nil, new: "ETag: \"b\"", .begins), Case(tag, nil, new: "", .unrelated),
        Case("", nil, new: "", .unrelated), Case("", nil, new: tag, .begins),
        // Of another variant nothing is said.
        Case(tag + " | Vary: X-A", new: tag, .extends(index: 0)),
    ]

    @Test("put parts together only where they say the same", arguments: cases)
    func combination(_ c: Case) {
        var head = stored(c.held)
        head.extent = c.extent
        let says = Combination.of(
            c.part, response(c.text, status: 206), to: request("Range: bytes=10-19"),
            with: [head], bodyLengths: [100], configuration: .shared)
        #expect(says == c.says)
    }

    @Test(
        "a 206 to If-Range may leave the coding out, not tell another one (RFC 9110 §15.3.7)",
        arguments: [
            ("", true), ("Content-Encoding: gzip", true), ("Content-Encoding: br", false),
        ])
    func coding(_ told: String, _ matches: Bool) throws {
        let validator = try #require(
            StrongValidator(of: fields("ETag: \"a\" | Content-Encoding: gzip")))
        #expect(validator.matches(fields("ETag: \"a\" | \(told)")) == matches)
        let alone = validator.matches(fields("ETag: \"a\" | \(told)"), answersIfRange: false)
        #expect(alone == (told == "Content-Encoding: gzip"))
    }

    @Test(
        "bytes that came under a weak validator stay alone, whatever a 304 says (§8.8.2.2)",
        arguments: ["Last-Modified: @0 | Date: @9", "ETag: \"a\" | Last-Modified: @0 | Date: @9"])
    func weakForever(_ told: String) {
        var head = stored("Last-Modified: @0 | Date: @0")
        head.extent = StoredExtent(completeLength: 100, ranges: [0..<10])
        let freshened = Validation.freshen(
            head, with: response(told, status: 304), requestTime: t0, responseTime: t0)
        #expect(StrongValidator(of: freshened.fields) == nil)
        head.extent = nil
        let whole = Validation.freshen(
            head, with: response(told, status: 304), requestTime: t0, responseTime: t0)
        #expect(whole.fields.string("Last-Modified") != nil)
    }

    @Test(
        "a digest of one message's content is no other's (RFC 9530 §2)",
        arguments: ["Content-Digest", "Content-MD5"])
    func digests(_ name: String) {
        let part = StoredHead(
            storing: response("Content-Range: bytes 0-9/100 | \(name): x", status: 206),
            part: PartialContent.Part(range: 0..<10, completeLength: 100),
            to: request("Range: bytes=0-9"), requestTime: t0, responseTime: t0)
        #expect(part.fields.string(FieldName(name)) == nil)
        let combined = Combination.head(
            stored("\(name): whole | Repr-Digest: r"),
            combinedWith: response("\(name): part", status: 206), requestTime: t0,
            responseTime: t0, configuration: .shared)
        #expect(combined.fields.string(FieldName(name)) == "whole")
        for (method, outcome, told) in [
            (.get, .full, "whole"), (.get, .partial(0..<10), nil),
            (.get, .parts([0..<1, 5..<6]), nil), (.head, .full, nil),
        ] as [(Method, ClientOutcome, String?)] {
            let head = StoredAnswer.head(
                for: combined, to: method, outcome: outcome, bodyLength: 100, age: .zero, now: t0)
            #expect(head.fields.string(FieldName(name)) == told)
            #expect(head.fields.string("Repr-Digest") == "r")
        }
    }

    @Test("leave other variants alone (RFC 9111 §4.1)")
    func variant() {
        var head = stored("ETag: \"a\" | Vary: X-A", varying: "X-A: 1")
        head.extent = StoredExtent(completeLength: 100, ranges: [0..<10])
        let part = PartialContent.Part(range: 10..<20, completeLength: 100)
        let says = Combination.of(
            part, response("ETag: \"a\" | Vary: X-A", status: 206),
            to: request("Range: bytes=10-19 | X-A: 2"), with: [head], bodyLengths: [100],
            configuration: .shared)
        #expect(says == .begins)
    }

    @Test("the fields of the newer response take the place of the older ones (RFC 9111 §3.4)")
    func head() {
        var head = stored(
            "ETag: \"a\" | Content-Length: 100 | X-A: old | X-B: old | Age: 5 | Date: @-9")
        head.extent = StoredExtent(completeLength: 100, ranges: [0..<10])
        let combined = Combination.head(
            head,
            combinedWith: response(
                "ETag: \"a\" | Content-Length: 10 | Content-Range: bytes 10-19/100 | X-A: new"
                    + " | Date: @20", status: 206),
            requestTime: t0 + .seconds(19), responseTime: t0 + .seconds(20), configuration: .shared)
        #expect(combined.fields.string("X-A") == "new")
        #expect(combined.fields.string("X-B") == "old")
        #expect(combined.fields.string("Content-Length") == "100")
        #expect(combined.fields.string("Content-Range") == nil)
        #expect(combined.fields.string("Age") == nil)
        #expect(combined.status == .ok)
        #expect(combined.responseTime == t0 + .seconds(20))
        #expect(combined.extent == head.extent)
    }
}
