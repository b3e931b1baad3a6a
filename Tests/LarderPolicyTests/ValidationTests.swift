import LarderHTTP
import LarderPolicy
import Testing

@Suite("Sending a validation request (RFC 9111 §4.3.1)")
struct ConditionalRequestTests {
    /// A 304 stands for a successful answer: the file that was missing is there by now.
    @Test(
        "asks about nothing but what was successful (RFC 9110 §13.2.1)",
        arguments: [
            (200, true), (203, true), (204, true), (301, false), (404, false), (410, false),
        ]
            as [(UInt16, Bool)])
    func failures(_ status: UInt16, _ isAsked: Bool) {
        let held = [
            stored("ETag: \"a\" | Last-Modified: @-9", status: status), stored("ETag: \"b\""),
        ]
        let expected = isAsked ? "If-None-Match: \"a\" | If-Modified-Since: @-9" : nil
        let alone = Validation.conditionalRequest(request(), validating: [held[0]])
        #expect(alone?.fields == expected.map { fields($0) })
        let beside = Validation.conditionalRequest(request(), validating: held, matching: [0])
        let tags = isAsked ? "\"a\", \"b\"" : "\"b\""
        #expect(beside?.fields.string("If-None-Match") == tags)
        for notModified in ["ETag: \"a\"", "Last-Modified: @-9", ""] {
            let selected = Validation.selected(
                by: response(notModified, status: 304), among: [held[0]])
            #expect(selected == (isAsked ? [0] : []))
        }
    }

    struct Case: Sendable {
        let asked: String
        let held: [String]
        let expected: String?

        init(_ asked: String = "", held: String..., expected: String?) {
            self.asked = asked
            self.held = held
            self.expected = expected
        }
    }

    @Test(
        "has all validators, and of the client's conditions its entity tags (§4.3.2)",
        arguments: [
            Case(held: "", expected: nil), Case(expected: nil),
            Case(held: "ETag: \"a\"", expected: "If-None-Match: \"a\""),
            Case(held: "ETag: W/\"a\"", expected: "If-None-Match: W/\"a\""),
            Case(held: "ETag: \"ü\"", expected: "If-None-Match: \"ü\""),
            Case(held: "Last-Modified: @-9", expected: "If-Modified-Since: @-9"),
            Case(
                held: "ETag: \"a\" | Last-Modified: @-9",
                expected: "If-None-Match: \"a\" | If-Modified-Since: @-9"),
            // A date is sent as the origin wrote it.
            Case(
                held: "Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT",
                expected: "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"),
            // What is no validator is not sent.
            Case(held: "ETag: a", expected: nil), Case(held: "Last-Modified: then", expected: nil),
            Case(held: "ETag: a | Last-Modified: @-9", expected: "If-Modified-Since: @-9"),
            Case(held: "ETag: \"a\" | ETag: \"b\"", expected: nil),
            // Several stored responses.
            Case(
                held: "ETag: \"a\"", "ETag: \"b\"", "ETag: \"a\"",
                expected: "If-None-Match: \"a\", \"b\""),
            Case(
                held: "ETag: \"a\" | Last-Modified: @-9", "ETag: \"b\" | Last-Modified: @-8",
                expected: "If-None-Match: \"a\", \"b\""),
            Case(
                held: "ETag: \"a\" | Last-Modified: @-9", "ETag: \"b\" | Last-Modified: @-9",
                expected: "If-None-Match: \"a\", \"b\" | If-Modified-Since: @-9"),
            Case(
                held: "Date: @-1 | Last-Modified: @-9", "Date: @0 | Last-Modified: @-8",
                expected: "If-Modified-Since: @-8"),
            Case(
                held: "Date: @0", "Date: @-1 | Last-Modified: @-9",
                expected: "If-Modified-Since: @-9"),
            // The client's own.
            Case(
                "A: 1 | If-None-Match: \"z\" | Range: bytes=0-1 | If-Range: \"z\"",
                held: "ETag: \"a\"", expected: "A: 1 | If-None-Match: \"a\", \"z\""),
            Case(
                "If-None-Match: W/\"z\", \"a\" | If-None-Match: \"y\"", held: "ETag: \"a\"",
                expected: "If-None-Match: \"a\", W/\"z\", \"y\""),
            Case(
                "If-None-Match: *", held: "ETag: \"a\"", expected: "If-None-Match: \"a\""),
            // Beside a list of tags the time would not be looked at (RFC 9110 §13.1.3).
            Case(
                "If-None-Match: \"z\"", held: "Last-Modified: @-9",
                expected: "If-Modified-Since: @-9"),
            Case(
                "If-Modified-Since: @0 | If-Unmodified-Since: @0 | If-Match: *",
                held: "ETag: \"a\"", expected: "If-None-Match: \"a\""),
            Case("If-None-Match: \"z\"", held: "A: 1", expected: nil),
            // What Vary chose stays in.
            Case(
                "Foo: 1", held: "Vary: Foo | ETag: \"a\"", expected: "Foo: 1 | If-None-Match: \"a\""
            ),
        ])
    func conditions(_ c: Case) {
        let conditional = Validation.conditionalRequest(
            request(c.asked), validating: c.held.map { stored($0) })
        #expect(conditional?.fields == c.expected.map { fields($0) })
    }

