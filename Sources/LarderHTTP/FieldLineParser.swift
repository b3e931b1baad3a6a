/// Reads field lines (RFC 9112 §5).
enum FieldLineParser {
    /// Finds name and value in one line.
    ///
    /// - Parameters:
    ///   - range: the line in `bytes`, without its end.
    ///   - base: where in `bytes` the field block begins; the record's offsets count from there.
    static func parse(
        _ bytes: Span<UInt8>, _ range: Range<Int>, base: Int
    ) throws(HeadError) -> Fields.Line {
        var colon = range.lowerBound
        while colon < range.upperBound, ASCII.isToken(bytes[colon]) {
            colon &+= 1
        }
        guard colon < range.upperBound, bytes[colon] == ASCII.colon else {
            throw self.nameError(bytes, range, offending: colon)
        }
        let nameLength = colon - range.lowerBound
        guard nameLength > 0 else {
            throw HeadError(.emptyFieldName, "a field line without a name")
        }
        guard nameLength <= Int(UInt16.max) else {
            throw HeadError(.headTooLarge, "a field name longer than 65535 bytes")
        }
        let value = try self.value(in: bytes, colon &+ 1..<range.upperBound)
        return Fields.Line(
            known: KnownField(matching: bytes.extracting(range.lowerBound..<colon)),
            nameStart: UInt32(clamping: range.lowerBound - base),
            nameLength: UInt16(clamping: nameLength),
            valueStart: UInt32(clamping: value.lowerBound - base),
            valueLength: UInt32(clamping: value.count))
    }

    /// The value without the white space around it.
    private static func value(
        in bytes: Span<UInt8>, _ range: Range<Int>
    ) throws(HeadError) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ASCII.isOWS(bytes[start]) { start &+= 1 }
        while end > start, ASCII.isOWS(bytes[end &- 1]) { end &-= 1 }
        guard bytes.areFieldValue(start..<end) else {
            throw HeadError(.badFieldValue, "a control character in a field value")
        }
        return start..<end
    }

    private static func nameError(
        _ bytes: Span<UInt8>, _ range: Range<Int>, offending: Int
    ) -> HeadError {
        guard let colon = bytes.firstIndex(of: ASCII.colon, in: offending..<range.upperBound)
        else { return HeadError(.missingColon, "a field line without a colon") }
        for i in offending..<colon where !ASCII.isOWS(bytes[i]) {
            return HeadError(.badFieldName, "a field name that is not a token")
        }
        // RFC 9112 §5.1: a server MUST reject it; what reads the name with the space on and what
        // reads it without see two different messages.
        return HeadError(.spaceBeforeColon, "white space between a field name and its colon")
    }
}
