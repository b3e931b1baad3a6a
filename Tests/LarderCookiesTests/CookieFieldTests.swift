import LarderCookies
import LarderHTTP
import SeededNumbers
import Testing

@Suite("The Cookie field (RFC 6265bis §5.8.1), and how two senders share it")
struct CookieFieldTests {
    static func cookie(_ name: String, _ value: String) -> Cookie {
        Cookie(
            name: bytes(name), value: bytes(value), domain: "a.test", isHostOnly: true,
            creation: t0)
    }

    @Test("names and values in order; a nameless cookie is its value")
    func value() {
        let cookies = [Self.cookie("a", "1"), Self.cookie("", "x=y"), Self.cookie("b", "")]
        #expect(CookieField.value(of: cookies) == bytes("a=1; x=y; b="))
        #expect(CookieField.value(of: []).isEmpty)
    }

    struct Case: Sendable {
        let client: [String]
        let merging: CookieField.Merging
        let expected: [String]

        init(_ client: [String], _ merging: CookieField.Merging, _ expected: [String]) {
            self.client = client
            self.merging = merging
            self.expected = expected
        }
    }

    /// The jar has `a=jar` and `b=jar`.
    @Test(
        "merging",
        arguments: [
            Case([], .clientFirst, ["a=jar; b=jar"]),
            Case(["c=1"], .clientFirst, ["c=1; a=jar; b=jar"]),
            Case(["a=1"], .clientFirst, ["a=1; b=jar"]),
            // A piece without a name hides no cookie that has one.
            Case(["a=1;b"], .clientFirst, ["a=1;b; b=jar"]),
            Case(["b=2;a=1"], .clientFirst, ["b=2;a=1"]),
            Case(["x", " a = 1 "], .clientFirst, ["x; a = 1; b=jar"]),
            Case(["x=1", "y=2"], .clientFirst, ["x=1; y=2; a=jar; b=jar"]),
            Case([""], .clientFirst, ["a=jar; b=jar"]),
            Case(["A=1"], .clientFirst, ["A=1; a=jar; b=jar"]),
            Case(["c=1"], .jarReplaces, ["a=jar; b=jar"]), Case([], .jarReplaces, ["a=jar; b=jar"]),
            Case(["c=1", "d=2"], .clientOnly, ["c=1", "d=2"]),
            Case([], .clientOnly, ["a=jar; b=jar"]),
        ])
    func merging(_ c: Case) {
        var fields: Fields = ["X": "y"]
        for line in c.client { fields.append("cookie", line) }
        let cookies = [Self.cookie("a", "jar"), Self.cookie("b", "jar")]
        CookieField.apply(cookies, to: &fields, by: c.merging)
        #expect(fields.values("Cookie").map { String(decoding: $0, as: UTF8.self) } == c.expected)
        #expect(fields.contains("X"))
    }

    @Test(
        "a jar without cookies leaves the client's lines alone",
        arguments: CookieField.Merging.allCases)
    func nothing(_ merging: CookieField.Merging) {
        let before: Fields = ["Cookie": "a=1", "cookie": "b"]
        var fields = before
        CookieField.apply([], to: &fields, by: merging)
        #expect(fields == before)
    }

    @Test("a nameless piece of the client's hides the jar's nameless cookie only")
    func nameless() {
        var fields: Fields = ["Cookie": "x"]
        CookieField.apply([Self.cookie("", "y"), Self.cookie("a", "1")], to: &fields)
        #expect(fields.string("Cookie") == "x; a=1")
    }
}

@Suite("Netscape cookie files")
struct NetscapeCookieFileTests {
    private static func parse(_ text: String) -> NetscapeCookieFile.Contents {
        NetscapeCookieFile.parse(bytes(text.replacing("|", with: "\t")), now: t0)
    }

