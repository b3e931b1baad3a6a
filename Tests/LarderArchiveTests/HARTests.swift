import LarderHTTP
import Testing

@testable import LarderArchive

@Suite("HAR files")
struct HARTests {
    private static let document = """
        \u{FEFF}{"log": {"version": "1.2", "x": {"entries": [{"no": 1}]}, "entries": [
        {"a": "} ] \\" {"}, {"b": [{}, {}]} , {"large": "0123456789012345678901234567890123456789"}
        ], "more": [{}]}, "entries": [{"no": 2}]}

        """

    private func read(_ text: String, piece: Int) -> ([HARSplitter.Event], Bool) {
        var splitter = HARSplitter(limit: 40)
        var events: [HARSplitter.Event] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            events += splitter.push(rest.prefix(piece))
            rest = rest.dropFirst(piece)
        }
        return (events, splitter.isWhole)
    }

    @Test("are cut into their entries, and nothing else", arguments: [1, 2, 7, Int.max])
    func entries(_ piece: Int) {
        let (events, isWhole) = self.read(Self.document, piece: piece)
        #expect(isWhole)
        #expect(
            events == [
                .entry(Array(#"{"a": "} ] \" {"}"#.utf8)), .entry(Array(#"{"b": [{}, {}]}"#.utf8)),
                .tooLarge(53),
            ])
    }

    @Test("that end too early are not whole")
    func cut() {
        let (events, isWhole) = self.read(String(Self.document.dropLast(30)), piece: .max)
        #expect(!isWhole)
        #expect(events.count == 3)
    }

    @Test(
        "are refused where they can be no JSON",
        arguments: ["x", "{]", "{} {", "\"a\"", String(repeating: "[", count: 300)])
    func malformed(_ text: String) {
        let (events, isWhole) = self.read(text, piece: 1)
        #expect(!isWhole)
        guard case .failed? = events.last else {
            Issue.record("\(events)")
            return
        }
    }

    @Test("have dates with an offset")
    func dates() {
        let utc = HARDate.parse("2009-07-24T18:20:30.45Z")
        #expect(utc?.microseconds == 1_248_459_630_450_000)
        #expect(HARDate.parse("2009-07-24T19:20:30.45+01:00") == utc)
        #expect(HARDate.parse("2009-07-24T12:50:30.45-05:30") == utc)
        for wrong in ["", "2009-07-24T19:20:30+1:00", "2009-07-24T19:20:30+25:00", "+01:00"] {
            #expect(HARDate.parse(wrong) == nil)
        }
    }

    @Test("hold text as it is where it is UTF-8 to its last byte")
    func text() {
        let cases: [([UInt8], Bool)] = [
            (Array("aé€😀".utf8), true), ([0xC3], false), ([0xC0, 0x80], false),
            ([0xED, 0xA0, 0x80], false), ([0xF4, 0x90, 0x80, 0x80], false), ([0xFF], false),
            ([0xE2, 0x82], false), ([], true),
        ]
        for (bytes, isText) in cases {
            var check = UTF8Check()
            for byte in bytes { check.take([byte]) }
            #expect(check.isWhole == isText, "\(bytes)")
        }
    }
}
