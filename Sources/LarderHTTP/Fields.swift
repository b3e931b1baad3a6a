/// The bytes of a field value: white space around it removed, otherwise as received.
package typealias FieldValue = ArraySlice<UInt8>

/// A field section: the header or trailer fields of one message, in order, byte for byte.
///
/// The lines lie in one buffer as they go over the wire (`Name: value` CRLF), each described by a
/// small record. So a section costs two allocations whatever the number of fields, keeps unknown
/// names with their case and repeats, and is written out by copying.
package struct Fields: Sendable {
    /// One field line: where its name and its value lie in the buffer.
    package struct Line: Sendable {
        package let known: KnownField
        package let nameLength: UInt16
        package let nameStart: UInt32
        package let valueStart: UInt32
        package let valueLength: UInt32

        package init(
            known: KnownField, nameStart: UInt32, nameLength: UInt16, valueStart: UInt32,
            valueLength: UInt32
        ) {
            self.known = known
            self.nameStart = nameStart
            self.nameLength = nameLength
            self.valueStart = valueStart
            self.valueLength = valueLength
        }

        /// Where its name lies.
        package var namePlace: Range<Int> {
            Int(self.nameStart)..<Int(self.nameStart) + Int(self.nameLength)
        }

        /// Where its value lies.
        package var valuePlace: Range<Int> {
            Int(self.valueStart)..<Int(self.valueStart) + Int(self.valueLength)
        }
    }

    /// Name, colon, value and line end of every line, perhaps with bytes between them that belong
    /// to no line.
    package private(set) var bytes: [UInt8]
    package private(set) var lines: [Line]

    package init() {
        self.bytes = []
        self.lines = []
    }

    /// A section whose lines were found by a parser in `bytes`.
    ///
    /// Every range must lie inside `bytes`, names must be tokens and values field values.
    package init(parsed bytes: [UInt8], lines: [Line]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// The lines of another section for which `isIncluded` says so, with room for others to be added
    /// without another copy.
    package init(
        _ other: Fields, spareBytes: Int, spareLines: Int,
        where isIncluded: (Fields, Line) -> Bool
    ) {
        self.init()
        self.bytes.reserveCapacity(other.bytes.count + spareBytes)
        self.bytes.append(contentsOf: other.bytes)
        self.lines.reserveCapacity(other.lines.count + spareLines)
        for line in other.lines where isIncluded(other, line) { self.lines.append(line) }
    }

    /// Copies only the lines that `isIncluded` accepts, into a buffer that holds nothing else.
    package init(keeping other: Fields, spareBytes: Int, where isIncluded: (Line) -> Bool) {
        self.init()
        // Room for one that is added, too.
        self.lines.reserveCapacity(other.lines.count + 1)
        var size = spareBytes
        for line in other.lines where isIncluded(line) {
            self.lines.append(line)
            size += Int(line.nameLength) + Int(line.valueLength) + 4
        }
        self.bytes.reserveCapacity(size)
        for i in self.lines.indices { self.lines[i] = self.copy(self.lines[i], of: other) }
    }

    /// Adds the bytes of another section's line, and says where they lie.
    private mutating func copy(_ line: Line, of other: Fields) -> Line {
        let nameStart = self.bytes.count
        let valueStart = nameStart + Int(line.nameLength) + 2
        other.serialize(line, into: &self.bytes)
        return Line(
            known: line.known, nameStart: UInt32(clamping: nameStart),
            nameLength: line.nameLength, valueStart: UInt32(clamping: valueStart),
            valueLength: line.valueLength)
    }

    /// A line with its end where it lies as it would be written: with one space before the value,
    /// and none behind it.
    package func whole(_ line: Line) -> Range<Int>? {
        let start = Int(line.nameStart)
        let nameEnd = start + Int(line.nameLength)
        let valueEnd = nameEnd + 2 + Int(line.valueLength)
        guard Int(line.valueStart) == nameEnd + 2, valueEnd + 2 <= self.bytes.count,
            self.bytes[nameEnd] == ASCII.colon, self.bytes[nameEnd + 1] == ASCII.space,
            self.bytes[valueEnd] == ASCII.cr, self.bytes[valueEnd + 1] == ASCII.lf
        else { return nil }
        return start..<valueEnd + 2
    }

    /// Whether no byte lies there that belongs to no line, as those of a removed one do.
    package var hasNothingBeside: Bool {
        self.lines.reduce(0) { $0 + (self.whole($1)?.count ?? 0) } == self.bytes.count
    }

    /// Whether this is a copy of another that neither has changed since; false says nothing of what they
    /// bear.
    package func isIdentical(to other: Fields) -> Bool {
        Self.isOne(self.bytes, other.bytes) && Self.isOne(self.lines, other.lines)
    }

    private static func isOne<Element>(_ one: [Element], _ other: [Element]) -> Bool {
        guard one.count == other.count else { return false }
        return unsafe one.withUnsafeBufferPointer { one in
            unsafe other.withUnsafeBufferPointer { unsafe $0.baseAddress == one.baseAddress }
        }
    }

    package var isEmpty: Bool { self.lines.isEmpty }
    package var count: Int { self.lines.count }

    // MARK: Reading

    /// The name of a line in the case in which it was received.
    package func name(of line: Line) -> FieldValue {
        self.bytes[line.namePlace]
    }

    package func value(of line: Line) -> FieldValue {
        self.bytes[line.valuePlace]
    }

    /// Whether `line` has this name, case set aside.
    package func matches(_ line: Line, _ name: FieldName) -> Bool {
        Self.matches(line, of: self.bytes, name)
    }

    private static func matches(_ line: Line, of bytes: [UInt8], _ name: FieldName) -> Bool {
        if line.known != name.known { return false }
        if line.known != .other { return true }
        let other = name.lowercased.utf8
        guard other.count == Int(line.nameLength) else { return false }
        let start = Int(line.nameStart)
        return bytes[start..<start + other.count].elementsEqual(other) {
            ASCII.lowercased($0) == $1
        }
    }

    package func contains(_ name: FieldName) -> Bool {
        // Mostly asked for a name that is one byte, and of lines that lack it.
        for line in self.lines where line.known == name.known {
            if line.known != .other || self.matches(line, name) { return true }
        }
        return false
    }

    /// Whether a line has this name, which is not `other`.
    package func has(_ name: KnownField) -> Bool {
        for line in self.lines where line.known == name { return true }
        return false
    }

    /// Whether a line here has the name of another section's line, case set aside.
    package func names(_ line: Line, of other: Fields) -> Bool {
        self.lines.contains { self.isSameName($0, as: line, of: other) }
    }

    private func isSameName(_ line: Line, as another: Line, of other: Fields) -> Bool {
        if line.known != another.known { return false }
        if line.known != .other { return true }
        return self.name(of: line).elementsEqual(other.name(of: another)) {
            ASCII.lowercased($0) == ASCII.lowercased($1)
        }
    }

    /// The value of the first line of this name.
    package func first(_ name: FieldName) -> FieldValue? {
        for line in self.lines where self.matches(line, name) {
            return self.value(of: line)
        }
        return nil
    }

    /// The values of all lines of this name, in order, one element a line.
    package func values(_ name: FieldName) -> [FieldValue] {
        var found: [FieldValue] = []
        for line in self.lines where self.matches(line, name) {
            found.append(self.value(of: line))
        }
        return found
    }

    /// All lines of this name joined with `, ` (RFC 9110 §5.3) as text; nil where there is none.
    ///
    /// Bytes that are not UTF-8 are replaced: for people and for fields that are ASCII.
    package func string(_ name: FieldName) -> String? {
        let values = self.values(name)
        guard !values.isEmpty else { return nil }
        return values.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", ")
    }

    /// Name (case as received) and value of every line, as text, in order.
    package var pairs: [(name: String, value: String)] {
        self.lines.map {
            (
                String(decoding: self.name(of: $0), as: UTF8.self),
                String(decoding: self.value(of: $0), as: UTF8.self)
            )
        }
    }

    // MARK: Changing

    /// Adds a line at the end.
    ///
    /// Bytes that a name or a value may not hold (RFC 9110 §5.1, §5.5) are replaced, a name's by
    /// `-` and a value's by a space, so that no caller can split a message in two. An empty name
    /// becomes `-`; white space around the value is left out, as a recipient would.
    package mutating func append(_ name: String, _ value: some Collection<UInt8>) {
        self.append(name.utf8.span, Array(value).span)
    }

    /// Adds a line at the end whose value is bytes in an array.
    package mutating func append(_ name: String, _ value: [UInt8]) {
        self.append(name.utf8.span, value.span)
    }

    package mutating func append(_ name: String, _ value: String) {
        self.append(name.utf8.span, value.utf8.span)
    }

    /// In one pass over bytes that lie in one block: three lines are added with every miss, and looking
    /// through them as collections took 1,800 instructions each.
    private mutating func append(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        let nameStart = self.bytes.count
        let nameLength = Swift.max(1, name.count)
        let text = Self.withoutSpaceAround(value)
        self.bytes.append(addingCapacity: nameLength + text.count + 4) { out in
            for i in name.indices {
                out.append(ASCII.isToken(name[i]) ? name[i] : UInt8(ascii: "-"))
            }
            if name.isEmpty { out.append(UInt8(ascii: "-")) }
            out.append(ASCII.colon)
            out.append(ASCII.space)
            if value.areFieldValue(text) {
                out.append(contentsOf: value.extracting(text))
            } else {
                for i in text {
                    out.append(ASCII.isFieldValue(value[i]) ? value[i] : ASCII.space)
                }
            }
            out.append(ASCII.cr)
            out.append(ASCII.lf)
        }
        // By what was written, which may be a name where what was given is none.
        let known = KnownField(
            matching: self.bytes.span.extracting(nameStart..<nameStart + nameLength))
        self.lines.append(
            Line(
                known: known, nameStart: UInt32(clamping: nameStart),
                nameLength: UInt16(clamping: nameLength),
                valueStart: UInt32(clamping: nameStart + nameLength + 2),
                valueLength: UInt32(clamping: text.count)))
    }

    /// Adds a line of a known field at the end, whose value is written where it stays.
    ///
    /// - Parameters:
    ///   - name: as it is written.
    ///   - most: at least as many bytes as the value has.
    ///   - write: writes a field value, with no white space around it.
    @inline(__always)
    package mutating func append(
        _ known: KnownField, named name: String, atMost most: Int,
        _ write: (inout OutputSpan<UInt8>) -> Void
    ) {
        let nameStart = self.bytes.count
        let valueStart = nameStart + name.utf8.count + 2
        self.bytes.append(addingCapacity: name.utf8.count + most + 4) { out in
            out.append(text: name)
            out.append(ASCII.colon)
            out.append(ASCII.space)
            write(&out)
            out.append(ASCII.cr)
            out.append(ASCII.lf)
        }
        let value = valueStart..<self.bytes.count - 2
        assert(self.bytes.span.areFieldValue(value), "not a field value")
        self.lines.append(
            Line(
                known: known, nameStart: UInt32(clamping: nameStart),
                nameLength: UInt16(clamping: name.utf8.count),
                valueStart: UInt32(clamping: valueStart),
                valueLength: UInt32(clamping: value.count)))
    }

    /// The bytes between the white space around them; a byte that no value may hold becomes such.
    private static func withoutSpaceAround(_ value: Span<UInt8>) -> Range<Int> {
        func isSpace(_ byte: UInt8) -> Bool { ASCII.isOWS(byte) || !ASCII.isFieldValue(byte) }
        var (start, end) = (0, value.count)
        while start < end, isSpace(value[start]) { start &+= 1 }
        while end > start, isSpace(value[end &- 1]) { end &-= 1 }
        return start..<end
    }

    /// Adds another section's line at the end, name in its own case.
    package mutating func append(_ line: Line, of other: Fields) {
        self.lines.append(self.copy(line, of: other))
    }

    package mutating func append(contentsOf other: Fields) {
        for line in other.lines { self.append(line, of: other) }
    }

    /// Replaces all lines of this name by one at the end.
    package mutating func set(_ name: String, _ value: String) {
        self.remove(FieldName(name))
        self.append(name, value)
    }

    package mutating func remove(_ name: FieldName) {
        // Most sections lack most names: then nothing is written, thus nothing copied.
        guard self.contains(name) else { return }
        let bytes = self.bytes
        self.lines.removeAll { Self.matches($0, of: bytes, name) }
    }

    /// Keeps the lines for which `isIncluded` says so.
    package mutating func keep(where isIncluded: (Fields, Line) -> Bool) {
        let copy = self
        guard let first = copy.lines.firstIndex(where: { !isIncluded(copy, $0) }) else { return }
        var kept: [Line] = []
        // Others are often added afterwards: in the room of what goes.
        kept.reserveCapacity(copy.lines.count)
        kept.append(contentsOf: copy.lines[..<first])
        for line in copy.lines[(first + 1)...] where isIncluded(copy, line) { kept.append(line) }
        self.lines = kept
    }

    // MARK: Writing

    /// The section as it goes over the wire, without the empty line that ends it.
    package func serialized() -> [UInt8] {
        var out: [UInt8] = []
        self.serialize(into: &out)
        return out
    }

    /// Appends the section as it goes over the wire, without the empty line that ends it.
    package func serialize(into out: inout [UInt8]) {
        out.reserveCapacity(out.count + self.bytes.count + self.lines.count)
        // Lines that lie one behind the other as they are to be written, as those of what is stored do,
        // go together.
        var run = 0..<0
        for line in self.lines {
            let whole = self.whole(line)
            if let whole, whole.lowerBound == run.upperBound {
                run = run.lowerBound..<whole.upperBound
                continue
            }
            out.append(contentsOf: self.bytes[run])
            run = whole ?? 0..<0
            if whole == nil { self.serialize(line, into: &out) }
        }
        out.append(contentsOf: self.bytes[run])
    }

    private func serialize(_ line: Line, into out: inout [UInt8]) {
        if let whole = self.whole(line) { return out.append(contentsOf: self.bytes[whole]) }
        out.append(contentsOf: self.name(of: line))
        out.append(ASCII.colon)
        out.append(ASCII.space)
        out.append(contentsOf: self.value(of: line))
        out.append(ASCII.cr)
        out.append(ASCII.lf)
    }
}

extension Fields: Equatable {
    /// Same names (case set aside) and same values in the same order.
    package static func == (a: Fields, b: Fields) -> Bool {
        guard a.lines.count == b.lines.count else { return false }
        return zip(a.lines, b.lines).allSatisfy { x, y in
            a.isSameName(x, as: y, of: b) && a.value(of: x) == b.value(of: y)
        }
    }
}

extension Fields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init()
        for (name, value) in elements { self.append(name, value) }
    }
}
