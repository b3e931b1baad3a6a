import LarderHTTP
import NIOCore
import Testing

@Suite("Byte classes (RFC 9110 §5.5, §5.6)")
struct ASCIITests {
    @Test("tokens are made of the bytes that the RFC lists, of no other")
    func token() {
        let listed = Set(
            "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(ASCII.isToken(byte) == listed.contains(byte), "\(byte)")
        }
    }

    @Test("field values, digits, white space, case")
    func others() {
        for byte in UInt8.min...UInt8.max {
            let scalar = Unicode.Scalar(byte)
            #expect(ASCII.isFieldValue(byte) == (byte == 9 || (byte >= 32 && byte != 127)))
            #expect(
                ASCII.isDigit(byte) == ("0"..."9" as ClosedRange<Unicode.Scalar>).contains(scalar))
            #expect(ASCII.isOWS(byte) == (byte == 32 || byte == 9))
            let isUpper = (65...90).contains(byte)
            #expect(ASCII.lowercased(byte) == (isUpper ? byte + 32 : byte))
            let hex = byte < 128 ? Int(String(scalar), radix: 16) : nil
            #expect(ASCII.hexDigit(byte).map(Int.init) == hex)
        }
        let padded = Array(" \t a b\t".utf8)
        #expect(padded[...].trimmingOWS().elementsEqual("a b".utf8))
        #expect(Array(" \t".utf8)[...].trimmingOWS().isEmpty)
    }

    @Test(
        "a value is looked at as a whole, wherever what it may not hold stands",
        arguments: [UInt8(ascii: "a"), ASCII.tab, 0x80, 0xFF])
    func values(_ other: UInt8) {
        for place in 0..<20 {
            for byte in UInt8.min...UInt8.max {
                var value = [UInt8](repeating: other, count: 20)
                value[place] = byte
                let head = Array("HTTP/1.1 200 OK\r\nA: ".utf8) + value + Array("\r\n\r\n".utf8)
                let isTaken = (try? ResponseHeadParser.parse(block: head.span)) != nil
                #expect(isTaken == ASCII.isFieldValue(byte), "\(byte) at \(place)")
            }
        }
    }
}

@Suite("Field names (RFC 9110 §5.1)")
struct FieldNameTests {
    @Test("each known field is found by its name in any case", arguments: KnownField.allCases)
    func known(_ field: KnownField) {
        guard field != .other else {
            #expect(field.lowercased.isEmpty)
            return
        }
        let name = field.lowercased
        #expect(name.utf8.allSatisfy { ASCII.isToken($0) && ASCII.lowercased($0) == $0 })
        #expect(KnownField(lowercased: name) == field)
        #expect(FieldName(name.uppercased()).known == field)
        #expect(FieldName(field) == FieldName(name))
        #expect(FieldName(name + "x").known == .other)
        #expect(FieldName(String(name.dropLast())).known != field)
        let fields: Fields = [name.uppercased(): "v"]
        #expect(fields.lines.first?.known == field)
        #expect(fields.contains(FieldName(field)))
    }

    @Test(
        "a name with any other byte is another, but for the case of its letters",
        arguments: KnownField.allCases.filter { $0 != .other })
    func neighbours(_ field: KnownField) {
        let name = Array(field.lowercased.utf8)
        var wrong: [[UInt8]] = []
        for place in name.indices {
            for byte in UInt8.min...UInt8.max {
                var other = name
                other[place] = byte
                let isSame = ASCII.lowercased(byte) == name[place]
                if (KnownField(matching: other.span) == field) != isSame { wrong.append(other) }
            }
        }
        #expect(wrong.isEmpty)
    }

    @Test("no two known fields share a name")
    func distinct() {
        #expect(Set(KnownField.allCases.map(\.lowercased)).count == KnownField.allCases.count)
        // A `KnownFieldSet` has a bit for each.
        #expect(KnownField.allCases.allSatisfy { $0.rawValue < 128 })
    }

