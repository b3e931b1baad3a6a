import LarderCookies
import LarderHTTP
import Testing

@Suite("Cookies that a program has read from a response itself (RFC 6265bis §5.7)")
struct OfferedCookieTests {
    private func cookie(
        _ domain: String = "www.a.test", isHostOnly: Bool = true, isSecure: Bool = false,
        sameSite: SameSite = .unspecified, name: String = "n", lasts: Int64? = nil
    ) -> Cookie {
        Cookie(
            name: bytes(name), value: bytes("v"), domain: domain, isHostOnly: isHostOnly,
            isSecure: isSecure, sameSite: sameSite, creation: t0,
            expiry: lasts.map { t0 + .seconds($0) })
    }

    @Test("are taken by the rules for lines")
    func rules() {
        let (http, https) = (context("http://www.a.test/"), context("https://www.a.test/"))
        let cases: [(Cookie, CookieContext, CookieRefusal?)] = [
            (self.cookie(), http, nil), (self.cookie("a.test", isHostOnly: false), http, nil),
            (self.cookie("a.test"), http, .foreignDomain),
            (self.cookie("b.test", isHostOnly: false), http, .foreignDomain),
            (self.cookie("test", isHostOnly: false), http, .publicSuffix),
            (self.cookie(isSecure: true), http, .insecureSource),
            (self.cookie(isSecure: true), https, nil),
            (self.cookie(name: "__Secure-x"), https, .securePrefix),
            (self.cookie(), context("ftp://www.a.test/"), .scheme),
        ]
        for (cookie, context, refusal) in cases {
            var jar = jar()
            let outcomes = jar.store([cookie], for: context, at: t0)
            #expect(outcomes.map(\.refusal) == [refusal], "\(cookie)")
            #expect(jar.count == (refusal == nil ? 1 : 0))
        }
    }

    @Test("keep their dates, and their order")
    func dates() {
        var jar = jar()
        let far = self.cookie(name: "far", lasts: 100_000_000)
        _ = jar.store([far, self.cookie(name: "b")], for: context("http://www.a.test/"), at: t0)
        #expect(jar[far.identity]?.expiry == far.expiry)
        #expect(jar.sends(context("http://www.a.test/")) == "far=v; b=v")
        _ = jar.set([self.cookie(name: "set", lasts: 100_000_000)], keepingExpiry: true, at: t0)
        #expect(jar[self.cookie(name: "set").identity]?.expiry == far.expiry)
    }

    @Test("go by the policy that comes with them, before the jar's")
    func policy() {
        var jar = jar(.never)
        var context = context("http://www.a.test/", main: "b.test")
        #expect(jar.store([self.cookie()], for: context, at: t0).first?.refusal == .policyNever)
        context.accept = .onlyFromMainDocumentDomain
        #expect(jar.store([self.cookie()], for: context, at: t0).first?.refusal == .thirdParty)
        context.accept = .always
        #expect(jar.store([self.cookie()], for: context, at: t0).first?.isStored == true)
    }

    @Test("are of any site for programs, unless they say so")
    func sites() {
        var jar = jar()
        let other = CookieContext(
            uri: uri("http://www.a.test/"), mainDocumentHost: "b.test", suffixes: Suffixes())
        let cookies = [self.cookie(name: "any"), self.cookie(sameSite: .lax, name: "lax")]
        #expect(jar.store(cookies, for: other, at: t0).map(\.refusal) == [nil, .crossSite])
        let own = CookieContext(
            uri: uri("http://www.a.test/"), mainDocumentHost: "x.a.test", suffixes: Suffixes())
        #expect(jar.store(cookies, for: own, at: t0).map(\.refusal) == [nil, nil])
        #expect(jar.sends(other) == "any=v")
        #expect(jar.sends(own) == "any=v; lax=v")
    }

    @Test("make a difference only where something differs")
    func differences() {
        var jar = jar()
        let dated = self.cookie(lasts: 100)
        let context = context("http://www.a.test/")
        #expect(jar.store([dated], for: context, at: t0).first?.differences.count == 1)
        let again = jar.store([dated], for: context, at: t0 + .seconds(1)).first
        #expect(again?.isRepetition == true && again?.differences.isEmpty == true)
        #expect(again?.isStored == true)
        let later = jar.store([self.cookie(lasts: 101)], for: context, at: t0).first
        #expect(later?.differences.count == 1)
    }
}
