import LarderHTTP
import LarderPolicy
import Testing

@Suite("Reuse of a stored response (RFC 9111 §4)")
struct ReuseTests {
    struct Case: Sendable {
        let asked: String
        let held: String?
        let age: Int64
        let configuration: PolicyConfiguration
        let said: Said

        init(
            _ asked: String = "", held: String?, age: Int64 = 0,
            by configuration: PolicyConfiguration = .shared, _ said: Said
        ) {
            self.asked = asked
            self.held = held
            self.age = age
            self.configuration = configuration
            self.said = said
        }

        func check() {
            let verdict = Reuse.decide(
                request: request(self.asked), candidates: self.held.map { [stored($0)] } ?? [],
                now: t0 + .seconds(self.age), configuration: self.configuration)
            #expect(Said(verdict) == self.said)
        }
    }

    static let ten = "Cache-Control: max-age=10"

    static let freshness: [Case] = [
        Case(held: nil, .fetch(.uriMiss, .nothingStored)),
        Case(held: ten, .serve), Case(held: ten, age: 9, .serve),
        Case(held: ten, age: 10, .validate(.stale, .lifetimeOver)),
        Case(
            held: "Cache-Control: s-maxage=5, max-age=10", age: 6,
            .validate(.stale, .sharedLifetimeOver)),
        Case(held: "Cache-Control: s-maxage=5, max-age=10", age: 6, by: .private, .serve),
        Case(held: "Expires: @10", age: 9, .serve),
        Case(held: "Expires: @10", age: 10, .validate(.stale, .expired)),
        Case(held: "Expires: 0", .validate(.stale, .expired)),
        Case(held: "Last-Modified: @-1000", age: 99, .serve),
        Case(held: "Last-Modified: @-1000", age: 100, .validate(.stale, .heuristicOver)),
        Case(held: "ETag: \"a\"", .validate(.stale, .noLifetime)),
        Case(held: "Age: 8 | Cache-Control: max-age=10", age: 1, .serve),
        Case(held: "Age: 8 | Cache-Control: max-age=10", age: 2, .validate(.stale, .lifetimeOver)),
        Case(held: "Date: @-10 | Cache-Control: max-age=10", .validate(.stale, .lifetimeOver)),
    ]

