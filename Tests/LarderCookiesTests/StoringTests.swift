import LarderCookies
import LarderHTTP
import Testing

@Suite("The storage model (RFC 6265bis §5.7)")
struct StoringTests {
    struct Case: Sendable {
        let line: String
        let context: CookieContext
        let refusal: CookieRefusal?

        init(_ line: String, _ context: CookieContext, _ refusal: CookieRefusal?) {
            self.line = line
            self.context = context
            self.refusal = refusal
        }
    }

    private static let http = context("http://www.a.test/x/y")
    private static let https = context("https://www.a.test/x/y")

    @Test(
        "takes or refuses",
        arguments: [
            Case("a=b", http, nil), Case("a=", http, nil), Case("b", http, nil),
            Case("", http, .empty), Case("=", http, .empty), Case("; Path=/", http, .empty),
            Case("a=b", context("ftp://www.a.test/"), .scheme),
            // Domain
            Case("a=b; Domain=a.test", http, nil), Case("a=b; Domain=.www.a.test", http, nil),
            Case("a=b; Domain=b.test", http, .foreignDomain),
            Case("a=b; Domain=x.www.a.test", http, .foreignDomain),
            Case("a=b; Domain=ww.a.test", http, .foreignDomain),
            Case("a=b; Domain=test", http, .publicSuffix),
            Case("a=b; Domain=test.", context("http://www.a.test./"), .publicSuffix),
            Case("a=b; Domain=.", http, nil), Case("a=b; Domain=..", http, .publicSuffix),
            Case("a=b; Domain=co.test", context("http://x.co.test/"), .publicSuffix),
            Case("a=b; Domain=github.test", context("http://me.github.test/"), .publicSuffix),
            Case("a=b; Domain=github.test", context("http://github.test/"), nil),
            Case("a=b; Domain=ä.test", http, .malformedDomain),
            Case("a=b; Domain=XN--4CA.Test", context("http://www.xn--4ca.test/"), nil),
            Case("a=b; Domain=ä.test", context("http://www.xn--4ca.test/"), .malformedDomain),
            Case("a=b; Domain=1.2.3.4", context("http://1.2.3.4/"), nil),
            Case("a=b; Domain=3.4", context("http://1.2.3.4/"), .foreignDomain),
            Case("a=b; Domain=[::1]", context("http://[::1]/"), nil),
            Case("a=b; Domain=localhost", context("http://localhost/"), nil),
            // Secure and prefixes
            Case("a=b; Secure", http, .insecureSource), Case("a=b; Secure", https, nil),
            Case("a=b; SameSite=None", https, .sameSiteNoneInsecure),
            Case("a=b; SameSite=None; Secure", https, nil),
            Case("__Secure-a=b; Secure", https, nil), Case("__Secure-a=b", https, .securePrefix),
            Case("__SECURE-a=b", https, .securePrefix),
            Case("__Secure-a=b; Secure", http, .insecureSource),
            Case("__Host-a=b; Secure; Path=/", https, nil),
            Case("__Host-a=b; Path=/", https, .hostPrefix),
            Case("__host-a=b; Secure", https, .hostPrefix),
            Case("__Host-a=b; Secure", context("https://www.a.test/"), .hostPrefix),
            Case("__Host-a=b; Secure; Path=/x", https, .hostPrefix),
            Case("__Host-a=b; Secure; Path=/; Domain=a.test", https, .hostPrefix),
            Case("__Host-a=b; Secure; Path=/; Domain=www.a.test", https, .hostPrefix),
            Case("=__Host-a=b; Secure; Path=/", https, .namelessPrefix),
            Case("__secure-a; Secure", https, .namelessPrefix),
            Case("__Hosta=b", http, nil),
            // Cross-site
            Case("a=b", context("https://a.test/", site: .embedded), .crossSite),
            Case("a=b; SameSite=Lax", context("https://a.test/", site: .embedded), .crossSite),
            Case("a=b; SameSite=Strict", context("https://a.test/", site: .navigation), nil),
            Case("a=b; SameSite=None; Secure", context("https://a.test/", site: .embedded), nil),
            // Scripts
            Case("a=b; HttpOnly", context("http://a.test/", isHTTP: false), .httpOnly),
            Case("a=b", context("http://a.test/", isHTTP: false), nil),
        ])
    func verdict(_ c: Case) {
        var jar = jar()
        let outcome = jar.take(c.line, c.context)
        #expect(outcome.refusal == c.refusal)
        #expect(jar.count == (c.refusal == nil ? 1 : 0))
        #expect(outcome.changes.count == jar.count)
    }

    @Test("every refusal has its own word")
    func words() {
        #expect(Set(CookieRefusal.allCases.map(\.rawValue)).count == CookieRefusal.allCases.count)
    }

