/// Cuts the entries out of a HAR file (HTTP Archive 1.2), which is one JSON document: each member of
/// the array `entries` of the object `log`, as the bytes that it takes.
///
/// Looks at strings, brackets and keys alone, so that the file need never be held; what lies inside of
/// an entry is for whoever reads that. Holds one entry, bounded in size; one that is larger is passed
/// over and told.
package struct HARSplitter: Sendable {
    package enum Event: Sendable, Equatable {
        case entry([UInt8])
        /// An entry of this many bytes, more than are held.
        case tooLarge(UInt64)
        /// What follows is not read any more.
        case failed(Failure)
    }

    /// Why bytes are no HAR.
    package enum Failure: Error, Sendable, Equatable {
        /// What stands there can be no JSON.
        case malformed(offset: UInt64)
        case tooDeep(offset: UInt64)
    }

    private enum Bracket: Sendable { case object, array }

    /// The longest entry that an import holds: bytes of JSON, its content among them.
    package static let longestEntry = 64 << 20

    private static let deepest = 256
    private static let longestKey = 64

    private let limit: Int
    private var brackets: [Bracket] = []
    private var isInString = false
    private var isEscaped = false
    /// The string that was read last, where it may be a key that matters.
    private var text: [UInt8] = []
    /// The keys that lead to where it is, those of the two outermost objects.
    private var outer: [UInt8] = []
    private var inner: [UInt8] = []
    private var entry: [UInt8] = []
    private var entryLength: UInt64 = 0
    private var isInEntry = false
    private var hasBegun = false
    private var hasFailed = false
    /// Bytes read so far.
    package private(set) var position: UInt64 = 0

    /// - Parameter limit: bytes of an entry.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Whether the document is whole.
    package var isWhole: Bool {
        !self.hasFailed && self.hasBegun && self.brackets.isEmpty && !self.isInString
    }

    /// Takes bytes and answers what they complete; `.failed` is the last event of all.
    package mutating func push(_ bytes: some Sequence<UInt8>) -> [Event] {
        var events: [Event] = []
        if self.hasFailed { return events }
        do throws(Failure) {
            for byte in bytes {
                if let event = try self.take(byte) { events.append(event) }
                self.position += 1
            }
        } catch {
            self.hasFailed = true
            events.append(.failed(error))
        }
        return events
    }

    private mutating func take(_ byte: UInt8) throws(Failure) -> Event? {
        if self.isInEntry { self.keep(byte) }
        if self.isInString {
            self.inString(byte)
            return nil
        }
        switch byte {
        case UInt8(ascii: "\""):
            guard self.hasBegun, !self.brackets.isEmpty else {
                throw .malformed(offset: self.position)
            }
            self.isInString = true
            self.text = []
        case UInt8(ascii: "{"), UInt8(ascii: "["): try self.open(byte)
        case UInt8(ascii: "}"), UInt8(ascii: "]"): return try self.close(byte)
        case UInt8(ascii: ":"): self.noteKey()
        default:
            // A byte order mark and white space may stand before it, white space behind it.
            let isOutside = [0x20, 0x09, 0x0A, 0x0D].contains(byte)
            let isMark = !self.hasBegun && [0xEF, 0xBB, 0xBF].contains(byte)
            guard !self.brackets.isEmpty || isOutside || isMark else {
                throw .malformed(offset: self.position)
            }
        }
        return nil
    }

    private mutating func keep(_ byte: UInt8) {
        self.entryLength += 1
        if self.entry.count < self.limit { self.entry.append(byte) }
    }

    private mutating func inString(_ byte: UInt8) {
        if self.isEscaped {
            self.isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            self.isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            self.isInString = false
            return
        }
        if self.text.count <= Self.longestKey { self.text.append(byte) }
    }

    private mutating func noteKey() {
        if self.brackets == [.object] {
            self.outer = self.text
        } else if self.brackets == [.object, .object] {
            self.inner = self.text
        }
    }

    private var isInEntries: Bool {
        self.brackets == [.object, .object, .array]
            && self.outer.elementsEqual("log".utf8) && self.inner.elementsEqual("entries".utf8)
    }

    private mutating func open(_ byte: UInt8) throws(Failure) {
        guard !self.brackets.isEmpty || !self.hasBegun else {
            throw .malformed(offset: self.position)
        }
        guard self.brackets.count < Self.deepest else { throw .tooDeep(offset: self.position) }
        if byte == UInt8(ascii: "{"), !self.isInEntry, self.isInEntries {
            self.isInEntry = true
            self.entry = []
            self.entryLength = 0
            self.keep(byte)
        }
        self.hasBegun = true
        self.brackets.append(byte == UInt8(ascii: "{") ? .object : .array)
    }

    private mutating func close(_ byte: UInt8) throws(Failure) -> Event? {
        guard let last = self.brackets.popLast(),
            (last == .object) == (byte == UInt8(ascii: "}"))
        else { throw .malformed(offset: self.position) }
        guard self.isInEntry, self.brackets.count == 3 else { return nil }
        self.isInEntry = false
        defer { self.entry = [] }
        return self.entryLength <= UInt64(self.limit)
            ? .entry(self.entry) : .tooLarge(self.entryLength)
    }
}
