import LarderHTTP
import LarderPolicy
import Testing

@Suite("Freshness lifetime (RFC 9111 §4.2.1)")
struct LifetimeTests {
    struct Case: Sendable {
        let text: String
        let status: UInt16
        let configuration: PolicyConfiguration
        let lifetime: Int64
        let source: LifetimeSource

        init(
            _ text: String, status: UInt16 = 200, by configuration: PolicyConfiguration = .shared,
            _ lifetime: Int64, _ source: LifetimeSource
        ) {
            self.text = text
            self.status = status
            self.configuration = configuration
            self.lifetime = lifetime
            self.source = source
        }
    }

    static let explicit: [Case] = [
        Case("Cache-Control: max-age=60", 60, .maxAge),
        Case("Cache-Control: s-maxage=30, max-age=60", 30, .sMaxage),
        Case("Cache-Control: s-maxage=90, max-age=60", 90, .sMaxage),
        Case("Cache-Control: s-maxage=30, max-age=60", by: .private, 60, .maxAge),
        Case("Cache-Control: s-maxage=30", by: .private, 0, .none),
        Case("Cache-Control: max-age=60 | Expires: @10", 60, .maxAge),
        Case("Cache-Control: max-age=0 | Expires: @10", 0, .maxAge),
        Case("Cache-Control: max-age=x | Expires: @10", 0, .maxAge),
        Case("Cache-Control: s-maxage=x, max-age=60", 0, .sMaxage),
        Case("Cache-Control: public | Expires: @10", 10, .expires),
        Case("Expires: @10", 10, .expires),
        Case("Expires: @10 | Date: @0", 10, .expires),
        Case("Expires: @10 | Date: @-5", 15, .expires),
        Case("Expires: @10 | Date: @5", 5, .expires),
        Case("Expires: @10 | Date: nonsense", 10, .expires),
        Case("Expires: @0 | Date: @0", 0, .expires),
        Case("Expires: @-10 | Date: @0", 0, .expires),
        // §5.3: whatever is no date is in the past.
        Case("Expires: 0", 0, .expires), Case("Expires: -1", 0, .expires),
        Case("Expires: ", 0, .expires), Case("Expires: never", 0, .expires),
        Case("Expires: Thu, 18 Aug 2050 02:01:18 UTC", 0, .expires),
        Case("Expires: Thu, 18 Aug 50 02:01:18 GMT", 0, .expires),
        Case("Expires: Thu 18 Aug 2050 02:01:18 GMT", 0, .expires),
        Case("Expires: Thu, 18 Aug 2050 2:01:18 GMT", 0, .expires),
        // Obsolete forms count.
        Case("Date: @0 | Expires: Thursday, 18-Aug-50 02:01:18 GMT", 844_400_878, .expires),
        Case("Date: @0 | Expires: Thu Aug 18 02:01:18 2050", 844_400_878, .expires),
        Case("Date: @0 | Expires: THU, 18 AUG 2050 02:01:18 gmt", 844_400_878, .expires),
        // Several: the most restrictive.
        Case("Expires: @10 | Expires: @20", 10, .expires),
        Case("Expires: @20 | Expires: @10", 10, .expires),
        Case("Expires: @20 | Expires: 0", 0, .expires),
        Case("Cache-Control: max-age=60 | Cache-Control: max-age=30", 30, .maxAge),
        Case("Cache-Control: max-age=4294967296", 2_147_483_648, .maxAge),
        // Explicit freshness needs no particular status.
        Case("Cache-Control: max-age=60", status: 599, 60, .maxAge),
        Case("Expires: @10", status: 500, 10, .expires),
    ]