    static let responseDirectives: [Case] = [
        Case(held: "Cache-Control: no-store, max-age=10", .fetch(.miss, .responseNoStore)),
        Case(
            held: "Cache-Control: no-store, max-age=10", by: .private,
            .fetch(.miss, .responseNoStore)),
        Case(held: "Cache-Control: no-store, must-understand, max-age=10", .serve),
        Case(held: "Cache-Control: no-cache, max-age=10", .validate(.stale, .responseNoCache)),
        Case(held: "Cache-Control: No-Cache | Expires: @10", .validate(.stale, .responseNoCache)),
        Case(held: "Cache-Control: no-cache=\"X-A\", max-age=10", .serve),
        Case(held: "Cache-Control: no-cache=\"\", max-age=10", .validate(.stale, .responseNoCache)),
        // Without what it names the rest would be something else (§5.2.2.4).
        Case(
            held: "Cache-Control: no-cache=\"Content-Encoding\", max-age=10 | Content-Encoding: x",
            .validate(.stale, .responseNoCache)),
        Case(
            held: "Cache-Control: no-cache=\"x, vary\", max-age=10 | Vary: Foo",
            .validate(.stale, .responseNoCache)),
        Case(
            held: "Cache-Control: no-cache=\"cache-control\", max-age=10",
            .validate(.stale, .responseNoCache)),
        Case(held: "Cache-Control: no-cache=\"Content-Encoding\", max-age=10", .serve),
        Case(held: "Cache-Control: no-cache=\"Set-Cookie\", max-age=10 | Set-Cookie: a", .serve),
        Case(held: "Cache-Control: must-revalidate, max-age=10", age: 9, .serve),
        Case(
            held: "Cache-Control: must-revalidate, max-age=10", age: 10,
            .validate(.stale, .mustRevalidate)),
        Case(
            held: "Cache-Control: proxy-revalidate, max-age=10", age: 10,
            .validate(.stale, .proxyRevalidate)),
        Case(
            held: "Cache-Control: proxy-revalidate, max-age=10", age: 10, by: .private,
            .validate(.stale, .lifetimeOver)),
        Case(
            held: "Cache-Control: immutable, max-age=10", age: 10, .validate(.stale, .lifetimeOver)),
        // A reload need not ask for what cannot have changed (RFC 8246 §2.1).
        Case("Cache-Control: max-age=0", held: "Cache-Control: immutable, max-age=10", .serve),
        Case(
            "Cache-Control: max-age=0", held: "Cache-Control: immutable, max-age=10", age: 10,
            .validate(.request, .requestMaxAge)),
        Case(
            "Cache-Control: no-cache", held: "Cache-Control: immutable, max-age=10",
            .validate(.request, .requestNoCache)),
        Case(
            "Cache-Control: max-age=0", held: "Cache-Control: immutable=1, max-age=10",
            .validate(.request, .requestMaxAge)),
        Case(
            "Cache-Control: max-age=0", held: "Cache-Control: immutable | ETag: \"a\"",
            .validate(.request, .requestMaxAge)),
        Case(
            "Cache-Control: max-stale=1000", held: "Cache-Control: max-age=1500 | Age: 2000",
            age: 9,
            .serveStale(.requestMaxStale)),
        Case(held: "Pragma: no-cache | Cache-Control: max-age=10", .serve),
        // RFC 5861 §3
        Case(
            held: "Cache-Control: max-age=10, stale-while-revalidate=5", age: 15,
            .serveAndRevalidate(.staleWhileRevalidate)),
        Case(
            held: "Cache-Control: max-age=10, stale-while-revalidate=5", age: 16,
            .validate(.stale, .lifetimeOver)),
        Case(held: "Cache-Control: max-age=10, stale-while-revalidate=5", age: 9, .serve),
        Case(
            held: "Cache-Control: max-age=10, stale-while-revalidate=5, must-revalidate", age: 12,
            .validate(.stale, .mustRevalidate)),
        Case(
            held: "Cache-Control: s-maxage=10, stale-while-revalidate=5", age: 12,
            .validate(.stale, .sharedLifetimeOver)),
        Case(
            held: "Cache-Control: max-age=10, stale-while-revalidate=5", age: 12,
            by: PolicyConfiguration(honoursStaleWhileRevalidate: false),
            .validate(.stale, .lifetimeOver)),
        Case(
            held: "Cache-Control: max-age=10, stale-while-revalidate=x", age: 12,
            .validate(.stale, .lifetimeOver)),
    ]

