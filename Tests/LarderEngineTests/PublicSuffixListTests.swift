import FoundationEssentials
import LarderCookies
import LarderEngine
import LarderHTTP
import Testing

@Suite("Public suffixes by libpsl (RFC 6265bis §5.7)")
struct PublicSuffixListTests {
    @Test("the system has a list")
    func present() {
        #expect(!PublicSuffixList.isMissing)
    }

    @Test(
        "the system's list knows registries, private suffixes, wildcards and exceptions",
        arguments: [
            ("com", true), ("example.com", false), ("co.uk", true), ("uk", true),
            ("example.co.uk", false), ("www.example.co.uk", false),
            // The private section: names that a company lets anyone have.
            ("github.io", true), ("someone.github.io", false), ("blogspot.com", true),
            // A name that no list knows has the rule `*`: its last label alone.
            ("no-such-tld-here", true), ("example.no-such-tld-here", false), ("localhost", true),
            // `*.ck` and `!www.ck`
            ("ck", true), ("anything.ck", true), ("www.ck", false), ("example.anything.ck", false),
            // A-labels: 公司.cn, 中国, and a name below it.
            ("xn--55qx5d.cn", true), ("xn--fiqs8s", true), ("xn--85x722f.xn--fiqs8s", false),
            ("", true), ("co.uk\0.example.com", true),
        ])
    func list(_ domain: String, _ expected: Bool) {
        #expect(PublicSuffixList.system.isPublicSuffix(domain) == expected)
    }

    @Test(
        "a jar with the system's list refuses cookies for public suffixes and takes those of hosts",
        arguments: [
            ("http://www.example.co.uk/", "co.uk", .publicSuffix),
            ("http://www.example.co.uk/", "example.co.uk", nil),
            ("http://someone.github.io/", "github.io", .publicSuffix),
            ("http://github.io/", "github.io", nil), ("http://127.0.0.1/", "127.0.0.1", nil),
            ("http://127.0.0.1/", "0.0.1", .foreignDomain), ("http://[::1]/", "[::1]", nil),
            ("http://x.anything.ck/", "anything.ck", .publicSuffix),
            ("http://x.www.ck/", "www.ck", nil), ("http://localhost/", "localhost", nil),
            ("http://www.xn--85x722f.xn--55qx5d.cn/", "xn--55qx5d.cn", .publicSuffix),
            ("http://www.xn--85x722f.xn--55qx5d.cn/", "xn--85x722f.xn--55qx5d.cn", nil),
        ] as [(String, String, CookieRefusal?)])
    func jar(_ source: String, _ domain: String, _ expected: CookieRefusal?) throws {
        var jar = CookieJar(suffixes: PublicSuffixList.system)
        let uri = try #require(TargetURI(text: source))
        let line = Array("a=b; Domain=\(domain)".utf8)
        let outcome = jar.store(
            try SetCookie(parsing: line[...]), for: CookieContext(uri: uri),
            at: Timestamp(seconds: 1_700_000_000))
        #expect(outcome.refusal == expected)
    }

    @Test("one site is one registrable domain")
    func sites() {
        let list = PublicSuffixList.system
        #expect(CookieDomain.registrable("a.b.example.co.uk", list) == "example.co.uk")
        #expect(!CookieDomain.isSameSite("a.github.io", "b.github.io", list))
        #expect(CookieDomain.isSameSite("a.example.com", "b.example.com", list))
    }

    @Test("a list of one's own is read from a file; what is none is refused")
    func files() throws {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "larder-suffixes-\(UInt64.random(in: 0...UInt64.max))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        func list(_ name: String, _ text: String) throws -> PublicSuffixList? {
            let file = directory.appending(path: name)
            try Data(text.utf8).write(to: file)
            return PublicSuffixList(file: file.path)
        }
        let own = try #require(try list("own", "com\nuk\nco.uk\n// A comment\nhome.example\n"))
        #expect(own.isPublicSuffix("home.example") && !own.isPublicSuffix("my.home.example"))
        #expect(try list("empty", "") == nil)
        #expect(try list("other", "{\"json\": true}\n") == nil)
        #expect(PublicSuffixList(file: directory.appending(path: "none").path) == nil)
    }

    @Test("without a list a host has cookies of its own only")
    func missing() throws {
        var jar = CookieJar(suffixes: EverySuffix())
        let here = CookieContext(
            uri: TargetURI(scheme: .https, host: "www.a.test", pathAndQuery: "/"))
        let now = Timestamp(seconds: 1_700_000_000)
        func refusal(_ line: String) -> CookieRefusal? {
            jar.store(["Set-Cookie": line], for: here, at: now).first?.refusal
        }
        #expect(refusal("a=b; Domain=a.test") == .publicSuffix)
        #expect(refusal("a=b; Domain=test") == .publicSuffix)
        #expect(refusal("a=b; Domain=www.a.test") == nil)
        #expect(refusal("c=d") == nil)
        #expect(jar.all(at: now).allSatisfy { $0.isHostOnly } && jar.count == 2)
        #expect(!CookieDomain.isSameSite("a.a.test", "b.a.test", EverySuffix()))
    }

    @Test("many threads may ask at once")
    func concurrency() async {
        let right = await withTaskGroup(of: Bool.self) { group in
            for i in 0..<8 {
                group.addTask {
                    (0..<500).allSatisfy { k in
                        PublicSuffixList.system.isPublicSuffix("co.uk")
                            && !PublicSuffixList.system.isPublicSuffix("n\(i * k).co.uk")
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(right)
    }
}