    @Test("fills in host, path and flags")
    func fields() throws {
        var jar = jar()
        jar.take("a=b; HttpOnly; Secure; SameSite=Lax; Max-Age=60", Self.https)
        jar.take("c=d; Domain=A.test; Path=/z", Self.https)
        let cookies = jar.all(at: t0)
        let wide = try #require(cookies.first)
        let narrow = try #require(cookies.last)
        #expect(wide.domain == "a.test" && !wide.isHostOnly && wide.path == "/z")
        #expect(wide.expiry == nil && !wide.isPersistent)
        #expect(narrow.domain == "www.a.test" && narrow.isHostOnly && narrow.path == "/x")
        #expect(narrow.isSecure && narrow.isHTTPOnly && narrow.sameSite == .lax)
        #expect(narrow.expiry == t0 + .seconds(60) && narrow.creation == t0)
    }

    @Test(
        "the end of a cookie: Max-Age before Expires, within 400 days (§5.5)",
        arguments: [
            ("", nil), ("Max-Age=60", 60), ("Max-Age=99999999999999", 34_560_000),
            ("Expires=Wed, 15 Nov 2023 22:13:20 GMT", 86_400),
            ("Expires=Fri, 31 Dec 9999 23:59:59 GMT", 34_560_000),
            ("Max-Age=60; Expires=Wed, 15 Nov 2023 22:13:20 GMT", 60),
            ("Expires=Wed, 15 Nov 2023 22:13:20 GMT; Max-Age=60", 60),
            ("Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=60", 60),
            ("Expires=nonsense", nil), ("Max-Age=nonsense", nil),
            ("Max-Age=x; Expires=Wed, 15 Nov 2023 22:13:20 GMT", 86_400),
        ] as [(String, Int64?)])
    func expiry(_ attributes: String, _ seconds: Int64?) throws {
        var jar = jar()
        jar.take("a=b; \(attributes)", Self.http)
        let cookie = try #require(jar.all(at: t0).first)
        #expect(cookie.expiry == seconds.map { t0 + .seconds($0) })
        if let expiry = cookie.expiry {
            #expect(jar.sends(Self.http, at: expiry - .seconds(1)) == "a=b")
            #expect(jar.sends(Self.http, at: expiry) == "")
        }
    }

    @Test(
        "a date in the past deletes",
        arguments: ["Max-Age=0", "Max-Age=-1", "Expires=1 Jan 1970 0:0:0"])
    func deletion(_ attribute: String) throws {
        var jar = jar()
        jar.take("a=b", Self.http)
        let identity = try #require(jar.all(at: t0).first).identity
        let outcome = jar.take("a=; \(attribute)", Self.http)
        #expect(outcome == CookieOutcome(refusal: nil, changes: [.removed(identity)]))
        #expect(jar.count == 0 && jar.all(at: t0).isEmpty)
        #expect(jar.take("a=; \(attribute)", Self.http) == CookieOutcome(refusal: nil, changes: []))
    }

    @Test("only name, domain, host-only flag and path make a cookie another one")
    func identity() {
        var jar = jar()
        for line in [
            "a=1", "a=2; Path=/", "a=3; Domain=www.a.test", "a=4; Domain=a.test", "A=5", "a=6",
            "a=7; Path=/; HttpOnly",
        ] { jar.take(line, Self.http) }
        #expect(jar.count == 5)
        let values = Set(jar.all(at: t0).map { String(decoding: $0.value, as: UTF8.self) })
        #expect(values == ["6", "7", "3", "4", "5"])
    }

    @Test("a replaced cookie keeps its moment of creation, an expired one does not")
    func creation() throws {
        var jar = jar()
        jar.take("a=1; Max-Age=10", Self.http)
        jar.take("a=2; Max-Age=10", Self.http, at: t0 + .seconds(5))
        #expect(try #require(jar.all(at: t0).first).creation == t0)
        let later = t0 + .seconds(60)
        jar.take("a=3", Self.http, at: later)
        #expect(try #require(jar.all(at: later).first).creation == later)
    }

    @Test("a script does not replace an HttpOnly cookie")
    func scripts() {
        var jar = jar()
        jar.take("a=1; HttpOnly; Max-Age=10", Self.http)
        let script = context("http://www.a.test/x/y", isHTTP: false)
        #expect(jar.take("a=2", script).refusal == .httpOnly)
        #expect(jar.take("a=; Max-Age=0", script).refusal == .httpOnly)
        #expect(jar.sends(Self.http) == "a=1" && jar.sends(script) == "")
        #expect(jar.take("a=2", script, at: t0 + .seconds(11)).refusal == nil)
    }

