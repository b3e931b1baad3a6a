import LarderHTTP
import SeededNumbers
import Testing

/// A number as text, and what it is, by arithmetic on the text alone.
private struct Digits {
    let text: String

    var bytes: FieldValue { Array(self.text.utf8)[...] }
    var isNumber: Bool { !self.text.isEmpty && self.text.utf8.allSatisfy(ASCII.isDigit) }

    /// The number, or the limit where it is larger.
    func clamped(to limit: UInt64) -> UInt64 {
        let plain = String(self.text.drop { $0 == "0" })
        let bound = String(limit)
        if plain.utf8.count != bound.utf8.count {
            return plain.utf8.count > bound.utf8.count ? limit : UInt64(plain) ?? 0
        }
        return plain > bound ? limit : UInt64(plain) ?? 0
    }

    func exceeds(_ limit: UInt64) -> Bool {
        let plain = String(self.text.drop { $0 == "0" })
        let bound = String(limit)
        return plain.utf8.count > bound.utf8.count
            || (plain.utf8.count == bound.utf8.count && plain > bound)
    }

    private static let edges: [String] = [
        "0", "00", "1", "9", "10", "2147483647", "2147483648", "2147483649", "4294967295",
        "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "99999999999999999999999999", "65535", "65536",
    ]
    private static let marks: [String] = [
        "-", "+", " ", "\t", ".", ",", "e", "x", "\"", "\u{0}", "\u{663}",
    ]

    /// Every edge as it is, behind zeros, and with each mark before, in and after it.
    static let all: [Digits] = {
        var texts: [String] = [""]
        for edge in Self.edges {
            texts.append(edge)
            texts.append(String(repeating: "0", count: 22) + edge)
            for mark in Self.marks {
                texts.append(mark + edge)
                texts.append(edge + mark)
                texts.append(edge + mark + "5")
            }
        }
        return texts.map { Digits(text: $0) }
    }()
}

@Suite("Numbers from strangers")
struct GeneratedNumberTests {
    @Test("delta-seconds are digits alone, and at most 2^31 (RFC 9111 §1.2.2)")
    func deltaSeconds() {
        for digits in Digits.all {
            let read = DeltaSeconds.parse(digits.bytes)
            let seconds = Int64(digits.clamped(to: UInt64(DeltaSeconds.limit)))
            let expected: Duration? = digits.isNumber ? .seconds(seconds) : nil
            #expect(read == expected, "\(digits.text)")
        }
    }

    @Test("a directive's number is the same in quotes, and invalid is zero (RFC 9111 §4.2.1)")
    func directives() {
        for digits in Digits.all where !digits.text.contains(where: { ", \t\"".contains($0) }) {
            let plain = CacheControl(["Cache-Control": "max-age=\(digits.text)"])
            let quoted = CacheControl(["Cache-Control": "max-age=\"\(digits.text)\""])
            let expected = DeltaSeconds.parse(digits.bytes)
            // A NUL cannot come into a field: it is replaced by a space.
            guard !digits.text.contains("\u{0}") else { continue }
            #expect(plain.maxAge == expected ?? .zero, "\(digits.text)")
            #expect(quoted.maxAge == expected ?? .zero, "\(digits.text)")
            #expect(plain.hasInvalidLifetime == (expected == nil), "\(digits.text)")
        }
    }

    @Test("positions in a range saturate, those in Content-Range do not (RFC 9110 §14.1, §14.4)")
    func ranges() {
        for digits in Digits.all {
            let saturated = digits.isNumber ? digits.clamped(to: .max) : nil
            #expect(UInt64(saturatingDigits: digits.bytes) == saturated, "\(digits.text)")
            let exact = digits.isNumber && !digits.exceeds(.max) ? saturated : nil
            #expect(UInt64(exactDigits: digits.bytes) == exact, "\(digits.text)")
            let content = ContentRange(parsing: Array("bytes 0-0/\(digits.text)".utf8)[...])
            let isPossible = exact.map { $0 > 0 } ?? false
            #expect((content != nil) == isPossible, "\(digits.text)")
        }
    }