    @Test("keeps method and URI, and is not for ftp")
    func target() {
        let held = stored("ETag: \"a\"")
        let asked = request(method: .head, uri: uri("/x?y"))
        let conditional = Validation.conditionalRequest(asked, validating: [held])
        #expect(conditional?.method == .head && conditional?.uri == asked.uri)
        let ftp = request(uri: uri("/x", scheme: .ftp))
        #expect(Validation.conditionalRequest(ftp, validating: [held]) == nil)
    }

    @Test("without a condition asks for the whole")
    func unconditional() {
        let whole = Validation.unconditional(
            request("A: 1 | Range: bytes=0-1 | If-None-Match: \"a\" | If-Range: \"a\" | B: 2"))
        #expect(whole.fields == fields("A: 1 | B: 2"))
    }
}

@Suite("The stored responses a 304 selects (RFC 9111 §4.3.4)")
struct SelectionTests {
    struct Case: Sendable {
        let notModified: String
        let held: [String]
        let selected: [Int]

        init(_ notModified: String, held: String..., selected: [Int]) {
            self.notModified = notModified
            self.held = held
            self.selected = selected
        }
    }

    @Test(
        "have its strong validator, else its weak one",
        arguments: [
            Case("ETag: \"a\"", held: "ETag: \"a\"", selected: [0]),
            Case("ETag: \"b\"", held: "ETag: \"a\"", selected: []),
            Case("ETag: \"b\"", held: "ETag: \"a\"", "ETag: \"b\"", selected: [1]),
            Case(
                "ETag: \"a\"", held: "ETag: \"a\"", "ETag: \"b\"", "ETag: \"a\"", selected: [0, 2]),
            Case("ETag: W/\"a\"", held: "ETag: W/\"a\"", selected: [0]),
            Case("ETag: W/\"a\"", held: "ETag: \"a\"", selected: [0]),
            // A strong one that nothing stored has: "MUST NOT use the new response to update".
            Case("ETag: \"a\"", held: "ETag: W/\"a\"", selected: []),
            Case(
                "ETag: \"a\" | Date: @0 | Last-Modified: @-9",
                held: "ETag: W/\"a\" | Last-Modified: @-9", selected: [0]),
            Case("ETag: W/\"a\"", held: "ETag: W/\"b\"", selected: []),
            // Weak: only the most recent.
            Case(
                "ETag: W/\"a\"", held: "Date: @-1 | ETag: W/\"a\"", "Date: @-9 | ETag: W/\"a\"",
                selected: [0]),
            // Last-Modified is strong a second before its Date (RFC 9110 §8.8.2.2).
            Case(
                "Date: @0 | Last-Modified: @-9", held: "Last-Modified: @-9", "Last-Modified: @-9",
                selected: [0, 1]),
            Case(
                "Date: @-9 | Last-Modified: @-9", held: "Date: @-9 | Last-Modified: @-9",
                "Date: @-8 | Last-Modified: @-9", selected: [1]),
            Case("Date: @0 | Last-Modified: @-8", held: "Last-Modified: @-9", selected: []),
            // One strong validator is enough, unless the other says that it is another response.
            Case(
                "Date: @0 | ETag: \"b\" | Last-Modified: @-9",
                held: "ETag: \"a\" | Last-Modified: @-9", selected: []),
            Case(
                "Date: @0 | ETag: W/\"b\" | Last-Modified: @-9",
                held: "ETag: \"a\" | Last-Modified: @-9", selected: [0]),
            Case(
                "Date: @0 | ETag: \"b\" | Last-Modified: @-9",
                held: "ETag: \"a\" | Last-Modified: @-9", "ETag: \"b\" | Last-Modified: @-9",
                selected: [1]),
            Case("Date: @0 | ETag: \"a\"", held: "Last-Modified: @-9", selected: []),
            // No validator at all: what was asked about, if it was one.
            Case("", held: "ETag: \"a\"", selected: [0]),
            Case("", held: "Last-Modified: @-9", selected: [0]),
            Case("", held: "ETag: \"a\"", "ETag: \"b\"", selected: []),
            Case("", held: "A: 1", "ETag: \"b\"", selected: [1]),
            Case("", held: "A: 1", selected: []),
            Case("ETag: junk", held: "ETag: \"a\"", selected: [0]),
            Case("", selected: []), Case("ETag: \"a\"", selected: []),
        ])
    func selection(_ c: Case) {
        let selected = Validation.selected(
            by: response(c.notModified, status: 304), among: c.held.map { stored($0) })
        #expect(selected == c.selected)
    }
}

