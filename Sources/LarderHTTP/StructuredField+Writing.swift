/// Bare items of structured fields (RFC 9651 §3.3), written.
extension StructuredField {
    /// Whether a text is an `sf-token` (§3.3.4).
    package static func isToken(_ text: String) -> Bool {
        let bytes = text.utf8.span
        guard !bytes.isEmpty else { return false }
        let isLetter = ASCII.lowercased(bytes[0]) &- UInt8(ascii: "a") < 26
        guard isLetter || bytes[0] == UInt8(ascii: "*") else { return false }
        for i in bytes.indices {
            let byte = bytes[i]
            guard ASCII.isToken(byte) || byte == ASCII.colon || byte == UInt8(ascii: "/") else {
                return false
            }
        }
        return true
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
