/// A pattern over bytes: `*` stands for any run of them, also none, and `?` for one character.
///
/// Every other character stands for itself; nothing is special about `/` or `.`.
package struct Wildcard: Sendable, Hashable {
    package let pattern: String
    private let bytes: [UInt8]

    package init(_ pattern: String) {
        self.pattern = pattern
        self.bytes = Array(pattern.utf8)
    }

    /// Whether the whole of `text` fits.
    ///
    /// Takes no memory, and time bounded by the product of both lengths: after a mismatch only the
    /// latest `*` can usefully take one more byte.
    package func matches(_ text: [UInt8]) -> Bool {
        var at = 0
        var place = 0
        var star: (place: Int, at: Int)?
        while at < text.count {
            let wanted = place < self.bytes.count ? self.bytes[place] : nil
            if wanted == UInt8(ascii: "*") {
                star = (place, at)
                place += 1
            } else if wanted == UInt8(ascii: "?") {
                place += 1
                at = Self.characterEnd(text, at)
            } else if wanted == text[at] {
                place += 1
                at += 1
            } else if let back = star {
                place = back.place + 1
                at = back.at + 1
                star = (back.place, at)
            } else {
                return false
            }
        }
        return self.bytes[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// Behind the character that begins at `at`: it and the UTF-8 continuation bytes after it.
    private static func characterEnd(_ text: [UInt8], _ at: Int) -> Int {
        var end = at + 1
        while end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
        return end
    }
}