@Suite("Freshening a stored response (RFC 9111 §3.2)")
struct FresheningTests {
    struct Case: Sendable {
        let held: String
        let news: String
        let expected: String

        init(_ held: String, _ news: String, expected: String) {
            self.held = held
            self.news = news
            self.expected = expected
        }
    }

    @Test(
        "replaces fields by name, but for those that describe the stored content",
        arguments: [
            Case("A: 1 | Date: @-9", "Date: @0", expected: "A: 1 | Date: @0"),
            Case("A: 1 | Date: @-9", "A: 2 | Date: @0", expected: "A: 2 | Date: @0"),
            Case("A: 1 | A: 2 | Date: @-9", "a: 3 | Date: @0", expected: "a: 3 | Date: @0"),
            Case("A: 1 | Date: @-9", "A: 2 | A: 3 | Date: @0", expected: "A: 2 | A: 3 | Date: @0"),
            Case("Date: @-9", "B: 1 | Date: @0", expected: "B: 1 | Date: @0"),
            Case("A: 1 | Date: @-9", "", expected: "A: 1 | Date: @0"),
            Case(
                "Cache-Control: max-age=1 | Date: @-9", "Cache-Control: max-age=9 | Date: @0",
                expected: "Cache-Control: max-age=9 | Date: @0"),
            Case(
                "Set-Cookie: a | Expires: @1 | Date: @-9", "Expires: @9 | Set-Cookie: b | Date: @0",
                expected: "Set-Cookie: a | Expires: @9 | Date: @0"),
            Case(
                "ETag: \"a\" | Date: @-9", "ETag: \"b\" | Date: @0",
                expected: "ETag: \"b\" | Date: @0"),
            Case(
                "Content-Type: a/b | Date: @-9", "Content-Type: a/c | Date: @0",
                expected: "Content-Type: a/c | Date: @0"),
            Case(
                "Content-Length: 5 | Date: @-9", "Content-Length: 0 | Date: @0",
                expected: "Content-Length: 5 | Date: @0"),
            Case(
                "Content-Encoding: gzip | Date: @-9", "Content-Encoding: br | Date: @0",
                expected: "Content-Encoding: gzip | Date: @0"),
            Case("Date: @-9", "Content-Range: bytes 0-1/2 | Date: @0", expected: "Date: @0"),
            Case("Vary: A | Date: @-9", "Vary: B | Date: @0", expected: "Vary: A | Date: @0"),
            Case(
                "A: 1 | Date: @-9", "Connection: x-b | X-B: 1 | Keep-Alive: 1 | Date: @0",
                expected: "A: 1 | Date: @0"),
            Case(
                "Date: @-9", "Warning: 110 - x | Transfer-Encoding: chunked | Date: @0",
                expected: "Date: @0"),
            // Another response's age is not this one's.
            Case("Age: 50 | Date: @-9", "Date: @0", expected: "Date: @0"),
            Case("Age: 50 | Date: @-9", "Age: 3 | Date: @0", expected: "Age: 3 | Date: @0"),
            Case(
                "Date: @-9", "Cache-Control: private=\"X-A\" | X-A: 1 | Date: @0",
                expected: "Cache-Control: private=\"X-A\" | Date: @0"),
            // What the stored content cannot be understood without is not taken from it.
            Case(
                "Content-Encoding: x | ETag: \"a\" | X-A: 1 | Date: @-9",
                "Cache-Control: private=\"content-encoding, etag, x-a\" | ETag: \"b\" | Date: @0",
                expected: "Content-Encoding: x | ETag: \"a\" "
                    + "| Cache-Control: private=\"content-encoding, etag, x-a\" | Date: @0"),
            Case(
                "Cache-Control: private=\"etag\" | Date: @-9", "ETag: \"b\" | Date: @0",
                expected: "Cache-Control: private=\"etag\" | Date: @0"),
        ])
    func merging(_ c: Case) {
        let held = stored(c.held, varying: "A: 1", received: -9, invalidated: true)
        let freshened = Validation.freshen(
            held, with: response(c.news, status: 304), requestTime: t0 - .seconds(1),
            responseTime: t0)
        #expect(freshened.fields == fields(c.expected))
        #expect(freshened.status == .ok)
        #expect(freshened.requestTime == t0 - .seconds(1))
        #expect(freshened.responseTime == t0)
        #expect(freshened.storedTime == held.storedTime)
        #expect(freshened.varyingFields == held.varyingFields)
        #expect(!freshened.isInvalidated)
    }

