import LarderCookies
import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import Synchronization
import Testing

@testable import LarderEngine

/// An origin that never answers.
private struct SilentUpstream: Upstream {
    private final class Silence: UpstreamFetch {
        func resume() {}
        func cancel() {}
    }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        Silence()
    }
}

private final class Listener: ExchangeClient {
    func exchange(informational head: ResponseHead) {}
    func exchange(answered answer: Answer) {}
    func exchange(failed failure: ExchangeFailure) {}
}

/// Makes parts that keep nothing on disk.
private func part(_ principal: String) -> PrincipalSession { part(principal, injections: []) }

private func part(_ principal: String, injections: [InjectionRule]) -> PrincipalSession {
    let cookies = SessionCookies(
        CookieHandling(accept: .always), suffixes: PublicSuffixList.system)
    let credentials = SessionCredentials(
        CredentialStore(keepsPermanent: false), hasher: CryptoHasher())
    var configuration = SessionConfiguration()
    configuration.injections = InjectionRules(injections)
    let session = Session(
        configuration: configuration,
        store: MemoryStore(MemoryConfiguration(capacity: .mebibytes(1))),
        upstream: SilentUpstream(), clock: SystemClock(), timers: DispatchTimers(),
        partition: principal, cookies: cookies, credentials: credentials)
    return PrincipalSession(
        principal: principal, session: session, cookies: cookies, credentials: credentials)
}

@Suite("Who is let go when there are too many principals")
struct PrincipalRoomTests {
    private let table = PrincipalTable(limit: 3, make: part) { $0.begin() }

    private var names: [String] { self.table.all.map(\.principal) }

    private func visit(_ principals: String...) {
        for principal in principals { _ = self.table.session(of: principal) }
    }

    private func login(_ principal: String) throws {
        let cookies = try #require(self.table.session(of: principal)?.cookies)
        let uri = try #require(TargetURI(text: "http://a.test/"))
        var head = ResponseHead(status: StatusCode(200), fields: ["Set-Cookie": "sid=1"])
        cookies.takeCookies(
            from: &head, for: Hop(method: .get, uri: uri, client: [:]), at: SystemClock().now())
    }

    @Test("the one that was used the longest ago goes when another needs the room")
    func leastRecent() {
        self.visit("a", "b", "c", "a", "d")
        #expect(self.names == ["a", "c", "d"])
    }

    @Test("who has cookies in memory alone stays as long as others have nothing to lose")
    func cookies() throws {
        try self.login("a")
        self.visit("b", "c", "d")
        #expect(self.names == ["a", "c", "d"])
        #expect(self.table.session(of: "a")?.cookies?.counters().held == 1)
    }

    @Test("where all have, the one that was used the longest ago loses them: newcomers come in")
    func full() throws {
        for name in ["a", "b", "c", "d"] { try self.login(name) }
        #expect(self.names == ["b", "c", "d"])
    }

    @Test("nobody goes whom somebody holds, or with whom an exchange is under way")
    func held() throws {
        let a = self.table.session(of: "a")
        let uri = try #require(TargetURI(text: "http://a.test/"))
        let exchange = self.table.session(of: "b")?.perform(
            Request(method: .get, uri: uri), body: nil, options: ExchangeOptions(),
            client: Listener())
        self.visit("c", "d", "e")
        #expect(self.names == ["a", "b", "e"])
        exchange?.cancel()
        #expect(a?.principal == "a")
    }

    @Test("too many that were held are made fewer once they are not")
    func shrinks() {
        var held = ["a", "b", "c", "d", "e"].map { self.table.session(of: $0) }
        #expect(self.names.count == 5)
        held = []
        self.visit("f")
        #expect(self.names == ["d", "e", "f"] && held.isEmpty)
    }
}

@Suite("The session of a principal")
struct PrincipalSessionTests {
    @Test("has performed what a rule of injection fits")
    func performed() {
        let rule = InjectionRule(
            name: "rule", hosts: [HostPattern("a.test")], credential: "token")
        let session = part("a", injections: [rule])
        for (host, expected) in [("a.test", true), ("b.test", false)] {
            let uri = TargetURI(scheme: .http, host: host, pathAndQuery: "/")
            #expect(session.mustPerform(Request(uri: uri)) == expected)
        }
    }
}
