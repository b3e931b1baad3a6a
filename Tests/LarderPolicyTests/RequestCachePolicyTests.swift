import LarderHTTP
import Testing

@testable import LarderPolicy

@Suite("Request cache policies")
struct RequestCachePolicyTests {
    struct Case: Sendable {
        let policy: RequestCachePolicy
        let held: String?
        let age: Int64
        let asked: String
        let method: Method
        let isInvalidated: Bool
        let said: Said

        init(
            _ policy: RequestCachePolicy, held: String?, age: Int64 = 0, asked: String = "",
            method: Method = .get, invalidated: Bool = false, _ said: Said
        ) {
            self.policy = policy
            self.held = held
            self.age = age
            self.asked = asked
            self.method = method
            self.isInvalidated = invalidated
            self.said = said
        }
    }

    static let ten = "Cache-Control: max-age=10 | ETag: \"a\""

    static let cases: [Case] = [
        Case(.useProtocol, held: ten, .serve),
        Case(.useProtocol, held: ten, age: 10, .validate(.stale, .lifetimeOver)),
        // Never read.
        Case(.reloadIgnoringLocal, held: ten, .fetch(.bypass, .reloadIgnoringLocal)),
        Case(.reloadIgnoringLocal, held: ten, age: 99, .fetch(.bypass, .reloadIgnoringLocal)),
        Case(.reloadIgnoringLocal, held: nil, .fetch(.bypass, .reloadIgnoringLocal)),
        Case(
            .reloadIgnoringLocal, held: ten, method: .post, .fetch(.method, .methodNotCacheable)),
        Case(
            .reloadIgnoringLocal, held: ten, asked: "Cache-Control: only-if-cached",
            .refuse(.onlyIfCached)),
        Case(.reloadIgnoringAll, held: ten, .fetch(.bypass, .reloadIgnoringAll)),
        Case(.reloadIgnoringAll, held: nil, .fetch(.bypass, .reloadIgnoringAll)),
        // However old.
        Case(.returnCacheElseLoad, held: ten, .serve),
        Case(.returnCacheElseLoad, held: ten, age: 99_999, .serveStale(.returnCacheElseLoad)),
        Case(
            .returnCacheElseLoad, held: "Cache-Control: max-age=1, must-revalidate", age: 9,
            .serveStale(.returnCacheElseLoad)),
        Case(
            .returnCacheElseLoad, held: "Cache-Control: no-cache",
            .serveStale(.returnCacheElseLoad)),
        Case(
            .returnCacheElseLoad, held: "Cache-Control: max-age=1, stale-while-revalidate=60",
            age: 9, .serveStale(.returnCacheElseLoad)),
        Case(
            .returnCacheElseLoad, held: ten, asked: "Cache-Control: no-cache",
            .serveStale(.returnCacheElseLoad)),
        Case(.returnCacheElseLoad, held: ten, asked: "Cache-Control: no-store", .serve),
        Case(.returnCacheElseLoad, held: nil, .fetch(.uriMiss, .nothingStored)),
        Case(
            .returnCacheElseLoad, held: "Vary: X-A", asked: "X-A: 2",
            .fetch(.varyMiss, .noMatchingVariant)),
        Case(
            .returnCacheElseLoad, held: ten, asked: "If-Match: \"a\"",
            .fetch(.request, .conditionForOrigin)),
        Case(
            .returnCacheElseLoad, held: ten, method: .put, .fetch(.method, .methodNotCacheable)),
        // But not what is known to be wrong, while there is an origin to ask.
        Case(
            .returnCacheElseLoad, held: ten, invalidated: true, .validate(.stale, .invalidated)),
        Case(
            .returnCacheDontLoad, held: ten, invalidated: true, .serveStale(.returnCacheDontLoad)),
        // And nothing else.
        Case(.returnCacheDontLoad, held: ten, .serve),
        Case(.returnCacheDontLoad, held: ten, age: 99, .serveStale(.returnCacheDontLoad)),
        Case(
            .returnCacheDontLoad, held: ten, age: 99, method: .head,
            .serveStale(.returnCacheDontLoad)),
        Case(
            .returnCacheDontLoad, held: "Cache-Control: max-age=1, stale-while-revalidate=60",
            age: 9, .serveStale(.returnCacheDontLoad)),
        Case(.returnCacheDontLoad, held: nil, .refuse(.returnCacheDontLoad)),
        Case(
            .returnCacheDontLoad, held: "Vary: X-A", asked: "X-A: 2",
            .refuse(.returnCacheDontLoad)),
        Case(.returnCacheDontLoad, held: ten, method: .post, .refuse(.returnCacheDontLoad)),
        Case(
            .returnCacheDontLoad, held: ten, asked: "If-Match: \"a\"",
            .refuse(.returnCacheDontLoad)),
        Case(
            .returnCacheDontLoad, held: nil, asked: "Cache-Control: only-if-cached",
            .refuse(.returnCacheDontLoad)),
        // Only once confirmed.
        Case(.reloadRevalidating, held: ten, .validate(.request, .reloadRevalidating)),
        Case(.reloadRevalidating, held: ten, age: 10, .validate(.stale, .lifetimeOver)),
        Case(
            .reloadRevalidating, held: "Cache-Control: max-age=1, stale-while-revalidate=60",
            age: 9, .validate(.request, .reloadRevalidating)),
        Case(
            .reloadRevalidating, held: "Cache-Control: max-age=1", age: 9,
            asked: "Cache-Control: max-stale", .validate(.request, .reloadRevalidating)),
        Case(.reloadRevalidating, held: nil, .fetch(.uriMiss, .nothingStored)),
    ]

