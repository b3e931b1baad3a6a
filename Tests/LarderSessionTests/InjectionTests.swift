import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

@Suite("Injected credentials")
struct InjectionTests {
    private static func rule(
        _ credential: String, host: String = "origin.example", paths: [Wildcard] = [],
        sendsBasic: Bool = false, insecure: Bool = false
    ) -> InjectionRule {
        InjectionRule(
            name: "rule", hosts: [HostPattern(host)], paths: paths, credential: credential,
            sendsBasic: sendsBasic, allowsInsecure: insecure)
    }

    private static func key(_ name: String, _ value: String) -> NamedCredential {
        NamedCredential(
            name: "key", kind: .field(name: name, value: Secret(value)), persistence: .forSession)
    }

    @Test("a bearer token takes the placeholder's place, and nobody but the origin sees it")
    func bearer() {
        let bench = ChainBench(
            injections: [Self.rule("token")], store: ChainBench.holding(ChainBench.bearer()))
        let client = bench.perform(
            "https://origin.example/", ["Authorization": "Bearer placeholder"]
        ).client
        #expect(bench.sent(0, "Authorization") == "Bearer " + ChainBench.token)
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "max-age=60"], "x")
        #expect(client.cacheStatus?.contains("detail=request-authorization") == true)
        #expect(bench.session.counters().acts == [.credentialInjected: 1])
    }

    @Test(
        "any field may bear it, and the answer is one to credentials all the same (RFC 9111 §3.5)")
    func field() {
        let bench = ChainBench(
            injections: [Self.rule("key")],
            store: ChainBench.holding(Self.key("X-Api-Key", ChainBench.token)))
        let first = bench.perform("https://origin.example/", ["x-api-key": "placeholder"]).client
        #expect(bench.sent(0, "X-Api-Key") == ChainBench.token)
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "max-age=60"], "x")
        #expect(first.cacheStatus?.contains("detail=request-authorization") == true)
        bench.perform()
        bench.upstream.fetches[1].answer(
            200, ["Cache-Control": "public, max-age=60", "Vary": "X-Api-Key"], "y")
        #expect(bench.perform().client.cacheStatus?.contains("hit") == true)
    }

    @Test("what a rule fits must not go past the session, whatever the rule comes to")
    func nothingGoesPast() {
        let bench = ChainBench(
            injections: [Self.rule("absent", paths: [Wildcard("/api*")])],
            store: ChainBench.holding(ChainBench.bearer()))
        let cases = [
            ("http://origin.example/api/x", true), ("https://origin.example/api", true),
            ("http://origin.example/open", false), ("http://other.example/api", false),
        ]
        for (uri, expected) in cases {
            guard let target = TargetURI(text: uri) else {
                Issue.record("\(uri)")
                continue
            }
            let request = Request(method: .get, uri: target, fields: Fields(), bodyLength: .none)
            #expect(bench.session.mustPerform(request) == expected, "\(uri)")
        }
    }

    @Test("validations in the background bear it as well, and tell of it (RFC 5861 §3)")
    func background() throws {
        let bench = ChainBench(
            injections: [Self.rule("key")],
            store: ChainBench.holding(Self.key("X-Api-Key", ChainBench.token)))
        let fields: Fields = [
            "Cache-Control": "public, max-age=1, stale-while-revalidate=60", "ETag": "\"a\"",
        ]
        let first = bench.perform().client
        bench.upstream.fetches[0].answer(200, fields, "x")
        #expect(first.answer?.acts == [.credentialInjected])
        bench.clock.advance(.seconds(10))
        let stale = bench.perform().client
        #expect(stale.cacheStatus?.contains("hit") == true)
        #expect(stale.answer?.acts == [], "the answer came from the store")
        #expect(bench.sent(1, "If-None-Match") == "\"a\"")
        #expect(bench.sent(1, "X-Api-Key") == ChainBench.token)
        bench.upstream.fetches[1].answer(304, fields)
        let uri = try #require(TargetURI(text: "https://origin.example/"))
        let recent = bench.session.recentExchanges(for: uri, limit: 9)
        #expect(recent.map(\.acts) == [[.credentialInjected], [], [.credentialInjected]])
    }

    @Test("a failure tells what was done before it, and an explanation what would be")
    func told() throws {
        let bench = ChainBench(injections: [Self.rule("token")])
        let client = bench.perform().client
        #expect(client.failure?.acts == [.credentialMissing])
        let uri = try #require(TargetURI(text: "https://origin.example/"))
        #expect(bench.session.foreseenActs(for: Request(uri: uri)) == [.credentialMissing])
        let plain = try #require(TargetURI(text: "http://origin.example/"))
        let holding = ChainBench(
            injections: [Self.rule("token")], store: ChainBench.holding(ChainBench.bearer()))
        #expect(holding.session.foreseenActs(for: Request(uri: uri)) == [.credentialInjected])
        #expect(holding.session.foreseenActs(for: Request(uri: plain)) == [.injectionInsecure])
    }

    @Test("a private session keeps what the credential brought, for its principal")
    func privately() {
        var policy = PolicyConfiguration()
        policy.kind = .private
        let bench = ChainBench(
            policy: policy, injections: [Self.rule("token")], partition: "uid:1000",
            store: ChainBench.holding(ChainBench.bearer()))
        bench.perform()
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "max-age=60"], "mine")
        #expect(bench.perform().client.wholeBody == "mine")
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("plain http gets it only where the rule says so; else neither it nor the placeholder")
    func insecure() {
        for (isAllowed, sent) in [(false, nil), (true, "Bearer " + ChainBench.token)] {
            let bench = ChainBench(
                injections: [Self.rule("token", insecure: isAllowed)],
                store: ChainBench.holding(ChainBench.bearer()))
            bench.perform("http://origin.example/", ["Authorization": "Bearer placeholder"])
            #expect(bench.sent(0, "Authorization") == sent)
            #expect(
                bench.session.counters().acts
                    == [isAllowed ? .credentialInjected : .injectionInsecure: 1])
        }
    }

    @Test(
        "a rule that cannot be followed fails the request, and names itself and no secret",
        arguments: [
            ("absent", ChainBench.bearer("other")),
            ("key", key("X-Key", "5ecret\r\nX-Evil: 1")), ("key", key("X-Key", " 5ecret")),
            ("key", key("X Key", "5ecret")), ("key", key("Host", "5ecret.example")),
            ("key", key("Content-Length", "0")), ("key", key("Connection", "5ecret")),
            ("key", key("X-Key", "")),
            (
                "login",
                NamedCredential(
                    name: "login", kind: .password(user: "a:b", password: Secret("5ecret")),
                    persistence: .forSession)
            ),
        ])
    func refuses(_ name: String, _ held: NamedCredential) {
        let bench = ChainBench(
            injections: [Self.rule(name, sendsBasic: true)], store: ChainBench.holding(held))
        let body = ScriptedBody("content")
        let client = bench.perform(method: .post, body: body).client
        #expect(bench.upstream.fetches.isEmpty)
        #expect(client.failure?.status.rawValue == 500)
        #expect(client.failure?.error == .proxyConfigurationError)
        #expect(client.failure?.detail.contains("\(name), ") == true)
        #expect(client.failure?.detail.contains("5ecret") == false)
        #expect(body.isCancelled)
        #expect(bench.session.counters().acts == [.credentialMissing: 1])
        let uri = TargetURI(scheme: .https, host: "origin.example", pathAndQuery: "/")
        #expect(
            bench.session.recentExchanges(for: uri, limit: 9).map(\.acts) == [[.credentialMissing]])
    }

    @Test("a login answers challenges, and goes ahead of them only where the rule says basic")
    func login() {
        let store = ChainBench.holding(ChainBench.login())
        let basic = "Basic " + Base64Text.of("alice:" + ChainBench.password)
        let asked = ChainBench(injections: [Self.rule("login")], store: store)
        asked.perform("https://origin.example/", ["Authorization": "Basic placeholder"])
        #expect(asked.sent(0, "Authorization") == nil)
        asked.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"any\""])
        #expect(asked.sent(1, "Authorization") == basic)
        let ahead = ChainBench(injections: [Self.rule("login", sendsBasic: true)], store: store)
        ahead.perform()
        #expect(ahead.sent(0, "Authorization") == basic)
        let client = ahead.perform("https://origin.example/2").client
        ahead.upstream.fetches[1].answer(401, ["WWW-Authenticate": "Basic realm=\"any\""], "no")
        #expect(client.status == 401)
        #expect(ahead.upstream.fetches.count == 2)
    }

    @Test("what a rule's credential was good for is no business of other paths")
    func scoped() {
        let bench = ChainBench(
            injections: [Self.rule("login", paths: [Wildcard("/api/*")])],
            store: ChainBench.holding(ChainBench.login()))
        bench.perform("https://origin.example/api/a")
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
        bench.upstream.fetches[1].answer(200)
        bench.perform("https://origin.example/api/b")
        #expect(bench.sent(2, "Authorization")?.contains("nc=00000002") == true)
        bench.perform("https://origin.example/other")
        #expect(bench.sent(3, "Authorization") == nil)
    }

    @Test("never after a redirection to another origin, not even on the way back")
    func redirected() {
        let bench = ChainBench(
            injections: [Self.rule("token", host: "*")], follows: true,
            store: ChainBench.holding(ChainBench.bearer()))
        bench.perform()
        bench.upstream.fetches[0].answer(302, ["Location": "/same"])
        #expect(bench.sent(1, "Authorization") == "Bearer " + ChainBench.token)
        bench.upstream.fetches[1].answer(302, ["Location": "https://evil.example/"])
        #expect(bench.sent(2, "Authorization") == nil)
        bench.upstream.fetches[2].answer(302, ["Location": "https://origin.example/back"])
        #expect(bench.sent(3, "Authorization") == nil)
        #expect(bench.upstream.fetches[3].request.uri.path == "/back")
    }

    @Test("no secret shows in any answer, failure, memory, explanation, counter or stored head")
    func secrecy() {
        let jar = OneCookieJar()
        jar.put("sid=cookie-5ecret", for: "origin.example")
        var store = ChainBench.holding(
            ChainBench.bearer(), ChainBench.login(), Self.key("X-Api-Key", ChainBench.token))
        store.addLogin(.ntlm, realm: "r")
        let bench = ChainBench(
            jar: jar,
            injections: [
                Self.rule("token", paths: [Wildcard("/token")]),
                Self.rule("login", paths: [Wildcard("/login")]),
                Self.rule("key", paths: [Wildcard("/key")]),
                Self.rule("absent", paths: [Wildcard("/absent")]),
            ], follows: true, store: store)
        let kept: Fields = [
            "Cache-Control": "public, max-age=60", "Vary": "Authorization, Cookie, X-Api-Key",
            "ETag": "\"e\"",
        ]
        var clients: [RecordingClient] = []
        for path in ["/token", "/login", "/key", "/absent", "/plain"] {
            for _ in 0..<2 {
                clients.append(bench.perform("https://origin.example" + path).client)
                guard let fetch = bench.upstream.fetches.last else { continue }
                let count = bench.upstream.fetches.count
                fetch.answer(401, ["WWW-Authenticate": "Basic realm=\"x\", NTLM"])
                if bench.upstream.fetches.count > count {
                    bench.upstream.fetches.last?.answer(200, kept, "content")
                }
            }
            clients.append(bench.perform("https://origin.example" + path + "?2").client)
            bench.upstream.fetches.last?.answer(200, kept, "content")
        }
        for client in clients {
            let shown = bench.everythingShown(client)
            for secret in ChainBench.secrets { #expect(!shown.contains(secret), "\(secret)") }
        }
        // What it did see must have been there to be seen.
        #expect(bench.upstream.fetches.contains { $0.request.fields.contains("X-Api-Key") })
        #expect(bench.sent(0, "Cookie") == "sid=cookie-5ecret")
        #expect(bench.everythingShown().contains("sealed-"))
    }
}
