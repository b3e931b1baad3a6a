import LarderHTTP
import LarderPolicy
import Testing

@Suite("The explanation of an answer")
struct ExplanationTests {
    static let ten = "Cache-Control: max-age=10"

    private static func explain(
        _ asked: Request, _ held: [StoredHead], age: Int64 = 0,
        by configuration: PolicyConfiguration = .shared
    ) -> Explanation {
        Explanation(
            request: asked, candidates: held, bodyLengths: held.map { _ in 100 },
            now: t0 + .seconds(age), configuration: configuration)
    }

    // MARK: The verdict

    @Test("never differs from the decision, and its numbers add up to those of Freshness")
    func sameVerdict() {
        var cases = 0
        for asked in Self.requests {
            for held in Self.responses {
                for age in [Int64(-5), 0, 9, 10, 14, 500] {
                    for configuration in [PolicyConfiguration.shared, .private] {
                        let heads = held.isEmpty ? [] : [stored(held, varying: "Accept: a")]
                        let decided = Reuse.decide(
                            request: request(asked), candidates: heads, now: t0 + .seconds(age),
                            configuration: configuration)
                        let explained = Self.explain(
                            request(asked), heads, age: age, by: configuration)
                        #expect(explained.verdict == decided, "\(asked) / \(held) at \(age)")
                        #expect(explained.reason == decided.reason)
                        Self.check(explained, heads, age, configuration)
                        cases += 1
                    }
                }
            }
        }
        #expect(cases == Self.requests.count * Self.responses.count * 12)
    }

    private static func check(
        _ explained: Explanation, _ heads: [StoredHead], _ age: Int64,
        _ configuration: PolicyConfiguration
    ) {
        #expect(explained.candidates.count == heads.count)
        for (candidate, head) in zip(explained.candidates, heads) {
            let freshness = Freshness.of(
                head, at: t0 + .seconds(age), configuration: configuration)
            #expect(candidate.freshness.freshness == freshness)
            #expect(candidate.freshness.age.currentAge == freshness.currentAge)
        }
        if case .serve = explained.verdict {
            #expect(explained.candidates.allSatisfy { $0.varying.allSatisfy(\.isMatch) })
            #expect(explained.outcome != nil)
        }
        if explained.reason == .noMatchingVariant {
            #expect(explained.candidates.allSatisfy { !$0.varying.allSatisfy(\.isMatch) })
        }
        #expect(!explained.remedies.isEmpty)
    }

    static let requests = [
        "", "Cache-Control: no-cache", "Pragma: no-cache", "Cache-Control: no-store",
        "Cache-Control: max-age=0", "Cache-Control: max-age=9", "Cache-Control: max-stale=4",
        "Cache-Control: min-fresh=5", "Cache-Control: only-if-cached",
        "Cache-Control: only-if-cached, no-cache",
        "Cache-Control: only-if-cached | Pragma: no-cache",
        "If-None-Match: \"a\"", "If-Match: \"a\"", "Accept: a", "Accept: b", "Range: bytes=0-1",
        "Authorization: Basic eDp5",
    ]

    static let responses = [
        "", ten, "Cache-Control: max-age=10, must-revalidate", "Cache-Control: s-maxage=10",
        "Cache-Control: no-cache | ETag: \"a\"", "Expires: @10", "Expires: 0 | ETag: \"a\"",
        "Last-Modified: @-100", "ETag: \"a\"", "Age: 5 | \(ten)", "Age: x | Date: @-3 | \(ten)",
        "Vary: Accept | \(ten)", "Vary: *", "Vary: Accept | ETag: \"a\"",
        "Cache-Control: max-age=10, stale-while-revalidate=5",
        "Cache-Control: max-age=99999999999999999999",
    ]

    // MARK: Arithmetic

