import LarderHTTP
import Testing

@Suite("HTTP-date (RFC 9110 §5.6.7)")
struct HTTPDateTests {
    /// 2026-03-01T00:00:00Z.
    static let now = Timestamp(seconds: 1_772_323_200)

    struct Case: Sendable {
        let text: String
        let seconds: Int64?

        init(_ text: String, _ seconds: Int64?) {
            self.text = text
            self.seconds = seconds
        }
    }

    static let valid: [Case] = [
        // The three forms of the section's own example.
        Case("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        Case("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        Case("Sun Nov  6 08:49:37 1994", 784_111_777),
        Case("Wed Nov 16 08:49:37 1994", 784_975_777),
        // The edges of what clocks count.
        Case("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        Case("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        Case("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
        Case("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
        Case("Sun, 21 Nov 2286 04:46:39 GMT", 10_000_039_599),
        Case("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        Case("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
        // Leap days and the leap second, which counts as the second after it.
        Case("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
        Case("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
        Case("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        // RFC 9111 §4.2: case is set aside by a cache.
        Case("SUN, 06 NOV 1994 08:49:37 GMT", 784_111_777),
        Case("sun, 06 nov 1994 08:49:37 gMT", 784_111_777),
        Case("sunday, 06-nov-94 08:49:37 gmt", 784_111_777),
        // A wrong name of the day changes nothing.
        Case("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        // Two digits: at most 50 years ahead, else in the past.
        Case("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
        Case("Sunday, 01-Mar-76 00:00:00 GMT", 3_350_246_400),
        Case("Tuesday, 01-Mar-77 00:00:00 GMT", 226_022_400),
        Case("Saturday, 01-Jan-00 00:00:00 GMT", 946_684_800),
        Case("Thursday, 01-Jan-26 00:00:00 GMT", 1_767_225_600),
    ]

    @Test("is read in all three forms", arguments: Self.valid)
    func reads(_ c: Case) {
        let moment = HTTPDate.parse(Array(c.text.utf8)[...], now: Self.now)
        #expect(moment?.seconds == c.seconds)
        #expect(HTTPDate.parse(c.text.utf8, now: Self.now) == moment)
    }

    static let invalid: [String] = [
        "", "0", "-1", "never", "GMT", "Sun", "Sun,", "1994-11-06T08:49:37Z",
        // Zones.
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT+1", "Sun, 06 Nov 1994 08:49:37 Z",
        "Sunday, 06-Nov-94 08:49:37 EST", "Sun Nov  6 08:49:37 1994 GMT",
        // Punctuation and width.
        "Sun 06 Nov 1994 08:49:37 GMT", "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06  Nov  1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 1994 08:49:37.0 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT", "Sun, 06 Nov 1994  08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 94", "Sun  Nov  6 08:49:37 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 GMTX", "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
        // Days, months, hours that do not exist.
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 32 Jan 1994 08:49:37 GMT", "Tue, 29 Feb 2023 00:00:00 GMT",
        "Thu, 29 Feb 1900 00:00:00 GMT", "Sun, 30 Feb 2024 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 November 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        // Digits that are none.
        "Sun, 0x Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:3\u{663} GMT",
    ]

    @Test("is nothing else", arguments: Self.invalid)
    func refuses(_ text: String) {
        #expect(HTTPDate.parse(Array(text.utf8)[...], now: Self.now) == nil)
    }

    @Test("refuses every proper prefix of each form", arguments: Self.valid)
    func prefixes(_ c: Case) {
        let bytes = Array(c.text.utf8)
        for length in 0..<bytes.count {
            #expect(HTTPDate.parse(bytes[..<length], now: Self.now) == nil)
        }
    }

    @Test(
        "is written as IMF-fixdate",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (253_402_300_800, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (Int64.min, "Sat, 01 Jan 0000 00:00:00 GMT"),
        ] as [(Int64, String)])
    func writes(_ seconds: Int64, _ text: String) {
        #expect(HTTPDate.format(Timestamp(seconds: seconds)) == text)
    }

    @Test("cuts fractions off, before the epoch too")
    func fractions() {
        #expect(
            HTTPDate.format(Timestamp(microseconds: 1_999_999)) == "Thu, 01 Jan 1970 00:00:01 GMT")
        #expect(HTTPDate.format(Timestamp(microseconds: -1)) == "Wed, 31 Dec 1969 23:59:59 GMT")
    }

    @Test("reads what it writes, over eight centuries")
    func roundTrip() {
        for day in stride(from: Int64(-150_000), to: 150_000, by: 41) {
            let moment = Timestamp(seconds: day * 86_400 + 12_345)
            guard HTTPDate.parse(HTTPDate.format(moment).utf8, now: Self.now) == moment else {
                Issue.record("day \(day): \(HTTPDate.format(moment))")
                return
            }
        }
    }
}
