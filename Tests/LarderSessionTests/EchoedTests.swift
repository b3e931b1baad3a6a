import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

/// The answer to a TRACE shows the client what the request bore.
@Suite("Requests that are echoed bear no secret of the session's (RFC 9110 §9.3.8)")
struct EchoedTests {
    @Test("no cookie of the jar goes with them, nor with where a redirection sends them")
    func cookies() {
        let jar = OneCookieJar()
        jar.put("sid=cookie-5ecret", for: "origin.example")
        let bench = ChainBench(jar: jar, follows: true)
        let client = bench.perform(method: .trace, ["Cookie": "own=1"]).client
        #expect(bench.sent(0, "Cookie") == nil)
        bench.upstream.fetches[0].answer(307, ["Location": "/there", "Set-Cookie": "s=1"])
        #expect(bench.upstream.fetches[1].request.method == .trace)
        #expect(bench.sent(1, "Cookie") == nil)
        bench.upstream.fetches[1].answer(200, [:], "x")
        #expect(client.wholeBody == "x" && client.field("Set-Cookie") == nil)
        bench.perform()
        #expect(bench.sent(2, "Cookie") == "s=1")
    }

    @Test("a rule injects nothing into them, and takes the placeholder out")
    func injected() {
        for credential in [ChainBench.bearer(), ChainBench.bearer("another")] {
            let rule = InjectionRule(
                name: "rule", hosts: [HostPattern("origin.example")], credential: "token")
            let bench = ChainBench(injections: [rule], store: ChainBench.holding(credential))
            bench.perform(method: .trace, ["Authorization": "Bearer placeholder"])
            #expect(bench.sent(0, "Authorization") == nil)
            #expect(bench.session.counters().acts == [:])
        }
    }

    @Test("a client's own login is not changed (RFC 9110 §11.6.2)")
    func own() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform(method: .trace, ["Authorization": "Basic YTpi"])
        #expect(bench.sent(0, "Authorization") == "Basic YTpi")
    }

    @Test("no kept credential goes with them, and a challenge to them is the client's")
    func kept() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=r"])
        bench.upstream.fetches[1].answer(200, [:], "x")
        #expect(bench.sent(1, "Authorization") != nil)
        let client = bench.perform(method: .trace).client
        #expect(bench.sent(2, "Authorization") == nil)
        bench.upstream.fetches[2].answer(401, ["WWW-Authenticate": "Basic realm=r"])
        #expect(client.status == 401)
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("what the settings add to all others is not added")
    func additional() {
        let bench = ChainBench(fields: ["X-Key": "5ecret"])
        bench.perform(method: .trace)
        bench.perform()
        #expect(bench.sent(0, "X-Key") == nil && bench.sent(1, "X-Key") == "5ecret")
    }
}
