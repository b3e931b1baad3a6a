import LarderCookies
import LarderHTTP
import Testing

@Suite("Matching of hosts and paths (RFC 6265bis §5.1.3, §5.1.4)")
struct MatchingTests {
    @Test(
        "a host matches a domain",
        arguments: [
            ("a.test", "a.test", true), ("b.a.test", "a.test", true),
            ("c.b.a.test", "a.test", true), ("ba.test", "a.test", false),
            ("a.test", "b.a.test", false), ("a.test", "", false), ("a.test.", "a.test", false),
            ("1.2.3.4", "1.2.3.4", true), ("1.2.3.4", "3.4", false), ("1.2.3.4", "4", false),
            ("[::1]", "[::1]", true), ("[::1.2.3.4]", "3.4]", false), ("a.test", "test", true),
            ("a.1", "1", false),
        ])
    func domain(_ host: String, _ domain: String, _ expected: Bool) {
        #expect(CookieDomain.matches(host, domain) == expected)
    }

    @Test(
        "a request's path matches a cookie's",
        arguments: [
            ("/", "/", true), ("/a", "/", true), ("/a/b", "/a", true), ("/a/b", "/a/", true),
            ("/a", "/a", true), ("/a/", "/a", true), ("/a", "/a/", false), ("/ab", "/a", false),
            ("/A", "/a", false), ("/%61", "/a", false), ("/", "/a", false), ("*", "/", false),
        ])
    func path(_ path: String, _ cookie: String, _ expected: Bool) {
        #expect(CookiePath.matches(path[...], cookie) == expected)
    }

    @Test(
        "the default path is the directory of the request's",
        arguments: [
            ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/", "/a/b"),
            ("//", "/"), ("*", "/"), ("", "/"),
        ])
    func defaultPath(_ path: String, _ expected: String) {
        #expect(CookiePath.default(path[...]) == expected)
    }

    @Test(
        "the registrable domain is a public suffix and one label",
        arguments: [
            ("example.com", "example.com"), ("a.b.example.com", "example.com"), ("com", "com"),
            ("a.b.co.test", "b.co.test"), ("co.test", "co.test"), ("x.foo.ck", "x.foo.ck"),
            ("y.x.foo.ck", "x.foo.ck"), ("a.www.ck", "www.ck"), ("1.2.3.4", "1.2.3.4"),
            ("[::1]", "[::1]"), ("a.example.com.", "example.com."), ("localhost", "localhost"),
        ])
    func registrable(_ host: String, _ expected: String) {
        #expect(CookieDomain.registrable(host, Suffixes()) == expected)
    }

    @Test("without a list the last label alone is a public suffix")
    func topLevel() {
        #expect(TopLevelSuffixes().isPublicSuffix("com"))
        #expect(!TopLevelSuffixes().isPublicSuffix("co.uk"))
        #expect(CookieDomain.isPublicSuffix("com.", TopLevelSuffixes()))
        #expect(CookieDomain.isPublicSuffix(".", TopLevelSuffixes()))
        #expect(!CookieDomain.isPublicSuffix("127.0.0.1", TopLevelSuffixes()))
    }
}
