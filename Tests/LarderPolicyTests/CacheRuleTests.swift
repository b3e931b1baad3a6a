import LarderHTTP
import Testing

@testable import LarderPolicy

extension PolicyConfiguration {
    /// A configuration with one rule, which fits everything.
    static func ruled(_ rule: CacheRule) -> PolicyConfiguration {
        var configuration = PolicyConfiguration()
        configuration.rules = [rule]
        return configuration.resolved(for: uri())
    }
}

private func rule(
    minimum: Int64? = nil, maximum: Int64? = nil, lifetime: Int64? = nil,
    ignored: CacheRule.Ignored = [], negative: [NegativeLifetime] = [], grace: Int64? = nil,
    forbidsStoring: Bool = false
) -> CacheRule {
    CacheRule(
        name: "r", place: "f:1", minimum: minimum.map { .seconds($0) },
        maximum: maximum.map { .seconds($0) }, lifetime: lifetime.map { .seconds($0) },
        ignored: ignored, negative: negative, staleIfErrorGrace: grace.map { .seconds($0) },
        forbidsStoring: forbidsStoring)
}

@Suite("Which cache rule speaks for a URI")
struct RuleScopeTests {
    @Test(
        "A host pattern",
        arguments: [
            ("example.com", "example.com", true), ("example.com", "www.example.com", false),
            ("EXAMPLE.com", "example.com", true), (".example.com", "example.com", true),
            (".example.com", "a.b.example.com", true), (".example.com", "badexample.com", false),
            ("*.example.com", "example.com", false), ("*.example.com", "a.example.com", true),
            ("example.com", "example.com.", true), ("*", "anything", true),
            ("mirror?.example", "mirror1.example", true), ("[::1]", "[::1]", true),
            ("deb.*", "deb.debian.org", true),
        ] as [(String, String, Bool)])
    func host(_ pattern: String, _ host: String, _ fits: Bool) {
        let subject = RuleSubject(uri(host: host))
        #expect(HostPattern(pattern).matches(subject) == fits)
    }

    @Test("A host pattern with ports fits those alone")
    func ports() {
        let target = TargetURI(scheme: .http, host: "a.example", port: 8080, pathAndQuery: "/")
        #expect(HostPattern("a.example", ports: 8000...8999).matches(RuleSubject(target)))
        #expect(!HostPattern("a.example", ports: 80...80).matches(RuleSubject(target)))
        #expect(HostPattern("a.example", ports: 80...80).matches(RuleSubject(uri())))
    }

    @Test(
        "A path pattern, over the path without its query, unreserved characters decoded (RFC 3986 §6.2.2.2)",
        arguments: [
            ("/pool/*.deb", "/pool/main/a/a_1.deb", true),
            ("/pool/*.deb", "/pool/main/a/a_1.deb?x=.txt", true),
            ("/pool/*.deb", "/pool/main/a/a_1.txt?x=.deb", false),
            ("/pool/*.deb", "/POOL/main/a/a_1.deb", false),
            ("*/pool/*", "/debian/pool/x", true), ("/a", "/a/", false),
            ("/~me/*", "/%7eme/x", true),
            ("/a/b", "/a%2Fb", false), ("/?", "/é", true), ("/*", "/", true),
            ("/%zz", "/%zz", true), ("/a", "/a%", false), ("*a*b*c", "/xaxbxc", true),
            ("*a*b*c", "/xaxbxcx", false),
        ] as [(String, String, Bool)])
    func path(_ pattern: String, _ path: String, _ fits: Bool) {
        #expect(Wildcard(pattern).matches(RuleSubject(uri(path)).path) == fits)
    }

    @Test("The first rule that fits speaks, alone; where none does, none speaks")
    func first() {
        var configuration = PolicyConfiguration()
        configuration.rules = [
            CacheRule(name: "a", hosts: [HostPattern("x.example")], paths: [Wildcard("/a/*")]),
            CacheRule(name: "b", hosts: [HostPattern(".example")]),
            CacheRule(name: "c", hosts: [HostPattern("x.example")]),
        ]
        #expect(configuration.rule == nil)
        func name(_ path: String, _ host: String) -> String? {
            configuration.resolved(for: uri(path, host: host)).rule?.name
        }
        #expect(name("/a/1", "x.example") == "a")
        #expect(name("/b/1", "x.example") == "b")
        #expect(name("/a/1", "y.example") == "b")
        #expect(name("/a/1", "y.test") == nil)
        #expect(configuration.resolved(for: uri(host: "y.example")).unresolved.rule == nil)
    }

