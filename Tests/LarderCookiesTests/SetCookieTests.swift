import LarderCookies
import LarderHTTP
import Testing

@Suite("Reading Set-Cookie (RFC 6265bis §5.6)")
struct SetCookieTests {
    static func read(_ text: String) throws(CookieRefusal) -> SetCookie {
        try SetCookie(parsing: bytes(text)[...])
    }

    @Test(
        "name and value",
        arguments: [
            ("a=b", "a", "b"), ("a=b; Path=/", "a", "b"), (" a \t=\t b ", "a", "b"),
            ("a=b=c", "a", "b=c"), ("a=", "a", ""), ("=b", "", "b"), ("b", "", "b"),
            ("==b", "", "=b"), ("a=\"b;c\"", "a", "\"b"), ("a=\"b\"", "a", "\"b\""),
            ("a=b c", "a", "b c"), ("a b=c", "a b", "c"), ("a=b\tc", "a", "b\tc"),
            ("", "", ""), (";", "", ""), ("; Secure", "", ""), ("a=b;;;", "a", "b"),
            ("a=b,c=d", "a", "b,c=d"), ("Secure=1", "Secure", "1"), ("ä=ö", "ä", "ö"),
        ])
    func pair(_ text: String, _ name: String, _ value: String) throws {
        let cookie = try Self.read(text)
        #expect(cookie.name == bytes(name))
        #expect(cookie.value == bytes(value))
    }

    @Test("bytes beyond ASCII are kept as they are")
    func octets() throws {
        let cookie = try SetCookie(parsing: [0x61, 0x3D, 0xFF, 0xC3][...])
        #expect(cookie.value == [0xFF, 0xC3])
    }

    @Test("a control character anywhere refuses the line; a tab does not")
    func controls() throws {
        for byte in UInt8.min...UInt8.max {
            let isControl = (byte < 0x20 && byte != 0x09) || byte == 0x7F
            for line in [[0x61, byte, 0x3D, 0x62], bytes("a=b; x=") + [byte]] {
                let refusal: CookieRefusal? = {
                    do throws(CookieRefusal) {
                        _ = try SetCookie(parsing: line[...])
                        return nil
                    } catch { return error }
                }()
                #expect(refusal == (isControl ? .controlCharacter : nil))
            }
        }
    }

