import LarderControl
import LarderCookies
import Testing

@testable import larder

@Suite("larder cookies")
struct CookieCommandTests {
    private static let now: Int64 = 1_800_000_000_000_000

    private static func read(_ text: String, _ format: CookieFormat) throws -> CookieFile {
        try CookieFile(Array(text.utf8), format, name: "f", now: Self.now)
    }

    private static func cookie(
        _ name: String, _ value: [UInt8], domain: String = "h.example", isHostOnly: Bool = true,
        sameSite: String = "unspecified", expiry: Int64? = nil
    ) -> CookieRecord {
        CookieRecord(
            name: Array(name.utf8), value: ControlSecret(value), valueBytes: value.count,
            domain: domain, isHostOnly: isHostOnly, path: "/", isSecure: true, isHTTPOnly: true,
            sameSite: sameSite, createdMicroseconds: Self.now, lastUsedMicroseconds: Self.now,
            expiryMicroseconds: expiry)
    }

    @Test("A Netscape file gives each cookie the number of its line, and each fault its own")
    func netscape() throws {
        let file = try Self.read(
            """
            # Netscape HTTP Cookie File

            h.example\tFALSE\t/\tFALSE\t0\ta\t1
            nonsense
            #HttpOnly_.h.example\tTRUE\t/p\tTRUE\t1900000000\tb\t2\r
            127.0.0.1:8080\tFALSE\t/\tFALSE\t0\tc\t3
            h.example\tMAYBE\t/\tFALSE\t0\td\t4
            """, .netscape)
        #expect(file.entries.map(\.place) == [3, 5, 6])
        #expect(
            file.entries.map { String(decoding: $0.cookie.name, as: UTF8.self) } == ["a", "b", "c"])
        #expect(file.entries.map(\.cookie.domain) == ["h.example", "h.example", "127.0.0.1"])
        #expect(file.entries[1].cookie.isHTTPOnly && !file.entries[1].cookie.isHostOnly)
        #expect(file.entries[1].cookie.value?.revealed == [0x32])
        #expect(file.problems.map(\.place) == [4, 7])
        // In the order of the lines, in which they are sent.
        #expect(file.entries.map { $0.cookie.createdMicroseconds - Self.now } == [2, 4, 5])
    }

    @Test("JSON of browsers' extensions and of Playwright is read")
    func foreign() throws {
        let extensions = try Self.read(
            """
            [{"domain":".h.example","expirationDate":1900000000.25,"hostOnly":false,
              "httpOnly":true,"name":"a","path":"/p","sameSite":"no_restriction","secure":true,
              "session":false,"storeId":"0","value":"1"}, 7,
             {"domain":"h.example","name":"b","value":"2","sameSite":null},
             {"domain":"h.example","name":"c","value":"3","sameSite":"sometimes"},
             {"domain":"h.example","value":"4"}]
            """, .json)
        // What no program says is "not said".
        #expect(extensions.entries.map(\.place) == [1, 3, 4])
        let first = extensions.entries[0].cookie
        #expect(first.domain == "h.example" && !first.isHostOnly && first.isHTTPOnly)
        #expect(first.sameSite == "none" && first.expiryMicroseconds == 1_900_000_000_250_000)
        #expect(extensions.entries[1].cookie.isHostOnly)
        #expect(extensions.entries[1].cookie.expiryMicroseconds == nil)
        #expect(extensions.problems.map(\.place) == [2, 5])
        let wrapped = try Self.read(
            """
            {"cookies":[{"name":"a","value":"1","domain":"h.example","path":"/","expires":-1,
             "httpOnly":false,"secure":false,"sameSite":"Lax"}],"origins":[]}
            """, .json)
        #expect(wrapped.entries.first?.cookie.sameSite == "lax")
        #expect(wrapped.entries.first?.cookie.expiryMicroseconds == nil)
    }

    @Test("No JSON is a fault of the whole file", arguments: ["", "{", "7", "{\"cookies\":1}"])
    func noJSON(_ text: String) {
        #expect(throws: CommandFailure.self) { try Self.read(text, .json) }
    }

    @Test(
        "An expiry beyond what time there is becomes the last moment", arguments: [1e300, -1e300])
    func farExpiry(_ seconds: Double) throws {
        let file = try Self.read(
            "[{\"domain\":\"h\",\"name\":\"a\",\"value\":\"b\",\"expirationDate\":\(seconds)}]",
            .json)
        let expected: Int64 = seconds < 0 ? .min : .max
        #expect(file.entries.first?.cookie.expiryMicroseconds == expected)
    }

    @Test("What is exported comes back as it was", arguments: CookieFormat.allCases)
    func roundTrip(_ format: CookieFormat) throws {
        let cookies = [
            Self.cookie("a", Array("1=2; é".utf8), expiry: 1_900_000_000_000_000),
            Self.cookie("b", [0xFF, 0x31], domain: "x.example", isHostOnly: false),
        ]
        let (bytes, leftOut) = CookieFile.write(cookies, format, now: Self.now)
        #expect(leftOut.isEmpty)
        let file = try CookieFile(bytes, format, name: "f", now: Self.now)
        #expect(file.problems.isEmpty)
        // A Netscape file does not say when they were created.
        let read = file.entries.map { entry in
            var cookie = entry.cookie
            if format == .netscape {
                cookie.createdMicroseconds = Self.now
                cookie.lastUsedMicroseconds = Self.now
            }
            return cookie
        }
        #expect(read == cookies)
    }

    @Test("JSON keeps SameSite, too")
    func sameSite() throws {
        let cookies = SameSite.allCases.map { Self.cookie("a", [0x31], sameSite: $0.rawValue) }
        let (bytes, _) = CookieFile.write(cookies, .json, now: Self.now)
        let file = try CookieFile(bytes, .json, name: "f", now: Self.now)
        #expect(file.entries.map(\.cookie.sameSite) == SameSite.allCases.map(\.rawValue))
    }

    @Test("A value is hidden unless the record has it, in a table, on a page and in JSON")
    func hidden() throws {
        var cookie = Self.cookie("sid", Array("hunter2".utf8), sameSite: "lax")
        let open = CookieText.table([cookie], now: Self.now, width: nil).joined()
        #expect(open.contains("hunter2") && open.contains("Secure HttpOnly SameSite=Lax"))
        #expect(!String(describing: cookie).contains("hunter2"))
        var dumped = ""
        dump(cookie, to: &dumped)
        #expect(!dumped.contains("hunter2") && !dumped.contains("aHVudGVyMg"))
        cookie.value = nil
        let shown =
            CookieText.table([cookie], now: Self.now, width: nil)
            + CookieText.page(cookie, now: Self.now) + [CookieText.json(cookie, now: Self.now)]
        #expect(!shown.joined().contains("hunter2"))
        #expect(shown.joined().contains(CookieText.hidden))
    }

    @Test("Every rule that keeps a cookie out has a sentence")
    func reasons() {
        for refusal in CookieRefusal.allCases {
            let text = CookieText.reason(refusal.rawValue)
            #expect(text != refusal.rawValue && text.contains(" "))
        }
    }

    @Test("An import counts what was taken, what is past its date, and each refusal with its line")
    func summary() throws {
        let file = try Self.read(
            "h.example\tFALSE\t/\tFALSE\t0\ta\t1\nx\nh\tFALSE\t/\tFALSE\t1\tb\t2\n"
                + "com\tTRUE\t/\tFALSE\t0\tc\t3\n", .netscape)
        let summary = CookiesImport.summary(
            of: file,
            [CookieVerdict(), .expired, CookieVerdict(refusal: "public-suffix")])
        #expect(summary.taken == 1 && summary.expired == 1)
        #expect(summary.refused == ["malformed": 1, "public-suffix": 1])
        #expect(summary.problems.map(\.line) == [2, 4])
    }

    @Test(
        "--expires takes a span, a day, a moment or a date of HTTP",
        arguments: [
            ("30 d", Self.now + 30 * 86_400_000_000), ("2027-01-31", 1_801_353_600_000_000),
            ("2027-01-31T00:00:01Z", 1_801_353_601_000_000),
            ("Sun, 31 Jan 2027 00:00:00 GMT", 1_801_353_600_000_000), ("soon", nil), ("30", nil),
            ("", nil),
        ] as [(String, Int64?)])
    func expires(_ text: String, _ expected: Int64?) {
        do throws(CommandFailure) {
            #expect(try CookiesSet.moment(text, now: Self.now) == expected)
        } catch {
            #expect(expected == nil && error.status == .usage)
        }
    }

    @Test("Cookies are cut into pieces that fit a line of the socket, in order")
    func batches() throws {
        let large = [UInt8](repeating: 0x61, count: 4096)
        let cookies = (0..<200).map { Self.cookie("n\($0)", large) }
        let batches = CookieBatch.cut(cookies)
        #expect(batches.count > 1 && batches.flatMap(\.self) == cookies)
        for batch in batches {
            let line = try ControlCodec.line(
                ControlRequest.cookies(session: "s", principal: nil, .put(batch)))
            #expect(line.count < ControlCodec.longestLine)
        }
        #expect(CookieBatch.cut([]).isEmpty)
        #expect(!CookieBatch.fits(Self.cookie("n", [UInt8](repeating: 0, count: 1 << 20))))
    }
}
