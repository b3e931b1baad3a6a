import Testing

@testable import LarderConfig

/// One text and what a type makes of it.
struct TextCase: Sendable, CustomTestStringConvertible {
    var text: String
    /// How the value is written back; nil where it must be refused.
    var written: String?
    var cause: String?

    init(_ text: String, _ written: String?, _ cause: String? = nil) {
        self.text = text
        self.written = written
        self.cause = cause
    }

    var testDescription: String { self.text }

    /// Reads, writes, and reads again what was written.
    func check<Value: SettingText>(as type: Value.Type) {
        do throws(SettingTextProblem) {
            let value = try Value(settingText: self.text)
            #expect(value.settingText == self.written)
            let again = try Value(settingText: value.settingText)
            #expect(again == value)
        } catch {
            #expect(self.written == nil, "refused: \(error.cause ?? "")")
            #expect(error.cause == self.cause)
        }
    }
}

@Suite("Values of settings")
struct SettingValueTests {
    @Test(
        "Sizes have a unit",
        arguments: [
            TextCase("64 MiB", "64 MiB"), TextCase("64MiB", "64 MiB"), TextCase("0", "0 B"),
            TextCase("0 B", "0 B"), TextCase("1536 KiB", "1536 KiB"),
            TextCase("1.5 MiB", "1536 KiB"),
            TextCase("1024 KiB", "1 MiB"), TextCase("1 MB", "1000000 B"),
            TextCase("2 kB", "2000 B"), TextCase("10G", "10 GiB"), TextCase("64 K", "64 KiB"),
            TextCase("64k", "64 KiB"), TextCase("1.5M", "1536 KiB"), TextCase("2 T", "2 TiB"),
            TextCase("1 g", nil, "has the unknown unit \"g\""),
            TextCase("16383 TiB", "16383 TiB"), TextCase("0.5 B", "0 B"),
            TextCase("64", nil, "has no unit: write \"64 MiB\", for example"),
            TextCase("64 MIB", nil, "has the unknown unit \"MIB\""),
            TextCase("99999999 TiB", nil, "is too large"),
            TextCase("999999999999999999999 B", nil, "has too many digits"),
            TextCase("0.00000000001 B", nil, "has too many digits"),
            TextCase("-1 MiB", nil), TextCase("MiB", nil), TextCase("", nil),
            TextCase("1. MiB", nil),
            TextCase(".5 MiB", nil), TextCase("1.2.3 MiB", nil, "has the unknown unit \".3 MiB\""),
        ])
    func size(_ c: TextCase) { c.check(as: ByteSize.self) }

    @Test(
        "Times have a unit",
        arguments: [
            TextCase("30 s", "30 s"), TextCase("1500 ms", "1500 ms"), TextCase("1.5 s", "1500 ms"),
            TextCase("60s", "1 min"), TextCase("5 min", "5 min"), TextCase("24 h", "1 d"),
            TextCase("0", "0 s"),
            TextCase("30", nil, "has no unit: write \"30 s\", for example"),
            TextCase("5 m", nil, "has the unknown unit \"m\""),
            TextCase("9999999999999999999 d", nil, "is too long"), TextCase("soon", nil),
        ])
    func time(_ c: TextCase) { c.check(as: TimeSpan.self) }

    @Test(
        "Listeners",
        arguments: [
            TextCase("127.0.0.1:3128", "127.0.0.1:3128"), TextCase("[::1]:0", "[::1]:0"),
            TextCase("*:3128", "*:3128"), TextCase("localhost:8080", "localhost:8080"),
            TextCase("unix:/run/larder/p.sock", "unix:/run/larder/p.sock"),
            TextCase("[2001:DB8:0:0::1]:80", "[2001:db8::1]:80"),
            TextCase(
                "3128", nil,
                "has no address: write \"127.0.0.1:3128\", or \"*:3128\" for other machines"),
            TextCase("127.0.0.1:65536", nil, "has no port from 0 to 65535"),
            TextCase("127.0.0.1:", nil, "has no port from 0 to 65535"),
            TextCase("127.0.0.1:+1", nil, "has no port from 0 to 65535"),
            TextCase("::1:3128", nil), TextCase("[127.0.0.1]:80", nil),
            TextCase("example.com:80", nil),
            TextCase("unix:p.sock", nil, "has a relative path"),
            TextCase(
                "unix:/" + String(repeating: "a", count: 107), nil,
                "has a path of more than 107 bytes"),
        ])
    func listener(_ c: TextCase) { c.check(as: ListenAddress.self) }

    private static let noAddress =
        "is neither an address nor a name: write 127.0.0.1, or 10.0.0.0/8 for a block"

