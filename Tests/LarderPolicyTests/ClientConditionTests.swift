import LarderHTTP
import LarderPolicy
import Testing

@Suite("A client's conditions and ranges (RFC 9111 §4.3.2, RFC 9110 §13.2.2)")
struct ClientConditionTests {
    struct Case: Sendable {
        let asked: String
        let held: String
        let status: UInt16
        let method: Method
        let outcome: ClientOutcome

        init(
            _ asked: String, held: String, status: UInt16 = 200, method: Method = .get,
            _ outcome: ClientOutcome
        ) {
            self.asked = asked
            self.held = held
            self.status = status
            self.method = method
            self.outcome = outcome
        }

        func check() {
            let outcome = ClientCondition.evaluate(
                request(self.asked, method: self.method),
                against: stored(self.held, status: self.status),
                bodyLength: 10)
            #expect(outcome == self.outcome)
        }
    }

    static let tags: [Case] = [
        Case("", held: "ETag: \"a\"", .full),
        Case("If-None-Match: \"a\"", held: "ETag: \"a\"", .notModified),
        Case("If-None-Match: \"a\"", held: "ETag: \"a\"", method: .head, .notModified),
        Case("If-None-Match: \"b\"", held: "ETag: \"a\"", .full),
        Case("If-None-Match: W/\"a\"", held: "ETag: \"a\"", .notModified),
        Case("If-None-Match: \"a\"", held: "ETag: W/\"a\"", .notModified),
        Case("If-None-Match: \"x\", \"y\", \"a\"", held: "ETag: \"a\"", .notModified),
        Case("If-None-Match: \"x\" | If-None-Match: \"a\"", held: "ETag: \"a\"", .notModified),
        Case("If-None-Match: a", held: "ETag: \"a\"", .full),
        Case("If-None-Match: \"a\"", held: "ETag: a", .full),
        Case("If-None-Match: w/\"a\"", held: "ETag: W/\"a\"", .full),
        Case("If-None-Match: \"a\"", held: "", .full),
        Case("If-None-Match: *", held: "ETag: \"a\"", .notModified),
        Case("If-None-Match: *", held: "", .notModified),
        Case("If-None-Match: \"ü\"", held: "ETag: \"ü\"", .notModified),
        Case("If-None-Match: \"a\"", held: "ETag: \"a\"", status: 203, .notModified),
        Case("If-None-Match: \"a\"", held: "ETag: \"a\"", status: 404, .full),
        Case("If-None-Match: *", held: "", status: 301, .full),
        // §13.2.2: If-None-Match silences If-Modified-Since.
        Case(
            "If-None-Match: \"b\" | If-Modified-Since: @0",
            held: "ETag: \"a\" | Last-Modified: @-9",
            .full),
        Case(
            "If-None-Match: \"a\" | If-Modified-Since: @-99",
            held: "ETag: \"a\" | Last-Modified: @-9", .notModified),
        Case("If-None-Match: | If-Modified-Since: @0", held: "Last-Modified: @-9", .full),
        // Not for a cache.
        Case("If-Match: \"b\"", held: "ETag: \"a\"", .full),
        Case("If-Unmodified-Since: @-99", held: "Last-Modified: @-9", .full),
    ]

    static let dates: [Case] = [
        Case("If-Modified-Since: @-9", held: "Last-Modified: @-9", .notModified),
        Case("If-Modified-Since: @-8", held: "Last-Modified: @-9", .notModified),
        Case("If-Modified-Since: @-10", held: "Last-Modified: @-9", .full),
        Case("If-Modified-Since: @99", held: "Last-Modified: @-9", .notModified),
        Case("If-Modified-Since: @-9", held: "Last-Modified: @-9", method: .head, .notModified),
        Case(
            "If-Modified-Since: Tuesday, 14-Nov-23 22:13:20 GMT", held: "Last-Modified: @0",
            .notModified),
        Case(
            "If-Modified-Since: Tue Nov 14 22:13:20 2023", held: "Last-Modified: @0", .notModified),
        // Without Last-Modified the Date counts, without that the receipt.
        Case("If-Modified-Since: @-5", held: "Date: @-5", .notModified),
        Case("If-Modified-Since: @-6", held: "Date: @-5", .full),
        Case("If-Modified-Since: @0", held: "", .notModified),
        Case("If-Modified-Since: @-1", held: "", .full),
        Case("If-Modified-Since: @0", held: "Last-Modified: then | Date: @-5", .notModified),
        // Invalid, or more than one: ignored.
        Case("If-Modified-Since: 0", held: "Last-Modified: @-9", .full),
        Case("If-Modified-Since: ", held: "Last-Modified: @-9", .full),
        Case("If-Modified-Since: @0 | If-Modified-Since: @0", held: "Last-Modified: @-9", .full),
        Case("If-Modified-Since: @0", held: "Last-Modified: @-9", status: 404, .full),
    ]

