import LarderHTTP
package import NIOCore

/// An IP address as a number.
///
/// An IPv4 address inside IPv6 (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) is the IPv4 address, so that
/// no rule can be passed by writing it the other way.
package struct IPAddress: Hashable, Sendable {
    /// The address in its family's width: 32 or 128 bits.
    package let bits: UInt128
    package let isIPv4: Bool

    package init(v4 bits: UInt32) {
        self.bits = UInt128(bits)
        self.isIPv4 = true
    }

    package init(v6 bits: UInt128) {
        let isMapped = bits >> 32 == 0xFFFF
        self.bits = isMapped ? bits & 0xFFFF_FFFF : bits
        self.isIPv4 = isMapped
    }

    /// The IP address of a socket's address; nil for a Unix socket.
    package init?(_ address: SocketAddress) {
        // Family, port and address of `sockaddr_in`; family, port, flow and address of
        // `sockaddr_in6` (ip(7), ipv6(7)). Their fields' names belong to a module of NIO's own.
        let bytes = unsafe address.withSockAddr { pointer, size in
            unsafe Array(UnsafeRawBufferPointer(start: pointer, count: size))
        }
        switch address {
        case .v4 where bytes.count >= 8:
            self.init(v4: UInt32(truncatingIfNeeded: Self.number(bytes[4..<8])))
        case .v6 where bytes.count >= 24:
            self.init(v6: Self.number(bytes[8..<24]))
        case .v4, .v6, .unixDomainSocket:
            return nil
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt128 {
        bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    }

    /// The address that `text` writes, brackets around IPv6 allowed; nil for anything else.
    package init?(_ text: some StringProtocol) {
        var literal = String(text)
        if literal.hasPrefix("["), literal.hasSuffix("]") {
            literal = String(literal.dropFirst().dropLast())
        }
        guard let first = literal.utf8.first, ASCII.canBeginAddress(first),
            let address = try? SocketAddress(ipAddress: literal, port: 0)
        else { return nil }
        self.init(address)
    }

    /// An IPv4 address as text, however a socket wrote it; nil for IPv6.
    package var dotted: String? {
        guard self.isIPv4 else { return nil }
        return stride(from: 24, through: 0, by: -8)
            .map { String(UInt8(truncatingIfNeeded: self.bits >> $0)) }.joined(separator: ".")
    }

    package var isLoopback: Bool {
        self.isIPv4 ? self.bits >> 24 == 127 : self.bits == 1
    }

    /// `0.0.0.0` or `::`: every address of the machine.
    package var isUnspecified: Bool { self.bits == 0 }
}

extension ASCII {
    /// Only text that begins like an address is worth the system's parser.
    fileprivate static func canBeginAddress(_ byte: UInt8) -> Bool {
        self.isDigit(byte) || byte == self.colon || self.lowercased(byte) &- 0x61 < 6
    }
}
