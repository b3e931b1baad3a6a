import LarderHTTP
import LarderPolicy
import Testing

@Suite("Injection rules")
struct InjectionRuleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var uri: String
        var method: Method = .get
        var expected: String?

        var testDescription: String { "\(self.method) \(self.uri)" }
    }

    private static let rules = InjectionRules([
        InjectionRule(
            name: "api", hosts: [HostPattern("api.example")], paths: [Wildcard("/v1/*")],
            methods: [.get, .head], credential: "reader"),
        InjectionRule(
            name: "write", hosts: [HostPattern("api.example", ports: 443...443)],
            paths: [Wildcard("/v1/*")], credential: "writer"),
        InjectionRule(name: "nowhere", hosts: [], credential: "lost"),
        InjectionRule(name: "below", hosts: [HostPattern(".corp.example")], credential: "corp"),
    ])

    @Test(
        "the first that fits host, path and method speaks",
        arguments: [
            Case(uri: "https://api.example/v1/x", expected: "reader"),
            Case(uri: "https://API.example./v1/x?y", expected: "reader"),
            Case(uri: "https://api.example/v1/x", method: .post, expected: "writer"),
            Case(uri: "https://api.example:8443/v1/x", method: .post, expected: nil),
            Case(uri: "https://api.example/v2/x", expected: nil),
            Case(uri: "https://api.example/%761/x", expected: "reader"),
            Case(uri: "https://evil.example/v1/x", expected: nil),
            Case(uri: "https://api.example.evil.example/v1/x", expected: nil),
            Case(uri: "https://a.corp.example/", expected: "corp"),
            Case(uri: "https://corp.example/", expected: "corp"),
            Case(uri: "https://notcorp.example/", expected: nil),
            Case(uri: "ftp://a.corp.example/", expected: nil),
        ])
    func fits(_ c: Case) throws {
        let uri = try #require(TargetURI(text: c.uri))
        #expect(Self.rules.first(for: uri, c.method)?.credential == c.expected)
    }

    @Test(
        "a path that an origin may resolve to another one fits no path pattern",
        arguments: [
            "/v1/../admin", "/v1/%2e%2e/admin", "/v1/%2E./admin", "/v1/..%2fadmin",
            "/v1/..%5Cadmin",
            "/v1/x/..", "/v1/./x", "/v1/\\..\\admin",
            "/v1/..;/admin", "/v1/..;a=1/admin", "/v1/%2e%2e;a=1/admin", "/v1/.;/x",
            "/v1/..%3b/admin", "/v1/..;a%2fx", "/v1/..;",
        ])
    func dotSegments(_ path: String) {
        let uri = TargetURI(scheme: .https, host: "api.example", pathAndQuery: path)
        #expect(Self.rules.first(for: uri, .get) == nil)
    }

    @Test(
        "but dots in a name, or behind a semicolon, are nothing of the kind",
        arguments: [
            "/v1/...", "/v1/..a", "/v1/a..", "/v1/a;..", "/v1/;.", "/v1/a;x=../b?/../", "/v1//",
            "/v1/%2", "/v1/%2e%2e%2e",
        ])
    func otherDots(_ path: String) {
        let uri = TargetURI(scheme: .https, host: "api.example", pathAndQuery: path)
        #expect(Self.rules.first(for: uri, .get) != nil)
    }

    @Test("a request that bears a session's credential is one with credentials (RFC 9111 §3.5)")
    func authorized() {
        var request = Request(
            uri: TargetURI(scheme: .https, host: "api.example", pathAndQuery: "/"))
        request.fields.append("X-Api-Key", "sealed")
        let answer = ResponseHead(status: .ok, fields: ["Cache-Control": "max-age=60"])
        func verdict() -> StorageVerdict {
            Storability.judge(
                request: request, response: answer, bodyLength: .known(1),
                now: Timestamp(seconds: 1), configuration: PolicyConfiguration())
        }
        #expect(verdict() == .storable)
        request.isAuthorized = true
        #expect(verdict() == .notStorable(.requestAuthorization))
    }
}
