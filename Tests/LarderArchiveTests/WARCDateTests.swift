import LarderHTTP
import Testing

@testable import LarderArchive

@Suite("WARC-Date (ISO 28500:2017 §5.4)")
struct WARCDateTests {
    @Test(
        "is read as far as it goes, and what is left out is its beginning",
        arguments: [
            ("2017", 1_483_228_800_000_000), ("2017-03", 1_488_326_400_000_000),
            ("2017-03-06", 1_488_758_400_000_000), ("2017-03-06T04:03Z", 1_488_772_980_000_000),
            ("2017-03-06T04:03:53Z", 1_488_773_033_000_000),
            ("2017-03-06T04:03:53.5Z", 1_488_773_033_500_000),
            ("2017-03-06T04:03:53.123456789Z", 1_488_773_033_123_456),
            ("1969-12-31T23:59:59.999999Z", -1),
        ] as [(String, Int64)])
    func reading(_ text: String, _ microseconds: Int64) {
        #expect(WARCDate.parse(Array(text.utf8)[...])?.microseconds == microseconds)
    }

    @Test(
        "is nothing else",
        arguments: [
            "", "17", "2017-", "2017-13", "2017-02-30", "2017-03-06T", "2017-03-06T04:03",
            "2017-03-06T24:00:00Z", "2017-03-06T04:03:53.Z", "2017-03-06T04:03:53+01:00",
            "2017-03-06T04:03:53.1234567890Z", "2017-03-06 04:03:53Z", "2017-03-06T04:03:53Zx",
            "Mon, 06 Mar 2017 04:03:53 GMT",
        ])
    func refusing(_ text: String) {
        #expect(WARCDate.parse(Array(text.utf8)[...]) == nil)
    }

    @Test(
        "loses nothing when it is written and read again",
        arguments: [
            0, 1, -1, 1_700_000_000_123_456, 951_782_400_000_000, -62_167_219_200_000_000,
            253_402_300_799_999_999,
        ] as [Int64])
    func writing(_ microseconds: Int64) {
        let text = WARCDate.format(Timestamp(microseconds: microseconds))
        #expect(WARCDate.parse(Array(text.utf8)[...])?.microseconds == microseconds, "\(text)")
    }
}
