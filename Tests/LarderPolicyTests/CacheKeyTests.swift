import LarderHTTP
import LarderPolicy
import Testing

@Suite("The key of stored responses (RFC 9111 §2, RFC 3986 §6.2.2, RFC 9110 §4.2.3)")
struct CacheKeyTests {
    private static func key(_ path: String) -> CacheKey { CacheKey(method: .get, uri: uri(path)) }

    @Test(
        "is one for all spellings that are equivalent, and for no others",
        arguments: [
            ("/~a", "/%7Ea", true), ("/~a", "/%7ea", true), ("/a%2fb", "/a%2Fb", true),
            ("/a?x=%2b", "/a?x=%2B", true), ("/%41-%5F%2d%30", "/A-_-0", true),
            // Reserved characters mean something else when they are encoded.
            ("/a/b", "/a%2Fb", false), ("/a?x=+", "/a?x=%2B", false), ("/a?b", "/a%3Fb", false),
            ("/a?x&y", "/a?x%26y", false), ("/a%2525", "/a%25", false), ("/a b", "/a%20b", false),
            ("/..", "/%2E%2E", false), ("/%2e", "/%2E", true), ("/A", "/a", false),
            ("/%C3%A9", "/%c3%a9", true), ("/%e9", "/%C3%A9", false),
            // What is badly encoded has no other spelling.
            ("/%", "/%25", false), ("/%%37e", "/%7e", false), ("/%zz%41", "/%zzA", false),
            ("/%4", "/%4", true), ("/a", "/a?", false),
        ])
    func spelling(_ a: String, _ b: String, _ isSame: Bool) {
        #expect((Self.key(a) == Self.key(b)) == isSame)
    }

    @Test("keeps the rest of the URI apart")
    func parts() {
        let key = CacheKey(
            method: .head,
            uri: TargetURI(scheme: .https, host: "a.example", port: 8443, pathAndQuery: "/%7e?q"),
            partition: "p")
        #expect(key.parts == ("p", "GET", "https://a.example:8443/~?q"))
    }

    @Test(
        "shows no ftp user, and takes no other at-sign for one",
        arguments: [
            ("ftp://user:secret@h/a@b", "ftp://h/a@b"), ("ftp://h/a@b", "ftp://h/a@b"),
            ("http://h/?a=://x@y", "http://h/?a=://x@y"), ("ftp://u@h", "ftp://h"),
            ("nothing", "nothing"), ("a:b@c", "a:b@c"), ("", ""), ("://@", "://"),
        ])
    func userInfo(_ uri: String, _ shown: String) {
        #expect(CacheKey(bytes: Array("p GET \(uri)".utf8)).parts == ("p", "GET", shown))
        #expect(CacheKey(bytes: Array("no spaces".utf8)).parts == ("", "", "no spaces"))
    }
}