    struct Widening: Sendable {
        let news: String
        let asked: String
        let vary: [String]
        let matches: String
        let differs: String
    }

    @Test(
        "takes over what a 304 varies by beyond the stored response, and forgets nothing",
        arguments: [
            Widening(
                news: "Vary: A, B", asked: "A: 1 | B: 2", vary: ["A", "B"],
                matches: "A: 1 | B: 2", differs: "A: 1 | B: 3"),
            Widening(
                news: "Vary: B", asked: "A: 1", vary: ["A", "B"], matches: "A: 1",
                differs: "A: 1 | B: 3"),
            Widening(news: "", asked: "A: 1", vary: ["A"], matches: "A: 1", differs: "A: 2"),
            Widening(news: "Vary: a", asked: "A: 1", vary: ["A"], matches: "A: 1", differs: ""),
            // Selected by its tag, for another request than it was stored for.
            Widening(
                news: "Vary: A, B", asked: "A: 5 | B: 2", vary: ["A", "B"],
                matches: "A: 5 | B: 2", differs: "A: 1 | B: 2"),
        ])
    func widening(_ c: Widening) {
        let freshened = Validation.freshen(
            stored("Vary: A", varying: "A: 1"), with: response(c.news, status: 304),
            for: request(c.asked), requestTime: t0, responseTime: t0)
        let isMatch = { (text: String) in
            Variance.matches(freshened, request(text), configuration: .shared)
        }
        let names = freshened.fields.members(FieldName(.vary))
        #expect(names.map { String(decoding: $0, as: UTF8.self) } == c.vary)
        #expect(isMatch(c.matches))
        #expect(!isMatch(c.differs))
    }