    @Test("others compare without regard to the case of ASCII letters")
    func others() {
        #expect(FieldName("X-Foo") == FieldName("x-fOO"))
        #expect(FieldName("X-Foo").hashValue == FieldName("x-fOO").hashValue)
        #expect(FieldName("X-Foo") != FieldName("X-Fop"))
        #expect(FieldName("").known == .other)
        #expect(FieldName(String(repeating: "a", count: 99)).known == .other)
        // The Kelvin sign is a K to Unicode, to HTTP it is none.
        #expect(FieldName("\u{212A}eep-alive").known == .other)
    }
}

@Suite("Field sections (RFC 9110 §5)")
struct FieldsTests {
    @Test("no name or value that is appended can end a line")
    func injection() throws {
        var fields = Fields()
        fields.append("A\r\nB: c", "x\r\nSet-Cookie: a=b\r\n\r\nbody\u{0}\u{7F}")
        fields.append("", " \t padded \t ")
        fields.append("É", "é")
        #expect(fields.pairs.map(\.name) == ["A--B--c", "-", "--"])
        #expect(fields.pairs.map(\.value) == ["x  Set-Cookie: a=b    body", "padded", "é"])
        let again = try trailerFields(fields.serialized())
        #expect(again == fields)
        // Known by the name that it has come to be.
        fields.append("Set Cookie", "a")
        fields.append("X", "\u{1}\t")
        #expect(fields.lines.suffix(2).map(\.known) == [.setCookie, .other])
        #expect(fields.pairs.last?.value == "")
    }

    @Test("lines are found, joined, replaced, removed; the others keep order and bytes")
    func changing() {
        var fields: Fields = ["A": "1", "Via": "x", "a": "2", "B": "3", "VIA": "y"]
        #expect(fields.string("a") == "1, 2")
        #expect(fields.string("c") == nil)
        #expect(fields.first("VIA")?.elementsEqual("x".utf8) == true)
        #expect(fields.values("via").count == 2)
        fields.set("Via", "z")
        #expect(fields.pairs.map { "\($0.name)=\($0.value)" } == ["A=1", "a=2", "B=3", "Via=z"])
        fields.remove("A")
        fields.remove("missing")
        #expect(fields == ["B": "3", "Via": "z"])
        fields.keep { _, line in line.known != .via }
        #expect(fields == ["b": "3"])
        #expect(fields != ["b": "4"] && fields != ["c": "3"] && fields != [:])
        let serialized = String(decoding: fields.serialized(), as: UTF8.self)
        #expect(serialized == "B: 3\r\n")
    }

    @Test("a line of another section is copied as it is")
    func copying() throws {
        let parsed = try trailerFields(wire("Name:  value \nVIA:\nX: \n"))
        var fields: Fields = ["First": "1"]
        fields.append(contentsOf: parsed)
        #expect(fields == ["First": "1", "Name": "value", "Via": "", "X": ""])
        #expect(fields.lines.map(\.known) == [.other, .other, .via, .other])
        #expect(try trailerFields(fields.serialized()) == fields)
    }

    @Test(
        "a line is written with one space before its value, however it was received",
        arguments: [
            "A: b\n", "A:b\n", "A:  b\n", "A: b \n", "A:\tb\n", "A:\n", "A: \n", "A:b\nC: d\n",
            "A: b\nC:d\nE: f\n",
        ])
    func spaces(_ text: String) throws {
        let parsed = try trailerFields(wire(text))
        let written = parsed.pairs.map { "\($0.name): \($0.value)\r\n" }.joined()
        #expect(String(decoding: parsed.serialized(), as: UTF8.self) == written)
        let kept = Fields(keeping: parsed, spareBytes: 0) { _ in true }
        #expect(kept == parsed)
        #expect(String(decoding: kept.bytes, as: UTF8.self) == written)
        let rest = Fields(keeping: parsed, spareBytes: 5) { $0.nameStart > 0 }
        #expect(rest.count == parsed.count - 1 && rest.serialized() == rest.bytes)
    }