    @Test("names every step of RFC 9111 §4.2.3")
    func steps() throws {
        let head = stored("Date: @-4 | Age: 7 | Cache-Control: max-age=60", delay: 2)
        let explained = Self.explain(request(), [head], age: 30)
        let freshness = try #require(explained.candidates.first).freshness
        #expect(freshness.age.dateValue == t0 - .seconds(4))
        #expect(freshness.age.apparentAge == .seconds(4))
        #expect(freshness.age.ageValue == .seconds(7))
        #expect(freshness.age.responseDelay == .seconds(2))
        #expect(freshness.age.correctedAgeValue == .seconds(9))
        #expect(freshness.age.correctedInitialAge == .seconds(9))
        #expect(freshness.age.residentTime == .seconds(30))
        #expect(freshness.age.currentAge == .seconds(39))
        #expect(freshness.freshness.remaining == .seconds(21))
        #expect(freshness.lifetimeSource == "Cache-Control: max-age=60")
    }

    @Test(
        "says what the lifetime comes from",
        arguments: [
            ("Cache-Control: s-maxage=5, max-age=60", "Cache-Control: s-maxage=5"),
            ("Expires: @10", "Expires less Date"),
            ("Expires: 0", "Expires, which is no date and so has passed"),
            ("Last-Modified: @-100", "10 % of Date less Last-Modified, at most 86400 s"),
            ("ETag: \"a\"", "nothing gives one"),
        ])
    func lifetimes(_ held: String, _ words: String) {
        let explained = Self.explain(request(), [stored(held)])
        #expect(explained.candidates.first?.freshness.lifetimeSource == words)
    }

    // MARK: Vary

    @Test("tells how each field that Vary names compares, and never shows what may be secret")
    func vary() throws {
        let head = stored(
            "Vary: Accept-Encoding, Cookie, X-Token, Accept, DNT | Cache-Control: max-age=10",
            varying: "Accept-Encoding: gzip, br | Cookie: id=secret | X-Token: secret2")
        let explained = Self.explain(
            request("Accept-Encoding: br, gzip | Cookie: id=other | Accept: text/html"), [head])
        let varying = try #require(explained.candidates.first).varying
        #expect(explained.reason == .noMatchingVariant)
        #expect(varying.map(\.field) == ["accept-encoding", "cookie", "x-token", "accept", "dnt"])
        #expect(varying.map(\.result) == [.sameMeaning, .differs, .missing, .added, .same])
        #expect(varying.map(\.isHidden) == [false, true, true, false, false])
        #expect(varying[0].stored == "gzip, br")
        #expect(varying[0].presented == "br, gzip")
        #expect(!String(describing: explained).contains("secret"))
        #expect(!String(describing: explained).contains("id=other"))
        #expect(explained.remedies.first?.contains("cookie") == true)
    }

    // MARK: Remedies

    /// A request and a stored response, and the same with the remedy applied: then it is a hit.
    struct Remedied: Sendable {
        let reason: PolicyReason
        let asked: Request
        let held: StoredHead?
        let betterAsked: Request
        let betterHeld: StoredHead

        init(
            _ reason: PolicyReason, _ asked: Request, _ held: StoredHead?,
            _ betterAsked: Request = request(), _ betterHeld: StoredHead = stored(ten)
        ) {
            self.reason = reason
            self.asked = asked
            self.held = held
            self.betterAsked = betterAsked
            self.betterHeld = betterHeld
        }

        init(
            _ reason: PolicyReason, _ held: StoredHead?, _ betterAsked: Request = request(),
            _ betterHeld: StoredHead = stored(ten)
        ) {
            self.init(reason, request(), held, betterAsked, betterHeld)
        }
    }

    static let old = stored("Cache-Control: max-age=10", received: -20)

