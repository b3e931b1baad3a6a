import LarderCookies
import LarderHTTP
import SeededNumbers
import Testing

@Suite("The date of a cookie (RFC 6265bis §5.1.1)")
struct CookieDateTests {
    /// This is 1994-11-06T08:49:37Z.
    private static let moment = Timestamp(seconds: 784_111_777)

    @Test(
        "is read in any order and with any delimiter",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", "06 Nov 1994 08:49:37", "6 nov 94 8:49:37",
            "1994 6 November 08:49:37", "08:49:37 6 Nov 1994", "Nov-6-1994;08:49:37",
            "6 Nov 1994 08:49:37 PST", "6th Nov 1994th 08:49:37.123", "6 NOVEMBRE 1994 08:49:37Z",
            "\t06/Nov/1994\t08:49:37", "06 Nov 1994 08:49:37 Dec 1995 00:00:00 7",
        ])
    func reads(_ text: String) {
        #expect(CookieDate.parse(bytes(text)[...]) == Self.moment)
    }

    @Test(
        "two digits of a year are of the century from 1970 to 2069",
        arguments: [("69", 2069), ("70", 1970), ("99", 1999), ("00", 2000), ("038", 2038)])
    func century(_ digits: String, _ year: Int) {
        let expected = HTTPDate.moment(year: year, month: 1, day: 1, secondsOfDay: 0)
        #expect(CookieDate.parse(bytes("1 Jan \(digits) 00:00:00")[...]) == expected)
        #expect(expected != nil)
    }

    @Test(
        "is none where a part is missing or impossible",
        arguments: [
            "", "never", "06 Nov 1994", "Nov 1994 08:49:37", "06 1994 08:49:37",
            "06 Nov 08:49:37", "00 Nov 1994 08:49:37", "32 Nov 1994 08:49:37",
            "31 Nov 1994 08:49:37", "29 Feb 2023 00:00:00", "06 Nov 1600 08:49:37",
            "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1994 08:49:60",
            "06 Nov 19940 08:49:37", "06 Nov 1994 008:49:37", "06 Nov 1994 08:49",
            "06 Nov 1994 08:49:371", "06 Nov 1994 08.49.37", "6 N 94 1:1:1",
            "99999999999999999999 Nov 1994 08:49:37",
        ])
    func refuses(_ text: String) {
        #expect(CookieDate.parse(bytes(text)[...]) == nil)
    }

    @Test("knows leap days, and the bounds of the years")
    func bounds() {
        #expect(CookieDate.parse(bytes("29 Feb 2024 00:00:00")[...]) != nil)
        #expect(CookieDate.parse(bytes("31 Dec 9999 23:59:59")[...]) != nil)
        #expect(CookieDate.parse(bytes("1 Jan 1601 00:00:00")[...]) != nil)
    }

    @Test("takes anything, and what HTTP writes reads back", arguments: [1, 2, 3] as [UInt64])
    func mutations(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let text = HTTPDate.format(
                Timestamp(
                    seconds: Int64.random(in: -10_000_000_000...200_000_000_000, using: &generator))
            )
            let read = CookieDate.parse(bytes(text)[...])
            #expect(read.map(HTTPDate.format) == text)
            _ = CookieDate.parse(generator.mutated(text)[...])
        }
    }
}
