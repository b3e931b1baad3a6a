extension Fields {
    /// The elements of a list field (RFC 9110 §5.6.1): all lines of this name, split at commas
    /// outside quoted strings, white space trimmed, empty elements left out.
    ///
    /// - Parameter comments: whether parentheses are comments, whose commas do not split (`Via`).
    package func elements(_ name: FieldName, comments: Bool = false) -> [FieldValue] {
        var found: [FieldValue] = []
        for line in self.lines where self.matches(line, name) {
            Self.split(self.value(of: line), at: ASCII.comma, comments: comments, into: &found)
        }
        return found
    }

    /// Splits one value at a byte outside quoted strings (and comments); empty parts are left out.
    static func split(
        _ value: FieldValue, at separator: UInt8, comments: Bool = false,
        into found: inout [FieldValue]
    ) {
        var start = value.startIndex
        var isQuoted = false
        var isEscaped = false
        var depth = 0
        func take(upTo end: Int) {
            let element = ASCII.trimmed(value[start..<end])
            if !element.isEmpty { found.append(element) }
            start = end + 1
        }
        for i in value.indices {
            let byte = value[i]
            if isEscaped {
                isEscaped = false
            } else if byte == ASCII.backslash, isQuoted || depth > 0 {
                isEscaped = true
            } else if byte == ASCII.quote, depth == 0 {
                isQuoted.toggle()
            } else if comments, !isQuoted, byte == UInt8(ascii: "(") {
                depth += 1
            } else if depth > 0, byte == UInt8(ascii: ")") {
                depth -= 1
            } else if byte == separator, !isQuoted, depth == 0 {
                take(upTo: i)
            }
        }
        if start <= value.endIndex { take(upTo: value.endIndex) }
    }
}
