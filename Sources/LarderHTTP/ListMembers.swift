/// The members of a comma-separated list (RFC 9110 §5.6.1), one field line at a time.
///
/// White space around a member is removed and empty members are left out, as §5.6.1.2 demands of a
/// recipient. A comma inside a quoted string does not separate (§5.6.4). A quoted string that never
/// ends reaches to the end of its line: the next line begins anew.
package struct ListMembers: Sequence, IteratorProtocol, Sendable {
    private var rest: FieldValue
    /// The last member taken had a quoted string that never ended, which may have swallowed others.
    package private(set) var endedInQuotes = false

    package init(_ line: FieldValue) {
        self.rest = line
    }

    package mutating func next() -> FieldValue? {
        while !self.rest.isEmpty {
            let end = Self.endOfMember(self.rest, &self.endedInQuotes)
            let member = self.rest[self.rest.startIndex..<end].trimmingOWS()
            self.rest = end < self.rest.endIndex ? self.rest[(end + 1)...] : []
            if !member.isEmpty { return member }
        }
        return nil
    }

    /// The index of the comma that ends the first member, or the end of the line.
    private static func endOfMember(_ line: FieldValue, _ endsInQuotes: inout Bool) -> Int {
        var quoted = false
        var index = line.startIndex
        while index < line.endIndex {
            switch line[index] {
            case ASCII.quote:
                quoted.toggle()
            case ASCII.backslash where quoted:
                index += 1  // The quoted byte is content, whatever it is.
            case ASCII.comma where !quoted:
                return index
            default:
                break
            }
            index += 1
        }
        endsInQuotes = quoted
        return line.endIndex
    }
}

extension Fields {
    /// The members of the list that all lines of this name make up (RFC 9110 §5.3).
    package func members(_ name: FieldName) -> [FieldValue] {
        var members: [FieldValue] = []
        for line in self.lines where self.matches(line, name) {
            members.append(contentsOf: ListMembers(self.value(of: line)))
        }
        return members
    }
}

extension ArraySlice<UInt8> {
    /// The slice without the optional white space around it (RFC 9110 §5.6.3).
    package func trimmingOWS() -> FieldValue {
        var slice = self
        while let byte = slice.first, ASCII.isOWS(byte) { slice.removeFirst() }
        while let byte = slice.last, ASCII.isOWS(byte) { slice.removeLast() }
        return slice
    }

    /// Whether the bytes are `lowercase`, ASCII case set aside.
    package func spells(_ lowercase: String) -> Bool {
        let other = lowercase.utf8
        guard self.count == other.count else { return false }
        return self.elementsEqual(other) { ASCII.lowercased($0) == $1 }
    }

    /// Whether the bytes are one token (RFC 9110 §5.6.2).
    package var isToken: Bool { !self.isEmpty && self.allSatisfy(ASCII.isToken) }

    /// The content of a quoted string that takes up the whole slice, its quoted pairs resolved
    /// (RFC 9110 §5.6.4); nil where it is anything else.
    package var unquoted: FieldValue? {
        guard self.count >= 2, self.first == ASCII.quote, self.last == ASCII.quote else {
            return nil
        }
        let inner = self[(self.startIndex + 1)..<(self.endIndex - 1)]
        guard inner.contains(where: { $0 == ASCII.backslash || $0 == ASCII.quote }) else {
            return inner
        }
        var content: [UInt8] = []
        var escaped = false
        for byte in inner {
            if !escaped, byte == ASCII.quote { return nil }
            if !escaped, byte == ASCII.backslash {
                escaped = true
                continue
            }
            content.append(byte)
            escaped = false
        }
        return escaped ? nil : content[...]
    }
}

/// `delta-seconds` and `Age` (RFC 9111 §1.2.2): digits only.
package enum DeltaSeconds {
    /// What a number too large to be a time stands for: 2^31 seconds, 68 years (§1.2.2).
    package static let limit: Int64 = 1 << 31

    /// The number that the digits spell, at most `limit`; nil for anything but digits.
    package static func parse(_ bytes: FieldValue) -> Duration? {
        guard !bytes.isEmpty else { return nil }
        var seconds: Int64 = 0
        for byte in bytes {
            guard ASCII.isDigit(byte) else { return nil }
            // Never above 2^31, so ten times it and nine more fit.
            seconds = min(Self.limit, seconds * 10 + Int64(byte - 0x30))
        }
        return .seconds(seconds)
    }
}