    static let requestDirectives: [Case] = [
        Case("Cache-Control: no-cache", held: ten, .validate(.request, .requestNoCache)),
        Case("Cache-Control: NO-CACHE", held: ten, .validate(.request, .requestNoCache)),
        Case("Cache-Control: no-cache", held: nil, .fetch(.uriMiss, .nothingStored)),
        Case("Pragma: no-cache", held: ten, .validate(.request, .requestNoCache)),
        Case("Pragma: foo", held: ten, .serve),
        Case("Pragma: no-cache | Cache-Control: x", held: ten, .serve),
        Case("Cache-Control: no-store", held: ten, .fetch(.request, .requestNoStore)),
        Case("Cache-Control: max-age=0", held: ten, .validate(.request, .requestMaxAge)),
        Case("Cache-Control: max-age=5", held: ten, age: 5, .serve),
        Case("Cache-Control: max-age=5", held: ten, age: 6, .validate(.request, .requestMaxAge)),
        Case(
            "Cache-Control: max-age=600", held: "Cache-Control: max-age=3600 | Age: 1800",
            .validate(.request, .requestMaxAge)),
        Case("Cache-Control: max-age=x", held: ten, .validate(.request, .requestMaxAge)),
        Case("Cache-Control: max-age=60", held: ten, age: 11, .validate(.stale, .lifetimeOver)),
        Case("Cache-Control: min-fresh=5", held: ten, age: 5, .serve),
        Case(
            "Cache-Control: min-fresh=5", held: ten, age: 6, .validate(.request, .requestMinFresh)),
        Case(
            "Cache-Control: min-fresh=2000", held: "Cache-Control: max-age=1500",
            .validate(.request, .requestMinFresh)),
        Case("Cache-Control: max-stale=5", held: ten, age: 15, .serveStale(.requestMaxStale)),
        Case("Cache-Control: max-stale=5", held: ten, age: 16, .validate(.stale, .lifetimeOver)),
        Case("Cache-Control: max-stale", held: ten, age: 9999, .serveStale(.requestMaxStale)),
        Case(
            "Cache-Control: max-stale=1000", held: "Cache-Control: max-age=1500 | Age: 2000",
            .serveStale(.requestMaxStale)),
        Case("Cache-Control: max-stale=x", held: ten, age: 11, .validate(.stale, .lifetimeOver)),
        Case(
            "Cache-Control: max-stale", held: "Cache-Control: max-age=1, must-revalidate", age: 2,
            .validate(.stale, .mustRevalidate)),
        Case(
            "Cache-Control: max-stale", held: "Cache-Control: max-age=1, proxy-revalidate", age: 2,
            .validate(.stale, .proxyRevalidate)),
        Case(
            "Cache-Control: max-stale", held: "Cache-Control: s-maxage=1", age: 2,
            .validate(.stale, .sharedLifetimeOver)),
        Case(
            "Cache-Control: max-stale", held: "Cache-Control: no-cache", age: 2,
            .validate(.stale, .responseNoCache)),
        Case(
            "Cache-Control: max-stale, max-age=20", held: ten, age: 15,
            .serveStale(.requestMaxStale)),
        Case(
            "Cache-Control: max-stale, max-age=12", held: ten, age: 15,
            .validate(.request, .requestMaxAge)),
        // What it says is the bound of any stale use (§5.2.1.2).
        Case(
            "Cache-Control: max-stale=2",
            held: "Cache-Control: max-age=10, stale-while-revalidate=60",
            age: 15, .validate(.stale, .lifetimeOver)),
        Case(
            "Cache-Control: max-stale=5",
            held: "Cache-Control: max-age=10, stale-while-revalidate=60",
            age: 15, .serveStale(.requestMaxStale)),
        // A client that wants it young does not want it stale, whatever the origin offers.
        Case(
            "Cache-Control: max-age=60",
            held: "Cache-Control: max-age=10, stale-while-revalidate=60",
            age: 15, .validate(.stale, .lifetimeOver)),
        // only-if-cached (§5.2.1.7)
        Case("Cache-Control: only-if-cached", held: ten, .serve),
        Case("Cache-Control: only-if-cached", held: nil, .refuse(.onlyIfCached)),
        Case("Cache-Control: only-if-cached", held: ten, age: 11, .refuse(.onlyIfCached)),
        Case(
            "Cache-Control: only-if-cached, max-stale", held: ten, age: 11,
            .serveStale(.requestMaxStale)),
        Case("Cache-Control: only-if-cached, no-cache", held: ten, .refuse(.onlyIfCached)),
        // no-store says nothing against what is stored already (§5.2.1.5).
        Case("Cache-Control: only-if-cached, no-store", held: ten, .serve),
        Case(
            "Cache-Control: only-if-cached, no-store", held: ten, age: 11, .refuse(.onlyIfCached)),
        Case("Cache-Control: only-if-cached | If-Match: \"a\"", held: ten, .refuse(.onlyIfCached)),
        // Conditions and ranges do not matter here, but for those that are the origin's.
        Case("If-None-Match: \"a\"", held: ten, .serve),
        Case("Range: bytes=0-1", held: ten, .serve),
        Case("If-Modified-Since: @0", held: ten, .serve),
        Case("If-Match: \"a\"", held: ten, .fetch(.request, .conditionForOrigin)),
        Case("If-Unmodified-Since: @0", held: ten, .fetch(.request, .conditionForOrigin)),
        Case("Authorization: x | Cookie: y", held: ten, .serve),
    ]

