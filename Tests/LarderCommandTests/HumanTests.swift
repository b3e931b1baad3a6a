import LarderControl
import Testing

@testable import larder

@Suite("Figures for people")
struct HumanTests {
    @Test(
        "Sizes",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"),
            (1_048_575, "1023 KiB"),
            (10 << 30, "10 GiB"), (150 << 20 | 1 << 19, "150 MiB"), (.max, "15.9 EiB"),
        ] as [(UInt64, String)])
    func size(_ bytes: UInt64, _ expected: String) { #expect(Human.size(bytes) == expected) }

    @Test(
        "Times",
        arguments: [
            (0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (119_999, "119 s"), (120_000, "2 min"),
            (7_199_999, "119 min"), (7_200_000, "2 h"), (9_000_000, "2.5 h"), (172_800_000, "2 d"),
            (40 * 86_400_000, "40 d"), (800 * 86_400_000, "2.1 y"), (-5000, "-5 s"),
            (.min, "-292471208 y"), (.max, "292471208 y"),
        ] as [(Int64, String)])
    func time(_ milliseconds: Int64, _ expected: String) {
        #expect(Human.time(milliseconds: milliseconds) == expected)
    }

    @Test("Counts and shares")
    func counts() {
        #expect(Human.count(0) == "0")
        #expect(Human.count(999) == "999")
        #expect(Human.count(1_234_567) == "1,234,567")
        #expect(Human.count(1, "request") == "1 request")
        #expect(Human.count(1000, "request") == "1,000 requests")
        #expect(Human.share(3, of: 4) == "75.0%")
        #expect(Human.share(1, of: 3) == "33.3%")
        #expect(Human.share(0, of: 0) == "-")
        #expect(Human.share(.max, of: .max) == "100.0%")
    }

    @Test(
        "Dates",
        arguments: [
            (0, "1970-01-01 00:00:00 UTC"), (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400_000_000, "2000-02-29 00:00:00 UTC"), (.max, "294247-01-10 04:00:54 UTC"),
        ] as [(Int64, String)])
    func date(_ microseconds: Int64, _ expected: String) {
        #expect(Human.date(microseconds: microseconds) == expected)
    }

    @Test(
        "A stranger's text does nothing to a terminal",
        arguments: [
            ("plain é", "plain é"), ("\u{1B}[2J", "\\u{1b}[2J"), ("a\nb", "a\\u{a}b"),
            ("\u{9B}", "\\u{9b}"), ("\u{202E}x", "\\u{202e}x"), ("\r\n", "\\u{d}\\u{a}"),
        ])
    func printable(_ text: String, _ expected: String) {
        #expect(Printable.text(text) == expected)
    }
}

@Suite("Tables")
struct TableTests {
    private static let columns: [Table.Column] = [
        .init(title: "URL", isElastic: true), .init(title: "SIZE", isNumber: true),
        .init(title: "TIER"),
    ]

    private static func lines(_ rows: [[String]], width: Int?) -> [String] {
        var table = Table(Self.columns, width: width)
        return rows.flatMap { table.add($0) } + table.finish()
    }

    @Test("align, numbers to the right")
    func alignment() {
        #expect(
            Self.lines([["a", "1 B", "disk"], ["longer", "10 KiB", "memory"]], width: nil) == [
                "URL       SIZE  TIER", "a          1 B  disk", "longer  10 KiB  memory",
            ])
    }

    @Test("give way to a narrow terminal in the middle of the URL")
    func narrow() {
        let lines = Self.lines([["http://example.com/long/path", "1 B", "disk"]], width: 30)
        #expect(lines == ["URL                 SIZE  TIER", "http://e…long/path   1 B  disk"])
        #expect(Table.cut("abc", to: 3) == "abc")
        #expect(Table.cut("abcd", to: 3) == "a…d")
    }

    @Test("are empty when nothing is in them")
    func empty() { #expect(Self.lines([], width: 80).isEmpty) }

    @Test("keep few rows, however many come")
    func streaming() {
        var table = Table(Self.columns, width: nil)
        var count = 0
        for n in 0..<2000 {
            count += table.add(["\(n)", "1 B", "disk"]).count
            #expect(count >= n - 512)
        }
        #expect(count + table.finish().count == 2001)
    }
}
