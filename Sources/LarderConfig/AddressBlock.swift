/// A block of addresses: `192.0.2.0/24`, `2001:db8::/32`, or a single address.
package struct AddressBlock: Hashable, Sendable {
    package let base: IPAddress
    package let prefixLength: Int

    /// Reads a block (RFC 4632 §3.1); nil for junk and for a base with bits set below the prefix.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let base = parts.first.flatMap({ IPAddress($0) }) else {
            return nil
        }
        self.base = base
        guard parts.count == 2 else {
            self.prefixLength = base.bitWidth
            return
        }
        guard parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let length = Int(parts[1]),
            length <= base.bitWidth
        else { return nil }
        self.prefixLength = length
        guard base.value & ~Self.mask(length, of: base.bitWidth) == 0 else { return nil }
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.family == self.base.family
            && address.value & Self.mask(self.prefixLength, of: address.bitWidth) == self.base.value
    }

    static func mask(_ length: Int, of width: Int) -> UInt128 {
        let all: UInt128 = width == 32 ? 0xFFFF_FFFF : .max
        // Shifts by the full width give zero in Swift, so a prefix of 0 leaves nothing.
        return all << (width - length) & all
    }
}

extension AddressBlock: CustomStringConvertible {
    package var description: String {
        self.prefixLength == self.base.bitWidth
            ? self.base.description : "\(self.base)/\(self.prefixLength)"
    }
}