    @Test("name and value together may measure 4096 octets")
    func size() throws {
        let fits = "abc=" + String(repeating: "x", count: 4093)
        #expect(try Self.read(fits).value.count == 4093)
        #expect(try Self.read(fits + "; Path=/").path == .explicit("/"))
        #expect(throws: CookieRefusal.tooLarge) { try Self.read(fits + "x") }
        #expect(throws: CookieRefusal.tooLarge) {
            try Self.read(String(repeating: "x", count: 4097))
        }
    }

    @Test("an attribute's value may measure 1024 octets, a longer one is left out")
    func attributeSize() throws {
        let fits = "/" + String(repeating: "x", count: 1023)
        #expect(try Self.read("a=b; Path=\(fits)").path == .explicit(fits))
        #expect(try Self.read("a=b; Path=/y; Path=\(fits)x").path == .explicit("/y"))
        let long = String(repeating: "x", count: 1025)
        #expect(try !Self.read("a=b; Secure=\(long)").isSecure)
    }

    @Test(
        "Max-Age (§5.6.2)",
        arguments: [
            ("0", .zero), ("1", .seconds(1)), ("-1", .zero), ("-0", .zero),
            ("00060", .seconds(60)), ("99999999999999999999999", .seconds(1 << 31)),
            ("-99999999999999999999999", .zero), ("", nil), ("-", nil), ("+1", nil), ("1s", nil),
            ("1.5", nil), ("\"1\"", nil), ("--1", nil), ("0x10", nil), (" 60 ", .seconds(60)),
        ] as [(String, Duration?)])
    func maxAge(_ text: String, _ expected: Duration?) throws {
        #expect(try Self.read("a=b; max-AGE=\(text)").maxAge == expected)
        let kept = try Self.read("a=b; Max-Age=7; Max-Age=\(text)").maxAge
        #expect(kept == expected ?? .seconds(7))
    }

    @Test(
        "Domain (§5.6.3)",
        arguments: [
            ("Domain=a.test", "a.test"), ("domain=.A.Test", "a.test"), ("Domain=", ""),
            ("Domain", ""), ("Domain=.", ""), ("Domain=..a.test", ".a.test"),
            ("Domain=a.test; Domain=b.test", "b.test"), ("Domain=a.test; Domain=", ""),
            ("x", nil),
        ] as [(String, String?)])
    func domain(_ text: String, _ expected: String?) throws {
        #expect(try Self.read("a=b; \(text)").domain == expected)
    }

    @Test(
        "Path (§5.6.4)",
        arguments: [
            ("Path=/x", .explicit("/x")), ("PATH=/", .explicit("/")), ("Path=x", .defaulted),
            ("Path=", .defaulted), ("Path", .defaulted), ("x", .absent),
            ("Path=/x; Path=/y", .explicit("/y")), ("Path=/x; Path=y", .defaulted),
            ("Path = /x y ", .explicit("/x y")), ("Path=\"/x\"", .defaulted),
        ] as [(String, SetCookie.Path)])
    func path(_ text: String, _ expected: SetCookie.Path) throws {
        #expect(try Self.read("a=b; \(text)").path == expected)
    }

    @Test("Secure and HttpOnly count whatever their value (§5.6.5, §5.6.6)")
    func flags() throws {
        let cookie = try Self.read("a=b; secure=false;HTTPONLY = 0")
        #expect(cookie.isSecure && cookie.isHTTPOnly)
        #expect(try !Self.read("a=b; Secured; Http-Only").isSecure)
    }

    @Test(
        "SameSite (§5.6.7)",
        arguments: [
            ("strict", .strict), ("LAX", .lax), ("None", .none), ("", .unspecified),
            ("laxx", .unspecified), ("Strict; SameSite=x", .unspecified),
            ("Strict; SameSite=Lax", .lax),
        ] as [(String, SameSite)])
    func sameSite(_ text: String, _ expected: SameSite) throws {
        #expect(try Self.read("a=b; SameSite=\(text)").sameSite == expected)
    }

    @Test("an Expires that is no date leaves the one before (§5.6.1)")
    func expires() throws {
        let line = "a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(try Self.read(line).expires == Timestamp(seconds: 784_111_777))
        #expect(try Self.read(line + "; Expires=0").expires == Timestamp(seconds: 784_111_777))
        #expect(try Self.read("a=b; Expires=0").expires == nil)
    }

    @Test(
        "several lines joined with commas are taken apart again",
        arguments: [
            ("a=1", ["a=1"]), ("a=1, b=2", ["a=1", "b=2"]), ("a=1,b=2", ["a=1", "b=2"]),
            (
                "a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT, b=2; Path=/",
                ["a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT", "b=2; Path=/"]
            ), ("a=1,2,3", ["a=1,2,3"]), ("a=1, , b=2", ["a=1,", "b=2"]), ("", []),
            ("a=x, y z=1", ["a=x, y z=1"]), (",a=1", ["a=1"]),
            ("a=\"1, b=2\", c=3", ["a=\"1, b=2\"", "c=3"]),
            ("a=\"1, b=2", ["a=\"1", "b=2"]), ("a=\"1; \", b=2", ["a=\"1; \"", "b=2"]),
            ("a=1, b =2", ["a=1", "b =2"]), ("a=1,b\t = 2", ["a=1", "b\t = 2"]),
        ])
    func joined(_ text: String, _ expected: [String]) {
        let lines = SetCookie.lines(joined: bytes(text)[...])
        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test("attributes are all that stands behind the pair, known or not")
    func attributes() {
        let found = SetCookie.attributes(of: bytes("a=b; Path = /x ;Secure; ;c=d=e")[...])
        let texts = found.map { name, value in
            (
                String(decoding: name, as: UTF8.self),
                value.map { String(decoding: $0, as: UTF8.self) }
            )
        }
        #expect(texts.map(\.0) == ["Path", "Secure", "", "c"])
        #expect(texts.map(\.1) == ["/x", nil, nil, "d=e"])
        #expect(SetCookie.attributes(of: bytes("a=b")[...]).isEmpty)
    }
}
