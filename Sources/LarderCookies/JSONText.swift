import LarderHTTP

/// A value of a JSON text (RFC 8259), of a text from anywhere.
///
/// Read here because this module leans on nothing but HTTP's words. Of members of one name the last
/// counts; nesting has a limit, so that no text exhausts the stack.
enum JSONValue {
    case null
    case bool(Bool)
    /// Perhaps infinite, where the text names a number beyond all bounds.
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Where a text stops being JSON.
    struct Fault: Error, Equatable {
        /// Counts bytes from 0.
        let offset: Int
    }

    init(parsing text: [UInt8]) throws(Fault) {
        guard String(validating: text, as: UTF8.self) != nil else { throw Fault(offset: 0) }
        var reader = JSONReader(text: text)
        // Some editors write a byte order mark, which §8.1 lets a reader pass over.
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { reader.position = 3 }
        self = try reader.value(depth: 0)
        reader.skipSpace()
        guard reader.next == nil else { throw Fault(offset: reader.position) }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    var flag: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// Text as JSON writes it, in ASCII where it is more than letters to the eye: controls and what
    /// ends a line in some readers are escaped.
    static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": out += "\\\(scalar)"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

/// Reads a text from its start to its end; never outside of it.
private struct JSONReader {
    private static let depthLimit = 16

    let text: [UInt8]
    var position = 0

    init(text: [UInt8]) {
        self.text = text
    }

    var next: UInt8? { self.position < self.text.count ? self.text[self.position] : nil }
    var fault: JSONValue.Fault { JSONValue.Fault(offset: self.position) }

    mutating func skipSpace() {
        while let byte = self.next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
            self.position += 1
        }
    }

    /// Passes over one byte after white space, where it is this one.
    private mutating func skip(_ byte: UInt8) -> Bool {
        self.skipSpace()
        guard self.next == byte else { return false }
        self.position += 1
        return true
    }

    mutating func value(depth: Int) throws(JSONValue.Fault) -> JSONValue {
        guard depth <= Self.depthLimit else { throw self.fault }
        self.skipSpace()
        switch self.next {
        case UInt8(ascii: "{"): return try self.object(depth)
        case UInt8(ascii: "["): return try self.array(depth)
        case ASCII.quote: return .string(try self.string())
        case UInt8(ascii: "t"): return try self.word("true", .bool(true))
        case UInt8(ascii: "f"): return try self.word("false", .bool(false))
        case UInt8(ascii: "n"): return try self.word("null", .null)
        default: return .number(try self.number())
        }
    }

    private mutating func word(
        _ word: String, _ value: JSONValue
    ) throws(JSONValue.Fault) -> JSONValue {
        guard self.text[self.position...].starts(with: word.utf8) else { throw self.fault }
        self.position += word.utf8.count
        return value
    }

    private mutating func array(_ depth: Int) throws(JSONValue.Fault) -> JSONValue {
        self.position += 1
        var elements: [JSONValue] = []
        if self.skip(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            elements.append(try self.value(depth: depth + 1))
        } while self.skip(ASCII.comma)
        guard self.skip(UInt8(ascii: "]")) else { throw self.fault }
        return .array(elements)
    }

    private mutating func object(_ depth: Int) throws(JSONValue.Fault) -> JSONValue {
        self.position += 1
        var members: [String: JSONValue] = [:]
        if self.skip(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            self.skipSpace()
            guard self.next == ASCII.quote else { throw self.fault }
            let name = try self.string()
            guard self.skip(ASCII.colon) else { throw self.fault }
            members[name] = try self.value(depth: depth + 1)
        } while self.skip(ASCII.comma)
        guard self.skip(UInt8(ascii: "}")) else { throw self.fault }
        return .object(members)
    }

    // MARK: Numbers

    /// `[ "-" ] int [ frac ] [ exp ]` (§6).
    private mutating func number() throws(JSONValue.Fault) -> Double {
        let start = self.position
        if self.next == UInt8(ascii: "-") { self.position += 1 }
        let zero = self.next == UInt8(ascii: "0")
        guard try self.digits() == 1 || !zero else { throw self.fault }
        if self.next == UInt8(ascii: ".") {
            self.position += 1
            _ = try self.digits()
        }
        if self.next == UInt8(ascii: "e") || self.next == UInt8(ascii: "E") {
            self.position += 1
            if self.next == UInt8(ascii: "+") || self.next == UInt8(ascii: "-") {
                self.position += 1
            }
            _ = try self.digits()
        }
        let digits = String(decoding: self.text[start..<self.position], as: UTF8.self)
        guard let number = Double(digits) else { throw self.fault }
        return number
    }

    private mutating func digits() throws(JSONValue.Fault) -> Int {
        let start = self.position
        while let byte = self.next, ASCII.isDigit(byte) { self.position += 1 }
        guard self.position > start else { throw self.fault }
        return self.position - start
    }

    // MARK: Strings

    private mutating func string() throws(JSONValue.Fault) -> String {
        self.position += 1
        var bytes: [UInt8] = []
        while let byte = self.next {
            switch byte {
            case ASCII.quote:
                self.position += 1
                return String(decoding: bytes, as: UTF8.self)
            case ASCII.backslash:
                self.position += 1
                bytes += Array(String(try self.escaped()).utf8)
            case 0..<0x20:
                throw self.fault
            default:
                bytes.append(byte)
                self.position += 1
            }
        }
        throw self.fault
    }

    /// What follows a backslash.
    private mutating func escaped() throws(JSONValue.Fault) -> Unicode.Scalar {
        guard let byte = self.next else { throw self.fault }
        self.position += 1
        switch byte {
        case ASCII.quote, ASCII.backslash, UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try self.codePoint()
        default: throw self.fault
        }
    }

    /// The digits after `\u`, and those of the second half of a pair.
    private mutating func codePoint() throws(JSONValue.Fault) -> Unicode.Scalar {
        let unit = try self.fourDigits()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard (0xD800..<0xDC00).contains(unit),
            self.text[self.position...].starts(with: "\\u".utf8)
        else { throw self.fault }
        self.position += 2
        let second = try self.fourDigits()
        guard (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00))
        else { throw self.fault }
        return scalar
    }

    private mutating func fourDigits() throws(JSONValue.Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = self.next, let digit = ASCII.hexDigit(byte) else { throw self.fault }
            value = value << 4 | UInt32(digit)
            self.position += 1
        }
        return value
    }
}
