/// Bare items of structured fields (RFC 9651 §3.3), written.
extension StructuredField {
    /// Whether a text is an `sf-token` (§3.3.4).
    package static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first else { return false }
        let isLetter = ASCII.lowercased(first) &- UInt8(ascii: "a") < 26
        guard isLetter || first == UInt8(ascii: "*") else { return false }
        return text.utf8.allSatisfy {
            ASCII.isToken($0) || $0 == ASCII.colon || $0 == UInt8(ascii: "/")
        }
    }

    /// The text as an `sf-string` (§3.3.3): quoted, quotes and backslashes escaped.
    ///
    /// Each scalar that is not printable ASCII is replaced by a `?`.
    package static func string(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { out.unicodeScalars.append("\\") }
            let isPrintable = scalar.value >= 0x20 && scalar.value < 0x7F
            out.unicodeScalars.append(isPrintable ? scalar : "?")
        }
        return out + "\""
    }

    /// The text as a token where it is one, else as a string.
    package static func tokenOrString(_ text: String) -> String {
        self.isToken(text) ? text : self.string(text)
    }
}
