import LarderHTTP

/// A value with parameters behind semicolons, as in `Content-Type` and `Content-Disposition`.
///
/// Read leniently: a quoted string may stand anywhere, and a backslash takes the next character's
/// meaning away also outside of one. White space at both ends of a value goes, quoted or not.
struct ParameterizedValue {
    let value: String
    /// Names in lower case, in the order in which they came.
    private(set) var parameters: [(name: String, value: String)] = []

    init(_ text: String) {
        var parts = Self.parts(of: text)[...]
        self.value = Self.trimmed(parts.popFirst()?.text ?? [])
        for part in parts {
            guard let equals = part.equals else { continue }
            self.parameters.append(
                (
                    Self.trimmed(part.text[..<equals]).lowercased(),
                    Self.trimmed(part.text[(equals + 1)...])
                ))
        }
    }

    /// The value of the first parameter of this name that has one.
    func first(_ name: String) -> String? {
        self.parameters.first { $0.name == name && !$0.value.isEmpty }?.value
    }

    /// As a media type: in lower case, the first of several; nil where there is none.
    var mediaType: String? {
        let first = Self.trimmed(Array(self.value.utf8.prefix { $0 != ASCII.comma })[...])
        return first.isEmpty ? nil : first.lowercased()
    }

    private struct Part {
        var text: ArraySlice<UInt8> = []
        /// Where the first `=` outside of quotes lies.
        var equals: Int?
    }

    private static func parts(of text: String) -> [Part] {
        var parts: [Part] = []
        var part = Part()
        var isQuoted = false
        var isEscaped = false
        for byte in text.utf8 {
            switch byte {
            case _ where isEscaped:
                part.text.append(byte)
                isEscaped = false
            case ASCII.backslash:
                isEscaped = true
            case ASCII.quote:
                isQuoted.toggle()
            case ASCII.semicolon where !isQuoted:
                parts.append(part)
                part = Part()
            default:
                if byte == ASCII.equals, !isQuoted, part.equals == nil {
                    part.equals = part.text.endIndex
                }
                part.text.append(byte)
            }
        }
        parts.append(part)
        return parts
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.trimmingOWS(), as: UTF8.self)
    }
}