    @Test("Resolving once more starts anew")
    func again() {
        var configuration = PolicyConfiguration()
        configuration.rules = [CacheRule(name: "a", hosts: [HostPattern("x.example")])]
        let resolved = configuration.resolved(for: uri(host: "x.example"))
        #expect(resolved.resolved(for: uri(host: "y.example")).rule == nil)
    }
}

@Suite("Freshness overrides and negative caching")
struct CacheRuleTests {
    struct Lifetime: Sendable {
        let held: String
        let status: UInt16
        let rule: CacheRule
        let seconds: Int64
        let source: LifetimeSource

        init(
            _ held: String, status: UInt16 = 200, _ rule: CacheRule, _ seconds: Int64,
            _ source: LifetimeSource
        ) {
            self.held = held
            self.status = status
            self.rule = rule
            self.seconds = seconds
            self.source = source
        }
    }

    static let never = NegativeLifetime(404...404, .zero)
    static let soon = NegativeLifetime(400...499, .seconds(30))

    static let lifetimes: [Lifetime] = [
        Lifetime("Cache-Control: max-age=10", rule(minimum: 60), 60, .ruleMinimum),
        Lifetime("Cache-Control: max-age=90", rule(minimum: 60), 90, .maxAge),
        Lifetime("Cache-Control: max-age=90", rule(maximum: 60), 60, .ruleMaximum),
        Lifetime("Cache-Control: s-maxage=90", rule(maximum: 60), 60, .ruleMaximum),
        Lifetime("Cache-Control: max-age=10", rule(minimum: 60, maximum: 30), 30, .ruleMaximum),
        Lifetime("Expires: 0", rule(minimum: 60), 60, .ruleMinimum),
        Lifetime("X: y", rule(minimum: 60), 60, .ruleMinimum),
        Lifetime("X: y", rule(lifetime: 60), 60, .ruleLifetime),
        Lifetime("Last-Modified: @-1000", rule(lifetime: 60), 60, .ruleLifetime),
        Lifetime("Cache-Control: max-age=10", rule(lifetime: 60), 10, .maxAge),
        Lifetime("Cache-Control: max-age=0", rule(lifetime: 60), 0, .maxAge),
        Lifetime("Expires: 0", rule(lifetime: 60), 0, .expires),
        Lifetime(
            "Cache-Control: max-age=0", rule(lifetime: 60, ignored: .maxAge), 60, .ruleLifetime),
        Lifetime(
            "Expires: 0", rule(lifetime: 60, ignored: .expires), 60, .ruleLifetime),
        Lifetime(
            "Cache-Control: max-age=5 | Expires: @9", rule(ignored: .maxAge), 9, .expires),
        Lifetime(
            "Cache-Control: max-age=5, s-maxage=7", rule(ignored: .sMaxage), 5, .maxAge),
        Lifetime("X: y", rule(lifetime: 0), 0, .ruleLifetime),
        // Only what may be expected to last is pinned.
        Lifetime("X: y", status: 404, rule(minimum: 60, lifetime: 60), 0, .none),
        Lifetime("Cache-Control: max-age=5", status: 503, rule(minimum: 60), 5, .maxAge),
        Lifetime("Cache-Control: max-age=5", status: 302, rule(minimum: 60), 5, .maxAge),
        Lifetime("Cache-Control: max-age=5", status: 307, rule(minimum: 60), 5, .maxAge),
        Lifetime("X: y", status: 301, rule(minimum: 60), 60, .ruleMinimum),
        Lifetime("X: y", status: 308, rule(minimum: 60), 60, .ruleMinimum),
        Lifetime("Set-Cookie: a=b", rule(minimum: 60, lifetime: 60), 0, .none),
        // Errors go by their own lifetimes.
        Lifetime("X: y", status: 404, rule(negative: [soon]), 30, .negative),
        Lifetime("X: y", status: 404, rule(negative: [never, soon]), 0, .none),
        Lifetime("Last-Modified: @-1000", status: 404, rule(negative: [soon]), 30, .negative),
        Lifetime("Cache-Control: max-age=5", status: 404, rule(negative: [soon]), 5, .maxAge),
        Lifetime("Expires: 0", status: 404, rule(negative: [soon]), 0, .expires),
        Lifetime("X: y", status: 500, rule(negative: [soon]), 0, .none),
        Lifetime("X: y", status: 403, rule(negative: [soon]), 30, .negative),
        Lifetime("X: y", status: 401, rule(negative: [soon]), 0, .none),
        Lifetime("X: y", status: 407, rule(negative: [soon]), 0, .none),
        Lifetime("X: y", status: 200, rule(negative: [soon]), 0, .none),
        Lifetime("X: y", status: 404, rule(maximum: 10, negative: [soon]), 10, .ruleMaximum),
    ]