    @Test("matches nothing any more after a 304 that varies by everything")
    func anything() {
        let freshened = Validation.freshen(
            stored("Vary: A", varying: "A: 1"), with: response("Vary: *", status: 304),
            for: request("A: 1"), requestTime: t0, responseTime: t0)
        #expect(!Variance.matches(freshened, request("A: 1"), configuration: .shared))
    }

    @Test(
        "private=\"…\" keeps fields of a 304 out of a shared cache, whoever says it (§5.2.2.7)",
        arguments: [
            ("Cache-Control: private=\"x-a\"", "X-A: 1 | X-B: 2"),
            ("", "Cache-Control: private=\"x-a\" | X-A: 1 | X-B: 2"),
            ("Cache-Control: private=x-a | X-A: 0", "X-A: 1 | X-B: 2"),
        ])
    func withheld(_ held: String, _ news: String) {
        let notModified = response(news, status: 304)
        for kind in [CacheKind.shared, .private] {
            let configuration = PolicyConfiguration(kind: kind)
            let freshened = Validation.freshen(
                stored(held), with: notModified, requestTime: t0, responseTime: t0,
                configuration: configuration)
            #expect(freshened.fields.contains("X-A") == (kind == .private))
            #expect(freshened.fields.contains("X-B"))
            // The client that asked gets what is its own.
            let own = Validation.addingWithheld(
                of: notModified, to: freshened, configuration: configuration)
            #expect(own?.fields.string("X-A") == (kind == .shared ? "1" : nil))
        }
        let plain = Validation.addingWithheld(
            of: response("X-B: 2", status: 304), to: stored(held), configuration: .shared)
        #expect(plain == nil)
    }

    @Test("gives the client that asked its own in place of what stays stored (§5.2.2.7)")
    func ownValidator() {
        let notModified = response(
            "Cache-Control: private=\"last-modified\" | Last-Modified: @-1", status: 304)
        let freshened = Validation.freshen(
            stored("Last-Modified: @-9 | Date: @0"), with: notModified, requestTime: t0,
            responseTime: t0)
        #expect(freshened.fields.values("Last-Modified").count == 1)
        let own = Validation.addingWithheld(
            of: notModified, to: freshened, configuration: .shared)
        #expect(
            own?.fields.values("Last-Modified").map { Array($0) }
                == notModified.fields.values("Last-Modified").map { Array($0) })
    }

    @Test("keeps the cookies of a 304 out where settings do", arguments: [true, false])
    func cookies(_ isStored: Bool) {
        let configuration = PolicyConfiguration(kind: .private, storesSetCookie: isStored)
        let notModified = response("Set-Cookie: s=1", status: 304)
        let freshened = Validation.freshen(
            stored("A: 1"), with: notModified, requestTime: t0, responseTime: t0,
            configuration: configuration)
        #expect(freshened.fields.contains("Set-Cookie") == isStored)
        let own = Validation.addingWithheld(
            of: notModified, to: freshened, configuration: configuration)
        #expect(own?.fields.string("Set-Cookie") == (isStored ? nil : "s=1"))
    }

    private static func cookies(_ head: StoredHead) -> [String] {
        head.fields.values("Set-Cookie").map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("gives cookies of a 304 to the client that it answers, and a private cache stores them")
    func ownCookies() {
        let notModified = response("Set-Cookie: s=1 | Set-Cookie: t=2", status: 304)
        for kind in [CacheKind.shared, .private] {
            let configuration = PolicyConfiguration(kind: kind)
            let freshened = Validation.freshen(
                stored("A: 1 | Set-Cookie: s=0"), with: notModified, requestTime: t0,
                responseTime: t0, configuration: configuration)
            let own = Validation.addingCookies(
                of: notModified, to: freshened, configuration: configuration)
            let isShared = kind == .shared
            #expect(Self.cookies(freshened) == (isShared ? ["s=0"] : ["s=1", "t=2"]))
            #expect(own.map(Self.cookies) == (isShared ? ["s=1", "t=2"] : nil))
        }
        let ofConnection = response("Set-Cookie: s=1 | Connection: set-cookie", status: 304)
        #expect(
            Validation.addingCookies(of: ofConnection, to: stored("A: 1"), configuration: .shared)
                == nil)
    }

    @Test("makes a stale response fresh again")
    func freshness() {
        let held = stored("Cache-Control: max-age=10 | Age: 5 | Date: @-100", received: -100)
        let freshened = Validation.freshen(
            held, with: response("", status: 304), requestTime: t0, responseTime: t0)
        let freshness = Freshness.of(freshened, at: t0 + .seconds(9), configuration: .shared)
        #expect(freshness.isFresh && freshness.currentAge == .seconds(9))
    }
}

