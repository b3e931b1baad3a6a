import LarderHTTP
import LarderPolicy
import Testing

@Suite("Storing responses (RFC 9111 §3)")
struct StorabilityTests {
    struct Case: Sendable {
        var text: String
        var status: UInt16 = 200
        var asked = ""
        var method = Method.get
        var configuration = PolicyConfiguration.shared
        var reason: PolicyReason?

        init(
            _ text: String, status: UInt16 = 200, asked: String = "", method: Method = .get,
            by configuration: PolicyConfiguration = .shared, _ reason: PolicyReason?
        ) {
            self.text = text
            self.status = status
            self.asked = asked
            self.method = method
            self.configuration = configuration
            self.reason = reason
        }

        var verdict: StorageVerdict {
            Storability.judge(
                request: request(self.asked, method: self.method),
                response: response(self.text, status: self.status), bodyLength: .known(3), now: t0,
                configuration: self.configuration)
        }

        func check() {
            #expect(self.verdict == self.reason.map { .notStorable($0) } ?? .storable)
        }
    }

    static let fresh = "Cache-Control: max-age=60"

    static let methods: [Case] = [
        Case(fresh, nil),
        Case(fresh, method: .head, .methodNotCacheable),
        Case(fresh, method: .post, .methodNotCacheable),
        Case(fresh, method: .put, .methodNotCacheable),
        Case(fresh, method: .delete, .methodNotCacheable),
        Case(fresh, method: .options, .methodNotCacheable),
        Case(fresh, method: Method(rawValue: "get"), .methodNotCacheable),
        Case(fresh, method: Method(rawValue: "FOO"), .methodNotCacheable),
    ]

