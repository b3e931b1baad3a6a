import LarderHTTP
import Testing

@Suite("Range (RFC 9110 §14.1, §14.2)")
struct ByteRangeTests {
    static let huge = String(UInt64.max) + "0"

    @Test(
        "names sets of bytes",
        arguments: [
            ("bytes=0-4", [.from(0, through: 4)]), ("bytes=0-0", [.from(0, through: 0)]),
            ("bytes=5-", [.from(5, through: nil)]), ("bytes=-5", [.suffix(5)]),
            ("bytes=-0", [.suffix(0)]), ("BYTES=1-2", [.from(1, through: 2)]),
            ("bytes=0-4,6-8", [.from(0, through: 4), .from(6, through: 8)]),
            ("bytes= 0-4 , -1", [.from(0, through: 4), .suffix(1)]),
            ("bytes=,0-4,,", [.from(0, through: 4)]), ("bytes=00-04", [.from(0, through: 4)]),
            ("bytes=0-\(huge)", [.from(0, through: .max)]),
            ("bytes=\(huge)-", [.from(.max, through: nil)]), ("bytes=-\(huge)", [.suffix(.max)]),
            // Invalid, so ignored.
            ("bytes=4-0", nil), ("bytes=0-4,8-6", nil), ("bytes=", nil), ("bytes=,", nil),
            ("bytes=-", nil), ("bytes=a-b", nil), ("bytes=0", nil), ("bytes=0-4x", nil),
            ("bytes=--4", nil), ("bytes=+0-4", nil), ("bytes=0 -4", nil), ("bytes=0- 4", nil),
            ("bytes 0-4", nil), ("bytes", nil), ("", nil), ("=0-4", nil), ("bytes =0-4", nil),
            ("items=0-4", nil), ("bytes=0.0-4", nil), ("bytes=\"0-4\"", nil), ("bytes=0-4;x", nil),
        ] as [(String, [ByteRange]?)])
    func parsing(_ text: String, _ expected: [ByteRange]?) {
        #expect(RangeSet.parse(Array(text.utf8)[...])?.ranges == expected)
    }

    @Test(
        "is resolved against the length (§14.1.2)",
        arguments: [
            (.from(0, through: 4), 10, 0..<5), (.from(0, through: 9), 10, 0..<10),
            (.from(0, through: 10), 10, 0..<10), (.from(9, through: 9), 10, 9..<10),
            (.from(10, through: 10), 10, nil), (.from(10, through: nil), 10, nil),
            (.from(9, through: nil), 10, 9..<10), (.from(0, through: nil), 0, nil),
            (.from(0, through: 0), 0, nil), (.suffix(1), 10, 9..<10), (.suffix(10), 10, 0..<10),
            (.suffix(11), 10, 0..<10), (.suffix(0), 10, nil), (.suffix(5), 0, 0..<0),
            (.suffix(.max), 10, 0..<10), (.from(0, through: .max), .max, 0..<UInt64.max),
            (.from(.max, through: nil), .max, nil),
            (.from(.max - 1, through: .max), .max, (UInt64.max - 1)..<UInt64.max),
        ] as [(ByteRange, UInt64, Range<UInt64>?)])
    func resolving(_ range: ByteRange, _ length: UInt64, _ expected: Range<UInt64>?) {
        #expect(range.resolve(length: length) == expected)
    }

    @Test(
        "leaves out what cannot be satisfied, and is unsatisfiable when nothing is left (§15.5.17)")
    func sets() {
        let set = RangeSet([.from(20, through: 30), .from(0, through: 1), .suffix(1)])
        #expect(set.resolve(length: 10) == [0..<2, 9..<10])
        #expect(RangeSet([.from(20, through: 30), .suffix(0)]).resolve(length: 10) == nil)
    }

    @Test("of a request is one line")
    func lines() {
        #expect(RangeSet(of: ["Range": "bytes=0-1"]) != nil)
        #expect(RangeSet(of: ["Range": "bytes=0-1", "Range": "bytes=0-1"]) == nil)
        #expect(RangeSet(of: [:]) == nil)
    }

    @Test("may ask for too much (§14.2, §17.15)")
    func excess() {
        let disjoint = (0..<16).map { ByteRange.from($0 * 10, through: $0 * 10 + 1) }
        #expect(!RangeSet(disjoint).isExcessive(length: 1000))
        #expect(RangeSet(disjoint + [.suffix(1)]).isExcessive(length: 1000))
        #expect(!RangeSet([.from(0, through: 9), .from(5, through: 9)]).isExcessive(length: 10))
        let overlapping = (0..<3).map { ByteRange.from($0, through: nil) }
        #expect(RangeSet(overlapping).isExcessive(length: 10))
        #expect(!RangeSet(overlapping).isExcessive(length: 0))
    }
}

@Suite("Content-Range (RFC 9110 §14.4)")
struct ContentRangeTests {
    @Test(
        "is read exactly",
        arguments: [
            ("bytes 0-4/10", .bytes(0..<5, of: 10)), ("bytes 0-9/10", .bytes(0..<10, of: 10)),
            ("Bytes 42-1233/*", .bytes(42..<1234, of: nil)),
            ("bytes */10", .unsatisfied(length: 10)), ("bytes */0", .unsatisfied(length: 0)),
            ("bytes 0-10/10", nil), ("bytes 5-4/10", nil), ("bytes */*", nil), ("bytes 0-4", nil),
            ("bytes 0-4/", nil), ("bytes -4/10", nil), ("bytes 4-/10", nil), ("bytes=0-4/10", nil),
            ("bytes  0-4/10", nil), ("bytes 0-4/10 ", nil), ("bytes 0-4/1x", nil),
            ("items 0-4/10", nil), ("", nil), ("bytes", nil), ("bytes 0 - 4/10", nil),
            ("bytes 0-18446744073709551615/*", nil), ("bytes 0-99999999999999999999/*", nil),
            ("bytes 0-4/99999999999999999999", nil),
            ("bytes 0-18446744073709551614/18446744073709551615", .bytes(0..<UInt64.max, of: .max)),
        ] as [(String, ContentRange?)])
    func parsing(_ text: String, _ expected: ContentRange?) {
        #expect(ContentRange(parsing: Array(text.utf8)[...]) == expected)
    }

    @Test("is written as it is read")
    func writing() {
        #expect(ContentRange.bytes(0..<5, of: 10).value == "bytes 0-4/10")
        #expect(ContentRange.bytes(0..<5, of: nil).value == "bytes 0-4/*")
        #expect(ContentRange.unsatisfied(length: 10).value == "bytes */10")
        #expect(ContentRange.bytes(0..<0, of: 0).value == "bytes */0")
    }
}