    @Test("Content-Length fits 63 bits or is refused (RFC 9112 §6.3)")
    func contentLength() {
        for digits in Digits.all where !digits.text.contains(where: { ", \t\u{0}".contains($0) }) {
            let head: Fields = ["Content-Length": digits.text]
            let length = try? MessageFraming.contentLength(of: head)
            let isGood = digits.isNumber && !digits.exceeds(UInt64(Int64.max))
            #expect(length == (isGood ? digits.clamped(to: .max) : nil), "\(digits.text)")
        }
    }

    @Test("Max-Forwards counts down, and junk is none (RFC 9110 §7.6.2)")
    func maxForwards() {
        for digits in Digits.all where !digits.text.contains(where: { " \t\u{0}".contains($0) }) {
            let verdict = MaxForwards.judge(
                method: .trace, fields: ["Max-Forwards": digits.text])
            let value = digits.clamped(to: .max)
            var expected = MaxForwards.Verdict.unlimited
            if digits.isNumber {
                expected = value == 0 ? .respond : .forward(remaining: value - 1)
            }
            #expect(verdict == expected, "\(digits.text)")
        }
    }

    @Test("ports are 1 to 65535, with whatever zeros before them (RFC 3986 §3.2.3)")
    func ports() {
        for digits in Digits.all {
            let authority = try? Authority(parsing: Array("h:\(digits.text)".utf8).span)
            let value = digits.clamped(to: 65_536)
            let isInRange = (1...65_535).contains(value)
            let isGood = digits.text.isEmpty || (digits.isNumber && isInRange)
            #expect((authority != nil) == isGood, "\(digits.text)")
            let port = digits.isNumber ? UInt16(exactly: value) : nil
            if isGood { #expect(authority?.port == port, "\(digits.text)") }
        }
    }

    @Test("a chunk's size has sixteen digits at most that count (RFC 9112 §7.1)")
    func chunkSizes() {
        let cases: [(String, HeadError.Reason?)] = [
            ("7fffffffffffffff", nil), ("8000000000000000", .chunkSizeOverflow),
            ("FFFFFFFFFFFFFFFF", .chunkSizeOverflow), ("10000000000000000", .chunkSizeOverflow),
            ("+1", .badChunkSize), ("-1", .badChunkSize), ("1.0", .badChunkSize),
            ("0x1", .badChunkSize), ("1_0", .badChunkSize),
        ]
        for zeros in [0, 1, 40] {
            for (hex, error) in cases {
                // A sign cannot come after zeros as a sign, but is no digit there either.
                let text = String(repeating: "0", count: zeros) + hex + "\n"
                let decoding = Decoding.of([wire(text)[...]])
                #expect(decoding.error == error, "\(text)")
            }
        }
    }
}

@Suite("Quoted strings from strangers (RFC 9110 §5.6.4)")
struct GeneratedQuotedStringTests {
    /// Text, delimiters, controls and obs-text.
    private static let bytes: [UInt8] =
        Array("ab,;= \t\"\\\u{0}\u{1}\u{7F}".utf8) + ([0x80, 0xC3, 0xFF] as [UInt8])

