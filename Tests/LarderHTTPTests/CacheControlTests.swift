import LarderHTTP
import Testing

@Suite("Cache-Control (RFC 9111 §5.2)")
struct CacheControlTests {
    struct Case: Sendable {
        let lines: [String]
        let expected: CacheControl

        init(_ lines: String..., expect: (inout CacheControl) -> Void) {
            self.lines = lines
            var control = CacheControl()
            control.isPresent = true
            expect(&control)
            self.expected = control
        }
    }

    static func parse(_ lines: [String], name: String = "Cache-Control") -> CacheControl {
        var fields = Fields()
        for line in lines { fields.append(name, line) }
        return CacheControl(fields, name: FieldName(name))
    }

    static let flags: [Case] = [
        Case("no-store") { $0.noStore = true },
        Case("NO-STORE") { $0.noStore = true },
        Case("No-Store=anything") { $0.noStore = true },
        Case("no-store junk") { $0.noStore = true },
        Case("no-cache") { $0.noCache = true },
        Case("private") { $0.isPrivate = true },
        Case("public") { $0.isPublic = true },
        Case("pUbLiC") { $0.isPublic = true },
        Case("must-revalidate") { $0.mustRevalidate = true },
        Case("proxy-revalidate") { $0.proxyRevalidate = true },
        Case("must-understand") { $0.mustUnderstand = true },
        Case("no-transform") { $0.noTransform = true },
        Case("immutable") { $0.immutable = true },
        Case("only-if-cached") { $0.onlyIfCached = true },
        Case("public, no-store") {
            $0.isPublic = true; $0.noStore = true
        },
        Case("public,no-store") {
            $0.isPublic = true; $0.noStore = true
        },
        Case("public\t,\t no-store") {
            $0.isPublic = true; $0.noStore = true
        },
        Case(",, public ,, ,no-store,") {
            $0.isPublic = true; $0.noStore = true
        },
        Case("public", "no-store") {
            $0.isPublic = true; $0.noStore = true
        },
        // What grants must be written as the RFC writes it.
        Case("public=yes") { _ in },
        Case("immutable=1") { _ in },
        Case("must-understand=\"x\"") { _ in },
        // Unknown, empty, and close to known.
        Case("") { _ in },
        Case(",") { _ in },
        Case("foo") { _ in },
        Case("foo=bar, no-storee, xno-store, no-stor") { _ in },
        Case("=no-store") { _ in },
        Case("@no-store") { _ in },
        // Commas in quoted strings separate nothing; quoted pairs escape the quote.
        Case("foo=\"no-store, no-cache\"") { _ in },
        Case("foo=\"a\\\", no-store\", public") { $0.isPublic = true },
        Case("foo=\"a\\\\\", no-store") { $0.noStore = true },
        // A quoted string that never ends hides nothing that restricts, and all that permits.
        Case("foo=\"bar, no-store", "no-cache") {
            $0.noStore = true; $0.noCache = true
        },
        Case("foo=\"bar, private, proxy-revalidate") {
            $0.isPrivate = true; $0.proxyRevalidate = true
        },
        Case("foo=\"bar, private=x") { $0.privateFields = ["x"] },
        Case("foo=a\"b, no-store") { $0.noStore = true },
        Case("foo=\"a\\\", no-store") { $0.noStore = true },
        Case("foo=\"a\"b\", no-store") { $0.noStore = true },
        Case("foo=\"a, no-store\", bar=\"b") { $0.noStore = true },
        Case("foo=\"bar, must-revalidate") { $0.noCache = true },
        Case("foo=\"bar, max-age=0") { $0.noCache = true },
        Case("max-age=9, foo=\"bar, max-age=3") { $0.maxAge = .seconds(3) },
        Case("s-maxage=9, foo=\"bar, s-maxage=x") {
            $0.sMaxage = .zero; $0.hasInvalidLifetime = true
        },
        Case("foo=\"bar, public, immutable, max-age=9, s-maxage=9, max-stale, stale-if-error=9") {
            _ in
        },
        Case("foo=\"bar, no-storee, \"no-store\", , =") { _ in },
        Case("foo=\"bar", "public") { $0.isPublic = true },
    ]

