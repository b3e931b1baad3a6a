import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Validation with everybody's tags (RFC 9111 §4.1, §4.3)")
struct SharedValidationTests {
    /// A bench where `/` is stored with this tag and has become stale.
    private static func stale(_ extra: Fields = Fields()) -> Bench {
        let bench = Bench()
        bench.perform()
        var fields = bench.fresh
        fields.append(contentsOf: extra)
        bench.upstream.fetches[0].answer(200, fields, "hello")
        bench.clock.advance(.seconds(61))
        return bench
    }

    @Test("a 304 for the stored tag freshens it, and the client gets the whole (§4.3.2)")
    func oursHolds() {
        let bench = Self.stale()
        let client = bench.perform("/", ["If-None-Match": "\"z\""]).client
        let fetch = bench.upstream.fetches[1]
        #expect(fetch.request.fields.string("If-None-Match") == "\"a\", \"z\"")
        fetch.answer(304, bench.fresh)
        #expect(client.status == 200)
        #expect(client.wholeBody == "hello")
        #expect(bench.perform().client.cacheStatus == "larder; hit; ttl=60")
    }

    @Test("a 304 for a tag that the client has too is 304 for it as well")
    func bothHold() {
        let bench = Self.stale()
        let client = bench.perform("/", ["If-None-Match": "\"z\", \"a\""]).client
        #expect(bench.upstream.fetches[1].request.fields.string("If-None-Match") == "\"a\", \"z\"")
        bench.upstream.fetches[1].answer(304, bench.fresh)
        #expect(client.status == 304)
        #expect(client.field("ETag") == "\"a\"")
        #expect(client.wholeBody == "")
    }

    @Test("a 304 for the client's tag alone is passed on, and freshens nothing")
    func clientsHolds() {
        let bench = Self.stale()
        let client = bench.perform("/", ["If-None-Match": "\"z\""]).client
        bench.upstream.fetches[1].answer(304, ["ETag": "\"z\"", "Cache-Control": "max-age=60"])
        #expect(client.status == 304)
        #expect(client.field("ETag") == "\"z\"")
        #expect(bench.upstream.fetches.count == 2)
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
        #expect(bench.upstream.fetches[2].request.fields.string("If-None-Match") == "\"a\"")
    }

    @Test("what has no validator is asked for as the client does it")
    func noValidator() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "max-age=60"], "hello")
        bench.clock.advance(.seconds(61))
        let client = bench.perform("/", ["If-None-Match": "\"z\""]).client
        let fetch = bench.upstream.fetches[1]
        #expect(fetch.request.fields.string("If-None-Match") == "\"z\"")
        // It answers the client's condition, so it is the client's.
        fetch.answer(304)
        #expect(client.status == 304)
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test(
        "a 304 that forbids storing serves who asked, alone, and ends what it selects (§5.2.2.5)",
        arguments: ["no-store", "private", "private, max-age=9"])
    func forbidding(_ control: String) {
        let bench = Self.stale()
        let first = bench.perform().client
        let second = bench.perform().client
        bench.upstream.fetches[1].answer(304, ["ETag": "\"a\"", "Cache-Control": control])
        #expect(first.wholeBody == "hello")
        #expect(first.field("Cache-Control") == control)
        #expect(second.answer == nil)
        #expect(bench.session.store.statistics().memory.objects == 0)
        bench.upstream.fetches[2].answer(200, bench.fresh, "again")
        #expect(second.wholeBody == "again")
    }

    @Test("a new variant stands beside the one that was asked about")
    func newVariant() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Vary", "Foo")
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(200, fields, "one")
        bench.perform("/", ["Foo": "2"])
        fields.set("ETag", "\"b\"")
        bench.upstream.fetches[1].answer(200, fields, "two")
        #expect(bench.perform("/", ["Foo": "1"]).client.wholeBody == "one")
        #expect(bench.perform("/", ["Foo": "2"]).client.wholeBody == "two")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("a failure serves no variant that the request does not select")
    func noStandIn() {
        let bench = Bench()
        bench.perform("/", ["Foo": "1"])
        bench.upstream.fetches[0].answer(
            200,
            ["Cache-Control": "max-age=60, stale-if-error=99", "ETag": "\"a\"", "Vary": "Foo"], "1")
        let client = bench.perform("/", ["Foo": "2"]).client
        bench.upstream.fetches[1].fail(.connectionRefused)
        #expect(client.failure?.status == .badGateway)
    }

    @Test(
        "what must be validated and cannot be is 504, with the cause (§5.2.2.2)",
        arguments: [
            ("max-age=1, must-revalidate", .connectionRefused, 504, "must-revalidate"),
            ("max-age=1, must-revalidate", .dnsError, 504, "must-revalidate"),
            ("s-maxage=1", .connectionTerminated, 504, "s-maxage-over"),
            ("max-age=1", .connectionRefused, 502, "lifetime-over"),
            ("max-age=1, must-revalidate", .requestBodyFailed, 504, "must-revalidate"),
        ] as [(String, UpstreamFailure.Kind, UInt16, String)])
    func disconnected(
        _ control: String, _ kind: UpstreamFailure.Kind, _ status: UInt16, _ detail: String
    ) {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, ["Cache-Control": control, "ETag": "\"a\""], "x")
        bench.clock.advance(.seconds(9))
        let client = bench.perform().client
        bench.upstream.fetches[1].fail(kind)
        #expect(client.failure?.status.rawValue == status)
        #expect(client.failure?.error == kind.errorType)
        #expect(client.failure?.cacheStatus.detail == detail)
        #expect(client.failure?.cacheStatus.forward == .stale)
    }
}

