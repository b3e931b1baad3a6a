import Glibc
import LarderPolicy

/// A destination that no proxy leads to.
package struct ProxyException: Sendable {
    /// Who wrote it.
    package enum Style {
        /// `ExceptionsList`: a name is that host alone, `.name` what is below it, too.
        case list
        /// `no_proxy`: a name is that host and all below it.
        case suffixes
    }

    private enum Kind {
        case any
        case host(String)
        /// The host and all below it.
        case domain(String)
        case glob(Wildcard)
        case block(AddressBlock)
    }

    private let kind: Kind
    private let port: UInt16?

    /// nil: nothing that could be meant.
    package init?(_ text: String, style: Style) {
        var name = text.lowercased()[...]
        var port: UInt16?
        if let block = AddressBlock(name) {
            self.kind = .block(block)
            self.port = nil
            return
        }
        if let colon = name.lastIndex(of: ":"),
            let number = UInt16(name[name.index(after: colon)...])
        {
            port = number
            name = name[..<colon]
        }
        while name.hasSuffix(".") { name.removeLast() }
        let isBelow = name.hasPrefix(".")
        if isBelow { name.removeFirst() }
        guard !name.isEmpty else { return nil }
        self.port = port
        if name == "*" {
            self.kind = .any
        } else if let block = AddressBlock(name) {
            self.kind = .block(block)
        } else if name.contains("*") {
            self.kind = .glob(Wildcard(String(name)))
        } else {
            self.kind = isBelow || style == .suffixes ? .domain(String(name)) : .host(String(name))
        }
    }

    /// - Parameter host: in lower case, an IPv6 address in brackets.
    package func matches(host: String, port: UInt16) -> Bool {
        if let own = self.port, own != port { return false }
        let name = host.hasSuffix(".") ? host.dropLast() : host[...]
        switch self.kind {
        case .any: return true
        case .host(let own): return name == own
        case .domain(let own): return name == own || name.hasSuffix(".\(own)")
        case .glob(let glob): return glob.matches(Array(name.utf8))
        case .block(let block): return AddressBlock.bytes(name).map(block.contains) ?? false
        }
    }

    /// Whether it speaks of this machine by a name or an address that always leads there, be it among
    /// others.
    var isOfLoopback: Bool {
        switch self.kind {
        case .any: true
        case .host(let own), .domain(let own):
            own.hasSuffix(".localhost") || Self.loopbackNames.contains(own)
        case .glob(let glob):
            (Self.loopbackNames + ["127.0.0.1", "a.localhost"]).contains {
                glob.matches(Array($0.utf8))
            }
        case .block(let block): block.touchesLoopback
        }
    }

    /// RFC 6761 §6.3, and what Debian's `/etc/hosts` has.
    private static let loopbackNames = [
        "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback",
    ]

    /// Whether a host is a name without a dot.
    package static func isSimple(_ host: String) -> Bool {
        !host.contains(".") && AddressBlock.bytes(host[...]) == nil
    }
}

/// A block of addresses: `10.0.0.0/8`, also `169.254/16`, `fe80::/10`, one address.
struct AddressBlock: Sendable {
    private let address: [UInt8]
    private let bits: Int

    init?(_ text: Substring) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var name = parts[0]
        if parts.count == 2, !name.contains(":") {
            // Apple leaves out what is zero at the end.
            let given = name.split(separator: ".", omittingEmptySubsequences: false).count
            name += String(repeating: ".0", count: max(0, 4 - given))[...]
        }
        guard let address = Self.bytes(name) else { return nil }
        self.address = address
        guard parts.count == 2 else {
            self.bits = address.count * 8
            return
        }
        guard let bits = Int(parts[1]), (0...address.count * 8).contains(bits) else { return nil }
        self.bits = bits
    }

    /// Whether an address in it is one of loopback.
    var touchesLoopback: Bool {
        if self.address.count == 4, self.bits >= 8 { return self.address[0] == 127 }
        let zeros = [UInt8](repeating: 0, count: self.address.count - 2)
        return self.contains(self.address.count == 4 ? [127] + zeros + [1] : [0] + zeros + [1])
    }

    func contains(_ other: [UInt8]) -> Bool {
        guard other.count == self.address.count else { return false }
        for (i, (a, b)) in zip(self.address, other).enumerated() {
            let left = self.bits - i * 8
            if left <= 0 { return true }
            if left >= 8 {
                if a != b { return false }
            } else if (a ^ b) >> UInt8(8 - left) != 0 {
                return false
            }
        }
        return true
    }

    /// The bytes of an address in text, an IPv6 one perhaps in brackets; nil: it is a name.
    static func bytes(_ text: Substring) -> [UInt8]? {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let bare = String(isBracketed ? text.dropFirst().dropLast() : text)
        let isV6 = bare.contains(":")
        var bytes = [UInt8](repeating: 0, count: isV6 ? 16 : 4)
        let found = unsafe bytes.withUnsafeMutableBytes { room in
            unsafe inet_pton(isV6 ? AF_INET6 : AF_INET, bare, room.baseAddress)
        }
        return found == 1 ? bytes : nil
    }
}
