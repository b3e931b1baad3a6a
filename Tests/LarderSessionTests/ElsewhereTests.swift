import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

/// What the session has for a server must not be had by way of another one's redirection.
@Suite("Redirections to hosts that the client did not ask")
struct ElsewhereTests {
    @Test(
        "a challenge of the target is answered with what is kept for it, if the client asked its host",
        arguments: [
            ("https://origin.example/", "https://origin.example/x", true),
            ("http://origin.example/", "https://origin.example/", true),
            ("https://origin.example:8443/", "https://origin.example/", false),
            ("https://b.example/", "https://origin.example/", false),
        ])
    func challenged(_ first: String, _ target: String, _ isAnswered: Bool) {
        let bench = ChainBench(follows: true, store: ChainBench.holding(.basic))
        let client = bench.perform(first).client
        bench.upstream.fetches[0].answer(302, ["Location": target])
        bench.upstream.fetches[1].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(bench.sent(2, "Authorization")?.hasPrefix("Basic ") == (isAnswered ? true : nil))
        if isAnswered { bench.upstream.fetches[2].answer(200, [:], "yes") }
        #expect(client.wholeBody == (isAnswered ? "yes" : "no"))
    }

    @Test("nor is it sent there before anybody asks, but on the way back it is")
    func preempted() {
        let bench = ChainBench(follows: true, store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(200)
        bench.perform("https://b.example/")
        bench.upstream.fetches[2].answer(302, ["Location": "https://origin.example/"])
        #expect(bench.sent(3, "Authorization") == nil)
        bench.perform()
        bench.upstream.fetches[4].answer(302, ["Location": "https://b.example/"])
        #expect(bench.sent(5, "Authorization") == nil)
        bench.upstream.fetches[5].answer(302, ["Location": "https://origin.example/"])
        #expect(bench.sent(6, "Authorization") == bench.sent(1, "Authorization"))
    }

    @Test("what a cookie brought from another host is not stored for others under the first URL")
    func cookiesElsewhere() {
        for (kind, host, isStored) in [
            (CacheKind.shared, "b.example", false), (.private, "b.example", true),
            (.shared, "origin.example", true),
        ] {
            let jar = OneCookieJar()
            jar.put("sid=1", for: host)
            let bench = ChainBench(jar: jar, policy: PolicyConfiguration(kind: kind), follows: true)
            let client = bench.perform("http://origin.example/").client
            bench.upstream.fetches[0].answer(302, ["Location": "https://\(host)/"])
            #expect(bench.sent(1, "Cookie") == "sid=1")
            bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "x")
            #expect(client.wholeBody == "x")
            #expect(client.cacheStatus?.contains("stored;") == isStored, "\(kind) \(host)")
        }
    }
}