    static let heuristic: [Case] = [
        Case("Date: @0 | Last-Modified: @-1000", 100, .heuristic),
        Case("Last-Modified: @-1000", 100, .heuristic),
        Case("Date: @-500 | Last-Modified: @-1000", 50, .heuristic),
        Case("Date: @0 | Last-Modified: @-100000000", 86_400, .heuristic),
        Case("Date: @0 | Last-Modified: @0", 0, .none),
        Case("Date: @0 | Last-Modified: @1000", 0, .none),
        Case("Date: @0 | Last-Modified: yesterday", 0, .none),
        Case("Date: @0", 0, .none),
        Case("ETag: \"a\"", 0, .none),
        Case("Cache-Control: must-revalidate | Last-Modified: @-1000", 100, .heuristic),
        Case("Expires: 0 | Last-Modified: @-1000", 0, .expires),
        // Only for the statuses of RFC 9110 §15.1, or where it is public.
        Case("Last-Modified: @-1000", status: 203, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 204, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 300, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 301, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 308, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 404, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 405, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 410, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 414, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 501, 100, .heuristic),
        Case("Last-Modified: @-1000", status: 201, 0, .none),
        Case("Last-Modified: @-1000", status: 202, 0, .none),
        Case("Last-Modified: @-1000", status: 302, 0, .none),
        Case("Last-Modified: @-1000", status: 307, 0, .none),
        Case("Last-Modified: @-1000", status: 403, 0, .none),
        Case("Last-Modified: @-1000", status: 500, 0, .none),
        Case("Last-Modified: @-1000", status: 503, 0, .none),
        Case("Last-Modified: @-1000", status: 599, 0, .none),
        Case("Last-Modified: @-1000 | Cache-Control: public", status: 599, 100, .heuristic),
        // Settings, sensible and absurd.
        Case(
            "Last-Modified: @-1000", by: PolicyConfiguration(heuristicFraction: 0.5), 500,
            .heuristic),
        Case("Last-Modified: @-1000", by: PolicyConfiguration(heuristicFraction: 0), 0, .heuristic),
        Case(
            "Last-Modified: @-1000", by: PolicyConfiguration(heuristicFraction: -1), 0, .heuristic),
        Case(
            "Last-Modified: @-1000", by: PolicyConfiguration(heuristicFraction: .infinity), 86_400,
            .heuristic),
        Case("Last-Modified: @-1000", by: PolicyConfiguration(heuristicFraction: .nan), 0, .none),
        Case(
            "Last-Modified: @-1000", by: PolicyConfiguration(heuristicMaximum: .seconds(7)), 7,
            .heuristic),
    ]

    /// RFC 9213 §2.2: the first targeted field present takes the place of Cache-Control and Expires.
    static let targeted: [Case] = {
        let cdn = PolicyConfiguration(targetedFields: [
            "larder-cache-control", FieldName(.cdnCacheControl),
        ])
        return [
            Case("CDN-Cache-Control: max-age=9 | Cache-Control: max-age=60", by: cdn, 9, .maxAge),
            Case("CDN-Cache-Control: max-age=9 | Cache-Control: s-maxage=60", by: cdn, 9, .maxAge),
            Case("CDN-Cache-Control: max-age=9 | Cache-Control: max-age=60", 60, .maxAge),
            Case(
                "CDN-Cache-Control: max-age=9 | Larder-Cache-Control: max-age=7", by: cdn, 7,
                .maxAge),
            Case("CDN-Cache-Control: max-age=9, | Cache-Control: max-age=60", by: cdn, 60, .maxAge),
            Case("CDN-Cache-Control: | Cache-Control: max-age=60", by: cdn, 60, .maxAge),
            Case("CDN-Cache-Control: public | Expires: @10", by: cdn, 0, .none),
            Case("CDN-Cache-Control: public | Last-Modified: @-1000", by: cdn, 100, .heuristic),
            Case("CDN-Cache-Control: max-age=x | Cache-Control: max-age=60", by: cdn, 0, .maxAge),
        ]
    }()

    static func check(_ c: Case) {
        let freshness = Freshness.of(
            stored(c.text, status: c.status), at: t0, configuration: c.configuration)
        #expect(freshness.lifetime == .seconds(c.lifetime))
        #expect(freshness.source == c.source)
    }

    @Test("is s-maxage, else max-age, else Expires", arguments: Self.explicit)
    func fromFields(_ c: Case) { Self.check(c) }

    @Test("is a bounded part of the time unmodified (§4.2.2)", arguments: Self.heuristic)
    func guessed(_ c: Case) { Self.check(c) }

    @Test("is that of a targeted field (RFC 9213 §2.2)", arguments: Self.targeted)
    func aimed(_ c: Case) { Self.check(c) }
}

@Suite("Age (RFC 9111 §4.2.3)")
struct AgeTests {
    struct Case: Sendable {
        let text: String
        let delay: Double
        let after: Double
        let age: Double

        init(_ text: String, delay: Double = 0, after: Double = 0, _ age: Double) {
            self.text = text
            self.delay = delay
            self.after = after
            self.age = age
        }
    }