@Suite("Unsafe methods and what they leave (RFC 9111 §4.4, RFC 9110 §9.3.3, RFC 9875)")
struct UnsafeMethodTests {
    @Test("the answer to POST that says so is stored for GET, and what was there goes")
    func post() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "old")
        var fields = bench.fresh
        fields.append("Content-Location", "/")
        let poster = bench.perform(method: .post).client
        bench.upstream.fetches[1].answer(200, fields, "new")
        #expect(poster.wholeBody == "new")
        #expect(
            poster.cacheStatus
                == "larder; fwd=method; fwd-status=200; ttl=60; stored; detail=method-not-cacheable"
        )
        let reader = bench.perform().client
        #expect(reader.wholeBody == "new")
        #expect(reader.cacheStatus == "larder; hit; ttl=60")
        #expect(bench.perform(method: .head).client.answer?.bodyLength == .known(3))
        // A POST is never answered from what is stored.
        bench.perform(method: .post)
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("a GET that was asked before the POST was answered does not come back over it")
    func postAndOldGet() {
        let bench = Bench()
        bench.perform()
        var fields = bench.fresh
        fields.append("Content-Location", "http://origin.example/")
        bench.perform(method: .post)
        bench.upstream.fetches[1].answer(200, fields, "new")
        bench.upstream.fetches[0].answer(200, bench.fresh, "old")
        #expect(bench.perform().client.wholeBody == "new")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test(
        "other answers to POST are not stored, and invalidate",
        arguments: [nil, "/b", "http://other.example/"])
    func postElsewhere(_ location: String?) {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "old")
        var fields = bench.fresh
        if let location { fields.append("Content-Location", location) }
        bench.perform(method: .post)
        bench.upstream.fetches[1].answer(200, fields, "new")
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("a group that is invalidated takes its members with it, at its origin only")
    func groups() {
        let bench = Bench()
        for (path, groups) in [("/a", "\"g\", \"h\""), ("/b", "\"h\""), ("/c", "\"i\"")] {
            var fields = bench.fresh
            fields.append("Cache-Groups", groups)
            bench.perform(path)
            bench.upstream.fetches.last?.answer(200, fields, path)
        }
        #expect(bench.upstream.fetches.count == 3)
        bench.clock.advance(.seconds(1))
        bench.perform("/form", method: .post)
        bench.upstream.fetches[3].answer(200, ["Cache-Group-Invalidation": "\"h\""])
        bench.clock.advance(.seconds(1))
        #expect(bench.perform("/c").client.wholeBody == "/c")
        #expect(bench.upstream.fetches.count == 4)
        let member = bench.perform("/a").client
        #expect(bench.upstream.fetches[4].request.fields.string("If-None-Match") == "\"a\"")
        bench.upstream.fetches[4].answer(304, bench.fresh)
        #expect(member.wholeBody == "/a")
        #expect(member.answer?.cacheStatus.forward == .stale)
        // Confirmed since, it is good again.
        #expect(bench.perform("/a").client.answer?.cacheStatus.hit == true)
        bench.perform("/b")
        #expect(bench.upstream.fetches.count == 6)
    }

    @Test("who asks after a group was invalidated does not join a fetch from before (§2.2.1)")
    func groupOnItsWay() {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Cache-Groups", "\"g\"")
        bench.perform("/a")
        bench.upstream.fetches[0].head(200, fields)
        _ = bench.upstream.fetches[0].piece("o")
        bench.clock.advance(.seconds(1))
        bench.perform("/form", method: .post)
        bench.upstream.fetches[1].answer(200, ["Cache-Group-Invalidation": "\"g\""])
        bench.clock.advance(.seconds(1))
        bench.perform("/a")
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("what shares a group with the target of an unsafe request goes with it (§2.2.1)")
    func sharedGroup() {
        let bench = Bench()
        for (path, groups) in [("/a", "\"g\""), ("/b", "\"g\""), ("/c", "\"h\"")] {
            var fields = bench.fresh
            fields.append("Cache-Groups", groups)
            bench.perform(path)
            bench.upstream.fetches.last?.answer(200, fields, path)
        }
        bench.clock.advance(.seconds(1))
        bench.perform("/a", method: .put)
        bench.upstream.fetches[3].answer(204)
        #expect(bench.perform("/c").client.wholeBody == "/c")
        bench.perform("/b")
        #expect(bench.upstream.fetches.count == 5)
    }

    @Test(
        "a group is not invalidated by a safe method, nor by an error",
        arguments: [(.get, 200), (.post, 500)] as [(Method, UInt16)])
    func noGroups(_ method: Method, _ status: UInt16) {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Cache-Groups", "\"g\"")
        bench.perform("/a")
        bench.upstream.fetches[0].answer(200, fields, "a")
        bench.perform("/form", method: method)
        bench.upstream.fetches[1].answer(status, ["Cache-Group-Invalidation": "\"g\""])
        #expect(bench.perform("/a").client.wholeBody == "a")
        #expect(bench.upstream.fetches.count == 2)
    }
}