    @Test(
        "Destinations",
        arguments: [
            TextCase("*", "*"), TextCase("Example.COM", "example.com"),
            TextCase(".example.com", ".example.com"),
            TextCase("*.example.com:443", "*.example.com:443"),
            TextCase("a:8000-8999", "a:8000-8999"),
            TextCase("10.0.0.0/8:1-1023", "10.0.0.0/8:1-1023"), TextCase("[::1]:80", "[::1]:80"),
            TextCase("2001:db8::/32", "[2001:db8::]/32"),
            TextCase("[2001:db8::]/32:80", "[2001:db8::]/32:80"),
            TextCase(":22", "*:22"), TextCase("a:*", "a"),
            TextCase("", nil), TextCase("a b", nil, "has a character that no host name has"),
            TextCase("10.0.0.1/8", nil, "has bits set beyond its prefix"),
            TextCase("10.0.0.0/33", nil, "has a prefix that is too long"),
            TextCase("a:0", nil), TextCase("a:9-8", nil, "ends before it begins"),
            TextCase("vm.", "vm"), TextCase(".corp.example.:80", ".corp.example:80"),
            TextCase(".", nil), TextCase("a..", nil),
            TextCase(".:80", nil), TextCase("127.0.0.1.", "127.0.0.1"),
            TextCase("1*.example", "1*.example"), TextCase("3com", "3com"),
            TextCase("127.0.0.*", nil, Self.noAddress), TextCase("127.1", nil, Self.noAddress),
            TextCase("010.0.0.1", nil, Self.noAddress), TextCase("0x7f000001", nil, Self.noAddress),
            TextCase("*.1.2", nil, Self.noAddress), TextCase("a.1", nil, Self.noAddress),
        ])
    func destination(_ c: TextCase) { c.check(as: DestinationPattern.self) }

    @Test(
        "Clients",
        arguments: [
            TextCase("192.0.2.0/24", "192.0.2.0/24"), TextCase("::ffff:192.0.2.1", "192.0.2.1"),
            TextCase("unix", "unix"), TextCase("*", "*"), TextCase("fe80::/10", "fe80::/10"),
            TextCase("192.0.2.1/24", nil, "has bits set beyond its prefix"),
            TextCase("user:alice", "user:alice"), TextCase("user:älice@x", "user:älice@x"),
            TextCase("user:*", "user:*"),
            TextCase("uid:1000", "uid:1000"), TextCase("uid:0", "uid:0"),
            TextCase("uid:4294967295", nil, "stands for no user"), TextCase("uid:-1", nil),
            TextCase("uid:", nil), TextCase("uid:4294967296", nil), TextCase("user:", nil),
            TextCase("user:a:b", nil), TextCase("user:a b", nil), TextCase("user:a\u{85}", nil),
            TextCase("host", nil), TextCase("1.2.3", nil), TextCase("01.2.3.4", nil),
            TextCase("1.2.3.256", nil), TextCase("1.2.3.4/-1", nil), TextCase(":::", nil),
            TextCase("1::2::3", nil), TextCase("1:2:3:4:5:6:7:8:9", nil), TextCase("12345::", nil),
        ])
    func client(_ c: TextCase) { c.check(as: ClientPattern.self) }

    @Test("A route for every user is for none that proved to be nobody, and covers one for a user")
    func everyUser() throws {
        var every = RouteSettings()
        every.users = [try UserName(settingText: "*")]
        var one = every
        one.users = [try UserName(settingText: "alice")]
        let listener = try ListenAddress(settingText: "127.0.0.1:1")
        let known = ClientFacts(address: nil, user: "alice")
        #expect(every.fits(known, at: listener) && one.fits(known, at: listener))
        #expect(!every.fits(ClientFacts(address: nil, uid: 1), at: listener))
        #expect(every.covers(one) && !one.covers(every))
    }

    @Test(
        "Ways to origins",
        arguments: [
            TextCase("direct", "direct"),
            TextCase("HTTP://Proxy.Example.com:3128/", "http://proxy.example.com:3128"),
            TextCase("https://[2001:db8::1]:443", "https://[2001:db8::1]:443"),
            TextCase("socks5://127.0.0.1:1080", "socks5://127.0.0.1:1080"),
            TextCase("dirct", nil, "is unknown (did you mean \"direct\"?)"),
            TextCase("proxy:3128", nil, "has no scheme: write \"http://proxy:3128\", for example"),
            TextCase("ftp://proxy:21", nil, "has a scheme that Larder speaks to no proxy by"),
            TextCase("http://proxy", nil, "has no port: write \"http://proxy:3128\", for example"),
            TextCase("http://proxy:0", nil, "has no port from 1 to 65535"),
            TextCase("http://proxy:3128/x", nil, "has no port from 1 to 65535"),
            TextCase("http://[::1:3128", nil, "has no closing bracket"),
            TextCase("http://[x]:3128", nil, "has no host"),
            TextCase("http://:3128", nil, "has no host"),
            TextCase(
                "http://u:p@proxy:3128", nil,
                "holds a user name or password: add them by \"larder credentials add\" and name "
                    + "them in credential"),
            TextCase("u:p@proxy:3128", nil, "has no scheme"), TextCase("", nil),
        ])
    func parent(_ c: TextCase) { c.check(as: ParentAddress.self) }

