/// Percent-encoding (RFC 3986 §2.1).
package enum PercentCoding {
    /// Text without its percent-encoding; nil where that is broken, or what comes out is no UTF-8 or would
    /// hold a control character, which could end a line of what it is put into.
    package static func decoded(_ text: Substring) -> String? {
        guard let bytes = self.octets(text), bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return nil
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The user and the password of user information (RFC 3986 §3.2.1); without a colon the latter is empty.
    ///
    /// nil where either is none, as `decoded` has it.
    package static func login(_ userInfo: String) -> (user: String, password: String)? {
        let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = self.decoded(parts.first ?? ""),
            let password = self.decoded(parts.dropFirst().first ?? "")
        else { return nil }
        return (user, password)
    }

    /// What percent-encoded text stands for; nil where the encoding is broken.
    package static func octets(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(ASCII.hexDigit),
                let low = rest.popFirst().flatMap(ASCII.hexDigit)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
