import LarderHTTP
import Testing

@Suite("Target URIs (RFC 3986, RFC 9110 §4.2)")
struct TargetURITests {
    struct Valid: Sendable {
        var text: String
        var expected: TargetURI

        init(_ text: String, _ scheme: Scheme, _ host: String, _ port: UInt16, _ path: String) {
            self.text = text
            self.expected = TargetURI(scheme: scheme, host: host, port: port, pathAndQuery: path)
        }
    }

    @Test(
        "are taken apart",
        arguments: [
            Valid("http://h", .http, "h", 80, "/"), Valid("http://h/", .http, "h", 80, "/"),
            Valid("HTTPS://H.Example:/", .https, "h.example", 443, "/"),
            Valid("http://h:080/", .http, "h", 80, "/"),
            Valid("http://h:65535/a/../b/.", .http, "h", 65535, "/a/../b/."),
            Valid("http://h?q", .http, "h", 80, "/?q"),
            Valid("http://h/?", .http, "h", 80, "/?"),
            Valid("ftp://h/;type=a", .ftp, "h", 21, "/;type=a"),
            Valid("http://h/%2F%41?%", .http, "h", 80, "/%2F%41?%"),
            Valid("http://h//a@b:c?/d?", .http, "h", 80, "//a@b:c?/d?"),
            Valid("http://127.0.0.1/", .http, "127.0.0.1", 80, "/"),
            Valid("http://a_b.1a/", .http, "a_b.1a", 80, "/"),
            Valid("http://example.com./", .http, "example.com.", 80, "/"),
            Valid("http://[::]/", .http, "[::]", 80, "/"),
            Valid("http://[2001:DB8:0:0:1:0:0:1]:8080/", .http, "[2001:db8::1:0:0:1]", 8080, "/"),
            Valid("http://[::ffff:1.2.3.4]/", .http, "[::ffff:102:304]", 80, "/"),
            Valid("http://[1:2:3:4:5:6:7:8]/", .http, "[1:2:3:4:5:6:7:8]", 80, "/"),
            Valid("http://[1::]/", .http, "[1::]", 80, "/"),
            Valid("http://[1:0:3:4:5:6:7::]/", .http, "[1:0:3:4:5:6:7:0]", 80, "/"),
            Valid("http://[0:0:3:0:0:0:7:8]/", .http, "[0:0:3::7:8]", 80, "/"),
        ])
    func valid(_ sample: Valid) throws {
        let uri = try #require(TargetURI(text: sample.text))
        #expect(uri == sample.expected)
        // What it is written as means the same.
        #expect(TargetURI(text: uri.description) == uri)
    }

    @Test(
        "hold no other IPv6 addresses (RFC 4291 §2.2)",
        arguments: [
            "", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::",
            ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.4:1",
            "::1.2.3.256", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "::%eth0", " ::", "::1.2.3.4.",
        ])
    func badAddress(_ address: String) {
        #expect(TargetURI(text: "http://[\(address)]/") == nil)
    }

    @Test("keep user information for ftp only, and never show it")
    func userInfo() throws {
        let uri = try #require(TargetURI(text: "ftp://me:a%3Ab@h/x"))
        #expect(uri.userInfo == "me:a%3Ab")
        #expect(uri.description == "ftp://h/x")
        #expect(TargetURI(text: "http://me@h/x") == nil)
    }

    @Test("a server-wide OPTIONS is written without a path")
    func asterisk() {
        let uri = TargetURI(scheme: .http, host: "h", port: 81, pathAndQuery: "*")
        #expect(uri.description == "http://h:81")
        #expect(uri.authority == "h:81")
    }

    @Test("have an origin of scheme, host and port (RFC 9110 §4.3.1)")
    func origin() throws {
        let uri = try #require(TargetURI(text: "http://h/a"))
        #expect(uri.hasSameOrigin(as: try #require(TargetURI(text: "HTTP://H:80/b?c"))))
        for other in ["https://h/a", "http://h:81/a", "http://i/a"] {
            #expect(!uri.hasSameOrigin(as: try #require(TargetURI(text: other))))
        }
        #expect(try #require(TargetURI(text: "http://h/a/b?c?d")).path == "/a/b")
    }
}