    static let statuses: [Case] =
        [
            200, 201, 202, 203, 204, 205, 226, 299, 300, 301, 302, 303, 305, 307, 308, 399, 400,
            401,
            403, 404, 405, 410, 414, 418, 451, 499, 500, 501, 502, 503, 504, 599, 600, 999,
        ]
        .map { Case(fresh, status: $0, nil) }
        + [100, 102, 103, 199].map { Case(fresh, status: $0, .interimResponse) }
        + [
            Case(fresh, status: 206, .contradictory),
            Case(fresh, status: 304, .notModifiedResponse),
            Case(fresh, status: 412, .answersCondition),
            Case(fresh, status: 416, .answersCondition),
            Case(fresh, status: 407, .statusNeverStored),
            // They are about a connection: on another one the same request may succeed.
            Case(fresh, status: 408, .statusNeverStored),
            Case(fresh, status: 421, .statusNeverStored),
            // Without its Upgrade, which is not stored, it would not say what it demands.
            Case("\(fresh) | Upgrade: x", status: 426, .statusNeverStored),
            Case("\(fresh) | Upgrade: x", status: 400, nil), Case(fresh, status: 426, nil),
            // RFC 6585: "MUST NOT be stored by a cache".
            Case(fresh, status: 428, .statusNeverStored),
            Case(fresh, status: 429, .statusNeverStored),
            Case(fresh, status: 431, .statusNeverStored),
            Case(fresh, status: 511, .statusNeverStored),
            Case(fresh, status: 511, by: .private, .statusNeverStored),
        ]
        // Without explicit freshness only those of RFC 9110 §15.1.
        + [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
        .map { Case("Last-Modified: @-1000", status: $0, nil) }
        + [201, 202, 205, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599]
        .map { Case("Last-Modified: @-1000", status: $0, .statusNeedsExplicit) }
        + [
            Case("Last-Modified: @-1000 | Cache-Control: public", status: 599, nil),
            Case("Last-Modified: @-1000 | Cache-Control: private", status: 299, by: .private, nil),
            // Nobody could ask whether it still holds (RFC 9110 §13.2.1).
            Case(
                "Last-Modified: @-1000 | Cache-Control: private", status: 499, by: .private,
                .noFreshnessNoValidator),
            Case("ETag: \"a\" | Cache-Control: no-cache", status: 404, .noFreshnessNoValidator),
            Case("ETag: \"a\" | Cache-Control: no-cache", status: 200, nil),
            Case(
                "Last-Modified: @-1000 | Cache-Control: private", status: 599, by: .private,
                .failureNotFresh),
            Case("Expires: @60", status: 302, nil),
            Case("Cache-Control: s-maxage=60", status: 302, nil),
            Case("Cache-Control: s-maxage=60", status: 302, by: .private, .statusNeedsExplicit),
        ]

    static let directives: [Case] = [
        Case("Cache-Control: no-store", .responseNoStore),
        Case("Cache-Control: no-store, max-age=60", .responseNoStore),
        Case("Cache-Control: max-age=60 | Cache-Control: No-Store", .responseNoStore),
        Case("Cache-Control: no-store, max-age=60", by: .private, .responseNoStore),
        Case("Cache-Control: max-age=60, ext=\"no-store\"", nil),
        Case("Cache-Control: private, max-age=60", .responsePrivate),
        Case("Cache-Control: private, max-age=60", by: .private, nil),
        Case("Cache-Control: private=\"X-A\", max-age=60", nil),
        Case("Cache-Control: private=\"\", max-age=60", .responsePrivate),
        Case("Cache-Control: public, private, max-age=60", .responsePrivate),
        Case("Pragma: no-cache | Cache-Control: max-age=60", nil),
        // must-understand (§5.2.2.3)
        Case("Cache-Control: must-understand, no-store, max-age=60", nil),
        Case("Cache-Control: must-understand, no-store, max-age=60", status: 404, nil),
        Case(
            "Cache-Control: must-understand, no-store, max-age=60", status: 599,
            .statusNotUnderstood),
        Case("Cache-Control: must-understand, max-age=60", status: 299, .statusNotUnderstood),
        Case("Cache-Control: must-understand=x, no-store, max-age=60", .responseNoStore),
        // The request's own no-store (§5.2.1.5)
        Case(fresh, asked: "Cache-Control: no-store", .requestNoStore),
        Case(fresh, asked: "Cache-Control: no-cache", nil),
        Case(fresh, asked: "Pragma: no-cache", nil),
        // Cookies do not matter, unless the settings say so.
        Case("Cache-Control: max-age=60 | Set-Cookie: a=b", nil),
        Case("Cache-Control: max-age=60 | Set-Cookie: a=b", asked: "Cookie: a=b", nil),
        Case(
            "Cache-Control: max-age=60 | Set-Cookie: a=b",
            by: PolicyConfiguration(storesSetCookie: false), .setsCookie),
    ]

    /// What a request with credentials needs.
    static let credentials: [Case] = [
        Case("Cache-Control: max-age=60", .requestAuthorization),
        Case("Expires: @60", .requestAuthorization),
        Case("Cache-Control: max-age=60, public", nil),
        Case("Cache-Control: max-age=60, must-revalidate", nil),
        Case("Cache-Control: s-maxage=60", nil),
        Case("Cache-Control: s-maxage=60, private", .responsePrivate),
        Case("Cache-Control: max-age=60, proxy-revalidate", .requestAuthorization),
        Case("Cache-Control: max-age=60", by: .private, nil),
    ].map { c in
        var c = c
        c.asked = "Authorization: Basic QTpC"
        return c
    }

    static let useless: [Case] = [
        Case("", .noFreshnessNoValidator),
        Case("Cache-Control: public", .noFreshnessNoValidator),
        Case("Cache-Control: max-age=0", .noFreshnessNoValidator),
        Case("Cache-Control: no-cache, max-age=60", .noFreshnessNoValidator),
        Case("Expires: 0", .noFreshnessNoValidator),
        // It came too late to be fresh, but `max-stale` may ask for it.
        Case("Age: 61 | Cache-Control: max-age=60", nil),
        Case("Age: 60 | Expires: @9", nil),
        Case("Age: 61 | Cache-Control: max-age=60, must-revalidate", .noFreshnessNoValidator),
        Case("Age: 61 | Cache-Control: s-maxage=60", .noFreshnessNoValidator),
        Case("Age: 61 | Cache-Control: s-maxage=60, max-age=60", by: .private, nil),
        Case("Age: 59 | Cache-Control: max-age=60", nil),
        Case("Cache-Control: max-age=0, stale-while-revalidate=9", nil),
        Case("Cache-Control: max-age=0, stale-if-error=9", nil),
        Case(
            "Cache-Control: max-age=0, stale-if-error=9, must-revalidate", .noFreshnessNoValidator),
        Case(
            "Cache-Control: max-age=0", by: PolicyConfiguration(staleIfErrorGrace: .seconds(9)), nil
        ),
        // A validator is enough.
        Case("ETag: \"a\"", nil), Case("ETag: W/\"a\"", nil), Case("Last-Modified: @0", nil),
        Case("Cache-Control: no-cache | ETag: \"a\"", nil),
        Case("Cache-Control: max-age=0 | ETag: \"a\"", nil),
        // Of what must be validated it names a field that governs, which is all of it (§5.2.2.4).
        Case(
            "Cache-Control: max-age=60, no-cache=\"content-type\" | Content-Type: a/b",
            .noFreshnessNoValidator),
        Case(
            "Cache-Control: max-age=60, no-cache=\"content-type\" | Content-Type: a/b | ETag: \"a\"",
            nil),
        Case("Cache-Control: max-age=60, no-cache=\"content-type\"", nil),
        Case("Cache-Control: max-age=60, no-cache=\"x-a\" | X-A: 1", nil),
        Case("ETag: a", .noFreshnessNoValidator),
        Case("Last-Modified: yesterday", .noFreshnessNoValidator),
        // Vary: * (§4.1)
        Case("Vary: * | Cache-Control: max-age=60 | ETag: \"a\"", .varyAny),
        Case("Vary: Foo, * | Cache-Control: max-age=60", .varyAny),
        Case("Vary: Foo | Vary: * | Cache-Control: max-age=60", .varyAny),
        Case("Vary: Foo | Cache-Control: max-age=60", nil),
        Case("Vary: | Cache-Control: max-age=60", nil),
        // Contradictions
        Case("Cache-Control: max-age=60 | Content-Range: bytes 0-1/2", .contradictory),
        // In a 200 it has no meaning (RFC 9110 §14.4), unless it looks as if it had.
        Case("Cache-Control: max-age=60 | Content-Range: none", nil),
        Case("Cache-Control: max-age=60 | Content-Range: bytes */9", .contradictory),
        Case("Cache-Control: max-age=60 | Content-Range: bytes 0-1/2", status: 404, nil),
        Case("Cache-Control: max-age=60 | Content-Length: 3", nil),
        Case("Cache-Control: max-age=60 | Content-Length: 3, 3", nil),
        Case("Cache-Control: max-age=60 | Content-Length: 4", .contradictory),
        Case("Cache-Control: max-age=60 | Content-Length: x", .contradictory),
        Case("Cache-Control: max-age=60 | Content-Length: 3 | Content-Length: 4", .contradictory),
        Case("Cache-Control: max-age=60 | Date: @0 | Date: @1", .contradictory),
        Case("Cache-Control: max-age=60 | Date: @0 | Date: @0", nil),
        Case(
            "Cache-Control: max-age=60 | Location: /a | Location: /b", status: 301, .contradictory),
        Case(
            "Cache-Control: max-age=60 | Content-Location: /a | Content-Location: /b",
            .contradictory),
        // What governs storage is not to be taken away before.
        Case("Cache-Control: max-age=60 | Connection: cache-control", .contradictory),
        Case("Cache-Control: max-age=60 | Connection: a, VARY | Vary: A", .contradictory),
        Case("Cache-Control: max-age=60 | Connection: a, vary", nil),
        Case("Cache-Control: max-age=60 | Connection: close, x-a | X-A: 1", nil),
        Case("Cache-Control: max-age=60, private=\"x-a, vary\" | Vary: A", .contradictory),
        Case("Cache-Control: max-age=60, private=\"cache-control\"", .contradictory),
        Case("Cache-Control: max-age=60, private=\"x-a\" | X-A: 1", nil),
        // A list may have two lines.
        Case("Cache-Control: max-age=60 | Content-Language: de | Content-Language: en", nil),
        Case("Cache-Control: max-age=60 | ETag: \"a\" | ETag: \"b\"", .contradictory),
        Case("Cache-Control: max-age=60 | ETag: \"a\" | ETag: \"a\"", nil),
        Case("Cache-Control: max-age=60 | Last-Modified: @0 | Last-Modified: @1", .contradictory),
        Case("Cache-Control: max-age=60 | Content-Type: a/b | Content-Type: a/c", .contradictory),
    ]

    @Test("depends on the method", arguments: Self.methods)
    func byMethod(_ c: Case) { c.check() }

    @Test("depends on the status (RFC 9110 §15.1)", arguments: Self.statuses)
    func byStatus(_ c: Case) { c.check() }

    @Test("depends on directives (§5.2)", arguments: Self.directives)
    func byDirective(_ c: Case) { c.check() }

    @Test("with credentials needs leave (§3.5)", arguments: Self.credentials)
    func withCredentials(_ c: Case) { c.check() }

    @Test("is of no use where nothing can come of it", arguments: Self.useless)
    func ofUse(_ c: Case) { c.check() }

    @Test("of a GET with content is refused (RFC 9110 §9.3.1)")
    func content() {
        let verdict = Storability.judge(
            request: request(bodyLength: .unknown), response: response(Self.fresh),
            bodyLength: .unknown, now: t0, configuration: .shared)
        #expect(verdict == .notStorable(.requestContent))
    }

    @Test(
        "of a POST needs explicit freshness and its own location (RFC 9110 §9.3.3)",
        arguments: [
            ("Cache-Control: max-age=60 | Content-Location: /", true),
            ("Cache-Control: s-maxage=60 | Content-Location: /", true),
            ("Last-Modified: @-999 | Content-Location: /", false),
            ("Cache-Control: public | ETag: \"a\" | Content-Location: /", false),
            ("Cache-Control: no-store, max-age=60 | Content-Location: /", nil),
            ("Expires: @60 | Content-Location: http://a.example/", true),
            ("Cache-Control: max-age=60 | Content-Location: /b", false),
            ("Cache-Control: max-age=60 | Content-Location: http://b.example/", false),
            ("Cache-Control: max-age=60", false), ("ETag: \"a\" | Content-Location: /", false),
        ] as [(String, Bool?)])
    func post(_ text: String, _ isForGet: Bool?) {
        let refusal: PolicyReason? =
            switch isForGet {
            case true?: nil
            case false?: .methodNotCacheable
            case nil: .responseNoStore
            }
        Case(text, method: .post, refusal).check()
        Case(
            text, method: .post, by: PolicyConfiguration(storesPost: false), .methodNotCacheable
        ).check()
        #expect(
            Storability.key(for: request(method: .post)) == CacheKey(method: .get, uri: uri()))
    }