    @Test("a copy does not change with its original")
    func valueSemantics() {
        var fields: Fields = ["A": "1", "B": "2"]
        let copy = fields
        fields.remove("A")
        fields.append("C", "3")
        #expect(copy == ["A": "1", "B": "2"])
        #expect(fields == ["B": "2", "C": "3"])
    }

    @Test("records from damaged storage are refused")
    func checking() {
        let good: Fields = ["Via": "x", "Y": "z"]
        #expect(Fields(checking: good.bytes, lines: good.lines) == good)
        #expect(Fields(checking: Array(good.bytes.dropLast(3)), lines: good.lines) == nil)
        #expect(Fields(checking: [], lines: good.lines) == nil)
        func line(_ known: KnownField, _ a: UInt32, _ b: UInt16, _ c: UInt32, _ d: UInt32) -> Bool {
            let record = Fields.Line(
                known: known, nameStart: a, nameLength: b, valueStart: c, valueLength: d)
            return Fields(checking: good.bytes, lines: [record]) != nil
        }
        #expect(line(.via, 0, 3, 5, 1))
        #expect(!line(.other, 0, 3, 5, 1))  // Wrong identity.
        #expect(!line(.via, 0, 0, 5, 1))  // No name.
        #expect(!line(.other, 0, 4, 5, 1))  // A colon in the name.
        #expect(!line(.via, 0, 3, 5, 3))  // A line end in the value.
        #expect(!line(.via, .max, .max, .max, .max))
        #expect(!line(.via, 0, 3, .max, .max))
    }
}

@Suite("Units saturate")
struct UnitTests {
    @Test("moments and durations from strangers never trap")
    func timestamps() {
        let first = Timestamp(microseconds: .min)
        let last = Timestamp(microseconds: .max)
        #expect(Timestamp(seconds: .max) == last && Timestamp(seconds: .min) == first)
        #expect(last + .seconds(1) == last && first + .seconds(-1) == first)
        #expect(first - .seconds(1) == first && last - .seconds(-1) == last)
        #expect(last + .seconds(Int64.max) == last && first - .seconds(Int64.max) == first)
        #expect((last - first).inMicroseconds == .max)
        #expect((first - last).inMicroseconds == .min)
        #expect(Timestamp(microseconds: -1).seconds == -1)
        #expect(Timestamp(microseconds: 1_999_999).seconds == 1)
        #expect(first.seconds < 0 && last.seconds > 0)
        #expect(Timestamp(seconds: 3) - Timestamp(seconds: 1) == .seconds(2))
        #expect(Duration.seconds(Int64.max).inMicroseconds == .max)
        #expect(Duration.seconds(Int64.min).inMicroseconds == .min)
        #expect(Duration.milliseconds(1500).inMicroseconds == 1_500_000)
        #expect(Duration.milliseconds(-1500).inSeconds == -1)
    }

    @Test(
        "sizes are readable",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (10 << 30, "10 GiB"),
            (UInt64.max, "16 EiB"),
        ] as [(UInt64, String)])
    func byteCounts(_ bytes: UInt64, _ text: String) {
        #expect(ByteCount(bytes).description == text)
    }

    @Test("sizes that no memory has become the largest index")
    func clamped() {
        #expect(ByteCount(.max).clamped == Int.max)
        #expect(ByteCount.kibibytes(2).clamped == 2048)
        #expect(ByteCount.mebibytes(1) < .gibibytes(1))
    }

    @Test("methods and versions")
    func methods() {
        #expect(Method.get.isSafe && !Method.post.isSafe && !Method(rawValue: "get").isSafe)
        #expect(Method.put.isIdempotent && !Method.patch.isIdempotent)
        #expect(HTTPVersion.http10 < .http11 && HTTPVersion.http11 < .http2)
        #expect(HTTPVersion.http11.viaName == "1.1" && HTTPVersion.http2.viaName == "2")
    }
}
