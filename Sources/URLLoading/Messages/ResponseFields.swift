import LarderHTTP

/// The header fields of a response as the API gives them.
struct ResponseFields: Sendable {
    /// By the name that the API shows.
    let byName: [String: String]

    /// The fields of a response that was received.
    init(_ fields: Fields) {
        var byName: [String: String] = [:]
        byName.reserveCapacity(fields.count)
        // Names that keep their case may come in several.
        var kept: [String: String] = [:]
        for line in fields.lines {
            var name = Self.shown(String(decoding: fields.name(of: line), as: UTF8.self))
            if Self.isExtension(name) {
                name = kept[FieldName(name).lowercased, default: name]
                kept[FieldName(name).lowercased] = name
            }
            let value = Self.text(fields.value(of: line))
            byName[name] = byName[name].map { "\($0), \(value)" } ?? value
        }
        self.byName = byName
    }

    /// The fields of a response that a program made.
    init(_ fields: [String: String]) {
        var byName: [String: String] = [:]
        // In an order of their own, so that of two that differ in case alone always the same stays.
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) where !name.isEmpty {
            byName[Self.shown(name)] = value
        }
        self.byName = byName
    }

    func value(of name: String) -> String? {
        RequestFields.value(of: name, in: self.byName)
    }

    /// The value of a field straight from where it was received.
    static func value(of name: FieldName, in fields: Fields) -> String? {
        var joined: String?
        for line in fields.lines where fields.matches(line, name) {
            let value = self.text(fields.value(of: line))
            joined = joined.map { "\($0), \(value)" } ?? value
        }
        return joined
    }

    /// The value of `Content-Length` (RFC 9110 §8.6), also where it was repeated; -1: none that holds.
    static func contentLength(_ value: String?) -> Int64 {
        let values = value?.split(separator: ",", omittingEmptySubsequences: false) ?? []
        var length: Int64?
        for text in values {
            let digits = ArraySlice(text.utf8).trimmingOWS()
            guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit),
                let one = Int64(String(decoding: digits, as: UTF8.self)),
                length == nil || length == one
            else { return -1 }
            length = one
        }
        return length ?? -1
    }

    private static func isExtension(_ name: String) -> Bool {
        name.utf8.starts(with: "x-".utf8) || name.utf8.starts(with: "X-".utf8)
    }

    private static func shown(_ name: String) -> String {
        if self.isExtension(name) { return name }
        if RequestFields.isSame(name, "WWW-Authenticate") { return "WWW-Authenticate" }
        return RequestFields.capitalized(name)
    }

    /// UTF-8, and where it is none ISO 8859-1, which RFC 9110 §5.5 knows from older times.
    private static func text(_ bytes: FieldValue) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