    @Test(
        "give back what was put in, and are never cut by a comma", arguments: [1, 2, 3] as [UInt64])
    func roundTrip(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<1000 {
            let content = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                Self.bytes[Int.random(in: Self.bytes.indices, using: &generator)]
            }
            var quoted: [UInt8] = [ASCII.quote]
            for byte in content {
                // Some are escaped that need not be: the escape means nothing then.
                let mustEscape = byte == ASCII.quote || byte == ASCII.backslash
                if mustEscape || Bool.random(using: &generator) { quoted.append(ASCII.backslash) }
                quoted.append(byte)
            }
            quoted.append(ASCII.quote)
            #expect(quoted[...].unquoted == content[...])
            let list = Array("x, ".utf8) + quoted + Array(" , y".utf8)
            let members = Array(ListMembers(list[...]))
            #expect(members.count == 3 && members[1] == quoted[...])
            // Cut anywhere, it is no quoted string any more, unless what is left ends in a quote
            // that is not escaped; then that quote would have had to be escaped.
            for end in 1..<quoted.count { #expect(quoted[..<end].unquoted == nil) }
        }
    }
}

@Suite("Dates from strangers (RFC 9110 §5.6.7)")
struct GeneratedDateTests {
    private static let now = Timestamp(seconds: 1_772_323_200)
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func parse(_ text: String, now: Timestamp = Self.now) -> Timestamp? {
        HTTPDate.parse(text.utf8, now: now)
    }

    @Test("every day of every month exists or does not, in all three forms")
    func days() {
        for year in [1900, 1970, 1996, 2000, 2023, 2024, 2038, 2100] {
            let leap: Bool = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            let lengths: [Int] = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            for (index, month) in Self.months.enumerated() {
                for day in 0...32 {
                    let exists = (1...lengths[index]).contains(day)
                    let fixdate = Self.parse("Mon, \(Self.two(day)) \(month) \(year) 01:02:03 GMT")
                    #expect((fixdate != nil) == exists)
                    let padded = day < 10 ? " \(day)" : "\(day)"
                    #expect(Self.parse("Mon \(month) \(padded) 01:02:03 \(year)") == fixdate)
                    // The clock stands in the year that two digits are to mean.
                    let clock = HTTPDate.moment(year: year, month: 1, day: 1, secondsOfDay: 0)
                    let short = Self.two(year % 100)
                    let old = Self.parse(
                        "Monday, \(Self.two(day))-\(month)-\(short) 01:02:03 GMT",
                        now: clock ?? Self.now)
                    #expect(old == fixdate)
                }
            }
        }
    }

    @Test("two digits are a year less than 50 years back or at most 50 ahead")
    func centuries() {
        for year in stride(from: 1970, through: 2105, by: 9) {
            guard let now = HTTPDate.moment(year: year, month: 7, day: 1, secondsOfDay: 0) else {
                Issue.record("no such year: \(year)")
                return
            }
            for short in 0..<100 {
                let read = Self.parse("Monday, 01-Jan-\(Self.two(short)) 00:00:00 GMT", now: now)
                let expected = (year - 49...year + 50).filter { $0 % 100 == short }
                let moments = expected.compactMap {
                    HTTPDate.moment(year: $0, month: 1, day: 1, secondsOfDay: 0)
                }
                #expect(read.map { [$0] } == moments)
            }
        }
    }

    @Test("with one byte changed, a date is none or is the date that it says")
    func corruption() {
        let text = Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8)
        for place in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[place] = byte
                guard let moment = HTTPDate.parse(changed, now: Self.now) else { continue }
                let written = Array(HTTPDate.format(moment).utf8)
                // The name of the day is not compared with the date.
                let same = zip(changed, written).dropFirst(3).allSatisfy {
                    ASCII.lowercased($0) == ASCII.lowercased($1)
                }
                #expect(same, "\(String(decoding: changed, as: UTF8.self))")
            }
        }
    }
}

@Suite("Fields that are made to take time")
struct CostlyFieldTests {
    @Test("a dictionary of thousands of keys is read, and the last of equal keys counts")
    func keys() {
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        var text = ""
        var count = 0
        for a in letters {
            for b in letters {
                for c in letters.prefix(20) {
                    text += "\(a)\(b)\(c)=1,"
                    count += 1
                }
            }
        }
        let dictionary = StructuredField.dictionary(in: ["A": text + "aaa=2"], name: "A")
        #expect(dictionary?.count == count)
        let first = dictionary?.first { $0.key == "aaa" }
        #expect(first?.value == .item(.integer(2)))
    }
}
