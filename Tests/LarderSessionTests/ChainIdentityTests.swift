import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

@Suite("What a chain of requests led to is stored for those who would be led there, too (§4.1)")
struct ChainIdentityTests {
    @Test(
        "where a redirection leaves the origin, the client's own Cookie and Authorization still count",
        arguments: ["Cookie", "Authorization"])
    func leaving(_ name: String) {
        let bench = ChainBench(follows: true)
        bench.perform("https://origin.example/", [name: "alice"])
        bench.upstream.fetches[0].answer(
            302, ["Location": "https://cdn.example/signed-for-alice", "Vary": name])
        #expect(bench.sent(1, name) == nil)
        bench.upstream.fetches[1].answer(200, Self.kept, "hers")
        #expect(
            bench.perform("https://origin.example/", [name: "alice"]).client.wholeBody
                == "hers")
        for fields in [Fields(), [name: "bob"]] as [Fields] {
            Self.expectAsked(bench, fields)
        }
    }

    @Test("where a redirection stays at the origin, too")
    func staying() {
        let bench = ChainBench(follows: true)
        bench.perform("https://origin.example/", ["Cookie": "alice"])
        bench.upstream.fetches[0].answer(302, ["Location": "/hers", "Vary": "Cookie"])
        bench.upstream.fetches[1].answer(200, Self.kept, "hers")
        #expect(
            bench.perform("https://origin.example/", ["Cookie": "alice"]).client.wholeBody == "hers"
        )
        Self.expectAsked(bench)
    }

    @Test("cookies that are the client's business stay comparable behind a challenge")
    func challenged() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let varying: Fields = ["Cache-Control": "public, max-age=60", "Vary": "Cookie"]
        bench.perform("https://origin.example/", ["Cookie": "alice"])
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(200, varying, "hers")
        #expect(
            bench.perform("https://origin.example/", ["Cookie": "alice"]).client.wholeBody == "hers"
        )
        Self.expectAsked(bench, ["Cookie": "bob"])
        Self.expectAsked(bench)
    }

    @Test("a credential that came into force after a request was prepared counts (§3.5)")
    func injectedMeanwhile() {
        let bench = ChainBench(jar: OneCookieJar(), store: ChainBench.holding(ChainBench.bearer()))
        Self.makeStale(bench, "https://origin.example/")
        let client = bench.perform().client
        var newer = bench.session.configuration
        newer.injections = InjectionRules([
            InjectionRule(name: "r", hosts: [HostPattern("*")], credential: "token")
        ])
        bench.session.follow(newer)
        // Nothing that is stored has this tag: it is asked again, now with the credential.
        bench.upstream.fetches[1].answer(304, ["ETag": "\"other\""])
        #expect(bench.sent(2, "Authorization") == "Bearer \(ChainBench.token)")
        bench.upstream.fetches[2].answer(200, ["Cache-Control": "max-age=60"], "secret")
        #expect(client.wholeBody == "secret")
        #expect(client.cacheStatus?.contains("detail=request-authorization") == true)
    }

    @Test("one that was replaced after a request was prepared answers for itself alone")
    func replacedMeanwhile() async {
        let bench = ChainBench(
            injections: [InjectionRule(name: "r", hosts: [HostPattern("*")], credential: "token")],
            store: ChainBench.holding(ChainBench.bearer()))
        let varying: Fields = ["Cache-Control": "public, max-age=60", "Vary": "Authorization"]
        Self.makeStale(bench, "https://origin.example/")
        bench.perform()
        await Self.replace(bench, "second")
        bench.upstream.fetches[1].answer(304, ["ETag": "\"other\""])
        #expect(bench.sent(2, "Authorization") == "Bearer second")
        bench.upstream.fetches[2].answer(200, varying, "second's")
        #expect(bench.perform().client.wholeBody == "second's")
        await Self.replace(bench, ChainBench.token)
        Self.expectAsked(bench)
    }

    @Test("so does one in a field of its own")
    func replacedField() async {
        let key = NamedCredential(
            name: "token", kind: .field(name: "X-Api-Key", value: Secret("first")),
            persistence: .forSession)
        let bench = ChainBench(
            injections: [InjectionRule(name: "r", hosts: [HostPattern("*")], credential: "token")],
            store: ChainBench.holding(key))
        let varying: Fields = ["Cache-Control": "public, max-age=60", "Vary": "x-api-key"]
        Self.makeStale(bench, "https://origin.example/")
        bench.perform()
        let second = NamedCredential(
            name: "token", kind: .field(name: "X-Api-Key", value: Secret("second")),
            persistence: .forSession)
        await bench.credentials.update { $0.set(second) }
        bench.upstream.fetches[1].answer(304, ["ETag": "\"other\""])
        #expect(bench.sent(2, "X-Api-Key") == "second")
        bench.upstream.fetches[2].answer(200, varying, "second's")
        #expect(bench.perform().client.wholeBody == "second's")
        await bench.credentials.update { $0.set(key) }
        Self.expectAsked(bench)
    }

    @Test(
        "a 304 that makes a response vary by more speaks of the request that it answered (§4.3.4)")
    func widened() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "public, max-age=1", "ETag": "\"e\""], "for alice")
        bench.clock.advance(.seconds(9))
        bench.perform()
        bench.upstream.fetches[1].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[2].answer(
            304,
            [
                "ETag": "\"e\"", "Vary": "Authorization", "Cache-Control": "public, max-age=60",
            ])
        #expect(bench.perform().client.wholeBody == "for alice")
        // One that goes without the credential is another one's.
        Self.expectAsked(bench, ["Authorization": "Basic bob"])
    }

    /// A request that nothing stored answers.
    private static func expectAsked(
        _ bench: ChainBench, _ fields: Fields = Fields(),
        location: SourceLocation = #_sourceLocation
    ) {
        let asked = bench.upstream.fetches.count
        let client = bench.perform("https://origin.example/", fields).client
        bench.upstream.fetches.last?.answer(200, ["Cache-Control": "no-store"], "another's")
        #expect(bench.upstream.fetches.count == asked + 1, sourceLocation: location)
        #expect(client.wholeBody == "another's", sourceLocation: location)
    }

    private static let kept: Fields = ["Cache-Control": "public, max-age=60"]

    private static func makeStale(_ bench: ChainBench, _ uri: String) {
        bench.perform(uri)
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "public, max-age=1", "ETag": "\"e\""], "old")
        bench.clock.advance(.seconds(9))
    }

    private static func replace(_ bench: ChainBench, _ token: String) async {
        await bench.credentials.update { store in
            store.set(
                NamedCredential(
                    name: "token", kind: .bearer(Secret(token)), persistence: .forSession))
        }
    }
}