@Suite("Whose answer updates what is stored for all (RFC 9111 §3.5)")
struct UpdatePermissionTests {
    @Test(
        "in a shared cache not one with credentials, unless that is allowed",
        arguments: [
            ("", "max-age=9", true), ("Authorization: a", "max-age=9", false),
            ("Authorization: a", "max-age=9, public", true),
            ("Authorization: a", "s-maxage=9", true),
            ("Authorization: a", "must-revalidate", true),
        ])
    func permission(_ asked: String, _ directives: String, _ isAllowed: Bool) {
        let fields = fields("Cache-Control: \(directives)")
        #expect(
            Storability.mayUpdate(request(asked), to: fields, configuration: .shared) == isAllowed)
        #expect(Storability.mayUpdate(request(asked), to: fields, configuration: .private))
    }
}

@Suite("What a HEAD says about a stored response (RFC 9111 §4.3.5)")
struct HeadEffectTests {
    @Test(
        "depends on validators and length",
        arguments: [
            ("", "", 200, .none), ("ETag: \"a\"", "ETag: \"a\"", 200, .freshens),
            ("", "ETag: \"a\"", 200, .none), ("", "Last-Modified: @-9", 200, .none),
            ("Cache-Control: max-age=9", "ETag: \"a\"", 200, .none),
            ("ETag: \"a\"", "ETag: \"a\" | Last-Modified: @-9", 200, .freshens),
            ("ETag: \"b\"", "ETag: \"a\"", 200, .invalidates),
            ("ETag: \"b\"", "", 200, .invalidates),
            ("Last-Modified: @-9", "Last-Modified: @-9", 200, .freshens),
            ("Last-Modified: @-8", "Last-Modified: @-9", 200, .invalidates),
            ("Content-Length: 3", "", 200, .none),
            ("Content-Length: 3", "ETag: \"a\"", 200, .none),
            ("Content-Length: 4", "", 200, .invalidates),
            ("Content-Length: x", "", 200, .invalidates),
            ("", "", 404, .invalidates), ("", "", 301, .invalidates), ("", "", 500, .none),
            ("", "", 503, .none),
        ] as [(String, String, UInt16, Validation.HeadEffect)])
    func effect(_ news: String, _ held: String, _ status: UInt16, _ effect: Validation.HeadEffect) {
        #expect(
            Validation.effect(
                ofHead: response(news, status: status), on: stored(held), bodyLength: 3) == effect)
    }

    @Test(
        "of which it bore the validators: what does not name them again is another",
        arguments: [
            ("", "", .none), ("", "ETag: \"a\"", .invalidates),
            ("ETag: \"a\"", "ETag: \"a\"", .freshens),
            ("ETag: \"b\"", "ETag: \"a\"", .invalidates),
            ("Last-Modified: @-9", "Last-Modified: @-9", .freshens),
            ("", "Last-Modified: @-9", .invalidates),
            ("Last-Modified: @-9", "ETag: \"a\" | Last-Modified: @-9", .invalidates),
            ("Content-Length: 3", "ETag: \"a\"", .invalidates),
        ] as [(String, String, Validation.HeadEffect)])
    func conditional(_ news: String, _ held: String, _ effect: Validation.HeadEffect) {
        #expect(
            Validation.effect(
                ofHead: response(news), on: stored(held), bodyLength: 3, isConditional: true)
                == effect)
    }
}