@Suite("No-Vary-Search in a session")
struct SearchTests {
    private static func bench(_ rule: String = "params=(\"u\")", at path: String) -> Bench {
        let bench = Bench()
        bench.perform(path)
        var fields = bench.fresh
        fields.append("No-Vary-Search", rule)
        bench.upstream.fetches[0].answer(200, fields, "hello")
        return bench
    }

    @Test(
        "queries that mean the same are one hit, others are none",
        arguments: [
            ("/p?a=1&u=1", true), ("/p?a=1&u=2", true), ("/p?a=1", true), ("/p?u=3&a=1", true),
            ("/p?a=2&u=1", false), ("/p", false), ("/q?a=1", false), ("/p?a=1&a=1", false),
        ])
    func hits(_ path: String, _ isHit: Bool) {
        let bench = Self.bench(at: "/p?a=1&u=1")
        let client = bench.perform(path).client
        #expect(bench.upstream.fetches.count == (isHit ? 1 : 2))
        if isHit {
            #expect(client.cacheStatus == "larder; hit; ttl=60")
            #expect(client.wholeBody == "hello")
        }
    }

    @Test("it is validated, freshened and replaced where it lies")
    func validation() {
        let bench = Self.bench(at: "/p?u=1")
        bench.clock.advance(.seconds(61))
        let second = bench.perform("/p?u=2").client
        #expect(bench.upstream.fetches[1].request.uri.pathAndQuery == "/p?u=2")
        #expect(bench.upstream.fetches[1].request.fields.string("If-None-Match") == "\"a\"")
        bench.upstream.fetches[1].answer(304, bench.fresh)
        #expect(second.wholeBody == "hello")
        #expect(bench.perform("/p?u=3").client.wholeBody == "hello")
        bench.clock.advance(.seconds(61))
        bench.perform("/p?u=4")
        var fields = bench.fresh
        fields.append("No-Vary-Search", "params=(\"u\")")
        bench.upstream.fetches[2].answer(200, fields, "newer")
        for path in ["/p?u=1", "/p?u=5", "/p"] {
            #expect(bench.perform(path).client.wholeBody == "newer")
        }
        #expect(bench.upstream.fetches.count == 3)
        #expect(bench.session.store.statistics().memory.objects == 1)
    }

