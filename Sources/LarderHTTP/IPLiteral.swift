/// IPv4 addresses in text.
enum IPv4Literal {
    /// The address, where the text is four decimal numbers without leading zeros (RFC 3986 §3.2.2).
    static func parse(_ text: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var parts = 0
        var part: UInt32 = 0
        var digits = 0
        for i in 0...text.count {
            if i == text.count || text[i] == UInt8(ascii: ".") {
                guard digits > 0, parts < 4 else { return nil }
                address = address &<< 8 | part
                parts += 1
                (part, digits) = (0, 0)
                continue
            }
            guard ASCII.isDigit(text[i]), digits == 0 || part > 0 else { return nil }
            part = part &* 10 &+ UInt32(text[i] &- 0x30)
            digits += 1
            guard part <= 255 else { return nil }
        }
        return parts == 4 ? address : nil
    }

    static func isValid(_ text: Span<UInt8>) -> Bool { self.parse(text) != nil }
}

/// An IPv6 address (RFC 4291 §2.2), without a zone: a zone means something on one machine only.
struct IPv6Literal: Equatable {
    private var groups: [8 of UInt16] = [0, 0, 0, 0, 0, 0, 0, 0]

    static func == (a: IPv6Literal, b: IPv6Literal) -> Bool {
        a.groups.indices.allSatisfy { a.groups[$0] == b.groups[$0] }
    }

    init?(parsing text: Span<UInt8>) {
        guard text.count >= 2, text.count <= 45 else { return nil }
        var count = 0
        var gap: Int?
        var i = 0
        if text[0] == ASCII.colon {
            guard text[1] == ASCII.colon else { return nil }
            gap = 0
            i = 2
        }
        while i < text.count {
            guard count < 8 else { return nil }
            let end = text.firstIndex(of: ASCII.colon, in: i..<text.count) ?? text.count
            if end == text.count, text.firstIndex(of: UInt8(ascii: "."), in: i..<end) != nil {
                guard count <= 6, let quad = IPv4Literal.parse(text.extracting(i..<end)) else {
                    return nil
                }
                self.groups[count] = UInt16(truncatingIfNeeded: quad &>> 16)
                self.groups[count + 1] = UInt16(truncatingIfNeeded: quad)
                count += 2
                break
            }
            guard let group = Self.group(text.extracting(i..<end)) else { return nil }
            self.groups[count] = group
            count += 1
            guard end < text.count else { break }
            i = end + 1
            guard i < text.count else { return nil }  // A colon alone at the end.
            if text[i] == ASCII.colon {
                guard gap == nil else { return nil }
                gap = count
                i += 1
            }
        }
        guard let gap else {
            if count != 8 { return nil }
            return
        }
        guard count < 8 else { return nil }
        self.open(gap: gap, of: count)
    }

    /// Moves the groups after the `::` to the end.
    private mutating func open(gap: Int, of count: Int) {
        for k in 0..<count - gap {
            self.groups[7 - k] = self.groups[count - 1 - k]
        }
        for k in gap..<gap + 8 - count {
            self.groups[k] = 0
        }
    }

    private static func group(_ digits: Span<UInt8>) -> UInt16? {
        guard digits.count >= 1, digits.count <= 4 else { return nil }
        var value: UInt16 = 0
        for i in digits.indices {
            guard let digit = ASCII.hexDigit(digits[i]) else { return nil }
            value = value &<< 4 | UInt16(digit)
        }
        return value
    }

    /// The one form of RFC 5952 §4: lower case, no leading zeros, the longest run of zero groups
    /// shortened (the first of equals).
    var text: String {
        var best = 0..<0
        var i = 0
        while i < 8 {
            guard self.groups[i] == 0 else {
                i += 1
                continue
            }
            let start = i
            while i < 8, self.groups[i] == 0 { i += 1 }
            if i - start > max(1, best.count) { best = start..<i }
        }
        func joined(_ range: Range<Int>) -> String {
            range.map { String(self.groups[$0], radix: 16) }.joined(separator: ":")
        }
        if best.isEmpty { return joined(0..<8) }
        return joined(0..<best.lowerBound) + "::" + joined(best.upperBound..<8)
    }
}