    @Test("a line is seven columns")
    func line() throws {
        let text = "#HttpOnly_.A.test|TRUE|/x|TRUE|1700000060|name|value\r\n"
        let cookie = try #require(Self.parse(text).cookies.first)
        #expect(cookie.domain == "a.test" && !cookie.isHostOnly && cookie.path == "/x")
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.expiry == t0 + .seconds(60))
        #expect(cookie.name == bytes("name") && cookie.value == bytes("value"))
        #expect(cookie.creation == t0)
    }

    @Test(
        "lines are read or named",
        arguments: [
            ("a.test|FALSE|/|FALSE|0|n|v", nil), ("a.test|false|/|true|0|n|v", nil),
            ("a.test|FALSE|/|FALSE|0|n", nil), ("a.test|FALSE|/|FALSE|1.5|n|v", nil),
            ("a.test|FALSE|/|FALSE|99999999999999999999999|n|v", nil),
            ("a.test|FALSE|/|FALSE|0", .columns), ("a.test FALSE / FALSE 0 n v", .columns),
            ("|FALSE|/|FALSE|0|n|v", .domain), (".|FALSE|/|FALSE|0|n|v", .domain),
            ("..a.test|FALSE|/|FALSE|0|n|v", .domain), ("...", .columns),
            ("ä.test|FALSE|/|FALSE|0|n|v", .domain), ("a.test|NO|/|FALSE|0|n|v", .flag),
            ("a.test|FALSE|/|1|0|n|v", .flag), ("a.test|FALSE||FALSE|0|n|v", .path),
            ("a.test|FALSE|x|FALSE|0|n|v", .path), ("a.test|FALSE|/|FALSE|-1|n|v", .expiry),
            ("a.test|FALSE|/|FALSE||n|v", nil), ("[::1]|FALSE|/|FALSE|0|n|v", nil),
            ("::1|FALSE|/|FALSE|0|n|v", nil), ("a b|FALSE|/|FALSE|0|n|v", .domain),
            ("a/b|FALSE|/|FALSE|0|n|v", .domain), ("[x|FALSE|/|FALSE|0|n|v", .domain),
            ("a.test|FALSE|/|FALSE|x|n|v", .expiry),
        ] as [(String, NetscapeCookieFile.Fault?)])
    func faults(_ line: String, _ fault: NetscapeCookieFile.Fault?) {
        let contents = Self.parse("# Comment\n\n\(line)\n  \n")
        #expect(contents.problems.map(\.fault) == (fault.map { [$0] } ?? []))
        #expect(contents.problems.allSatisfy { $0.line == 3 })
        #expect(contents.cookies.count == (fault == nil ? 1 : 0))
    }

    @Test("a byte order mark is passed over, an address gets its brackets")
    func marks() {
        let contents = Self.parse("\u{FEFF}# Netscape HTTP Cookie File\r\n::1|FALSE|/|FALSE|0|n|v")
        #expect(contents.problems.isEmpty && contents.cookies.first?.domain == "[::1]")
    }

    @Test("curl and wget compare an IPv6 address without brackets")
    func addresses() throws {
        let cookie = try #require(Self.parse("::1|FALSE|/|FALSE|0|n|v").cookies.first)
        let (text, leftOut) = NetscapeCookieFile.write([cookie])
        #expect(leftOut.isEmpty)
        #expect(String(decoding: text, as: UTF8.self).contains("\n::1\tFALSE\t"))
        #expect(NetscapeCookieFile.parse(text, now: t0).cookies == [cookie])
    }

    @Test(
        "a port behind a domain, which wget writes, is passed over (RFC 6265bis §8.5)",
        arguments: [
            ("127.0.0.1:8080", "127.0.0.1"), ("A.test:443", "a.test"), ("a.test:", "a.test"),
            ("[::1]:8080", "[::1]"), ("::8080", "[::8080]"), ("0:0:0:0:0:0:0:1", "[::1]"),
            ("a.test:x", nil), ("a.test:65536", nil), ("a:b:c", nil), ("127.0.0.1:80:80", nil),
            (":80", nil), ("[::1", nil), ("[127.0.0.1]", nil), ("[::1]x", nil),
        ] as [(String, String?)])
    func ports(_ text: String, _ domain: String?) {
        let contents = Self.parse("\(text)|FALSE|/|FALSE|0|n|v")
        #expect(contents.cookies.map(\.domain) == (domain.map { [$0] } ?? []))
        #expect(contents.problems.map(\.fault) == (domain == nil ? [.domain] : []))
    }

    @Test("a value may hold tabs; an expiry of 0 is the session's end")
    func values() {
        let cookie = Self.parse("a.test|FALSE|/|FALSE|0|n|v|w").cookies.first
        #expect(cookie?.value == bytes("v\tw") && cookie?.expiry == nil)
    }

    @Test("what is written reads back", arguments: [1, 2, 3] as [UInt64])
    func roundTrip(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var jar = jar(limits: CookieLimits(perDomain: 1000, total: 1000))
        for i in 0..<200 {
            let line = generator.mutated(
                "n\(i)=v\(i); Path=/p; Domain=a.test; Secure; HttpOnly; Max-Age=1000")
            _ = jar.store(
                ["Set-Cookie": String(decoding: line, as: UTF8.self)],
                for: context("https://a.test/"), at: t0)
        }
        let (text, leftOut) = NetscapeCookieFile.write(jar.all(at: t0))
        let read = NetscapeCookieFile.parse(text, now: t0)
        #expect(read.problems.isEmpty && read.cookies.count == jar.count - leftOut.count)
        #expect(jar.count > 50)
        let expected = jar.all(at: t0).filter { !leftOut.contains($0.identity) }
        for (cookie, original) in zip(read.cookies, expected) {
            #expect(cookie.identity == original.identity && cookie.value == original.value)
            #expect(cookie.expiry?.seconds == original.expiry?.seconds)
            #expect(
                cookie.isSecure == original.isSecure && cookie.isHTTPOnly == original.isHTTPOnly)
        }
    }

    @Test("takes anything", arguments: [1, 2, 3] as [UInt64])
    func mutations(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let sample =
            "#HttpOnly_.a.test\tTRUE\t/\tTRUE\t1700000060\tn\tv\nb.test\tFALSE\t/\tFALSE\t0\tn\tv\n"
        for _ in 0..<500 {
            let contents = NetscapeCookieFile.parse(generator.mutated(sample + sample), now: t0)
            #expect(contents.cookies.count + contents.problems.count <= 60)
        }
    }

    @Test(
        "what the format cannot hold is named, not mangled",
        arguments: [
            ("a\tb", "", "/"), ("a\nb", "", "/"), ("a", "b\r", "/"), ("a", "b\nc", "/"),
            ("a", "b", "/\tx"),
        ])
    func leftOut(_ name: String, _ value: String, _ path: String) {
        let odd = Cookie(
            name: bytes(name), value: bytes(value), domain: "a.test", isHostOnly: true, path: path,
            creation: t0)
        let (text, leftOut) = NetscapeCookieFile.write([odd])
        #expect(leftOut == [odd.identity])
        let read = NetscapeCookieFile.parse(text, now: t0)
        #expect(read.cookies.isEmpty && read.problems.isEmpty)
    }
}
