/// Reads a field section line by line up to the empty line that ends it (RFC 9112 §5, §7.1.2):
/// what the fields of a request and a trailer section have in common.
///
/// Strict: folded lines are refused (RFC 9112 §5.2).
struct FieldSectionParser: Sendable {
    /// Where the section begins in what `parse` is shown.
    private let start: Int
    /// Bytes that may pass, counted from the first byte shown, until the section must have ended.
    private let limit: Int
    private let fieldCount: Int
    private var lines: [Fields.Line] = []

    init(start: Int, limit: Int, fieldCount: Int) {
        self.start = start
        self.limit = limit
        self.fieldCount = fieldCount
        self.lines.reserveCapacity(Swift.min(16, fieldCount))
    }

    /// The section, when its empty line has come; nil when more bytes are needed.
    mutating func parse(
        _ bytes: Span<UInt8>, scanner: inout HeadScanner
    ) throws(HeadError) -> Fields? {
        let seen = bytes.extracting(first: self.limit)
        while let line = try scanner.nextLine(in: seen) {
            if line.isEmpty {
                return Fields(parsed: bytes.copy(self.start..<line.lowerBound), lines: self.lines)
            }
            guard self.lines.count < self.fieldCount else {
                throw HeadError(.tooManyFields, "too many field lines")
            }
            guard !ASCII.isOWS(bytes[line.lowerBound]) else {
                throw HeadError(.foldedLine, "a field line that begins with white space")
            }
            self.lines.append(try FieldLineParser.parse(bytes, line, base: self.start))
        }
        guard bytes.count < self.limit else {
            throw HeadError(.headTooLarge, "the field section is too large")
        }
        return nil
    }
}