    @Test(
        "A 304 brings no cookies into what is stored because private is ignored",
        arguments: [
            ("Cache-Control: private", "", CacheRule.Ignored.isPrivate, false),
            ("", "Cache-Control: no-store", .noStore, false),
            ("Cache-Control: max-age=9", "", .isPrivate, true), ("", "", .setCookie, false),
        ])
    func cookies(
        _ held: String, _ news: String, _ ignored: CacheRule.Ignored, _ isTaken: Bool
    ) {
        var configuration = PolicyConfiguration.ruled(rule(ignored: ignored))
        // A shared one takes none in any case.
        configuration.kind = .private
        let freshened = Validation.freshen(
            stored(held), with: response("\(news) | Set-Cookie: s=1", status: 304),
            requestTime: t0, responseTime: t0, configuration: configuration)
        #expect(freshened.fields.contains("Set-Cookie") == isTaken)
    }

    @Test("The freshness lifetime, and who gave it", arguments: Self.lifetimes)
    func lifetime(_ c: Lifetime) {
        let freshness = Freshness.of(
            stored(c.held, status: c.status), at: t0, configuration: .ruled(c.rule))
        #expect(freshness.lifetime == .seconds(c.seconds))
        #expect(freshness.source == c.source)
    }

    @Test("Negative lifetimes of the session hold where the rule has none")
    func negativeOfSession() {
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(404...404, .seconds(9)), Self.soon]
        func lifetime(_ status: UInt16) -> Duration {
            Freshness.of(stored("X: y", status: status), at: t0, configuration: configuration)
                .lifetime
        }
        #expect(lifetime(404) == .seconds(9))
        #expect(lifetime(410) == .seconds(30))
        #expect(lifetime(503) == .zero)
        configuration.rules = [rule(negative: [NegativeLifetime(410...410, .seconds(1))])]
        configuration = configuration.resolved(for: uri())
        #expect(lifetime(410) == .seconds(1))
        #expect(lifetime(404) == .seconds(9))
        // What is told of it is where it is written.
        func told(_ status: UInt16) -> FreshnessArithmetic {
            FreshnessArithmetic.of(
                stored("X: y", status: status), at: t0, configuration: configuration)
        }
        #expect(told(404).lifetimeSource == "freshness.negative for status 404")
        #expect(told(404).lifetimeSection == "setting freshness.negative")
        #expect(told(410).lifetimeSource.hasPrefix("cache rule \""))
        #expect(told(410).lifetimeSource.hasSuffix(", negative for status 410"))
        #expect(told(410).lifetimeSection == "setting cache-rules")
    }

    @Test(
        "4xx speaks of no error that is about the request alone, but where its status is named",
        arguments: [400, 406, 408, 411, 413, 414, 415, 417, 421, 422, 425, 426] as [UInt16])
    func negativeOfRequest(_ status: UInt16) {
        let named = NegativeLifetime(status...status, .seconds(9))
        for (negative, seconds) in [([Self.soon], 0), ([Self.soon, named], 9)] {
            var ofSession = PolicyConfiguration()
            ofSession.negative = negative
            for configuration in [ofSession, .ruled(rule(negative: negative))] {
                let lifetime = Freshness.of(
                    stored("X: y", status: status), at: t0, configuration: configuration
                ).lifetime
                #expect(lifetime == .seconds(seconds))
            }
        }
    }

    struct Storing: Sendable {
        let told: String
        let status: UInt16
        let asked: String
        let configuration: PolicyConfiguration
        let verdict: StorageVerdict

        init(
            _ told: String, status: UInt16 = 200, asked: String = "", _ rule: CacheRule?,
            _ verdict: StorageVerdict
        ) {
            self.told = told
            self.status = status
            self.asked = asked
            self.configuration = rule.map { .ruled($0) } ?? .shared
            self.verdict = verdict
        }
    }

    static let storing: [Storing] = [
        Storing("Cache-Control: no-store, max-age=5", rule(ignored: .noStore), .storable),
        Storing(
            "Cache-Control: no-store, private, max-age=5", rule(ignored: .noStore),
            .notStorable(.responsePrivate)),
        Storing("Cache-Control: private, max-age=5", rule(ignored: .isPrivate), .storable),
        Storing(
            "Cache-Control: no-store, max-age=5", rule(minimum: 60), .notStorable(.responseNoStore)),
        Storing(
            "Cache-Control: private", rule(minimum: 60, lifetime: 60),
            .notStorable(.responsePrivate)),
        Storing(
            "Cache-Control: no-cache", rule(lifetime: 60), .notStorable(.noFreshnessNoValidator)),
        Storing("Cache-Control: no-cache", rule(lifetime: 60, ignored: .noCache), .storable),
        Storing("X: y", nil, .notStorable(.noFreshnessNoValidator)),
        Storing("X: y", rule(minimum: 60), .storable),
        Storing("X: y", rule(lifetime: 60), .storable),
        Storing(
            "Cache-Control: max-age=5", rule(forbidsStoring: true), .notStorable(.ruleStoresNothing)
        ),
        Storing("Vary: * | Cache-Control: max-age=5", rule(ignored: .vary), .storable),
        Storing(
            "Vary: * | Cache-Control: max-age=5", rule(minimum: 60), .notStorable(.varyAny)),
        // A request's own wish, and its credentials, are not set aside on the way.
        Storing(
            "Cache-Control: no-store, max-age=5", asked: "Cache-Control: no-store",
            rule(ignored: [.noStore, .reload]), .notStorable(.requestNoStore)),
        Storing(
            "Cache-Control: private, max-age=5", asked: "Authorization: x",
            rule(minimum: 60, ignored: [.isPrivate, .noStore]), .notStorable(.requestAuthorization)),
        Storing(
            "Cache-Control: max-age=5", asked: "Authorization: x", rule(ignored: .authorization),
            .storable),
        Storing(
            "Cache-Control: max-age=5, must-revalidate", asked: "Authorization: x",
            rule(ignored: .mustRevalidate), .notStorable(.requestAuthorization)),
        // Cookies.
        Storing(
            "Cache-Control: private, max-age=5 | Set-Cookie: a=b", rule(ignored: .isPrivate),
            .notStorable(.setsCookie)),
        Storing(
            "Cache-Control: private, max-age=5 | Set-Cookie: a=b",
            rule(ignored: [.isPrivate, .setCookie]), .storable),
        Storing("Cache-Control: max-age=5 | Set-Cookie: a=b", rule(ignored: .isPrivate), .storable),
        Storing("Set-Cookie: a=b", rule(minimum: 60), .notStorable(.noFreshnessNoValidator)),
        Storing("Set-Cookie: a=b", rule(minimum: 60, ignored: .setCookie), .storable),
        // Errors.
        Storing("X: y", status: 404, rule(negative: [soon]), .storable),
        Storing("X: y", status: 403, rule(negative: [soon]), .storable),
        Storing("X: y", status: 403, rule(negative: [never]), .notStorable(.statusNeedsExplicit)),
        Storing("X: y", status: 403, rule(minimum: 60), .notStorable(.statusNeedsExplicit)),
        Storing(
            "Cache-Control: no-store", status: 404, rule(negative: [soon]),
            .notStorable(.responseNoStore)),
        Storing(
            "X: y", status: 404, asked: "Authorization: x", rule(negative: [soon]),
            .notStorable(.requestAuthorization)),
        Storing("X: y", status: 412, rule(negative: [soon]), .notStorable(.answersCondition)),
    ]

    @Test("What may be stored", arguments: Self.storing)
    func storable(_ c: Storing) {
        let verdict = Storability.judge(
            request: request(c.asked), response: response(c.told, status: c.status),
            bodyLength: .known(1), now: t0, configuration: c.configuration)
        #expect(verdict == c.verdict)
    }

    @Test(
        "Cookies that a session has taken count as set (RFC 9111 §7.3)",
        arguments: [
            (PolicyConfiguration(storesSetCookie: false), .notStorable(.setsCookie)),
            (.ruled(rule(ignored: .isPrivate)), .notStorable(.setsCookie)),
            (.ruled(rule(ignored: [.isPrivate, .setCookie])), .storable),
        ] as [(PolicyConfiguration, StorageVerdict)])
    func taken(_ configuration: PolicyConfiguration, _ expected: StorageVerdict) {
        let directives = configuration.storesSetCookie ? "private, max-age=5" : "max-age=5"
        var told = response("Cache-Control: \(directives)")
        told.hasSetCookies = true
        let verdict = Storability.judge(
            request: request(), response: told, bodyLength: .known(1), now: t0,
            configuration: configuration)
        #expect(verdict == expected)
    }

    @Test("A response whose cookies are ignored is stored without them")
    func cookies() {
        let told = response("Set-Cookie: a=b | X: y | Cache-Control: max-age=5 | Set-Cookie: c=d")
        func kept(_ configuration: PolicyConfiguration) -> Bool {
            StoredHead(
                storing: told, to: request(), requestTime: t0, responseTime: t0,
                configuration: configuration
            ).fields.contains(FieldName(.setCookie))
        }
        #expect(kept(.shared))
        #expect(!kept(.ruled(rule(ignored: .setCookie))))
    }

    static let reuse: [(held: String, asked: String, age: Int64, rule: CacheRule, said: Said)] = [
        ("Cache-Control: max-age=10", "", 30, rule(minimum: 60), .serve),
        (
            "Cache-Control: max-age=10", "", 60, rule(minimum: 60),
            .validate(.stale, .ruleLifetimeOver)
        ),
        (
            "Cache-Control: max-age=90", "", 60, rule(maximum: 60),
            .validate(.stale, .ruleLifetimeOver)
        ),
        ("Cache-Control: no-cache", "", 0, rule(minimum: 60), .validate(.stale, .responseNoCache)),
        ("Cache-Control: no-cache", "", 0, rule(minimum: 60, ignored: .noCache), .serve),
        (
            "Cache-Control: max-age=10, must-revalidate, stale-while-revalidate=90", "", 30,
            rule(ignored: .mustRevalidate), .serveAndRevalidate(.staleWhileRevalidate)
        ),
        (
            "Cache-Control: max-age=90", "Cache-Control: no-cache", 0, rule(minimum: 1),
            .validate(.request, .requestNoCache)
        ),
        ("Cache-Control: max-age=90", "Cache-Control: no-cache", 0, rule(ignored: .reload), .serve),
        ("Cache-Control: max-age=90", "Pragma: no-cache", 0, rule(ignored: .reload), .serve),
        // As long as there is the rule for which it was stored.
        ("Cache-Control: no-store, max-age=9", "", 0, rule(ignored: .noStore), .serve),
        (
            "Cache-Control: no-store, max-age=9", "", 0, rule(minimum: 9),
            .fetch(.miss, .responseNoStore)
        ),
        (
            "Cache-Control: max-age=90", "Cache-Control: max-age=0", 9, rule(ignored: .reload),
            .serve
        ),
        (
            "Cache-Control: max-age=90", "Cache-Control: no-store", 9, rule(ignored: .reload),
            .fetch(.request, .requestNoStore)
        ),
        (
            "Cache-Control: max-age=90", "", 0, rule(forbidsStoring: true),
            .fetch(.bypass, .ruleStoresNothing)
        ),
        (
            "Cache-Control: max-age=90", "Cache-Control: only-if-cached", 0,
            rule(forbidsStoring: true), .refuse(.onlyIfCached)
        ),
        ("Cache-Control: max-age=9 | Vary: X-A", "X-A: 2", 0, rule(ignored: .vary), .serve),
        (
            "Cache-Control: max-age=9 | Vary: X-A", "X-A: 2", 0, rule(minimum: 9),
            .fetch(.varyMiss, .noMatchingVariant)
        ),
    ]

    @Test("What is stored answers, or does not", arguments: Self.reuse)
    func reused(_ c: (held: String, asked: String, age: Int64, rule: CacheRule, said: Said)) {
        let verdict = Reuse.decide(
            request: request(c.asked), candidates: [stored(c.held, varying: "X-A: 1")],
            now: t0 + .seconds(c.age), configuration: .ruled(c.rule))
        #expect(Said(verdict) == c.said)
    }

    @Test("A rule's grace stands in for the session's when the origin fails")
    func grace() {
        func permits(_ configuration: PolicyConfiguration, age: Int64) -> PolicyReason? {
            StaleOnError.permits(
                stored("Cache-Control: max-age=10"), request: request(),
                now: t0 + .seconds(age), configuration: configuration)
        }
        #expect(permits(.shared, age: 20) == nil)
        #expect(permits(.ruled(rule(grace: 60)), age: 70) == .graceOnError)
        #expect(permits(.ruled(rule(grace: 60)), age: 71) == nil)
        var generous = PolicyConfiguration(staleIfErrorGrace: .seconds(60))
        generous.rules = [rule(grace: 0)]
        #expect(permits(generous, age: 20) == .graceOnError)
        #expect(permits(generous.resolved(for: uri()), age: 20) == nil)
    }

    @Test("A new response takes the place of all where Vary is ignored")
    func replaced() {
        let old = [stored("Vary: X-A", varying: "X-A: 1"), stored("Vary: X-A", varying: "X-A: 2")]
        let new = stored("Vary: X-A", varying: "X-A: 3")
        #expect(Variance.replaced(by: new, among: old, configuration: .shared) == [])
        #expect(
            Variance.replaced(by: new, among: old, configuration: .ruled(rule(ignored: .vary)))
                == [0, 1])
    }
}