    static let ages: [Case] = [
        Case("max-age=0") { $0.maxAge = .zero },
        Case("max-age=60") { $0.maxAge = .seconds(60) },
        Case("MAX-AGE=60") { $0.maxAge = .seconds(60) },
        Case("max-age=\"60\"") { $0.maxAge = .seconds(60) },
        Case("max-age=\"6\\0\"") { $0.maxAge = .seconds(60) },
        Case("max-age=0060") { $0.maxAge = .seconds(60) },
        Case("s-maxage=60") { $0.sMaxage = .seconds(60) },
        // RFC 9111 §1.2.2: what is too large counts as 2^31.
        Case("max-age=2147483647") { $0.maxAge = .seconds(2_147_483_647) },
        Case("max-age=2147483648") { $0.maxAge = .seconds(2_147_483_648) },
        Case("max-age=2147483649") { $0.maxAge = .seconds(2_147_483_648) },
        Case("max-age=99999999999999999999999999") { $0.maxAge = .seconds(2_147_483_648) },
        // §4.2.1: invalid freshness information makes the response stale.
        Case("max-age") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=\"\"") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=-1") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=+60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=60.0") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=60s") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=a60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age='60'") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=\"60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=60\"") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age =60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age= 60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age=60 70") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("max-age:60") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("s-maxage=x") {
            $0.sMaxage = .zero; $0.hasInvalidLifetime = true
        },
        // §4.2.1: of several the most restrictive.
        Case("max-age=60, max-age=10") { $0.maxAge = .seconds(10) },
        Case("max-age=10, max-age=60") { $0.maxAge = .seconds(10) },
        Case("max-age=60", "max-age=10") { $0.maxAge = .seconds(10) },
        Case("max-age=60, max-age=x") {
            $0.maxAge = .zero; $0.hasInvalidLifetime = true
        },
        Case("ext=\"max-age=60\", max-age=1") { $0.maxAge = .seconds(1) },
        Case("max-age=1, ext=\"max-age=60\"") { $0.maxAge = .seconds(1) },
        // Windows: what cannot be read allows nothing, of several the narrowest counts.
        Case("stale-while-revalidate=30") { $0.staleWhileRevalidate = .seconds(30) },
        Case("stale-while-revalidate=x") { $0.staleWhileRevalidate = .zero },
        Case("stale-if-error=30, stale-if-error=20") { $0.staleIfError = .seconds(20) },
        Case("stale-if-error") { $0.staleIfError = .zero },
        Case("max-stale") { $0.maxStale = CacheControl.unlimited },
        Case("max-stale=30") { $0.maxStale = .seconds(30) },
        Case("max-stale=-30") { $0.maxStale = .zero },
        Case("max-stale, max-stale=30") { $0.maxStale = .seconds(30) },
        Case("min-fresh=30") { $0.minFresh = .seconds(30) },
        Case("min-fresh=30, min-fresh=40") { $0.minFresh = .seconds(40) },
        Case("min-fresh=x") { $0.minFresh = CacheControl.unlimited },
    ]

    /// So many different names, `x1` first.
    static func names(_ count: Int) -> [String] { (1...count).map { "x\($0)" } }

    static let qualified: [Case] = [
        // More names than anybody looks for in each response forbid the whole.
        Case("private=\"\(names(64).joined(separator: ","))\"") {
            $0.privateFields = names(64).map { FieldName($0) }
        },
        Case("private=\"\(names(65).joined(separator: ","))\"") { $0.isPrivate = true },
        Case("no-cache=\"\(names(65).joined(separator: ","))\"") { $0.noCache = true },
        Case(names(65).map { "no-cache=\($0)" }.joined(separator: ",")) {
            $0.noCacheFields = names(64).map { FieldName($0) }
            $0.noCache = true
        },
        Case("no-cache=\"Set-Cookie\"") { $0.noCacheFields = ["set-cookie"] },
        Case("no-cache=\"a, B ,c\"") { $0.noCacheFields = ["a", "b", "c"] },
        Case("no-cache=Set-Cookie") { $0.noCacheFields = ["set-cookie"] },
        Case("no-cache=\"a\", no-cache=\"b\"") { $0.noCacheFields = ["a", "b"] },
        Case("no-cache=\"a\", no-cache") {
            $0.noCacheFields = ["a"]; $0.noCache = true
        },
        Case("private=\"X-User\"") { $0.privateFields = ["x-user"] },
        Case("private=\"X-User\", private") {
            $0.privateFields = ["x-user"]
            $0.isPrivate = true
        },
        // What names no fields forbids the whole.
        Case("no-cache=\"\"") { $0.noCache = true },
        Case("no-cache=") { $0.noCache = true },
        Case("no-cache=\"a b\"") { $0.noCache = true },
        Case("no-cache=\"a") { $0.noCache = true },
        Case("private=\"\"") { $0.isPrivate = true },
        Case("private=\" , \"") { $0.isPrivate = true },
        Case("private x") { $0.isPrivate = true },
    ]

    @Test("holds flags", arguments: Self.flags)
    func holdsFlags(_ c: Case) { #expect(Self.parse(c.lines) == c.expected) }

    @Test("holds times in seconds (RFC 9111 §1.2.2, §4.2.1)", arguments: Self.ages)
    func holdsAges(_ c: Case) { #expect(Self.parse(c.lines) == c.expected) }

    @Test("may be limited to fields (RFC 9111 §5.2.2.4, §5.2.2.7)", arguments: Self.qualified)
    func holdsFields(_ c: Case) { #expect(Self.parse(c.lines) == c.expected) }

    @Test("is absent without a line")
    func absent() {
        #expect(CacheControl(["X-Cache-Control": "no-store"]) == CacheControl())
    }

    @Test("gives way to nothing but itself: Pragma counts only alone (RFC 9111 §5.4)")
    func pragma() {
        #expect(CacheControl(request: ["Pragma": "no-cache"]).noCache)
        #expect(CacheControl(request: ["Pragma": "foo, No-Cache"]).noCache)
        #expect(!CacheControl(request: ["Pragma": "foo"]).noCache)
        #expect(!CacheControl(request: ["Pragma": "no-cache=x"]).noCache)
        #expect(!CacheControl(request: ["Pragma": "no-cache", "Cache-Control": "foo"]).noCache)
        #expect(!CacheControl(request: ["Pragma": "no-cache", "Cache-Control": ""]).noCache)
    }

    @Test("never traps on junk")
    func junk() {
        var seed: UInt64 = 1
        let alphabet = Array("max-age=no-cache,\"\\ \t0123456789;private".utf8) + [0x80, 0xFF]
        for _ in 0..<5_000 {
            var line: [UInt8] = []
            for _ in 0..<(seed >> 33) % 40 {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                line.append(alphabet[Int((seed >> 33) % UInt64(alphabet.count))])
            }
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            var fields = Fields()
            fields.append("Cache-Control", line)
            let control = CacheControl(fields)
            #expect((control.maxAge ?? .zero) <= .seconds(DeltaSeconds.limit))
            #expect((control.maxAge ?? .zero) >= .zero)
        }
    }
}

@Suite("Targeted cache control (RFC 9213 §2.1)")
struct TargetedCacheControlTests {
    struct Case: Sendable {
        let lines: [String]
        let expected: CacheControl?

        init(_ lines: String..., expect: (inout CacheControl) -> Void) {
            self.lines = lines
            var control = CacheControl()
            control.isPresent = true
            expect(&control)
            self.expected = control
        }

        init(ignored lines: String...) {
            self.lines = lines
            self.expected = nil
        }
    }

    @Test(
        "is a dictionary of structured fields",
        arguments: [
            Case("max-age=60") { $0.maxAge = .seconds(60) },
            Case("max-age=60, no-store") {
                $0.maxAge = .seconds(60); $0.noStore = true
            },
            Case("max-age=60", "no-store") {
                $0.maxAge = .seconds(60); $0.noStore = true
            },
            Case("no-store=?0") { _ in },
            Case("no-store=?1") { $0.noStore = true },
            Case("max-age=60;ext=1") { $0.maxAge = .seconds(60) },
            Case("max-age=10, max-age=60") { $0.maxAge = .seconds(60) },
            Case("max-age=999999999999999") { $0.maxAge = .seconds(2_147_483_648) },
            Case("max-age=-1") { $0.maxAge = .zero },
            // Values of a wrong type are left out; a lifetime is none at all then (RFC 9111 §4.2.1).
            Case("stale-if-error=60.0") { _ in },
            Case("max-age=60.0") {
                $0.maxAge = .zero; $0.hasInvalidLifetime = true
            },
            Case("s-maxage=\"60\", public") {
                $0.sMaxage = .zero; $0.hasInvalidLifetime = true; $0.isPublic = true
            },
            Case("max-age=sixty, public") {
                $0.maxAge = .zero; $0.hasInvalidLifetime = true; $0.isPublic = true
            },
            Case("max-age, public") {
                $0.maxAge = .zero; $0.hasInvalidLifetime = true; $0.isPublic = true
            },
            // But what forbids, forbids the whole.
            Case("no-store=1") { $0.noStore = true },
            Case("private=5, no-cache=(\"a\")") {
                $0.isPrivate = true; $0.noCache = true
            },
            Case("private=\"\"") { $0.isPrivate = true },
            Case("private=\"a b\"") { $0.isPrivate = true },
            Case("must-revalidate=0.5") { $0.mustRevalidate = true },
            Case("private=?0, no-cache=?0") { _ in },
            Case("no-cache=x-a") { $0.noCacheFields = ["x-a"] },
            Case("private=\"a, b\"") { $0.privateFields = ["a", "b"] },
            Case("private=\"\(CacheControlTests.names(65).joined(separator: ","))\"") {
                $0.isPrivate = true
            },
            Case("private") { $0.isPrivate = true },
            Case("unknown=(1 2);x, must-revalidate") { $0.mustRevalidate = true },
            // Errors of syntax make the whole as if it were not there.
            Case(ignored: ""), Case(ignored: "max-age=60,"), Case(ignored: "max-age=60,,public"),
            Case(ignored: "MAX-AGE=60"), Case(ignored: "max-age =60"), Case(ignored: "max-age= 60"),
            Case(ignored: "max-age=60 public"), Case(ignored: "max-age=1234567890123456"),
            Case(ignored: "max-age=60, ext=\"unended"), Case(ignored: "max-age=60;;a"),
            Case(ignored: "&"), Case(ignored: "max-age=?2"), Case(ignored: "a=(1 2"),
            Case(ignored: "a=:!:"), Case(ignored: "a=1."), Case(ignored: "a=--1"),
        ])
    func parsing(_ c: Case) {
        var fields = Fields()
        for line in c.lines { fields.append("CDN-Cache-Control", line) }
        let name = FieldName(.cdnCacheControl)
        #expect(CacheControl(targeted: fields, name: name) == c.expected)
    }

    @Test("is absent without a line")
    func absent() {
        #expect(
            CacheControl(targeted: ["Cache-Control": "no-store"], name: "cdn-cache-control") == nil)
    }

    @Test("a line that ends inside quotes restricts the others wherever it stands (§5.2)")
    func openLines() {
        for lines in [["max-age=10", "\"x, max-age=5"], ["\"x, max-age=5", "max-age=10"]] {
            var fields = Fields()
            for line in lines { fields.append("Cache-Control", line) }
            #expect(CacheControl(fields).maxAge == .seconds(5))
        }
    }
}
