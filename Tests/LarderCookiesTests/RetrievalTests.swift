import LarderCookies
import LarderHTTP
import SeededNumbers
import Testing

@Suite("Retrieval (RFC 6265bis §5.8.3)")
struct RetrievalTests {
    struct Case: Sendable {
        let line: String
        let from: String
        let to: CookieContext
        let isSent: Bool

        init(_ line: String, from: String, to: CookieContext, _ isSent: Bool) {
            self.line = line
            self.from = from
            self.to = to
            self.isSent = isSent
        }
    }

    @Test(
        "by host, path, security and site",
        arguments: [
            Case("a=b", from: "http://a.test/", to: context("http://a.test/"), true),
            Case("a=b", from: "http://a.test/", to: context("http://a.test/x?y=/"), true),
            Case("a=b", from: "http://a.test/", to: context("http://w.a.test/"), false),
            Case("a=b", from: "http://w.a.test/", to: context("http://a.test/"), false),
            Case(
                "a=b; Domain=a.test", from: "http://w.a.test/", to: context("http://a.test/"), true),
            Case(
                "a=b; Domain=a.test", from: "http://a.test/", to: context("http://x.y.a.test/"),
                true),
            Case(
                "a=b; Domain=a.test", from: "http://a.test/", to: context("http://ba.test/"), false),
            Case(
                "a=b; Domain=github.test", from: "http://github.test/",
                to: context("http://me.github.test/"), false),
            Case("a=b; Path=/x", from: "http://a.test/", to: context("http://a.test/x/y"), true),
            Case("a=b; Path=/x", from: "http://a.test/", to: context("http://a.test/xy"), false),
            Case("a=b; Path=/x", from: "http://a.test/", to: context("http://a.test/y?/x"), false),
            Case("a=b; Path=/x?y", from: "http://a.test/", to: context("http://a.test/x?y"), false),
            Case("a=b", from: "http://a.test/", to: context("https://a.test/"), true),
            Case("a=b; Secure", from: "https://a.test/", to: context("http://a.test/"), false),
            Case("a=b; Secure", from: "https://a.test/", to: context("https://a.test/"), true),
            Case("a=b", from: "http://a.test/", to: context("ftp://a.test/"), false),
            Case(
                "a=b; HttpOnly", from: "http://a.test/",
                to: context("http://a.test/", isHTTP: false), false),
            // Ports and schemes are no part of it (§8.5).
            Case("a=b", from: "https://a.test/", to: context("http://a.test/"), true),
            // Same site or not.
            Case(
                "a=b", from: "https://a.test/",
                to: context("https://a.test/", site: .embedded), false),
            Case(
                "a=b", from: "https://a.test/",
                to: context("https://a.test/", site: .navigation), true),
            Case(
                "a=b", from: "https://a.test/",
                to: context("https://a.test/", site: .post), false),
            Case(
                "a=b; SameSite=Lax", from: "https://a.test/",
                to: context("https://a.test/", site: .navigation), true),
            Case(
                "a=b; SameSite=Lax", from: "https://a.test/",
                to: context("https://a.test/", site: .navigation, isHTTP: false), false),
            Case(
                "a=b; SameSite=Strict", from: "https://a.test/",
                to: context("https://a.test/", site: .navigation), false),
            Case(
                "a=b; SameSite=Strict", from: "https://a.test/",
                to: context("https://a.test/"), true),
            Case(
                "a=b; SameSite=None; Secure", from: "https://a.test/",
                to: context("https://a.test/", site: .embedded), true),
        ])
    func selection(_ c: Case) {
        var jar = jar()
        #expect(jar.take(c.line, context(c.from)).refusal == nil)
        #expect(jar.sends(c.to) == (c.isSent ? "a=b" : ""))
    }

    @Test("longer paths first, then older ones, then as the lines stood")
    func order() {
        var jar = jar()
        let here = context("http://w.a.test/x/y")
        jar.take("new=1; Path=/x", here, at: t0 + .seconds(9))
        jar.take("old=2; Path=/x; Domain=a.test", here)
        jar.take("long=3; Path=/x/y", here, at: t0 + .seconds(9))
        jar.take("short=4; Path=/", here)
        jar.take("twin=5; Path=/", here)
        #expect(jar.sends(here, at: t0 + .seconds(10)) == "long=3; old=2; new=1; short=4; twin=5")
        // Replacing does not change the order: the creation stays (§5.7).
        jar.take("old=6; Path=/x; Domain=a.test", here, at: t0 + .seconds(10))
        #expect(jar.sends(here, at: t0 + .seconds(10)) == "long=3; old=6; new=1; short=4; twin=5")
    }

