import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

@Suite("Answers that stand, of sessions that add to requests")
struct StandingChainTests {
    /// The second answer to the same request; the first is stored.
    private static func hit(_ bench: ChainBench) -> RecordingClient {
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "public, max-age=60", "Vary": "Cookie, X-Own"], "hello")
        return self.ask(bench)
    }

    private static func ask(_ bench: ChainBench) -> RecordingClient {
        let client = RecordingClient()
        var options = ExchangeOptions()
        options.keepsStanding = true
        let uri = TargetURI(scheme: .https, host: "origin.example", pathAndQuery: "/")
        _ = bench.session.perform(Request(uri: uri), body: nil, options: options, client: client)
        return client
    }

    /// What a session adds.
    enum Adding: CaseIterable { case nothing, cookies, redirections, fields, injections }

    @Test("are given where what is added can be no other the next time", arguments: Adding.allCases)
    func given(_ adding: Adding) {
        let bench =
            switch adding {
            case .nothing: ChainBench()
            case .cookies: ChainBench(jar: OneCookieJar())
            case .redirections: ChainBench(follows: true)
            case .fields: ChainBench(fields: ["X-Own": "1"])
            case .injections:
                ChainBench(injections: [
                    InjectionRule(
                        name: "r", hosts: [HostPattern("elsewhere.example")], credential: "token")
                ])
            }
        let client = Self.hit(bench)
        #expect(client.cacheStatus?.contains("hit") == true)
        #expect((client.answer?.standing != nil) == (adding == .nothing))
    }

    @Test("fall with the first credential that the session gets")
    func credentials() async throws {
        let bench = ChainBench()
        let standing = try #require(Self.hit(bench).answer?.standing)
        #expect(bench.session.again(standing, cachePolicy: nil) != nil)
        await bench.credentials.update { $0.set(ChainBench.login()) }
        #expect(bench.session.again(standing, cachePolicy: nil) == nil)
    }
}
