import LarderCookies
import LarderHTTP
import Synchronization
import Testing

/// A list that counts how often it was asked.
private final class CountingSuffixes: PublicSuffixes {
    private let counter = Mutex(0)
    var count: Int { self.counter.withLock { $0 } }

    func isPublicSuffix(_ domain: String) -> Bool {
        self.counter.withLock { $0 += 1 }
        return !domain.utf8.contains(UInt8(ascii: "."))
    }
}

@Suite("A jar at its limits (RFC 6265bis §5.7, §6.1)")
struct LimitTests {
    private static func lines(_ count: Int, _ line: (Int) -> String) -> Fields {
        var fields = Fields()
        for i in 0..<count { fields.append("Set-Cookie", line(i)) }
        return fields
    }

    @Test("10,000 lines in one head leave what the limits allow, and the last of them")
    func manyLines() {
        var jar = jar()
        let here = context("http://www.a.test/")
        let outcomes = jar.store(Self.lines(10_000) { "n\($0)=\($0)" }, for: here, at: t0)
        #expect(outcomes.count == 10_000 && outcomes.allSatisfy { $0.refusal == nil })
        #expect(jar.count == 50)
        #expect(
            jar.sends(here).hasPrefix("n9950=9950; n9951=") && jar.sends(here).hasSuffix("9999"))
        // What a storage was told is what the jar holds.
        var held: Set<Cookie.Identity> = []
        for change in outcomes.flatMap(\.changes) {
            switch change {
            case .stored(let cookie): held.insert(cookie.identity)
            case .removed(let identity): held.remove(identity)
            }
        }
        #expect(held == Set(jar.all(at: t0).map(\.identity)))
    }

    @Test("a host with many names above it fills a jar to its limit, looked at once")
    func manyDomains() {
        var jar = jar(limits: CookieLimits(perDomain: 50, total: 300))
        for i in 0..<300 {
            jar.take("old=\(i)", context("http://h\(i).test/"), at: t0 - .seconds(9))
        }
        let labels = (0..<40).map { "l\($0)" }
        let host = (labels + ["a", "test"]).joined(separator: ".")
        let here = context("http://\(host)/")
        let outcomes = jar.store(
            Self.lines(2000) { i in
                let domain = labels.dropFirst(i % 40).joined(separator: ".") + ".a.test"
                return "n\(i)=1; Domain=\(domain)"
            }, for: here, at: t0)
        #expect(jar.count == 300 && outcomes.allSatisfy { $0.refusal == nil })
        // Evictions from the whole jar come after the last line.
        #expect(outcomes.last?.changes.count == 2001 && outcomes.first?.changes.count == 1)
        #expect(!jar.all(at: t0).contains { $0.name == bytes("old") })
    }

    @Test("a list of suffixes is asked once a name, however many lines there are")
    func askedOnce() {
        let suffixes = CountingSuffixes()
        var jar = CookieJar(acceptPolicy: .onlyFromMainDocumentDomain, suffixes: suffixes)
        let here = CookieContext(
            uri: uri("http://x.www.a.test/"), method: .get, client: [:],
            first: uri("http://x.www.a.test/"), suffixes: suffixes)
        let asked = suffixes.count
        let outcomes = jar.store(
            Self.lines(500) { "n\($0)=1; Domain=\($0 % 2 == 0 ? "a.test" : "test")" }, for: here,
            at: t0)
        #expect(outcomes.map(\.refusal) == (0..<500).map { $0 % 2 == 0 ? nil : .publicSuffix })
        #expect(suffixes.count == asked && asked < 40)
    }

    @Test("secure cookies are left alone by each line of a response")
    func overlay() {
        var jar = jar()
        jar.take("a=1; Secure; Domain=a.test; Path=/", context("https://www.a.test/"))
        jar.take("b=1; Secure; Path=/x", context("https://deep.www.a.test/"))
        let outcomes = jar.store(
            [
                "Set-Cookie": "a=2", "Set-Cookie": "b=2; Path=/x; Domain=a.test",
                "Set-Cookie": "b=3; Path=/; Domain=a.test", "Set-Cookie": "c=2; Secure",
                "Set-Cookie": "c=3",
            ], for: context("http://www.a.test/"), at: t0)
        #expect(
            outcomes.map(\.refusal) == [
                .overlaysSecure, .overlaysSecure, nil, .insecureSource, nil,
            ])
    }

    @Test("lower limits evict at once")
    func lower() {
        var jar = jar()
        let here = context("http://a.test/")
        _ = jar.store(Self.lines(10) { "n\($0)=1" }, for: here, at: t0)
        let changes = jar.setLimits(CookieLimits(perDomain: 3, total: 5), at: t0)
        #expect(changes.count == 7 && jar.count == 3)
        #expect(jar.setLimits(CookieLimits(perDomain: 3, total: 2), at: t0).count == 1)
        #expect(jar.sends(here) == "n8=1; n9=1")
    }

    @Test("a file's thousands are set with one look at the whole jar")
    func imported() {
        var jar = jar(limits: CookieLimits(perDomain: 50, total: 100))
        let cookies = (0..<3000).map {
            Cookie(
                name: bytes("n\($0)"), value: [], domain: $0 % 10 == 9 ? "" : "h\($0 % 70).test",
                isHostOnly: true, creation: t0 + .microseconds(Int64($0)))
        }
        let outcomes = jar.set(cookies, at: t0)
        #expect(outcomes.count == 3000 && jar.count == 100)
        #expect(outcomes.count { $0.refusal == .malformedDomain } == 300)
        let removed = outcomes.flatMap(\.changes).count {
            if case .removed = $0 { true } else { false }
        }
        #expect(removed == 2600)
        // The last line was refused; evictions stand with the one before.
        #expect((outcomes.dropLast().last?.changes.count ?? 0) > 2000)
        #expect(outcomes.last?.changes.isEmpty == true)
    }

    @Test("a storage's thousands for one domain are brought down to the limit")
    func restored() {
        var jar = jar()
        let cookies = (0..<4000).map {
            Cookie(
                name: bytes("n\($0)"), value: [], domain: "a.test", isHostOnly: false,
                creation: t0 + .microseconds(Int64($0)))
        }
        let changes = jar.restore(cookies.reversed(), at: t0)
        #expect(jar.count == 50 && changes.count == 3950)
        #expect(jar.sends(context("http://a.test/")).hasPrefix("n3950="))
    }

    @Test("a domain is a host name as requests have it")
    func domains() {
        var jar = jar()
        for (domain, expected) in [
            ("a.test", nil), ("[::1]", nil), ("1.2.3.4", nil), ("a_b.test", nil),
            (".a.test", .malformedDomain), ("#a.test", .malformedDomain),
            ("a b", .malformedDomain), ("a/b", .malformedDomain), ("a:80", .malformedDomain),
            ("[", .malformedDomain), ("[]", .malformedDomain), ("[::G]", .malformedDomain),
        ] as [(String, CookieRefusal?)] {
            let cookie = Cookie(
                name: bytes("a"), value: [], domain: domain, isHostOnly: true, creation: t0)
            #expect(jar.set(cookie, at: t0).refusal == expected, "\(domain)")
        }
    }
}