    @Test(
        "a response that lies where the same target's former one does not takes its place (§4)",
        arguments: [
            ([true, false], 200), ([false, true], 200), ([true, false], 404), ([false, true], 404),
        ] as [([Bool], Int)])
    func movedOver(_ leavesOut: [Bool], _ status: Int) {
        let bench = Bench()
        for (round, leavesOut) in leavesOut.enumerated() {
            bench.perform("/p?u=1", round == 0 ? [:] : ["Cache-Control": "no-cache"])
            var fields = bench.fresh
            fields.set("ETag", "\"\(round)\"")
            if leavesOut { fields.append("No-Vary-Search", "params=(\"u\")") }
            bench.upstream.fetches[round].answer(
                round == 0 ? 200 : UInt16(status), fields, "\(round)")
            bench.clock.advance(.seconds(1))
        }
        #expect(bench.session.store.statistics().memory.objects == 1)
        #expect(bench.perform("/p?u=1").client.wholeBody == "1")
        #expect(bench.upstream.fetches.count == 2)
        // Of another query nothing is known where the newer one says nothing of it.
        bench.perform("/p?u=2")
        #expect(bench.upstream.fetches.count == (leavesOut[1] ? 2 : 3))
    }

    @Test("and leaves it where it is not stored as a whole")
    func notMovedOver() {
        let bench = Self.bench("params=(\"x\")", at: "/p?u=1")
        bench.perform("/p?u=1", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].head(200, bench.fresh, length: .known(10))
        bench.upstream.fetches[1].piece("123")
        bench.upstream.fetches[1].fail()
        #expect(bench.session.store.statistics().memory.objects >= 1)
        #expect(bench.perform("/p?u=1").client.wholeBody == "hello")
    }

    @Test("Vary still counts")
    func vary() {
        let bench = Bench()
        bench.perform("/p?u=1", ["Foo": "1"])
        var fields = bench.fresh
        fields.append("No-Vary-Search", "except=()")
        fields.append("Vary", "Foo")
        bench.upstream.fetches[0].answer(200, fields, "one")
        #expect(bench.perform("/p?u=2", ["Foo": "1"]).client.wholeBody == "one")
        let other = bench.perform("/p?u=2", ["Foo": "2"]).client
        #expect(bench.upstream.fetches.count == 2)
        fields.set("ETag", "\"b\"")
        bench.upstream.fetches[1].answer(200, fields, "two")
        #expect(other.wholeBody == "two")
        #expect(bench.perform("/p?u=3", ["Foo": "1"]).client.wholeBody == "one")
        #expect(bench.perform("/p?u=3", ["Foo": "2"]).client.wholeBody == "two")
    }

    @Test(
        "an unsafe method, and a purge, take what answers their target",
        arguments: ["/p?u=1", "/p?u=2", "/p"])
    func invalidation(_ path: String) {
        let posted = Self.bench(at: "/p?u=1")
        posted.perform(path, method: .post)
        posted.upstream.fetches[1].answer(200)
        posted.perform("/p?u=1")
        #expect(posted.upstream.fetches.count == 3)

        let purged = Self.bench(at: "/p?u=1")
        let uri = TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path)
        purged.session.remove(CacheKey(method: .get, uri: uri)) { #expect($0 == 1) }
        purged.perform("/p?u=1")
        #expect(purged.upstream.fetches.count == 2)
    }