    @Test("is decided by lifetime and age (§4.2)", arguments: Self.freshness)
    func byFreshness(_ c: Case) { c.check() }

    @Test(
        "obeys the response's directives (§5.2.2, RFC 5861 §3)", arguments: Self.responseDirectives)
    func byResponse(_ c: Case) { c.check() }

    @Test("obeys the request's directives (§5.2.1)", arguments: Self.requestDirectives)
    func byRequest(_ c: Case) { c.check() }

    @Test(
        "is for GET and HEAD without content",
        arguments: [
            (.get, .none, .serve), (.head, .none, .serve),
            (.post, .none, .fetch(.method, .methodNotCacheable)),
            (.options, .none, .fetch(.method, .methodNotCacheable)),
            (.delete, .known(3), .fetch(.method, .methodNotCacheable)),
            (Method(rawValue: "FOO"), .none, .fetch(.method, .methodNotCacheable)),
            (.get, .known(0), .fetch(.bypass, .requestContent)),
            (.get, .known(3), .fetch(.bypass, .requestContent)),
            (.head, .unknown, .fetch(.bypass, .requestContent)),
        ] as [(Method, BodyLength, Said)])
    func byMethod(_ method: Method, _ body: BodyLength, _ said: Said) {
        let verdict = Reuse.decide(
            request: request(method: method, bodyLength: body), candidates: [stored(Self.ten)],
            now: t0, configuration: .shared)
        #expect(Said(verdict) == said)
    }

    @Test(
        "of a stored challenge is for requests without credentials (RFC 9110 §11.6.2)",
        arguments: [
            (401, "", .serve),
            (401, "Authorization: Basic YTpi", .fetch(.request, .challengeStored)),
            (404, "Authorization: Basic YTpi", .serve),
            (401, "Authorization: x | Cache-Control: no-cache", .fetch(.request, .challengeStored)),
        ] as [(UInt16, String, Said)])
    func challenge(_ status: UInt16, _ asked: String, _ said: Said) {
        let verdict = Reuse.decide(
            request: request(asked), candidates: [stored(Self.ten, status: status)], now: t0,
            configuration: .shared)
        #expect(Said(verdict) == said)
    }

    @Test("of an invalidated response needs validation (§4.4)")
    func invalidated() {
        for asked in ["", "Cache-Control: max-stale"] {
            let verdict = Reuse.decide(
                request: request(asked), candidates: [stored(Self.ten, invalidated: true)], now: t0,
                configuration: .shared)
            #expect(verdict == .validate(index: 0, forward: .stale, because: .invalidated))
        }
    }

    @Test("tells the numbers")
    func numbers() {
        let verdict = Reuse.decide(
            request: request(), candidates: [stored(Self.ten)], now: t0 + .seconds(4),
            configuration: .shared)
        let freshness = Freshness(
            lifetime: .seconds(10), source: .maxAge, currentAge: .seconds(4))
        #expect(
            verdict
                == .serve(
                    index: 0, freshness: freshness, stale: nil, revalidateInBackground: false))
    }

    @Test("takes no 206 and no HEAD from the store")
    func unusable() {
        var head = stored(Self.ten)
        head.method = .head
        let verdict = Reuse.decide(
            request: request(), candidates: [stored(Self.ten, status: 206), head], now: t0,
            configuration: .shared)
        #expect(Said(verdict) == .fetch(.uriMiss, .nothingStored))
    }
}