    @Test("decide what becomes of what is stored", arguments: Self.cases)
    func decision(_ c: Case) {
        let verdict = Reuse.decide(
            request: request(c.asked, method: c.method),
            candidates: c.held.map {
                [stored($0, varying: "X-A: 1", invalidated: c.isInvalidated)]
            } ?? [],
            now: t0 + .seconds(c.age), configuration: .shared, policy: c.policy)
        #expect(Said(verdict) == c.said)
    }

    @Test("what is stored in part only is not returned as if it were there")
    func partial() {
        let told = ReuseVerdict.validate(index: 0, forward: .partial, because: .lifetimeOver)
        let returned = Reuse.returning(
            told, [stored(Self.ten)], t0, .shared, because: .returnCacheElseLoad)
        #expect(returned == told)
    }

    @Test("a rule that stores nothing has nothing to return")
    func ruleStoresNothing() {
        var configuration = PolicyConfiguration()
        configuration.rules = [CacheRule(name: "r", forbidsStoring: true)]
        for (policy, said) in [
            (.returnCacheElseLoad, .fetch(.bypass, .ruleStoresNothing)),
            (.returnCacheDontLoad, .refuse(.returnCacheDontLoad)),
            (.reloadIgnoringLocal, .fetch(.bypass, .ruleStoresNothing)),
        ] as [(RequestCachePolicy, Said)] {
            let verdict = Reuse.decide(
                request: request(), candidates: [stored(Self.ten)], now: t0,
                configuration: configuration.resolved(for: uri()), policy: policy)
            #expect(Said(verdict) == said)
        }
    }

    @Test("reload-revalidating lets nothing stand in for an origin that fails")
    func standIn() {
        func permits(_ policy: RequestCachePolicy) -> PolicyReason? {
            StaleOnError.permits(
                stored("Cache-Control: max-age=1, stale-if-error=60"), request: request(),
                now: t0 + .seconds(9), configuration: .shared, policy: policy)
        }
        #expect(permits(.useProtocol) == .staleIfError)
        #expect(permits(.reloadRevalidating) == nil)
    }

    @Test(
        "reload-ignoring-all tells the caches further on (RFC 9111 §5.2.1.4, §5.4)",
        arguments: [
            ("", "no-cache", "no-cache"),
            ("Cache-Control: max-age=5", "max-age=5, no-cache", "no-cache"),
            ("Cache-Control: no-cache | Pragma: no-cache", "no-cache", "no-cache"),
            ("Pragma: x", "no-cache", "x, no-cache"),
        ])
    func forwarded(_ asked: String, _ control: String, _ pragma: String) {
        let sent = RequestCachePolicy.reloadIgnoringAll.forwarded(request(asked)).fields
        func list(_ name: KnownField) -> String {
            sent.members(FieldName(name)).map { String(decoding: $0, as: UTF8.self) }
                .joined(separator: ", ")
        }
        #expect(list(.cacheControl) == control)
        #expect(list(.pragma) == pragma)
    }

    @Test("the others leave the request as it is")
    func unchanged() {
        for policy in RequestCachePolicy.allCases where policy != .reloadIgnoringAll {
            let asked = request("Cache-Control: max-age=5 | X: y")
            #expect(policy.forwarded(asked).fields.serialized() == asked.fields.serialized())
        }
    }

    @Test(
        "are known by name, and near misses are guessed",
        arguments: [
            ("return-cache-dont-load", .returnCacheDontLoad, nil),
            ("Reload-Revalidating", .reloadRevalidating, nil),
            ("return-cache-dont-laod", nil, .returnCacheDontLoad),
            ("return-cache-don't-load", nil, .returnCacheDontLoad),
            ("reload-validating", nil, .reloadRevalidating), ("use-protocl", nil, .useProtocol),
            ("", nil, nil), ("x", nil, nil), ("frobnicate", nil, nil),
        ] as [(String, RequestCachePolicy?, RequestCachePolicy?)])
    func names(_ name: String, _ policy: RequestCachePolicy?, _ nearest: RequestCachePolicy?) {
        #expect(RequestCachePolicy(named: name) == policy)
        if policy == nil { #expect(RequestCachePolicy.nearest(to: name) == nearest) }
    }

    @Test("a shared cache leaves alone what a private one stored for one user (RFC 9111 §5.2.2.7)")
    func oncePrivate() {
        let held = [stored("Cache-Control: private, max-age=60")]
        func said(_ configuration: PolicyConfiguration) -> Said {
            Said(
                Reuse.decide(
                    request: request(), candidates: held, now: t0, configuration: configuration))
        }
        #expect(said(.private) == .serve)
        #expect(said(.shared) == .fetch(.miss, .responsePrivate))
    }
}