@Suite("Overrides are named")
struct RuleEffectTests {
    static let cases: [(held: String, status: UInt16, rule: CacheRule, told: [String])] = [
        ("Cache-Control: max-age=90", 200, rule(minimum: 60, ignored: [.noStore, .vary]), []),
        (
            "Cache-Control: max-age=10, no-store | Vary: X", 200,
            rule(minimum: 60, ignored: [.noStore, .isPrivate]),
            [
                "cache rule \"r\" (f:1): ignores no-store",
                "cache rule \"r\" (f:1): rule-minimum, fresh for 60 s instead of 10 s",
            ]
        ),
        (
            "X: y", 404, rule(negative: [NegativeLifetime(404...404, .seconds(30))]),
            ["cache rule \"r\" (f:1): negative, fresh for 30 s instead of 0 s"]
        ),
        ("X: y", 200, rule(forbidsStoring: true), ["cache rule \"r\" (f:1): stores nothing"]),
        (
            "X: y", 200, rule(grace: 9),
            ["cache rule \"r\" (f:1): stale-if-error 9 s instead of 0 s"]
        ),
        (
            "Cache-Control: max-age=5 | Expires: 0", 200, rule(ignored: [.maxAge, .expires]),
            [
                "cache rule \"r\" (f:1): ignores max-age",
                "cache rule \"r\" (f:1): ignores expires",
            ]
        ),
    ]