    @Test("sending counts as a use")
    func lastAccess() {
        var jar = jar()
        let here = context("http://a.test/x")
        jar.take("a=1", here)
        jar.take("b=2; Path=/other", here)
        let later = t0 + .seconds(5)
        #expect(jar.takeCookies(for: here, at: later).count == 1)
        #expect(jar.all(at: later).map(\.lastAccess) == [later, t0])
        #expect(jar.cookies(for: here, at: later + .seconds(1)).map(\.lastAccess) == [later])
    }
}

@Suite("Eviction, expiry and the end of a session (RFC 6265bis §5.7)")
struct EvictionTests {
    private static let limits = CookieLimits(perDomain: 3, total: 5)

    private static func names(_ jar: CookieJar, at now: Timestamp = t0) -> Set<String> {
        Set(jar.all(at: now).map { String(decoding: $0.name, as: UTF8.self) })
    }

    @Test("in a full domain goes what is expired, then what is not secure, then what is not used")
    func domain() {
        var jar = jar(limits: Self.limits)
        let here = context("https://a.test/")
        jar.take("s1=1; Secure", here)
        jar.take("n1=1", here, at: t0 + .seconds(1))
        jar.take("n2=1; Max-Age=10", here, at: t0 + .seconds(2))
        // Not expired yet: the cookie that is not secure and was not used longest goes.
        var jarBefore = jar
        let outcome = jarBefore.take("s2=1; Secure", here, at: t0 + .seconds(5))
        #expect(Self.names(jarBefore) == ["s1", "n2", "s2"])
        #expect(
            outcome.changes.count == 2
                && outcome.changes.last
                    == .removed(
                        Cookie.Identity(
                            name: bytes("n1"), domain: "a.test", isHostOnly: true, path: "/"))
        )
        // Expired by then: it goes first, although it was used later.
        jar.take("s2=1; Secure", here, at: t0 + .seconds(20))
        #expect(Self.names(jar) == ["s1", "n1", "s2"])
        // Only secure ones: the newcomer that is not goes itself.
        jar.take("s3=1; Secure", here, at: t0 + .seconds(21))
        jar.take("n3=1", here, at: t0 + .seconds(22))
        #expect(Self.names(jar) == ["s1", "s2", "s3"])
        // Use counts, not age.
        _ = jar.takeCookies(for: here, at: t0 + .seconds(30))
        jar.take("s2=2; Secure", here, at: t0 + .seconds(29))
        jar.take("s4=1; Secure", here, at: t0 + .seconds(31))
        #expect(Self.names(jar) == ["s1", "s3", "s4"])
    }

    @Test("in a full jar goes what is expired, then what was not used longest, anywhere")
    func total() {
        var jar = jar(limits: Self.limits)
        for i in 0..<5 {
            jar.take(
                "c\(i)=1\(i == 4 ? "; Max-Age=1" : "")", context("http://h\(i).test/"),
                at: t0 + .seconds(Int64(i)))
        }
        _ = jar.takeCookies(for: context("http://h0.test/"), at: t0 + .seconds(6))
        jar.take("c5=1", context("http://h5.test/"), at: t0 + .seconds(10))
        #expect(Self.names(jar, at: t0 + .seconds(10)) == ["c0", "c1", "c2", "c3", "c5"])
        jar.take("c6=1", context("http://h6.test/"), at: t0 + .seconds(11))
        #expect(Self.names(jar, at: t0 + .seconds(11)) == ["c0", "c2", "c3", "c5", "c6"])
        #expect(jar.count == 5)
    }

    @Test("a cookie of an address is the host's alone, whether it names that or not (§5.7)")
    func addresses() {
        for host in ["127.0.0.1", "[::1]"] {
            var jar = jar()
            jar.take("sid=1; Domain=\(host)", context("http://\(host)/"))
            jar.take("sid=2", context("http://\(host)/"))
            #expect(jar.count == 1)
            #expect(
                jar.takeCookies(for: context("http://\(host)/"), at: t0).first?.isHostOnly == true)
        }
    }

    @Test("removals say what they removed")
    func removals() {
        var jar = jar()
        jar.take("session=1", context("http://a.test/"))
        jar.take("short=1; Max-Age=10", context("http://a.test/"), at: t0 + .seconds(1))
        jar.take("long=1; Max-Age=100", context("http://b.test/"), at: t0 + .seconds(2))
        var copy = jar
        #expect(copy.removeExpired(at: t0 + .seconds(11)).count == 1)
        #expect(copy.removeExpired(at: t0 + .seconds(11)).isEmpty)
        #expect(copy.endSession().count == 1 && Self.names(copy) == ["long"])
        #expect(copy.removeCookies(since: t0 + .seconds(3)).isEmpty)
        #expect(copy.removeCookies(since: t0 + .seconds(2)).count == 1 && copy.count == 0)
        // What took the place of an older one is as new as that taking.
        copy = jar
        copy.take("session=2", context("http://a.test/"), at: t0 + .seconds(5))
        #expect(copy.removeCookies(since: t0 + .seconds(4)).count == 1 && copy.count == 2)
        #expect(jar.count == 3)
        #expect(jar.remove { $0.domain == "a.test" }.count == 2)
        #expect(
            jar.remove(Cookie.Identity(name: [], domain: "", isHostOnly: true, path: "/")) == [])
    }

    @Test("a jar is put back from what its changes left in a storage")
    func restoring() {
        var jar = jar(limits: CookieLimits(perDomain: 5, total: 20))
        var held: [Cookie.Identity: Cookie] = [:]
        func hold(_ changes: [CookieChange]) {
            for change in changes {
                switch change {
                case .stored(let cookie): held[cookie.identity] = cookie
                case .removed(let identity): held[identity] = nil
                }
            }
        }
        var generator = SplitMix64(seed: 7)
        for i in 0..<600 {
            let now = t0 + .seconds(Int64(i))
            let age = Int.random(in: -20...300, using: &generator)
            let name = Int.random(in: 0..<12, using: &generator)
            let host = "h\(Int.random(in: 0..<6, using: &generator)).a.test"
            let wide = Bool.random(using: &generator) ? "; Domain=a.test" : ""
            let secure = Bool.random(using: &generator) ? "; Secure" : ""
            hold(
                jar.take(
                    "n\(name)=\(i); Max-Age=\(age)\(wide)\(secure)",
                    context("https://\(host)/"), at: now
                ).changes)
            #expect(jar.count == held.count && jar.count <= 20)
        }
        let end = t0 + .seconds(600)
        var again = CookieJar(limits: jar.limits, suffixes: Suffixes())
        hold(again.restore(Array(held.values), at: end))
        #expect(again.all(at: end).map(\.identity.name).count == held.count)
        #expect(Set(again.all(at: end).map(\.identity)) == Set(jar.all(at: end).map(\.identity)))
        for i in 0..<6 {
            let here = context("https://h\(i).a.test/")
            #expect(again.sends(here, at: end) == jar.sends(here, at: end))
        }
        #expect(held.count > 3)
    }

    @Test("what a storage holds against the rules leaves it")
    func damaged() {
        let bad = Cookie(
            name: bytes("a"), value: bytes("b\n"), domain: "a.test", isHostOnly: true, creation: t0)
        let old = Cookie(
            name: bytes("a"), value: [], domain: "a.test", isHostOnly: true, creation: t0,
            expiry: t0)
        var jar = jar()
        #expect(jar.restore([bad, old], at: t0).count == 2)
        #expect(jar.count == 0)
    }

    @Test("a line of junk never breaks a jar", arguments: [1, 2, 3, 4] as [UInt64])
    func mutations(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var jar = jar(limits: Self.limits)
        let sample =
            "__Host-id=a3fWa; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=-0; "
            + "Domain=.a.test; Path=/x; Secure; HttpOnly; SameSite=Lax, b=c; path=/; MAX-AGE=9"
        var taken = 0
        for _ in 0..<600 {
            let line = generator.mutated(sample)
            _ = SetCookie.lines(joined: line[...])
            guard let cookie = try? SetCookie(parsing: line[...]) else { continue }
            let here = context("https://w.a.test/x/y")
            if jar.store(cookie, for: here, at: t0).refusal == nil { taken += 1 }
            for stored in jar.all(at: t0) {
                #expect(CookieRules.broken(by: stored, Suffixes()) == nil)
                #expect(CookieDomain.matches("w.a.test", stored.domain))
            }
            #expect(jar.count <= 5)
        }
        #expect(taken > 20)
    }
}
