package import LarderHTTP

/// A domain as cookie files write it: perhaps with a dot before it, which says that the cookie is for
/// the names below it, too, and perhaps with a port behind it, which wget writes.
package struct CookieFileDomain {
    /// As a jar has it: lower case, no dot before it, no port behind it (RFC 6265bis §8.5: cookies
    /// know none), an IPv6 address in brackets and in the form of RFC 5952.
    package let name: String
    /// Whether a dot stood before it.
    package let hasDot: Bool

    /// Nil where it is empty or no host name in ASCII.
    package init?(_ text: FieldValue) {
        self.hasDot = text.first == UInt8(ascii: ".")
        let name = (self.hasDot ? text.dropFirst() : text).map(ASCII.lowercased)
        // A second dot would be taken for the mark of a domain when the file is written and read.
        guard let first = name.first, first != UInt8(ascii: ".") else { return nil }
        if first == UInt8(ascii: "[") || name.contains(ASCII.colon) {
            guard let host = Self.host(of: name) else { return nil }
            self.name = host
        } else {
            self.name = String(decoding: name, as: UTF8.self)
        }
        guard CookieRules.isDomain(self.name) else { return nil }
    }

    /// The host in `host:port`, in `[address]:port`, or in an IPv6 address without brackets, which
    /// has more than one colon.
    private static func host(of name: [UInt8]) -> String? {
        let isBare =
            name.first != UInt8(ascii: "[") && name.count { $0 == ASCII.colon } > 1
        let text = isBare ? [UInt8(ascii: "[")] + name + [UInt8(ascii: "]")] : name
        return (try? Authority(parsing: text.span))?.host
    }

    /// As curl and wget write and compare it: an IPv6 address without brackets.
    static func bare(_ domain: String) -> String {
        guard domain.hasPrefix("["), domain.hasSuffix("]") else { return domain }
        return String(domain.dropFirst().dropLast())
    }
}