    static let ranges: [Case] = [
        Case("Range: bytes=0-4", held: "", .partial(0..<5)),
        Case("Range: bytes=2-", held: "", .partial(2..<10)),
        Case("Range: bytes=-3", held: "", .partial(7..<10)),
        Case("Range: bytes=-30", held: "", .partial(0..<10)),
        Case("Range: bytes=0-99", held: "", .partial(0..<10)),
        Case("Range: bytes=9-9", held: "", .partial(9..<10)),
        Case("Range: bytes=10-", held: "", .rangeNotSatisfiable),
        Case("Range: bytes=10-11, 20-", held: "", .rangeNotSatisfiable),
        Case("Range: bytes=-0", held: "", .rangeNotSatisfiable),
        Case("Range: bytes=0-1,3-4", held: "", .parts([0..<2, 3..<5])),
        Case("Range: bytes=3-4, 0-1", held: "", .parts([3..<5, 0..<2])),
        Case("Range: bytes=0-1,2-4", held: "", .partial(0..<5)),
        Case("Range: bytes=0-1,20-", held: "", .partial(0..<2)),
        Case("Range: bytes=0-4,5-9", held: "", .full),
        Case("Range: bytes=0-5,2-6,4-8", held: "", .full),
        Case("Range: bytes=0-1,3-4", held: "", method: .head, .full),
        Case("Range: bytes=0-1,3-4 | If-Range: \"b\"", held: "ETag: \"a\"", .full),
        Case("Range: bytes=4-2", held: "", .full), Case("Range: lines=0-4", held: "", .full),
        Case("Range: junk", held: "", .full),
        Case("Range: bytes=0-1 | Range: bytes=0-1", held: "", .full),
        Case("Range: bytes=0-4", held: "", method: .head, .full),
        Case("Range: bytes=0-4", held: "", status: 404, .full),
        Case("Range: bytes=0-4", held: "", status: 203, .full),
        Case("Range: bytes=0-4 | If-None-Match: \"a\"", held: "ETag: \"a\"", .notModified),
        Case("Range: bytes=0-4 | If-None-Match: \"b\"", held: "ETag: \"a\"", .partial(0..<5)),
        // If-Range (RFC 9110 §13.1.5)
        Case("If-Range: \"a\"", held: "ETag: \"a\"", .full),
        Case("Range: bytes=0-4 | If-Range: \"a\"", held: "ETag: \"a\"", .partial(0..<5)),
        Case("Range: bytes=0-4 | If-Range: \"b\"", held: "ETag: \"a\"", .full),
        Case("Range: bytes=99- | If-Range: \"b\"", held: "ETag: \"a\"", .full),
        Case("Range: bytes=0-4 | If-Range: W/\"a\"", held: "ETag: W/\"a\"", .full),
        Case("Range: bytes=0-4 | If-Range: \"a\"", held: "ETag: W/\"a\"", .full),
        Case("Range: bytes=0-4 | If-Range: \"a\"", held: "", .full),
        Case("Range: bytes=0-4 | If-Range: a", held: "ETag: \"a\"", .full),
        Case("Range: bytes=0-4 | If-Range: \"a\" | If-Range: \"a\"", held: "ETag: \"a\"", .full),
        Case(
            "Range: bytes=0-4 | If-Range: @-9", held: "Date: @0 | Last-Modified: @-9",
            .partial(0..<5)),
        Case(
            "Range: bytes=0-4 | If-Range: @-1", held: "Date: @0 | Last-Modified: @-1",
            .partial(0..<5)),
        Case("Range: bytes=0-4 | If-Range: @0", held: "Date: @0 | Last-Modified: @0", .full),
        Case("Range: bytes=0-4 | If-Range: @-8", held: "Date: @0 | Last-Modified: @-9", .full),
        Case("Range: bytes=0-4 | If-Range: @-9", held: "Last-Modified: @-9", .full),
        Case("Range: bytes=0-4 | If-Range: @0", held: "Date: @0", .full),
    ]

