import LarderCookies
import LarderHTTP
import Testing

@Suite("The JSON form of cookies")
struct CookieJSONTests {
    private static func parse(_ text: String) throws -> CookieJSON.Contents {
        try CookieJSON.parse(bytes(text), now: t0)
    }

    @Test("what a browser's extension writes")
    func browserExtension() throws {
        let cookies = try Self.parse(
            """
            [{"domain": ".A.test", "expirationDate": 1700000060.5, "hostOnly": false,
              "httpOnly": true, "name": "id", "path": "/x", "sameSite": "no_restriction",
              "secure": true, "session": false, "storeId": "0", "value": "a\\"b\\u00e4\\ud83d\\ude00"},
             {"domain": "www.a.test", "hostOnly": true, "httpOnly": false, "name": "s",
              "path": "/", "sameSite": "unspecified", "secure": false, "session": true,
              "expirationDate": null, "value": ""}]
            """
        ).cookies
        #expect(
            cookies == [
                Cookie(
                    name: bytes("id"), value: bytes("a\"bä😀"), domain: "a.test", isHostOnly: false,
                    path: "/x", isSecure: true, isHTTPOnly: true, sameSite: .none, creation: t0,
                    expiry: t0 + .milliseconds(60_500)),
                Cookie(
                    name: bytes("s"), value: [], domain: "www.a.test", isHostOnly: true,
                    creation: t0 + .microseconds(1)),
            ])
    }

    @Test("what Playwright, Puppeteer and WebDriver write")
    func drivers() throws {
        let state = """
            {"cookies": [{"name": "a", "value": "1", "domain": ".a.test", "path": "/",
                "expires": 1700000060.25, "httpOnly": false, "secure": false, "sameSite": "Lax"},
              {"name": "b", "value": "2", "domain": "a.test", "path": "/", "expires": -1,
                "size": 2, "httpOnly": false, "secure": false, "session": true,
                "sameSite": "None"},
              {"name": "c", "value": "3", "domain": "a.test", "expiry": 1700000060,
                "sameSite": "Strict"}],
             "origins": []}
            """
        let cookies = try Self.parse(state).cookies
        #expect(cookies.map(\.isHostOnly) == [false, true, true])
        #expect(cookies.map(\.sameSite) == [.lax, .unspecified, .strict])
        #expect(
            cookies.map(\.expiry) == [
                t0 + .milliseconds(60_250), nil, t0 + .seconds(60),
            ])
    }

    @Test(
        "an element is read or named",
        arguments: [
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\"}", nil), ("1", .element),
            ("[]", .element), ("{}", .name), ("{\"name\":1}", .name),
            ("{\"name\":\"n\"}", .value), ("{\"name\":\"n\",\"valueHex\":\"abc\"}", .value),
            ("{\"name\":\"n\",\"valueHex\":\"zz\"}", .value),
            ("{\"name\":\"n\",\"value\":\"v\"}", .domain),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"\"}", .domain),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\".\"}", .domain),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"ä.test\"}", .domain),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"http://a.test/\"}", .domain),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"path\":\"\"}", .path),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"path\":1}", .path),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"secure\":1}", .flag),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"secure\":null}", nil),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"expires\":\"1\"}", .expiry),
            ("{\"name\":\"n\",\"value\":\"v\",\"domain\":\"a.test\",\"expires\":1e400}", nil),
        ] as [(String, CookieJSON.Fault?)])
    func faults(_ element: String, _ fault: CookieJSON.Fault?) throws {
        let good = "{\"name\":\"g\",\"value\":\"\",\"domain\":\"a.test\"}"
        let contents = try Self.parse("[\(good),\(element)]")
        #expect(contents.problems.map(\.fault) == (fault.map { [$0] } ?? []))
        #expect(contents.problems.allSatisfy { $0.element == 2 })
        #expect(contents.cookies.count == (fault == nil ? 2 : 1))
    }

    @Test(
        "a text that is no JSON says where (RFC 8259)",
        arguments: [
            ("", 0), ("[", 1), ("[1,]", 3), ("[1 2]", 3), ("[tru]", 1), ("[\"a]", 4),
            ("[\"\\x\"]", 4), ("[\"\\ud800\"]", 8), ("[\"\\ud800\\u0041\"]", 14), ("[01]", 3),
            ("[-]", 2), ("[1.]", 3), ("[1e]", 3), ("{\"a\" 1}", 5), ("{a:1}", 1), ("[] x", 3),
            ("[\"\n\"]", 2), (String(repeating: "[", count: 100_000), 17),
        ])
    func syntax(_ text: String, _ offset: Int) {
        #expect(throws: CookieJSON.TextError.syntax(offset: offset)) { try Self.parse(text) }
    }

    @Test("bytes that are no UTF-8 are no JSON; other texts hold no cookies")
    func other() throws {
        #expect(throws: CookieJSON.TextError.syntax(offset: 0)) {
            try CookieJSON.parse([0x5B, 0x22, 0xFF, 0x22, 0x5D], now: t0)
        }
        for text in ["1", "null", "\"x\"", "true", "{}", "{\"cookies\":1}"] {
            #expect(throws: CookieJSON.TextError.noArray) { try Self.parse(text) }
        }
        #expect(try Self.parse("\u{FEFF} [ ] ").cookies.isEmpty)
    }

    @Test("what is written reads back, octets and moments too")
    func roundTrip() throws {
        var jar = jar()
        let here = context("https://w.a.test/x/")
        let lines = [
            "a=1; Max-Age=10; HttpOnly; Path=/", "b=\"q\\\"; Secure; SameSite=None",
            "__Host-c=d; Secure; Path=/; SameSite=Strict", "nameless", "e=; Domain=a.test",
            "tab=a\tb", "ä=ö€😀; SameSite=Lax",
        ]
        for line in lines { jar.take(line, here, at: t0 + .microseconds(7)) }
        _ = jar.store(
            try SetCookie(parsing: [0x66, 0xFE, 0x3D, 0xFF, 0xC3, 0x28][...]), for: here, at: t0)
        let cookies = jar.all(at: t0)
        let read = try CookieJSON.parse(CookieJSON.write(cookies), now: t0 + .seconds(99))
        #expect(read.problems.isEmpty && read.cookies.count == lines.count + 1)
        for (cookie, original) in zip(read.cookies, cookies) {
            var original = original
            // When a cookie was used is not part of the form.
            original.lastAccess = original.creation
            #expect(cookie == original)
        }
        #expect(try CookieJSON.parse(CookieJSON.write([]), now: t0).cookies.isEmpty)
    }

    @Test("moments before 1970 and at the end of time come back, none as the session's end")
    func moments() throws {
        for microseconds: Int64 in [-1_000_000, -1, -1_500_000, 0, 1, .max, .min] {
            let cookie = Cookie(
                name: [0x61], value: [], domain: "a.test", isHostOnly: true, creation: t0,
                expiry: Timestamp(microseconds: microseconds))
            let read = try CookieJSON.parse(CookieJSON.write([cookie]), now: t0)
            let expiry = try #require(read.cookies.first?.expiry)
            let (difference, _) = expiry.microseconds.subtractingReportingOverflow(microseconds)
            #expect(abs(difference) <= 1000)
        }
    }
}