    @Test(
        "of another answer to a POST than the resource itself is never for a GET (RFC 9110 §9.3.3)",
        arguments: [201, 202, 204, 205, 206, 303, 404, 500] as [UInt16])
    func otherPost(_ status: UInt16) {
        Case(
            "Cache-Control: max-age=60 | Content-Location: /", status: status, method: .post,
            .methodNotCacheable
        ).check()
    }

    @Test(
        "of a failure needs that it is fresh as it comes (§4.2.4)",
        arguments: [
            ("Cache-Control: max-age=1", nil), ("Cache-Control: max-age=60 | Age: 59", nil),
            ("Cache-Control: max-age=2 | Age: 50", .failureNotFresh),
            ("Cache-Control: max-age=0 | ETag: \"a\"", .failureNotFresh),
            ("Cache-Control: max-age=0, stale-if-error=60", .failureNotFresh),
            ("Cache-Control: max-age=0, stale-while-revalidate=5", .failureNotFresh),
            ("Cache-Control: public | ETag: \"a\"", .failureNotFresh),
            ("Cache-Control: no-store", .responseNoStore), ("", .statusNeedsExplicit),
        ] as [(String, PolicyReason?)])
    func failures(_ text: String, _ reason: PolicyReason?) {
        for status in [500, 503] as [UInt16] { Case(text, status: status, reason).check() }
        // What the settings keep is fresh by them.
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(500...599, .seconds(30))]
        Case("", status: 503, by: configuration, nil).check()
    }

    @Test(
        "has a rule that allows it",
        arguments: [
            ("Cache-Control: max-age=60", 200, .get, .shared, .explicitFreshness),
            ("Cache-Control: s-maxage=60", 302, .get, .shared, .explicitFreshness),
            ("Expires: @9 | Cache-Control: public", 302, .get, .shared, .explicitFreshness),
            ("Cache-Control: public | ETag: \"a\"", 201, .get, .shared, .responsePublic),
            ("Cache-Control: private | ETag: \"a\"", 201, .get, .private, .privateHere),
            ("Cache-Control: s-maxage=60 | ETag: \"a\"", 200, .get, .private, .statusCacheable),
            ("Last-Modified: @-9", 404, .get, .shared, .statusCacheable),
            (
                "Cache-Control: max-age=60 | Content-Location: /", 200, .post, .shared,
                .postForGet
            ),
        ] as [(String, UInt16, Method, PolicyConfiguration, PolicyReason)])
    func grounds(
        _ text: String, _ status: UInt16, _ method: Method, _ configuration: PolicyConfiguration,
        _ reason: PolicyReason
    ) {
        Case(text, status: status, method: method, by: configuration, nil).check()
        let grounds = Storability.grounds(
            request: request(method: method), response: response(text, status: status),
            configuration: configuration)
        #expect(grounds == reason)
    }

    @Test(
        "of a file from ftp needs a time of modification or a setting",
        arguments: [
            ("", 0, .noFreshnessNoValidator), ("Last-Modified: @-1000", 0, nil),
            ("Last-Modified: @0", 0, .noFreshnessNoValidator), ("", 60, nil),
            ("Last-Modified: @0", 60, nil),
        ] as [(String, Int64, PolicyReason?)])
    func ftp(_ text: String, _ lifetime: Int64, _ reason: PolicyReason?) {
        let verdict = Storability.judge(
            request: request(uri: uri("/f", scheme: .ftp)), response: response(text),
            bodyLength: .unknown, now: t0,
            configuration: PolicyConfiguration(ftpLifetime: .seconds(lifetime)))
        #expect(verdict == reason.map { .notStorable($0) } ?? .storable)
    }
}