    static let sums: [Case] = [
        Case("", 0), Case("", after: 5, 5), Case("Date: @0", after: 5.5, 5.5),
        // apparent_age
        Case("Date: @-10", 10), Case("Date: @-10", after: 5, 15), Case("Date: @10", 0),
        Case("Date: @10", after: 5, 5), Case("Date: nonsense", after: 5, 5),
        // age_value and response_delay
        Case("Age: 10 | Date: @0", 10), Case("Age: 10", after: 5, 15),
        Case("Age: 10", delay: 2.5, 12.5), Case("", delay: 2.5, 2.5),
        Case("", delay: 2.5, after: 1, 3.5),
        // the greater of both
        Case("Age: 10 | Date: @-20", 20), Case("Age: 20 | Date: @-10", 20),
        Case("Age: 10 | Date: @-11", delay: 2, 12), Case("Date: @-2", delay: 2, 2),
        // A clock set back makes nothing younger; nor does a delay below zero.
        Case("Age: 10", after: -100, 10), Case("Age: 10", delay: -100, 10),
    ]

    static let values: [Case] = [
        Case("Age: 0", 0), Case("Age: 007", 7), Case("Age: 7, 0", 7), Case("Age: 0, 7", 0),
        Case("Age: 7 | Age: 0", 7), Case("Age: 0 | Age: 7", 0), Case("Age: , 7", 7),
        Case("Age: abc", 0), Case("Age: -7", 0), Case("Age: +7", 0), Case("Age: 7.0", 0),
        Case("Age: 7;foo=bar", 0), Case("Age: \"7\"", 0), Case("Age: 7 8", 0), Case("Age: ", 0),
        Case("Age: abc, 7", 0), Case("Age: abc | Age: 7", 0),
        Case("Age: 2147483647", 2_147_483_647), Case("Age: 2147483648", 2_147_483_648),
        Case("Age: 2147483649", 2_147_483_648), Case("Age: 99999999999999999999", 2_147_483_648),
    ]

    static func check(_ c: Case) {
        let head = stored(c.text, delay: c.delay)
        let freshness = Freshness.of(
            head, at: t0 + .milliseconds(c.after * 1000), configuration: .shared)
        #expect(freshness.currentAge == .milliseconds(c.age * 1000))
    }

    @Test("counts Date, Age, the delay and the stay", arguments: Self.sums)
    func arithmetic(_ c: Case) { Self.check(c) }

    @Test(
        "takes the first member of Age, and ignores what is no number (§5.1)",
        arguments: Self.values)
    func ageField(_ c: Case) { Self.check(c) }

    @Test("is not a second too much because Date has whole seconds")
    func wholeSeconds() {
        let head = StoredHead(
            status: .ok, fields: fields("Date: @0"), requestTime: t0 + .milliseconds(900),
            responseTime: t0 + .milliseconds(900))
        let age = Freshness.of(head, at: head.responseTime, configuration: .shared).currentAge
        #expect(age == .zero)
    }

    @Test("never traps, whatever the times")
    func extremes() {
        let moments = [Int64.min, -1, 0, 1, Int64.max].map { Timestamp(microseconds: $0) }
        for sent in moments {
            for received in moments {
                for now in moments {
                    for text in [
                        "Age: 99999999999", "Date: @0 | Expires: @10", "Last-Modified: @0",
                    ] {
                        let head = StoredHead(
                            status: .ok, fields: fields(text), requestTime: sent,
                            responseTime: received)
                        let freshness = Freshness.of(head, at: now, configuration: .shared)
                        #expect(freshness.currentAge >= .zero)
                        #expect(freshness.lifetime >= .zero)
                    }
                }
            }
        }
    }

    @Test("at the lifetime is stale (§4.2)")
    func boundary() {
        let freshness = { (age: Int64) in
            Freshness(lifetime: .seconds(10), source: .maxAge, currentAge: .seconds(age))
        }
        #expect(freshness(9).isFresh && freshness(9).remaining == .seconds(1))
        #expect(!freshness(10).isFresh && freshness(10).staleness == .zero)
        #expect(!freshness(12).isFresh && freshness(12).staleness == .seconds(2))
        #expect(freshness(12).remaining == .seconds(-2) && freshness(9).staleness == .zero)
    }
}