    static let remedied: [Remedied] = [
        Remedied(.methodNotCacheable, request(method: .put), stored(ten)),
        Remedied(.requestContent, request(bodyLength: .known(1)), stored(ten)),
        Remedied(.nothingStored, nil),
        Remedied(
            .noMatchingVariant, request("Accept: b"),
            stored("Vary: Accept | \(ten)", varying: "Accept: a"), request("Accept: b"),
            stored(ten)),
        Remedied(.conditionForOrigin, request("If-Match: \"a\""), stored(ten)),
        Remedied(
            .challengeStored, request("Authorization: a"), stored(ten, status: 401),
            request()),
        Remedied(.onlyIfCached, request("Cache-Control: only-if-cached"), nil),
        Remedied(.requestNoCache, request("Cache-Control: no-cache"), stored(ten)),
        Remedied(.requestNoStore, request("Cache-Control: no-store"), stored(ten)),
        Remedied(
            .requestMaxAge, request("Cache-Control: max-age=0"), stored(ten),
            request("Cache-Control: max-age=1")),
        Remedied(.requestMinFresh, request("Cache-Control: min-fresh=20"), stored(ten)),
        Remedied(
            .lifetimeOver, old, request(), stored("Cache-Control: max-age=30", received: -20)),
        Remedied(
            .lifetimeOver, old, request(),
            stored("Cache-Control: max-age=10, stale-while-revalidate=30", received: -20)),
        Remedied(
            .sharedLifetimeOver, stored("Cache-Control: s-maxage=10", received: -20), request(),
            stored("Cache-Control: s-maxage=30", received: -20)),
        Remedied(.expired, stored("Expires: @-1"), request(), stored("Expires: @1")),
        Remedied(
            .heuristicOver, stored("Last-Modified: @-20", received: -5), request(),
            stored("Last-Modified: @-20 | Cache-Control: max-age=10", received: -5)),
        Remedied(.noLifetime, stored("ETag: \"a\"")),
        Remedied(
            .noLifetime, stored("ETag: \"a\""), request(), stored("Last-Modified: @-100")),
        Remedied(.invalidated, stored(ten, invalidated: true)),
        Remedied(.responseNoCache, stored("Cache-Control: no-cache, max-age=10")),
        Remedied(
            .mustRevalidate, stored("Cache-Control: must-revalidate, max-age=1", received: -5)),
        Remedied(
            .proxyRevalidate, stored("Cache-Control: proxy-revalidate, max-age=1", received: -5)),
    ]

    @Test("has a remedy that helps", arguments: remedied)
    func remedyHelps(_ c: Remedied) {
        let before = Self.explain(c.asked, c.held.map { [$0] } ?? [])
        #expect(before.reason == c.reason)
        #expect(!before.isHit)
        #expect(before.remedies.contains { $0.hasPrefix(c.reason.remedy) })
        #expect(Self.explain(c.betterAsked, [c.betterHeld]).isHit)
    }

    @Test("has a remedy of its own for every reason", arguments: PolicyReason.allCases)
    func remedies(_ reason: PolicyReason) {
        let remedy = reason.remedy
        #expect(!remedy.isEmpty && !remedy.hasSuffix(".") && remedy != reason.rawValue)
        #expect(remedy.first?.isUppercase == false || remedy.hasPrefix("Last-Modified"))
        let same = PolicyReason.allCases.filter { $0.remedy == remedy }
        #expect(same == [reason])
        #expect(reason.section.hasPrefix("RFC ") || reason.section.hasPrefix("setting "))
    }

    @Test("tells what only-if-cached hides")
    func beneath() {
        let stale = Self.explain(request("Cache-Control: only-if-cached"), [Self.old])
        #expect(stale.reason == .onlyIfCached)
        #expect(stale.beneath == .lifetimeOver)
        #expect(stale.candidates.first?.isSelected == true)
        #expect(
            stale.remedies == [
                PolicyReason.onlyIfCached.remedy, PolicyReason.lifetimeOver.remedy,
            ])
    }
}

@Suite("The explanation of storing (RFC 9111 §3)")
struct StorageExplanationTests {
    /// A response that is not stored, and one with the remedy applied, which is.
    struct Case: Sendable {
        let reason: PolicyReason
        let asked: Request
        let answer: ResponseHead
        let betterAsked: Request
        let better: ResponseHead
        var configuration = PolicyConfiguration.shared

        init(
            _ reason: PolicyReason, _ asked: Request, _ answer: ResponseHead,
            _ betterAsked: Request = request(),
            _ better: ResponseHead = response("Cache-Control: max-age=10"),
            by configuration: PolicyConfiguration = .shared
        ) {
            self.reason = reason
            self.asked = asked
            self.answer = answer
            self.betterAsked = betterAsked
            self.better = better
            self.configuration = configuration
        }

        init(
            _ reason: PolicyReason, _ answer: ResponseHead, _ betterAsked: Request = request(),
            _ better: ResponseHead = response("Cache-Control: max-age=10"),
            by configuration: PolicyConfiguration = .shared
        ) {
            self.init(reason, request(), answer, betterAsked, better, by: configuration)
        }
    }