@Suite("What is stored (RFC 9111 §3.1)")
struct StoredFieldsTests {
    struct Case: Sendable {
        let text: String
        let configuration: PolicyConfiguration
        let kept: String

        init(_ text: String, by configuration: PolicyConfiguration = .shared, kept: String) {
            self.text = text
            self.configuration = configuration
            self.kept = kept
        }
    }

    @Test(
        "is every end-to-end field, in order",
        arguments: [
            Case("Date: @0 | A: 1 | B: 2 | a: 3", kept: "Date: @0 | A: 1 | B: 2 | a: 3"),
            Case("Date: @0 | X-ODD: a,  b", kept: "Date: @0 | X-ODD: a,  b"),
            Case("Date: @0 | Content-Length: 5", kept: "Date: @0 | Content-Length: 5"),
            Case("Date: @0 | Connection: close, X-A | X-A: 1 | X-B: 2", kept: "Date: @0 | X-B: 2"),
            Case(
                "Date: @0 | Connection: x-a | Connection: x-b | X-A: 1 | X-B: 2", kept: "Date: @0"),
            Case("Date: @0 | Keep-Alive: 5 | Proxy-Connection: x | TE: x", kept: "Date: @0"),
            Case("Date: @0 | Transfer-Encoding: chunked | Upgrade: x", kept: "Date: @0"),
            Case("Date: @0 | Proxy-Authenticate: x | Proxy-Authorization: y", kept: "Date: @0"),
            Case("Date: @0 | Proxy-Authentication-Info: x | Trailer: y", kept: "Date: @0"),
            Case("Date: @0 | Warning: 110 - old", kept: "Date: @0"),
            Case(
                "Date: @0 | Set-Cookie: a=b | Set-Cookie: c=d",
                kept: "Date: @0 | Set-Cookie: a=b | Set-Cookie: c=d"),
            Case(
                "Date: @0 | Cache-Control: private=\"X-A, X-B\" | X-A: 1 | X-B: 2 | X-C: 3",
                kept: "Date: @0 | Cache-Control: private=\"X-A, X-B\" | X-C: 3"),
            Case(
                "Date: @0 | Cache-Control: private=X-A | X-A: 1", by: .private,
                kept: "Date: @0 | Cache-Control: private=X-A | X-A: 1"),
            // RFC 9110 §6.6.1: a missing Date is added.
            Case("A: 1", kept: "A: 1 | Date: @0"),
            Case("Date: junk", kept: "Date: junk"),
        ])
    func fieldsKept(_ c: Case) {
        let head = StoredHead(
            storing: response(c.text), to: request(), requestTime: t0 - .seconds(1),
            responseTime: t0, configuration: c.configuration)
        #expect(head.fields == fields(c.kept))
        // Names keep their case.
        #expect(
            head.fields.pairs.map(\.name) == fields(c.kept).pairs.map(\.name))
        #expect(head.requestTime == t0 - .seconds(1))
        #expect(head.responseTime == t0)
        #expect(head.storedTime == t0)
        #expect(!head.isInvalidated)
    }

    @Test("has the request's fields that Vary names")
    func varying() {
        let head = StoredHead(
            storing: response("Vary: b, A | Vary: C"), to: request("A: 1 | B: 2 | D: 3 | a: 4"),
            requestTime: t0, responseTime: t0)
        #expect(head.varyingFields == fields("A: 1 | B: 2 | a: 4"))
        #expect(
            Variance.fields(selectedBy: response("Vary: *"), from: request("A: 1")) == Fields())
    }

    @Test(
        "with a login in its URI stays in memory: the key has the password",
        arguments: [true, false])
    func login(_ hasLogin: Bool) {
        var asked = uri("/f", scheme: .ftp)
        if hasLogin { asked.userInfo = "user:5ecret" }
        let head = StoredHead(
            storing: response("Last-Modified: @-10"), to: request(uri: asked), requestTime: t0,
            responseTime: t0)
        #expect(head.staysInMemory == hasLogin)
    }

    @Test("of an ftp file has the lifetime of the settings")
    func ftp() {
        let head = StoredHead(
            storing: response("Last-Modified: @-10"), to: request(uri: uri("/f", scheme: .ftp)),
            requestTime: t0, responseTime: t0,
            configuration: PolicyConfiguration(ftpLifetime: .seconds(60)))
        let freshness = Freshness.of(head, at: t0, configuration: .shared)
        #expect(freshness.lifetime == .seconds(60))
    }
}
