import LarderHTTP

/// A domain as cookie files write it: perhaps with a dot before it, which says that the cookie is for
/// the names below it, too.
struct CookieFileDomain {
    /// As a jar has it: lower case, no dot before it, an IPv6 address in brackets.
    let name: String
    let hasDot: Bool

    /// Nil where it is empty or no host name in ASCII.
    init?(_ text: FieldValue) {
        self.hasDot = text.first == UInt8(ascii: ".")
        let name = (self.hasDot ? text.dropFirst() : text).map(ASCII.lowercased)
        // A second dot would be taken for the mark of a domain when the file is written and read.
        guard let first = name.first, first != UInt8(ascii: ".") else { return nil }
        let isBareAddress = name.contains(ASCII.colon) && first != UInt8(ascii: "[")
        let domain = String(decoding: name, as: UTF8.self)
        self.name = isBareAddress ? "[\(domain)]" : domain
        guard CookieRules.isDomain(self.name) else { return nil }
    }
}