    /// Secure cookie, then a line over http, and whether it is taken.
    @Test(
        "leave secure cookies alone",
        arguments: [
            ("a=1; Secure; Path=/login", "a=2; Path=/", true),
            ("a=1; Secure; Path=/login", "a=2; Path=/login", false),
            ("a=1; Secure; Path=/login", "a=2; Path=/login/en", false),
            ("a=1; Secure; Path=/", "a=2; Path=/login", false),
            ("a=1; Secure; Path=/", "b=2; Path=/", true),
            ("a=1; Secure; Path=/; Domain=a.test", "a=2; Path=/", false),
            ("a=1; Secure; Path=/", "a=2; Path=/; Domain=a.test", false),
            ("a=1; Secure; Path=/", "a=; Path=/; Max-Age=0", false),
            ("a=1; Path=/", "a=2; Path=/", true),
        ])
    func overlay(_ secure: String, _ line: String, _ isTaken: Bool) {
        var jar = jar()
        jar.take(secure, Self.https)
        #expect(jar.take(line, Self.http).refusal == (isTaken ? nil : .overlaysSecure))
        #expect(jar.take(line, Self.https).refusal == nil)
    }

    @Test(
        "the accept policy",
        arguments: [
            (.always, "www.a.test", "b.test", nil), (.never, "www.a.test", nil, .policyNever),
            (.onlyFromMainDocumentDomain, "www.a.test", nil, nil),
            (.onlyFromMainDocumentDomain, "www.a.test", "a.test", nil),
            (.onlyFromMainDocumentDomain, "a.test", "www.a.test", nil),
            (.onlyFromMainDocumentDomain, "x.a.test", "y.a.test", nil),
            (.onlyFromMainDocumentDomain, "a.test", "b.test", .thirdParty),
            (.onlyFromMainDocumentDomain, "a.co.test", "b.co.test", .thirdParty),
            (.onlyFromMainDocumentDomain, "1.2.3.4", "2.2.3.4", .thirdParty),
        ] as [(CookieAcceptPolicy, String, String?, CookieRefusal?)])
    func policy(
        _ policy: CookieAcceptPolicy, _ host: String, _ main: String?, _ expected: CookieRefusal?
    ) {
        var jar = jar(policy)
        #expect(jar.take("a=b", context("http://\(host)/", main: main)).refusal == expected)
    }

    @Test("several lines are taken in order, each by itself")
    func lines() {
        var jar = jar()
        let outcomes = jar.store(
            [
                "Set-Cookie": "a=1", "X": "y", "set-cookie": "b=2; Domain=test",
                "Set-Cookie": "a=3",
            ], for: Self.http, at: t0)
        #expect(outcomes.map(\.refusal) == [nil, .publicSuffix, nil])
        #expect(jar.sends(Self.http) == "a=3")
    }

    @Test("a person's cookie obeys the rules that need no source")
    func setByHand() {
        var jar = jar()
        func cookie(
            _ name: String, _ value: String = "v", domain: String = "a.test", path: String = "/"
        ) -> Cookie {
            Cookie(
                name: bytes(name), value: bytes(value), domain: domain, isHostOnly: false,
                path: path, creation: t0, expiry: Timestamp(microseconds: .max))
        }
        #expect(jar.set(cookie("a"), at: t0).refusal == nil)
        #expect(jar.all(at: t0).first?.expiry == t0 + .seconds(400 * 86_400))
        #expect(jar.set(cookie("a", domain: "test"), at: t0).refusal == .publicSuffix)
        #expect(jar.set(cookie("a", domain: "A.test"), at: t0).refusal == .malformedDomain)
        #expect(jar.set(cookie("a", domain: ""), at: t0).refusal == .malformedDomain)
        #expect(jar.set(cookie("a\n"), at: t0).refusal == .controlCharacter)
        #expect(jar.set(cookie("__Host-a"), at: t0).refusal == .hostPrefix)
        #expect(jar.set(cookie("a", path: "x"), at: t0).refusal == .malformedPath)
        for name in ["a; b", "a=b", "=", ";"] {
            #expect(jar.set(cookie(name), at: t0).refusal == .separator)
        }
        for value in ["1; __Host-a=2", ";"] {
            #expect(jar.set(cookie("a", value), at: t0).refusal == .separator)
        }
        #expect(jar.set(cookie("a", "b=c=d"), at: t0).refusal == nil)
        let large = String(repeating: "x", count: 4096)
        #expect(jar.set(cookie(large), at: t0).refusal == .tooLarge)
    }

    @Test("no description shows a value")
    func description() throws {
        var jar = jar()
        jar.take("name=geheim; Domain=a.test", Self.http)
        let cookie = try #require(jar.all(at: t0).first)
        var dumped = ""
        dump(cookie, to: &dumped)
        let line = try SetCookie(parsing: bytes("name=geheim")[...])
        dump([Result<SetCookie, CookieRefusal>.success(line)], to: &dumped)
        dump(jar.set(cookie, at: t0), to: &dumped)
        dumped += "\(line) \(String(reflecting: line))"
        dumped += "\(cookie) \(String(reflecting: cookie)) \([cookie])"
        #expect(!dumped.contains("geheim") && dumped.contains("name for .a.test/x"))
        #expect(!dumped.contains("103"))  // The first byte of the value.
    }
}
