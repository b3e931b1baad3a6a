/// Structured fields (RFC 9651): dictionaries and lists, parsed strictly.
///
/// An error anywhere makes the whole field invalid, as §4.2 demands. Parameters are parsed, so that
/// their errors are seen, and dropped: no field that Larder reads has any that matter.
package enum StructuredField {
    /// A bare item (§3.3).
    package enum BareItem: Sendable, Equatable {
        case integer(Int64)
        case decimal(Double)
        case string(String)
        case token(String)
        case bytes(String)
        case boolean(Bool)
        case date(Int64)
        case displayString(String)
    }

    /// A member of a list or a dictionary.
    package enum Member: Sendable, Equatable {
        case item(BareItem)
        case innerList([BareItem])
    }

    /// The dictionary that all lines of this name make up, in order; a repeated key keeps its last
    /// value (§4.2.2).
    ///
    /// nil where there is no line, or where it is malformed.
    package static func dictionary(
        in fields: Fields, name: FieldName
    ) -> [(key: String, value: Member)]? {
        guard var parser = StructuredFieldParser(fields, name: name) else { return nil }
        return parser.dictionary()
    }

    /// The list that all lines of this name make up (§4.2.1).
    ///
    /// nil where there is no line, or where it is malformed.
    package static func list(in fields: Fields, name: FieldName) -> [Member]? {
        guard var parser = StructuredFieldParser(fields, name: name) else { return nil }
        return parser.list()
    }
}

/// The parser of RFC 9651 §4.2.
///
/// Each method takes its construct off the front, or yields nil.
struct StructuredFieldParser {
    private var rest: FieldValue

    /// Nil where there is no line.
    ///
    /// Lines are joined with a comma first (§4.2).
    init?(_ fields: Fields, name: FieldName) {
        let values = fields.values(name)
        guard !values.isEmpty else { return nil }
        self.rest = Array(values.joined(separator: [ASCII.comma, ASCII.space]))[...]
    }

    mutating func dictionary() -> [(key: String, value: StructuredField.Member)]? {
        var members: [(key: String, value: StructuredField.Member)] = []
        // Where each key stands: a field may hold thousands, and a search for each among all took
        // the better part of a second.
        var places: [String: Int] = [:]
        let ok = self.members { parser in
            guard let key = parser.key() else { return false }
            var value = StructuredField.Member.item(.boolean(true))
            if parser.skip(ASCII.equals) {
                guard let given = parser.member() else { return false }
                value = given
            } else if !parser.parameters() {
                return false
            }
            if let place = places[key] {
                members[place].value = value
            } else {
                places[key] = members.count
                members.append((key, value))
            }
            return true
        }
        return ok ? members : nil
    }

    mutating func list() -> [StructuredField.Member]? {
        var members: [StructuredField.Member] = []
        let ok = self.members { parser in
            guard let member = parser.member() else { return false }
            members.append(member)
            return true
        }
        return ok ? members : nil
    }

    /// The frame that lists and dictionaries share: no comma at the end, none doubled.
    private mutating func members(_ next: (inout Self) -> Bool) -> Bool {
        self.rest = self.rest.drop { $0 == ASCII.space }
        while !self.rest.isEmpty {
            guard next(&self) else { return false }
            self.rest = self.rest.drop(while: ASCII.isOWS)
            if self.rest.isEmpty { return true }
            guard self.skip(ASCII.comma) else { return false }
            self.rest = self.rest.drop(while: ASCII.isOWS)
            if self.rest.isEmpty { return false }
        }
        return true
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard self.rest.first == byte else { return false }
        self.rest = self.rest.dropFirst()
        return true
    }

    private mutating func key() -> String? {
        guard let first = self.rest.first, first == UInt8(ascii: "*") || first.isLowercaseLetter
        else { return nil }
        let key = self.rest.prefix {
            $0.isLowercaseLetter || ASCII.isDigit($0) || "_-.*".utf8.contains($0)
        }
        self.rest = self.rest[key.endIndex...]
        return String(decoding: key, as: UTF8.self)
    }

    private mutating func parameters() -> Bool {
        while self.skip(ASCII.semicolon) {
            self.rest = self.rest.drop { $0 == ASCII.space }
            guard self.key() != nil else { return false }
            if self.skip(ASCII.equals), self.bareItem() == nil { return false }
        }
        return true
    }