    @Test(
        "Fields that a session adds",
        arguments: [
            TextCase("X-Build: 1", "X-Build: 1"),
            TextCase("User-Agent: a b/1 (c)", "User-Agent: a b/1 (c)"),
            TextCase("X-Empty: ", "X-Empty: "), TextCase("X: a\tb", "X: a\tb"),
            TextCase("X Y: 1", nil, "has a name that no field has"),
            TextCase("X: a\nb", nil, "has a value that no field has"),
            TextCase("X: a\u{0}", nil, "has a value that no field has"),
            TextCase("X: a ", nil, "has a value that no field has"),
            TextCase(
                "larder-session: x", nil, "is for Larder itself, and never goes to origins"),
            TextCase("X", nil),
        ])
    func field(_ c: TextCase) { c.check(as: AdditionalField.self) }

    @Test(
        "Of these names a session adds no field (URL Loading System, RFC 9110 §7.6.1)",
        arguments: [
            "Authorization", "Connection", "Host", "Proxy-Authenticate", "Proxy-Authorization",
            "WWW-Authenticate", "Content-Length", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
            "Transfer-Encoding", "Upgrade", "Larder-Cache-Policy", "Cookie", "Set-Cookie", "Range",
            "If-None-Match", "Via", "AUTHORIZATION",
        ])
    func forbiddenField(_ name: String) {
        do throws(SettingTextProblem) {
            _ = try AdditionalField(settingText: "\(name): open sesame")
            Issue.record("accepted: \(name)")
        } catch {
            #expect(error.cause != nil)
            #expect(error.shown == "\(name): …")
        }
    }

    @Test(
        "Names of credentials",
        arguments: [
            TextCase("corp-proxy", "corp-proxy"), TextCase("a.b_C-9", "a.b_C-9"),
            TextCase("none", nil, "is no name"), TextCase("", nil, "is no name"),
            TextCase("a b", nil, "is no name"), TextCase("user:password", nil, "is no name"),
            TextCase(String(repeating: "a", count: 65), nil, "is no name"),
        ])
    func credential(_ c: TextCase) { c.check(as: CredentialName.self) }

    @Test(
        "Realms fit a quoted string (RFC 9110 §11.5)",
        arguments: [
            TextCase("larder", "larder"), TextCase("the team's cache", "the team's cache"),
            TextCase("a\"b", nil), TextCase("a\\b", nil), TextCase("é", nil), TextCase("", nil),
        ])
    func realm(_ c: TextCase) { c.check(as: Realm.self) }

    @Test(
        "Log destinations",
        arguments: [
            TextCase("none", "none"), TextCase("journal", "journal"), TextCase("stdout", "stdout"),
            TextCase("/var/log/a", "/var/log/a"), TextCase("file /var/log/a", "/var/log/a"),
            TextCase("file a/b", nil, "is not absolute"), TextCase("syslog", nil),
        ])
    func log(_ c: TextCase) { c.check(as: LogDestination.self) }

    @Test(
        "Small ones",
        arguments: [
            TextCase("0600", "0600"), TextCase("660", "0660"), TextCase("0800", nil),
            TextCase("77777", nil),
        ])
    func mode(_ c: TextCase) { c.check(as: FileMode.self) }

    @Test(
        "Names of sessions become directories",
        arguments: [
            TextCase("a", "a"), TextCase("web-2", "web-2"), TextCase("..", nil),
            TextCase("a/b", nil),
            TextCase("A", nil), TextCase("", nil), TextCase("-a", nil),
            TextCase(String(repeating: "a", count: 65), nil),
        ])
    func session(_ c: TextCase) { c.check(as: SessionName.self) }

    @Test(
        "Fractions",
        arguments: [
            TextCase("0.1", "0.1"), TextCase("1", "1.0"), TextCase("nan", nil),
            TextCase("0.00001", "0.00001"), TextCase("0.0000125", "0.0000125"),
            TextCase("25000000000000000", "25000000000000000"), TextCase("0", "0.0"),
            TextCase("12345678901234567890", "12345678901234567000"),
            TextCase("1e999", nil),
            TextCase("-1", nil), TextCase("inf", nil),
        ])
    func fraction(_ c: TextCase) { c.check(as: Fraction.self) }

    @Test(
        "IPv6 addresses are written as RFC 5952 has it",
        arguments: [
            ("2001:0db8::0001", "2001:db8::1"), ("::", "::"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("0:0:1::", "0:0:1::"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
            ("::1.2.3.4", "::102:304"),
        ])
    func canonical(_ text: String, _ expected: String) {
        #expect(IPAddress(text)?.description == expected)
    }

    @Test(
        "Nearest name",
        arguments: [
            ("memroy", "memory"), ("Memory", "memory"), ("dsk", "disk"), ("zzz", nil), ("a", nil),
        ])
    func nearest(_ name: String, _ expected: String?) {
        #expect(NearestName.of(name, among: ["memory", "disk", "http2"]) == expected)
    }
}
