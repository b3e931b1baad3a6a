import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import Testing

@Suite("Credentials that all principals of a session share")
struct SharedCredentialTests {
    private static let rules = [
        InjectionRule(
            name: "rule", hosts: [HostPattern("origin.example")], credential: "login")
    ]

    private static func login(_ password: String, user: String = "alice") -> NamedCredential {
        NamedCredential(
            name: "login", kind: .password(user: user, password: Secret(password)),
            persistence: .forSession)
    }

    private static func common(_ credentials: CredentialStore) -> SessionCredentials {
        SessionCredentials(credentials, hasher: PlainHasher())
    }

    @Test("are what a rule takes where the principal has none of the name")
    func fallback() {
        let bench = ChainBench(
            injections: Self.rules, partition: "user:bob",
            common: Self.common(ChainBench.holding(Self.login("shared"))))
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(bench.sent(1, "Authorization") == "Basic " + Base64Text.of("alice:shared"))
        bench.upstream.fetches[1].answer(200, Fields(), "yes")
        #expect(client.answer?.head.status == .ok)
        #expect(client.answer?.acts == [.challengeAnswered])
        // The space is remembered in the principal's part, and for the next request.
        bench.perform()
        #expect(bench.sent(2, "Authorization") == "Basic " + Base64Text.of("alice:shared"))
    }

    @Test("give way to the principal's own")
    func own() {
        let bench = ChainBench(
            injections: Self.rules, partition: "user:bob",
            store: ChainBench.holding(Self.login("own", user: "bob")),
            common: Self.common(ChainBench.holding(Self.login("shared"))))
        bench.perform()
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(bench.sent(1, "Authorization") == "Basic " + Base64Text.of("bob:own"))
    }

    @Test("answer no challenge that no rule speaks of")
    func spaces() {
        let bench = ChainBench(
            partition: "user:bob", common: Self.common(ChainBench.holding(.basic)))
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(bench.upstream.fetches.count == 1)
        #expect(client.answer?.head.status.rawValue == 401)
    }

    @Test("are tried again once they were changed, also to what they had been")
    func changed() async {
        let common = Self.common(ChainBench.holding(Self.login("shared")))
        let bench = ChainBench(
            injections: Self.rules, partition: "user:bob", common: common)
        let challenge: Fields = ["WWW-Authenticate": "Basic realm=\"r\""]
        bench.perform()
        bench.upstream.fetches[0].answer(401, challenge, "no")
        bench.upstream.fetches[1].answer(401, challenge, "no")
        bench.perform()
        bench.upstream.fetches[2].answer(401, challenge, "no")
        #expect(bench.upstream.fetches.count == 3, "what was refused is not sent again")
        await common.update { $0.set(Self.login("shared")) }
        bench.perform()
        bench.upstream.fetches[3].answer(401, challenge, "no")
        #expect(bench.sent(4, "Authorization") == "Basic " + Base64Text.of("alice:shared"))
    }
}