    private mutating func member() -> StructuredField.Member? {
        if self.rest.first == UInt8(ascii: "(") { return self.innerList() }
        guard let item = self.bareItem(), self.parameters() else { return nil }
        return .item(item)
    }

    private mutating func innerList() -> StructuredField.Member? {
        self.rest = self.rest.dropFirst()
        var items: [StructuredField.BareItem] = []
        while true {
            self.rest = self.rest.drop { $0 == ASCII.space }
            if self.skip(UInt8(ascii: ")")) { return self.parameters() ? .innerList(items) : nil }
            guard let item = self.bareItem(), self.parameters() else { return nil }
            items.append(item)
            guard self.rest.first == ASCII.space || self.rest.first == UInt8(ascii: ")") else {
                return nil
            }
        }
    }

    private mutating func bareItem() -> StructuredField.BareItem? {
        guard let first = self.rest.first else { return nil }
        switch first {
        case UInt8(ascii: "-"), 0x30...0x39: return self.number()
        case ASCII.quote: return self.string().map { .string($0) }
        case UInt8(ascii: "*"), 0x41...0x5A, 0x61...0x7A: return self.token()
        case ASCII.colon: return self.byteSequence()
        case UInt8(ascii: "?"): return self.boolean()
        case UInt8(ascii: "@"):
            self.rest = self.rest.dropFirst()
            guard case .integer(let seconds)? = self.number() else { return nil }
            return .date(seconds)
        case UInt8(ascii: "%"):
            self.rest = self.rest.dropFirst()
            return self.string().map { .displayString($0) }
        default: return nil
        }
    }

    /// §4.2.4: at most 15 digits, or 12 and up to three after the point.
    private mutating func number() -> StructuredField.BareItem? {
        let negative = self.skip(UInt8(ascii: "-"))
        let whole = self.rest.prefix(while: ASCII.isDigit)
        self.rest = self.rest[whole.endIndex...]
        guard (1...15).contains(whole.count) else { return nil }
        // Fifteen digits fit.
        let value = whole.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        guard self.rest.first == UInt8(ascii: ".") else {
            return .integer(negative ? -value : value)
        }
        self.rest = self.rest.dropFirst()
        let fraction = self.rest.prefix(while: ASCII.isDigit)
        self.rest = self.rest[fraction.endIndex...]
        guard whole.count <= 12, (1...3).contains(fraction.count) else { return nil }
        var scale = 1.0
        var decimal = Double(value)
        for digit in fraction {
            scale /= 10
            decimal += Double(digit - 0x30) * scale
        }
        return .decimal(negative ? -decimal : decimal)
    }

    private mutating func string() -> String? {
        guard self.skip(ASCII.quote) else { return nil }
        var content: [UInt8] = []
        while let byte = self.rest.popFirst() {
            switch byte {
            case ASCII.quote: return String(decoding: content, as: UTF8.self)
            case ASCII.backslash:
                guard let next = self.rest.popFirst(),
                    next == ASCII.quote || next == ASCII.backslash
                else { return nil }
                content.append(next)
            case 0x20...0x7E: content.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func token() -> StructuredField.BareItem {
        let token = self.rest.prefix {
            ASCII.isToken($0) || $0 == ASCII.colon || $0 == UInt8(ascii: "/")
        }
        self.rest = self.rest[token.endIndex...]
        return .token(String(decoding: token, as: UTF8.self))
    }

    private mutating func byteSequence() -> StructuredField.BareItem? {
        self.rest = self.rest.dropFirst()
        guard let end = self.rest.firstIndex(of: ASCII.colon) else { return nil }
        let coded = self.rest[self.rest.startIndex..<end]
        guard coded.allSatisfy({ $0.isBase64 }) else { return nil }
        self.rest = self.rest[(end + 1)...]
        return .bytes(String(decoding: coded, as: UTF8.self))
    }

    private mutating func boolean() -> StructuredField.BareItem? {
        self.rest = self.rest.dropFirst()
        if self.skip(UInt8(ascii: "1")) { return .boolean(true) }
        if self.skip(UInt8(ascii: "0")) { return .boolean(false) }
        return nil
    }
}

extension UInt8 {
    fileprivate var isLowercaseLetter: Bool { self &- 0x61 < 26 }

    fileprivate var isBase64: Bool {
        ASCII.lowercased(self).isLowercaseLetter || ASCII.isDigit(self)
            || "+/=".utf8.contains(self)
    }
}