    @Test("and with it what shares a group with what answers the target (RFC 9875 §2.2.1)")
    func sharedGroup() {
        let bench = Bench()
        for (path, group) in [("/p?u=1", "g"), ("/p?q=1", "h"), ("/b", "g"), ("/c", "h")] {
            var fields = bench.fresh
            fields.append("Cache-Groups", "\"\(group)\"")
            if path.hasPrefix("/p") { fields.append("No-Vary-Search", "params=(\"u\")") }
            bench.perform(path)
            bench.upstream.fetches.last?.answer(200, fields, path)
        }
        #expect(bench.upstream.fetches.count == 4)
        bench.clock.advance(.seconds(1))
        bench.perform("/p?u=2", method: .post)
        bench.upstream.fetches[4].answer(204)
        #expect(bench.perform("/c").client.wholeBody == "/c")
        bench.perform("/b")
        #expect(bench.upstream.fetches.count == 6)
    }

    @Test("queries that are not the same stand side by side, up to a bound")
    func bounded() {
        let bench = Bench(policy: PolicyConfiguration(maximumVariants: 8))
        var fields = bench.fresh
        fields.append("No-Vary-Search", "params=(\"u\")")
        for path in (0..<12).map({ "/p?q=\($0)" }) {
            bench.perform(path)
            bench.upstream.fetches.last?.answer(200, fields, path)
            bench.clock.advance(.milliseconds(1))
        }
        #expect(bench.session.store.statistics().memory.objects == 8)
        #expect(bench.perform("/p?u=1&q=4").client.wholeBody == "/p?q=4")
        #expect(bench.upstream.fetches.count == 12)
        bench.perform("/p?u=1&q=3")
        #expect(bench.upstream.fetches.count == 13)
    }

    @Test("HEAD finds it too, and a HEAD that differs makes it stale (RFC 9111 §4.3.5)")
    func head() {
        let bench = Self.bench(at: "/p?u=1")
        #expect(bench.perform("/p?u=2", method: .head).client.answer?.bodyLength == .known(5))
        bench.perform("/p?u=2", method: .head, ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].head(200, ["ETag": "\"b\""], length: .none)
        bench.upstream.fetches[1].finish()
        bench.perform("/p?u=3")
        #expect(bench.upstream.fetches.count == 3)
    }
}

@Suite("What goes to whom (RFC 9111 §5.2.2.4, §5.2.2.7, §5.5)")
struct ForwardedFieldTests {
    @Test("fields that are the first client's alone do not go to those who waited with it")
    func waiting() {
        let bench = Bench()
        let first = bench.perform().client
        let second = bench.perform().client
        var fields = bench.fresh
        fields.set("Cache-Control", "max-age=60, private=\"X-Mine\", no-cache=\"X-Now\"")
        fields.append("X-Mine", "1")
        fields.append("X-Now", "2")
        fields.append("X-All", "3")
        bench.upstream.fetches[0].answer(200, fields, "hello")
        #expect(first.field("X-Mine") == "1" && first.field("X-Now") == "2")
        #expect(second.field("X-Mine") == nil && second.field("X-Now") == nil)
        #expect(second.field("X-All") == "3" && second.field("Age") == "0")
        #expect(second.wholeBody == "hello")
    }

    @Test("Warning is obsolete, and goes nowhere")
    func warning() {
        let bench = Bench()
        let client = bench.perform().client
        var fields = bench.fresh
        fields.append("Warning", "110 - \"Response is Stale\"")
        bench.upstream.fetches[0].answer(200, fields, "x")
        #expect(client.field("Warning") == nil)
        #expect(bench.perform().client.field("Warning") == nil)
    }
}

@Suite("What is stored is judged by the settings of today (RFC 9111 §3, §3.5, §7.3)")
struct WithdrawnTests {
    struct Case: Sendable {
        let asked: Fields
        let answer: Fields
        let before: PolicyConfiguration
        let now: PolicyConfiguration
        /// nil: it is used as before.
        let reason: String?

