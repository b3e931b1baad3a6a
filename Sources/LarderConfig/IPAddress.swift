/// An IPv4 or IPv6 address.
///
/// An IPv4 address mapped into IPv6 (`::ffff:192.0.2.1`) is the IPv4 address: a listener on `[::]`
/// sees IPv4 clients so, and a rule for them must hold there too.
package struct IPAddress: Hashable, Sendable {
    package enum Family: Sendable { case v4, v6 }

    package let family: Family
    /// The address as a number; the upper 96 bits are zero for IPv4.
    package let value: UInt128

    package init(_ family: Family, _ value: UInt128) {
        if family == .v6, value >> 32 == 0xFFFF {
            self.family = .v4
            self.value = value & 0xFFFF_FFFF
        } else {
            self.family = family
            self.value = family == .v4 ? value & 0xFFFF_FFFF : value
        }
    }

    /// Reads `192.0.2.1` or `2001:db8::1` (RFC 4291 §2.2), without brackets or a zone.
    package init?(_ text: some StringProtocol) {
        if text.utf8.contains(UInt8(ascii: ":")) {
            guard let value = Self.version6(Substring(text)) else { return nil }
            self.init(.v6, value)
        } else {
            guard let value = Self.version4(Substring(text)) else { return nil }
            self.init(.v4, UInt128(value))
        }
    }

    /// The IPv4 address that a translator or a tunnel leads to instead: `64:ff9b::/96` (RFC 6052 §2.1),
    /// `2002::/16` (RFC 3056 §2), and the compatible addresses of old, `::/96` (RFC 4291 §2.5.5.1);
    /// empty for every other address.
    ///
    /// More than one in `64:ff9b:1::/48` (RFC 8215), where the network alone knows which part of the
    /// prefix its translator has.
    package var embedded: [IPAddress] {
        guard self.family == .v6 else { return [] }
        // `::` and `::1` are addresses of their own.
        if self.value >> 32 == 0x0064_FF9B << 64 || (self.value >> 32 == 0 && self.value > 1) {
            return [IPAddress(.v4, self.value)]
        }
        if self.value >> 112 == 0x2002 { return [IPAddress(.v4, self.value >> 80)] }
        return self.value >> 80 == 0x0064_FF9B_0001 ? self.translated : []
    }

    /// What prefixes of 96, 64, 56 and 48 bits have embedded (RFC 6052 §2.2: around the ninth byte,
    /// which is not used).
    private var translated: [IPAddress] {
        let high = self.value >> 64
        let by64: UInt128 = self.value >> 24 & 0xFFFF_FFFF
        let by56: UInt128 = high << 24 & 0xFF00_0000 | self.value >> 32 & 0xFF_FFFF
        let by48: UInt128 = high << 16 & 0xFFFF_0000 | self.value >> 40 & 0xFFFF
        // Nobody is reached at `0.0.0.0/8` by way of a translator (RFC 6890 §2.2.2), and of what is no
        // address most begin so.
        return [self.value & 0xFFFF_FFFF, by64, by56, by48].filter { $0 >> 24 != 0 }
            .map { IPAddress(.v4, $0) }
    }

    package var bitWidth: Int { self.family == .v4 ? 32 : 128 }

    private static func version4(_ text: Substring) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            // A leading zero is octal to some readers and decimal to others.
            guard part.utf8.count <= 3, part.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
                part.utf8.count == 1 || part.utf8.first != 0x30, let byte = UInt8(part)
            else { return nil }
            value = value << 8 | UInt32(byte)
        }
        return value
    }

    private static func version6(_ text: Substring) -> UInt128? {
        let bytes = Array(text.utf8)
        let gaps = bytes.indices.dropLast().filter { bytes[$0] == 0x3A && bytes[$0 + 1] == 0x3A }
        guard let gap = gaps.first else {
            guard let groups = Self.groups(text), groups.count == 8 else { return nil }
            return Self.joined(groups)
        }
        guard gaps.count == 1 else { return nil }
        let utf8 = text.utf8
        let at = utf8.index(utf8.startIndex, offsetBy: gap)
        let after = utf8.index(at, offsetBy: 2)
        guard let head = Self.groups(text[..<at], mayEndInVersion4: false),
            let tail = Self.groups(text[after...]), head.count + tail.count <= 7
        else { return nil }
        let zeros = [UInt16](repeating: 0, count: 8 - head.count - tail.count)
        return Self.joined(head + zeros + tail)
    }

    private static func groups(_ text: Substring, mayEndInVersion4: Bool = true) -> [UInt16]? {
        if text.isEmpty { return [] }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 8 else { return nil }
        var groups: [UInt16] = []
        for (index, part) in parts.enumerated() {
            if mayEndInVersion4, index == parts.count - 1, part.utf8.contains(UInt8(ascii: ".")) {
                guard let value = Self.version4(part) else { return nil }
                groups += [UInt16(value >> 16), UInt16(value & 0xFFFF)]
                continue
            }
            guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(Self.isHexDigit),
                let group = UInt16(part, radix: 16)
            else { return nil }
            groups.append(group)
        }
        return groups
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (byte >= 0x30 && byte <= 0x39) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66)
    }

    private static func joined(_ groups: [UInt16]) -> UInt128 {
        groups.reduce(0) { $0 << 16 | UInt128($1) }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical form (RFC 5952): lower case, the longest run of zero groups shortened.
    package var description: String {
        if self.family == .v4 {
            return (0..<4).map { String(UInt8(self.value >> (24 - 8 * $0) & 0xFF)) }
                .joined(separator: ".")
        }
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: self.value >> (112 - 16 * $0)) }
        let hex = groups.map { String($0, radix: 16) }
        guard let run = Self.longestZeroRun(groups) else { return hex.joined(separator: ":") }
        return hex[..<run.lowerBound].joined(separator: ":") + "::"
            + hex[run.upperBound...].joined(separator: ":")
    }

    private static func longestZeroRun(_ groups: [UInt16]) -> Range<Int>? {
        var best = 0..<0
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start > best.count { best = start..<end }
            start = max(end, start + 1)
        }
        return best.count >= 2 ? best : nil
    }
}
