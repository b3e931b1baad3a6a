/// Segments of a path that an origin may resolve, so that it sees another path than is written.
package enum DotSegments {
    /// Whether a segment is `.` or `..` to some origin.
    ///
    /// Encoded dots and slashes count as what they stand for, a backslash as a slash; and a segment
    /// ends at its first `;`: Java's servers take the parameters away before they resolve it.
    package static func isIn(_ path: some Sequence<UInt8>) -> Bool {
        var rest = Array(path)[...]
        var dots = 0
        var isOther = false
        var hasParameters = false
        while let byte = rest.popFirst() {
            switch Self.decoded(byte, &rest) {
            case UInt8(ascii: "/"), ASCII.backslash:
                if !isOther, dots == 1 || dots == 2 { return true }
                (dots, isOther, hasParameters) = (0, false, false)
            case ASCII.semicolon: hasParameters = true
            case _ where hasParameters: break
            case UInt8(ascii: "."): dots += 1
            default: isOther = true
            }
        }
        return !isOther && (dots == 1 || dots == 2)
    }

    /// The byte that an escape at the front stands for.
    private static func decoded(_ byte: UInt8, _ rest: inout FieldValue) -> UInt8 {
        guard byte == UInt8(ascii: "%"), rest.count >= 2,
            let high = ASCII.hexDigit(rest[rest.startIndex]),
            let low = ASCII.hexDigit(rest[rest.startIndex + 1])
        else { return byte }
        rest = rest.dropFirst(2)
        return high << 4 | low
    }
}
