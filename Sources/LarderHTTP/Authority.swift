/// A host and perhaps a port: what `Host`, CONNECT and a URI's authority say (RFC 9110 §4.2, §7.2).
///
/// Stricter than the grammar of RFC 3986 §3.2.2, which lets a name hold nearly anything: a name is
/// made of letters, digits, `-`, `.`, `_` and `~`, at most 255 of them. What else could stand
/// there (`%`, sub-delims, octal or shortened IPv4 numbers) is read differently by different
/// resolvers, so that access rules and the connection would speak of different hosts.
package struct Authority: Hashable, Sendable {
    /// Lower case; an IPv6 address in brackets, in the form of RFC 5952.
    package let host: String
    /// Nil where it is absent or empty.
    package let port: UInt16?

    /// Reads `host`, `host:` or `host:port`.
    package init(parsing bytes: Span<UInt8>) throws(HeadError) {
        let hostEnd: Int
        if bytes.count > 0, bytes[0] == UInt8(ascii: "[") {
            guard let close = bytes.firstIndex(of: UInt8(ascii: "]"), in: 0..<bytes.count),
                let address = IPv6Literal(parsing: bytes.extracting(1..<close))
            else {
                throw HeadError(.badHost, "what stands in brackets is no IPv6 address")
            }
            self.host = "[\(address.text)]"
            hostEnd = close + 1
        } else {
            hostEnd =
                bytes.firstIndex(of: ASCII.colon, in: 0..<bytes.count) ?? bytes.count
            try Self.checkName(bytes.extracting(0..<hostEnd))
            self.host = bytes.lowercasedText(0..<hostEnd)
        }
        guard hostEnd < bytes.count else {
            self.port = nil
            return
        }
        guard bytes[hostEnd] == ASCII.colon else {
            throw HeadError(.badHost, "something other than a port follows the host")
        }
        self.port = try Self.port(bytes.extracting(hostEnd + 1..<bytes.count))
    }

    /// Where the port stands in an authority that begins with these bytes of a valid host, and ends
    /// with them or goes on with a colon; nil where it does not.
    static func place(ofPortIn bytes: Span<UInt8>, behind host: Span<UInt8>) -> Range<Int>? {
        guard bytes.count >= host.count else { return nil }
        for i in host.indices where bytes[i] != host[i] { return nil }
        if bytes.count == host.count { return bytes.count..<bytes.count }
        return bytes[host.count] == ASCII.colon ? host.count + 1..<bytes.count : nil
    }

    private static func checkName(_ name: Span<UInt8>) throws(HeadError) {
        guard name.count > 0, name.count <= 255 else {
            throw HeadError(.badHost, "the host is empty or longer than 255 bytes")
        }
        for i in name.indices {
            guard self.isNameByte(name[i]) else {
                throw HeadError(.badHost, "the host holds a character that no host name has")
            }
        }
        guard !self.endsInNumber(name) || IPv4Literal.isValid(name) else {
            throw HeadError(.badHost, "the host ends in a number but is no IPv4 address")
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default:
            false
        }
    }

    /// Whether a resolver would take the name for an IPv4 address: its last label, a final dot set
    /// aside, is a number (decimal, or hexadecimal with `0x`).
    private static func endsInNumber(_ name: Span<UInt8>) -> Bool {
        var end = name.count
        if name[end - 1] == UInt8(ascii: ".") { end -= 1 }
        var start = end
        while start > 0, name[start - 1] != UInt8(ascii: ".") { start -= 1 }
        guard start < end else { return false }
        let label = name.extracting(start..<end)
        if label.count >= 2, label[0] == UInt8(ascii: "0"), label[1] | 0x20 == UInt8(ascii: "x") {
            return (2..<label.count).allSatisfy { ASCII.hexDigit(label[$0]) != nil }
        }
        return label.indices.allSatisfy { ASCII.isDigit(label[$0]) }
    }

    /// A port of decimal digits; nil where there are none (RFC 3986 §3.2.3).
    static func port(_ digits: Span<UInt8>) throws(HeadError) -> UInt16? {
        guard digits.count > 0 else { return nil }
        var value: UInt32 = 0
        for i in digits.indices {
            guard ASCII.isDigit(digits[i]) else {
                throw HeadError(.badPort, "the port is not a number")
            }
            value = value &* 10 &+ UInt32(digits[i] &- 0x30)
            guard value <= 65_535 else {
                throw HeadError(.badPort, "the port is above 65535")
            }
        }
        guard value > 0 else { throw HeadError(.badPort, "port 0 cannot be connected to") }
        return UInt16(truncatingIfNeeded: value)
    }
}