    @Test("If-None-Match compares weakly (RFC 9110 §13.1.2)", arguments: Self.tags)
    func byTag(_ c: Case) { c.check() }

    @Test("If-Modified-Since compares dates (RFC 9110 §13.1.3)", arguments: Self.dates)
    func byDate(_ c: Case) { c.check() }

    @Test("Range takes a part, If-Range permitting (RFC 9110 §14.2)", arguments: Self.ranges)
    func byRange(_ c: Case) { c.check() }

    @Test("an empty representation has no part")
    func empty() {
        for (range, outcome) in [
            ("bytes=0-", ClientOutcome.rangeNotSatisfiable), ("bytes=-5", .full),
        ] {
            #expect(
                ClientCondition.evaluate(
                    request("Range: \(range)"), against: stored(), bodyLength: 0) == outcome)
        }
    }
}

@Suite("The head that goes to the client (RFC 9111 §4, §5.1)")
struct StoredAnswerTests {
    struct Case: Sendable {
        let held: String
        let outcome: ClientOutcome
        let status: UInt16
        let expected: String

        init(_ held: String, _ outcome: ClientOutcome, _ status: UInt16, _ expected: String) {
            self.held = held
            self.outcome = outcome
            self.status = status
            self.expected = expected
        }
    }

    @Test(
        "has Age and the origin's Date, and no length",
        arguments: [
            Case("Date: @-9 | A: 1", .full, 200, "Date: @-9 | A: 1 | Age: 7"),
            Case("Date: @-9 | Age: 3 | Age: x", .full, 200, "Date: @-9 | Age: 7"),
            Case("Date: @-9 | Content-Length: 10", .full, 200, "Date: @-9 | Age: 7"),
            Case(
                "Date: @-9 | a: 1 | A: 2 | Set-Cookie: x", .full, 200,
                "Date: @-9 | a: 1 | A: 2 | Set-Cookie: x | Age: 7"),
            Case("A: 1", .full, 200, "A: 1 | Date: @0 | Age: 7"),
            // no-cache="…" (§5.2.2.4)
            Case(
                "Date: @-9 | Cache-Control: no-cache=\"X-A\" | X-A: 1 | X-B: 2", .full, 200,
                "Date: @-9 | Cache-Control: no-cache=\"X-A\" | X-B: 2 | Age: 7"),
            // 206 (RFC 9110 §15.3.7)
            Case(
                "Date: @-9 | ETag: \"a\" | Content-Type: a/b | Content-Length: 10", .partial(2..<5),
                206,
                "Date: @-9 | ETag: \"a\" | Content-Type: a/b | Age: 7 | Content-Range: bytes 2-4/10"
            ),
            // 304 (RFC 9110 §15.4.5)
            Case(
                "Date: @-9 | ETag: \"a\" | Content-Type: a/b | Content-Encoding: x | Vary: A | Expires: @9"
                    + " | Last-Modified: @-9 | Content-Language: de | Content-Location: /x | B: 1",
                .notModified, 304,
                "Date: @-9 | ETag: \"a\" | Vary: A | Expires: @9 | Content-Location: /x | B: 1 | Age: 7"
            ),
            Case(
                "Date: @-9 | Last-Modified: @-9", .notModified, 304,
                "Date: @-9 | Last-Modified: @-9 | Age: 7"),
            // Larder's own answers
            Case(
                "Date: @-9 | ETag: \"a\"", .rangeNotSatisfiable, 416,
                "Date: @100 | Content-Range: bytes */10"),
            Case("Date: @-9 | ETag: \"a\"", .preconditionFailed, 412, "Date: @100"),
        ])
    func heads(_ c: Case) {
        let head = StoredAnswer.head(
            for: stored(c.held), outcome: c.outcome, bodyLength: 10, age: .milliseconds(7900),
            now: t0 + .seconds(100))
        #expect(head.status.rawValue == c.status)
        #expect(head.fields == fields(c.expected))
    }