        init(
            asked: Fields = Fields(), _ answer: Fields,
            before: PolicyConfiguration = PolicyConfiguration(),
            now: PolicyConfiguration = PolicyConfiguration(), _ reason: String?
        ) {
            self.asked = asked
            self.answer = answer
            self.before = before
            self.now = now
            self.reason = reason
        }
    }

    private static let alice: Fields = ["Authorization": "Bearer alice"]

    private static func ignoring(_ ignored: CacheRule.Ignored) -> PolicyConfiguration {
        var policy = PolicyConfiguration()
        policy.rules = [CacheRule(name: "r", ignored: ignored)]
        return policy
    }

    static let cases: [Case] = [
        Case(
            asked: alice, ["Cache-Control": "max-age=600"], before: ignoring([.authorization]),
            "request-authorization"),
        Case(
            asked: alice, ["Cache-Control": "max-age=600"],
            before: PolicyConfiguration(kind: .private), "request-authorization"),
        // What the rule says now counts, not what was said when it was stored.
        Case(
            asked: alice, ["Cache-Control": "max-age=600"],
            before: PolicyConfiguration(kind: .private), now: ignoring([.authorization]), nil),
        Case(
            asked: alice, ["Cache-Control": "max-age=600"],
            now: PolicyConfiguration(kind: .private), "nothing-stored"),
        Case(
            asked: alice, ["Cache-Control": "public, max-age=600"],
            before: ignoring([.authorization]), nil),
        Case(asked: alice, ["Cache-Control": "s-maxage=600"], nil),
        Case(["Cache-Control": "max-age=600"], before: ignoring([.authorization]), nil),
        Case(
            ["Cache-Control": "max-age=600", "Set-Cookie": "sid=alice"],
            now: PolicyConfiguration(storesSetCookie: false), "sets-cookie"),
        Case(
            ["Cache-Control": "max-age=600"], now: PolicyConfiguration(storesSetCookie: false), nil),
        Case(
            ["Cache-Control": "max-age=600", "Set-Cookie": "sid=alice"],
            now: ignoring([.noStore]), nil),
    ]

    @Test("or not used where they would not store it", arguments: Self.cases)
    func used(_ c: Case) {
        let bench = Bench(policy: c.before)
        bench.perform("/", c.asked)
        bench.upstream.fetches[0].answer(200, c.answer, "alice")
        bench.session.follow(c.now, cachePolicy: .useProtocol)
        let other = bench.perform().client
        #expect((other.wholeBody == "alice") == (c.reason == nil))
        guard let reason = c.reason else { return }
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches.last?.answer(200, bench.fresh, "anybody")
        #expect(other.wholeBody == "anybody")
        #expect(other.cacheStatus?.hasSuffix("detail=\(reason)") == true)
        #expect(bench.perform().client.wholeBody == "anybody")
    }

    @Test("nor does it stand in for an origin that fails (§4.2.4)", arguments: Self.cases)
    func standsIn(_ c: Case) {
        guard c.reason != nil, c.reason != "nothing-stored" else { return }
        let bench = Bench(policy: c.before)
        bench.perform("/", c.asked)
        var fields = c.answer
        fields.set("Cache-Control", "max-age=1, stale-if-error=600")
        bench.upstream.fetches[0].answer(200, fields, "alice")
        bench.clock.advance(.seconds(9))
        bench.session.follow(c.now, cachePolicy: .useProtocol)
        let other = bench.perform().client
        bench.upstream.fetches[1].fail(.connectionRefused)
        #expect(other.failure?.status == .badGateway)
    }

    @Test("and what credentials have updated is as what they have led to (§3.5)")
    func updated() {
        let bench = Bench(policy: Self.ignoring([.authorization]))
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        bench.perform("/", Self.alice)
        var fields = bench.fresh
        fields.append("X-User", "alice")
        bench.upstream.fetches[1].answer(304, fields)
        #expect(bench.perform().client.field("X-User") == "alice")
        bench.session.follow(PolicyConfiguration(), cachePolicy: .useProtocol)
        #expect(bench.perform().client.calls == 0)
        #expect(bench.upstream.fetches.count == 3)
    }
}