    @Test("With their rule and its place, where they changed something", arguments: Self.cases)
    func effects(_ c: (held: String, status: UInt16, rule: CacheRule, told: [String])) {
        let effects = PolicyConfiguration.ruled(c.rule).ruleEffects(
            on: stored(c.held, status: c.status), request: request())
        #expect(effects.map(\.description) == c.told)
    }

    @Test("The request's part counts where there is one")
    func ofRequest() {
        let configuration = PolicyConfiguration.ruled(rule(ignored: [.reload, .authorization]))
        let head = stored("Cache-Control: max-age=90")
        #expect(configuration.ruleEffects(on: head).isEmpty)
        let effects = configuration.ruleEffects(
            on: head, request: request("Pragma: no-cache | Authorization: x"))
        #expect(effects.map(\.change) == [.ignored(.reload), .ignored(.authorization)])
        #expect(effects.map(\.reason) == [.ruleIgnored, .ruleIgnored])
    }

    @Test("Negative caching of the session is named without a rule")
    func ofSession() {
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(404...404, .seconds(30))]
        let effects = configuration.ruleEffects(on: stored("X: y", status: 404))
        #expect(effects.map(\.description) == ["settings: negative, fresh for 30 s instead of 0 s"])
        #expect(effects.map(\.reason) == [.negativeLifetime])
        #expect(configuration.ruleEffects(on: stored("X: y")).isEmpty)
    }
}