    @Test("has the fields of no-cache=\"…\" once the origin has confirmed them")
    func validated() {
        let head = StoredAnswer.head(
            for: stored("Date: @0 | Cache-Control: no-cache=X-A | X-A: 1"), outcome: .full,
            bodyLength: 1, age: .seconds(-3), now: t0, isValidated: true)
        #expect(head.fields == fields("Date: @0 | Cache-Control: no-cache=X-A | X-A: 1 | Age: 0"))
    }

    @Test("keeps the stored status and reason")
    func status() {
        var held = stored(status: 404)
        held.reason = "Nothing Here"
        let head = StoredAnswer.head(
            for: held, outcome: .full, bodyLength: 1, age: .zero, now: t0)
        #expect(head.status.rawValue == 404 && head.reason == "Nothing Here")
    }
}

@Suite("Invalidation (RFC 9111 §4.4)")
struct InvalidationTests {
    struct Case: Sendable {
        let method: Method
        let status: UInt16
        let text: String
        let paths: [String]

        init(_ method: Method, _ status: UInt16 = 200, _ text: String = "", _ paths: String...) {
            self.method = method
            self.status = status
            self.text = text
            self.paths = paths
        }
    }

    @Test(
        "follows unsafe methods that succeed, at the target and at locations of its origin",
        arguments: [
            Case(.get), Case(.head), Case(.options), Case(.trace),
            Case(.post, 200, "", "/t?q"), Case(.put, 204, "", "/t?q"),
            Case(.delete, 200, "", "/t?q"),
            Case(.patch, 200, "", "/t?q"), Case(Method(rawValue: "M-SEARCH"), 200, "", "/t?q"),
            Case(Method(rawValue: "post"), 200, "", "/t?q"),
            Case(.post, 301, "", "/t?q"), Case(.post, 304, "", "/t?q"), Case(.post, 199),
            Case(.post, 400),
            Case(.post, 404), Case(.post, 500), Case(.post, 599), Case(.get, 200, "Location: /a"),
            Case(.post, 201, "Location: /a", "/t?q", "/a"),
            Case(.post, 200, "Content-Location: b", "/t?q", "/b"),
            Case(.post, 200, "Location: /a | Content-Location: /b", "/t?q", "/a", "/b"),
            Case(.post, 200, "Location: /a | Content-Location: /a", "/t?q", "/a"),
            Case(.post, 200, "Location: ", "/t?q"),
            Case(.post, 200, "Location: http://A.Example:80/c#f", "/t?q", "/c"),
            Case(.post, 200, "Location: http://b.example/c", "/t?q"),
            Case(.post, 200, "Location: https://a.example/c", "/t?q"),
            Case(.post, 200, "Location: http://a.example:81/c", "/t?q"),
            Case(.post, 200, "Location: //b.example/c", "/t?q"),
            Case(.post, 200, "Location: not a uri", "/t?q"),
            Case(.post, 200, "Location: mailto:a@b", "/t?q"),
        ])
    func keys(_ c: Case) {
        let uris = Invalidation.uris(
            request: request(method: c.method, uri: uri("/t?q")),
            response: response(c.text, status: c.status))
        #expect(uris == c.paths.map { uri($0) })
    }
}

@Suite("Reasons")
struct PolicyReasonTests {
    @Test("are tokens (RFC 9211 §2.8) that differ, each with its section")
    func tokens() {
        #expect(PolicyReason.allCases.map(\.place) == Array(PolicyReason.allCases.indices))
        let tokens = PolicyReason.allCases.map(\.rawValue)
        #expect(Set(tokens).count == tokens.count)
        #expect(tokens.allSatisfy { $0.utf8.allSatisfy(ASCII.isToken) })
        #expect(
            PolicyReason.allCases.allSatisfy {
                $0.section.hasPrefix("RFC ") || $0.section.hasPrefix("setting ")
            })
    }
}
