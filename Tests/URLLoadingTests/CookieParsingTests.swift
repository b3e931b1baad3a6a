import Foundation
import Testing

@testable import URLLoading

private func read(
    _ line: String, from text: String = "https://www.example.com/a/b/c"
) throws -> [HTTPCookie] {
    HTTPCookie.cookies(
        withResponseHeaderFields: ["Set-Cookie": line], for: try #require(URL(string: text)))
}

@Suite("Cookies of a response's fields (§9.1, RFC 6265bis §5.6)")
struct CookieParsingTests {
    @Test(
        "have a name and a value",
        arguments: [
            ("a=b", "a", "b"), ("a=", "a", ""), (" a = b ", "a", "b"), ("a=b=c", "a", "b=c"),
            ("a=\"b c\"", "a", "\"b c\""), ("a=b, c", "a", "b, c"), ("a=ü", "a", "ü"),
            ("a b=c", "a b", "c"), ("a=b;", "a", "b"), ("a=b ; ; ;Path", "a", "b"),
            ("a\t=\tb", "a", "b"), ("\"a\"=b", "\"a\"", "b"), ("a=b&c=d", "a", "b&c=d"),
        ])
    func pair(_ line: String, _ name: String, _ value: String) throws {
        let cookies = try read(line)
        #expect(cookies.map(\.name) == [name])
        #expect(cookies.map(\.value) == [value])
    }

    @Test(
        "are none at all",
        arguments: [
            "", ";", ";a=b", "=b", "  =b", "name", "name; Secure", "a=b\u{0}c", "a=b\u{7F}",
            "a=b\nSet-Cookie: c=d", "\u{1}a=b", "a=b; Domain=com", "a=b; Domain=co.uk",
            "__Secure-a=b", "__Host-a=b; Secure", "__Host-a=b; Secure; Path=/; Domain=example.com",
            "__host-a=b; Secure; Path=/x", "a=b; SameSite=None", "a=b; Domain=b\u{fc}.example",
        ])
    func nothing(_ line: String) throws {
        #expect(try read(line).isEmpty)
    }

    @Test("are too large above 4096 octets of name and value")
    func size() throws {
        #expect(try read("a=" + String(repeating: "b", count: 4095)).count == 1)
        #expect(try read("a=" + String(repeating: "b", count: 4096)).isEmpty)
    }

    @Test(
        "are for a domain or one host",
        arguments: [
            ("", "www.example.com"), ("Domain=", "www.example.com"),
            ("Domain=example.com", ".example.com"), ("Domain=.EXAMPLE.com", ".example.com"),
            ("Domain=www.example.com", ".www.example.com"),
            ("Domain=example.org; Domain=example.com", ".example.com"),
            ("domain = example.com", ".example.com"),
            ("Domain=example.com; Domain", "www.example.com"),
        ])
    func domain(_ attribute: String, _ domain: String) throws {
        #expect(try read("a=b; \(attribute)").map(\.domain) == [domain])
    }

    @Test(
        "of hosts that are addresses or suffixes are for these alone",
        arguments: [
            ("https://1.2.3.4/", "a=b", "1.2.3.4"),
            ("https://1.2.3.4/", "a=b; Domain=1.2.3.4", "1.2.3.4"),
            ("https://[::1]/", "a=b", "::1"),
            ("http://localhost/", "a=b; Domain=localhost", "localhost"),
            ("http://EXAMPLE.com", "a=b", "example.com"),
        ])
    func hosts(_ url: String, _ line: String, _ domain: String) throws {
        #expect(try read(line, from: url).map(\.domain) == [domain])
    }

    @Test(
        "have a path, or the directory of the URL",
        arguments: [
            ("", "/a/b"), ("Path=/", "/"), ("Path=/x/y", "/x/y"), ("Path=x", "/a/b"),
            ("Path", "/a/b"),
            ("Path=/x; Path=", "/a/b"), ("Path=/x; Path=/y", "/y"), ("path=/X", "/X"),
            ("Path=/a b", "/a b"),
        ])
    func path(_ attribute: String, _ path: String) throws {
        #expect(try read("a=b; \(attribute)").map(\.path) == [path])
    }

    @Test(
        "have default paths by the URL",
        arguments: [
            ("https://a.example", "/"), ("https://a.example/", "/"), ("https://a.example/x", "/"),
            ("https://a.example/x/", "/x"), ("https://a.example/x/y?z=/1/2", "/x"),
            ("https://a.example/%20x/y", "/%20x"),
        ])
    func defaultPath(_ url: String, _ path: String) throws {
        #expect(try read("a=b", from: url).map(\.path) == [path])
    }

    @Test(
        "end",
        arguments: [
            ("Expires=Wed, 01 Jan 2020 12:30:00 GMT", 1_577_881_800),
            ("Expires=Wed Jan 1 12:30:00 2020", 1_577_881_800),
            ("expires=Wed, 01-Jan-2020 12:30:00 GMT", 1_577_881_800),
            ("expires=Wednesday, 01-Jan-20 12:30:00 GMT)", 1_577_881_800),
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Expires=Wed, 01 Jan 2020 12:30:00 GMT; Expires=soon", 1_577_881_800),
            ("Expires=\"Wed, 01 Jan 2020 12:30:00 GMT\"", 1_577_881_800),
        ])
    func expires(_ attribute: String, _ seconds: Double) throws {
        #expect(
            try read("a=b; \(attribute)").map(\.expiresDate)
                == [Date(timeIntervalSince1970: seconds)])
    }

    @Test(
        "end after Max-Age, whatever else is said",
        arguments: [
            ("Max-Age=60", 60), ("max-age=60; Expires=Wed, 01 Jan 2020 12:30:00 GMT", 60),
            ("Expires=Wed, 01 Jan 2020 12:30:00 GMT; Max-Age=60", 60), ("Max-Age=0", 0),
            ("Max-Age=-1", 0), ("Version=1; Max-Age=60", 60), ("Max-Age=7; Max-Age=60", 60),
            ("Max-Age=60; Max-Age=6x", 60),
        ])
    func maxAge(_ attribute: String, _ seconds: Double) throws {
        let cookie = try #require(try read("a=b; \(attribute)").first)
        #expect(abs(try #require(cookie.expiresDate).timeIntervalSinceNow - seconds) < 30)
    }

    @Test(
        "end with the session",
        arguments: [
            "", "Expires=", "Expires=never", "Max-Age=", "Max-Age=1h", "Max-Age=60; Discard",
        ])
    func session(_ attribute: String) throws {
        #expect(try read("a=b; \(attribute)").map(\.isSessionOnly) == [true])
    }

    @Test("have flags, which have no value")
    func flags() throws {
        let cookie = try #require(try read("a=b; secure; HTTPONLY; SameSite=Lax").first)
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.sameSitePolicy == .sameSiteLax)
        let other = try #require(try read("a=b; Secure=1; HttpOnly=Yes; Discard=TRUE").first)
        #expect(!other.isSecure && !other.isHTTPOnly && !other.isSessionOnly)
        #expect(try read("a=b; Discard=TRUE; Discard").map(\.isSessionOnly) == [true])
    }

    @Test("have what RFC 2965 has for people")
    func legacy() throws {
        let line = "a=b;Comment=c; =x;CommentURL=http://c.example/;Port=\"80,81\";Version=1"
        let cookie = try #require(try read(line).first)
        #expect(cookie.comment == "c" && cookie.version == 1)
        #expect(cookie.commentURL == URL(string: "http://c.example/"))
        #expect(cookie.portList == [80, 81])
        #expect(try read("a=b; Comment; CommentURL").first?.comment == nil)
    }

    @Test("that are secure come from secure URLs alone")
    func secureOrigin() throws {
        #expect(try read("a=b; Secure", from: "http://example.com/").isEmpty)
        #expect(try read("a=b; Secure=x", from: "http://example.com/").isEmpty)
        #expect(try read("a=b; Secure", from: "https://example.com/").count == 1)
        #expect(try read("__Host-a=b; Secure; Path=/", from: "https://example.com/x/").count == 1)
    }

    @Test(
        "may be joined with commas",
        arguments: [
            ("a=b, c=d", ["a=b", "c=d"]), ("a=b,c=d", ["a=b", "c=d"]),
            ("a=b; Expires=Sun, 06 Nov 2094 08:49:37 GMT, c=d; Path=/", ["a=b", "c=d"]),
            ("a=b; Expires=Sun, 06-Nov-2094 08:49:37 GMT,c =d", ["a=b", "c=d"]),
            ("a=b; Comment=x, t@k=y", ["a=b"]), ("a=1,2,3", ["a=1,2,3"]),
            ("a=b,, c=d", ["a=b,", "c=d"]),
            ("a=\"b, c=d\"; Path=/, e=f", ["a=\"b, c=d\"", "e=f"]),
            ("a=b; Secure,\n  c=d;Secure,\r\nd=e", ["a=b", "c=d", "d=e"]),
        ])
    func joined(_ line: String, _ pairs: [String]) throws {
        #expect(try read(line).map { "\($0.name)=\($0.value)" } == pairs)
    }

    @Test("are found in whatever case, and nowhere else")
    func fieldNames() throws {
        let url = try #require(URL(string: "http://a.example/"))
        let cookies = HTTPCookie.cookies(
            withResponseHeaderFields: ["set-cookie": "a=b", "Cookie": "c=d", "Set-Cookie2": "e=f"],
            for: url)
        #expect(cookies.map(\.name) == ["a"])
        #expect(HTTPCookie.cookies(withResponseHeaderFields: [:], for: url).isEmpty)
        let file = try #require(URL(string: "file:///x"))
        #expect(
            HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": "a=b"], for: file).isEmpty)
    }

    @Test("never trap, whatever bytes come")
    func noise() throws {
        let url = try #require(URL(string: "https://a.example/"))
        let pieces = [
            "a", "=", ";", ",", " ", "\n", "Expires=", "Max-Age=", "9999999999999999999999",
            "Domain=", ".", "Path=", "é", "\u{0}", "Port=", "-", "[", "::", "Comment=", "__Host-",
        ]
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let line = (0..<12).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            for cookie in HTTPCookie.cookies(
                withResponseHeaderFields: ["Set-Cookie": line], for: url)
            {
                #expect(!cookie.name.isEmpty)
                #expect(HTTPCookie.requestHeaderFields(with: [cookie]).count == 1)
            }
        }
    }
}