    static let ten = "Cache-Control: max-age=10"
    static let signed = request("Authorization: Basic eDp5")

    static let cases: [Case] = [
        Case(.methodNotCacheable, request(method: .delete), response(ten)),
        Case(.requestNoStore, request("Cache-Control: no-store"), response(ten)),
        Case(.interimResponse, response(ten, status: 103)),
        Case(.notModifiedResponse, response(ten, status: 304)),
        Case(.answersCondition, response(ten, status: 412)),
        Case(.responseNoStore, response("Cache-Control: no-store")),
        Case(.responsePrivate, response("Cache-Control: private, max-age=10")),
        Case(.requestAuthorization, signed, response(ten)),
        Case(
            .requestAuthorization, signed, response(ten), signed,
            response("Cache-Control: public, max-age=10")),
        Case(
            .requestAuthorization, signed, response(ten), signed,
            response("Cache-Control: s-maxage=10")),
        Case(
            .requestAuthorization, signed, response(ten), signed,
            response("Cache-Control: must-revalidate, max-age=10")),
        Case(
            .statusNotUnderstood,
            response("Cache-Control: must-understand, max-age=10", status: 299)),
        Case(
            .statusNeedsExplicit, response("ETag: \"a\"", status: 201), request(),
            response(ten, status: 201)),
        Case(.varyAny, response("Vary: * | \(ten)")),
        Case(.noFreshnessNoValidator, response("Server: x")),
        Case(.noFreshnessNoValidator, response("Server: x"), request(), response("ETag: \"a\"")),
        Case(
            .failureNotFresh, response("Cache-Control: max-age=0 | ETag: \"a\"", status: 503),
            request(), response(ten, status: 503)),
        Case(.contradictory, response("ETag: \"a\" | ETag: \"b\" | \(ten)")),
        Case(
            .setsCookie, response("Set-Cookie: a=b | \(ten)"),
            by: PolicyConfiguration(storesSetCookie: false)),
    ]

    private static func explain(
        _ asked: Request, _ answer: ResponseHead, _ configuration: PolicyConfiguration
    ) -> StorageExplanation {
        StorageExplanation(
            request: asked, response: answer, bodyLength: .unknown, now: t0,
            configuration: configuration)
    }

    @Test("agrees with the judgement, and its remedy helps", arguments: cases)
    func remedyHelps(_ c: Case) {
        let before = Self.explain(c.asked, c.answer, c.configuration)
        #expect(before.verdict == .notStorable(c.reason))
        #expect(before.remedies.first == c.reason.remedy)
        #expect(before.reuse == nil)
        let after = Self.explain(c.betterAsked, c.better, c.configuration)
        #expect(after.verdict.refusal == nil)
        #expect(after.reuse != nil)
    }

    @Test("tells of a storable response how it would be used")
    func storable() {
        let fresh = Self.explain(
            request(), response("Cache-Control: max-age=60 | Age: 10"), .shared)
        #expect(fresh.reuse == .fresh)
        #expect(fresh.freshness.freshness.remaining == .seconds(50))
        let validated = Self.explain(request(), response("ETag: \"a\""), .shared)
        #expect(validated.reuse == .noLifetime)
        #expect(validated.validators == ["ETag: \"a\""])
    }

    @Test("names the rules that speak, each with its section")
    func rules() {
        let explained = Self.explain(
            request("Authorization: Basic c2VjcmV0 | Cache-Control: max-age=5"),
            response("CDN-Cache-Control: max-age=7, public | Cache-Control: no-store | Expires: 0"),
            PolicyConfiguration(targetedFields: ["cdn-cache-control"]))
        #expect(explained.verdict.refusal == nil)
        #expect(explained.requestRules.map(\.subject) == ["Authorization", "max-age=5"])
        #expect(
            explained.responseRules.map(\.subject) == [
                "cdn-cache-control", "public", "max-age=7", "Expires",
            ])
        let rules = explained.requestRules + explained.responseRules
        #expect(rules.allSatisfy { $0.source.hasPrefix("RFC ") && !$0.meaning.isEmpty })
        #expect(!String(describing: explained).contains("c2VjcmV0"))
    }
}
