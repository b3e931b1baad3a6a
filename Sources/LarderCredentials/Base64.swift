/// Base 64 with the usual alphabet (RFC 4648 §4), which `token68` can hold.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    static func encode(_ octets: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity((octets.count + 2) / 3 * 4)
        for start in stride(from: 0, to: octets.count, by: 3) {
            let group = octets[start..<min(start + 3, octets.count)]
            var bits: UInt32 = 0
            for octet in group { bits = bits << 8 | UInt32(octet) }
            bits <<= UInt32(8 * (3 - group.count))
            for digit in 0..<4 {
                guard digit <= group.count else {
                    out.append(self.padding)
                    continue
                }
                out.append(self.alphabet[Int(bits >> UInt32(18 - 6 * digit) & 63)])
            }
        }
        return out
    }

    /// The octets, or nil where the text is anything but their one encoding: padding right, unused
    /// bits zero (RFC 4648 §3.5), so that no two texts mean the same.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let digits = text.prefix { $0 != self.padding }
        guard text.dropFirst(digits.count).allSatisfy({ $0 == self.padding }),
            text.count - digits.count <= 2
        else { return nil }
        var out: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            guard let value = self.value(digit) else { return nil }
            bits = (bits << 6 | value) & 0xFFFF
            count += 6
            if count >= 8 {
                count -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bits & ((1 << UInt32(count)) - 1) == 0 ? out : nil
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
