import LarderHTTP

/// Field sections as they lie in a record: a table of line lengths, then the lines as on the wire.
///
/// ```
/// count │ (name length, value length) × count │ Name: value CRLF …
/// ```
enum FieldsCoding {
    static func append(_ fields: Fields, to out: inout [UInt8]) {
        out.append(littleEndian: UInt32(clamping: fields.count))
        out.append(addingCapacity: fields.count * 6) { table in
            for line in fields.lines {
                table.append(littleEndian: line.nameLength)
                table.append(littleEndian: line.valueLength)
            }
        }
        fields.serialize(into: &out)
    }

    /// The section in `bytes`, all of which it must take; nil where it does not stand to reason.
    ///
    /// Every byte is checked against the grammar again: a record that someone forged must not be
    /// able to split a message.
    static func decode(_ bytes: Span<UInt8>) -> Fields? {
        guard let count: UInt32 = bytes.littleEndian(0) else { return nil }
        let lineCount = Int(count)
        let (tableSize, overflow) = lineCount.multipliedReportingOverflow(by: 6)
        guard !overflow, tableSize <= bytes.count - 4 else { return nil }
        let start = 4 + tableSize
        var lines: [Fields.Line] = []
        lines.reserveCapacity(lineCount)
        var offset = 0
        for i in 0..<lineCount {
            guard let nameLength: UInt16 = bytes.littleEndian(4 + i * 6),
                let valueLength: UInt32 = bytes.littleEndian(6 + i * 6)
            else { return nil }
            let end = offset + Int(nameLength) + Int(valueLength) + 4
            guard nameLength > 0, end <= bytes.count - start else { return nil }
            let line = bytes.extracting(start + offset..<start + end)
            guard Self.isSound(line, nameLength: Int(nameLength)) else { return nil }
            let name = line.extracting(..<Int(nameLength))
            lines.append(
                Fields.Line(
                    known: KnownField(matching: name), nameStart: UInt32(clamping: offset),
                    nameLength: nameLength,
                    valueStart: UInt32(clamping: offset + Int(nameLength) + 2),
                    valueLength: valueLength))
            offset = end
        }
        guard start + offset == bytes.count, let wire = bytes.array(start, offset) else {
            return nil
        }
        return Fields(parsed: wire, lines: lines)
    }

    /// Where in a section the lines begin; nil where the table before them does not fit.
    static func startOfLines(_ section: Span<UInt8>) -> Int? {
        guard let count: UInt32 = section.littleEndian(0) else { return nil }
        let start = 4 + Int(count) * 6
        return start <= section.count ? start : nil
    }

    private static func isSound(_ line: Span<UInt8>, nameLength: Int) -> Bool {
        for i in 0..<nameLength where !ASCII.isToken(line[i]) { return false }
        let value = line.extracting(nameLength + 2..<line.count - 2)
        for i in value.indices where !ASCII.isFieldValue(value[i]) { return false }
        // No parser leaves white space around a value.
        if !value.isEmpty, ASCII.isOWS(value[0]) || ASCII.isOWS(value[value.count - 1]) {
            return false
        }
        return line[nameLength] == ASCII.colon && line[nameLength + 1] == ASCII.space
            && line[line.count - 2] == ASCII.cr && line[line.count - 1] == ASCII.lf
    }
}
