package import LarderHTTP

/// A domain as cookie files write it: perhaps with a dot before it, which says that the cookie is for
/// the names below it, too.
package struct CookieFileDomain {
    /// As a jar has it: lower case, no dot before it, an IPv6 address in brackets.
    package let name: String
    /// Whether a dot stood before it.
    package let hasDot: Bool

    /// Nil where it is empty or no host name in ASCII.
    package init?(_ text: FieldValue) {
        self.hasDot = text.first == UInt8(ascii: ".")
        let name = (self.hasDot ? text.dropFirst() : text).map(ASCII.lowercased)
        // A second dot would be taken for the mark of a domain when the file is written and read.
        guard let first = name.first, first != UInt8(ascii: ".") else { return nil }
        self.name = Self.canonical(name[...])
        guard CookieRules.isDomain(self.name) else { return nil }
    }

    /// Without a port, which wget writes behind the host where it is not the scheme's; an IPv6
    /// address in brackets, which curl and wget leave out.
    private static func canonical(_ name: FieldValue) -> String {
        let isBracketed = name.first == UInt8(ascii: "[")
        if !isBracketed, name.count(where: { $0 == ASCII.colon }) > 1 {
            return "[\(String(decoding: name, as: UTF8.self))]"
        }
        guard let colon = name.lastIndex(of: ASCII.colon), colon > name.startIndex,
            !isBracketed || name[name.index(before: colon)] == UInt8(ascii: "]"),
            name[name.index(after: colon)...].allSatisfy(ASCII.isDigit)
        else { return String(decoding: name, as: UTF8.self) }
        return String(decoding: name[..<colon], as: UTF8.self)
    }

    /// As curl and wget write and compare it: an IPv6 address without brackets.
    static func bare(_ domain: String) -> String {
        guard domain.hasPrefix("["), domain.hasSuffix("]") else { return domain }
        return String(domain.dropFirst().dropLast())
    }
}
