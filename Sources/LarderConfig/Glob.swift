/// A pattern over text: `*` stands for any run of characters, also none, and `?` for one.
///
/// Every other character stands for itself; nothing is special about `/` or `.`.
package struct Glob: Sendable, Hashable {
    package let pattern: String
    private let bytes: [UInt8]

    package init(_ pattern: String) {
        self.pattern = pattern
        self.bytes = Array(pattern.utf8)
    }

    /// Whether the whole of `text` fits.
    ///
    /// Works in place and in time bounded by the product of both lengths, whatever the pattern: on
    /// a mismatch only the latest `*` can usefully take one more byte.
    package func matches(_ text: some Sequence<UInt8>) -> Bool {
        let text = Array(text)
        var at = 0
        var place = 0
        var star: (pattern: Int, text: Int)?
        while at < text.count {
            if place < self.bytes.count, self.bytes[place] == UInt8(ascii: "*") {
                star = (place, at)
                place += 1
            } else if place < self.bytes.count,
                self.bytes[place] == UInt8(ascii: "?") || self.bytes[place] == text[at]
            {
                // A question mark takes a whole character, not one byte of it.
                at += self.bytes[place] == UInt8(ascii: "?") ? Self.width(text, at) : 1
                place += 1
            } else if let (pattern, from) = star {
                place = pattern + 1
                at = from + 1
                star = (pattern, at)
            } else {
                return false
            }
        }
        return self.bytes[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// Whether the whole of `text` fits.
    package func matches(_ text: String) -> Bool { self.matches(text.utf8) }

    /// Bytes of the character that begins at `at`: it and the UTF-8 continuation bytes after it.
    private static func width(_ text: [UInt8], _ at: Int) -> Int {
        var end = at + 1
        while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
        return end - at
    }
}
