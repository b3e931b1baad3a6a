package import LarderHTTP

extension CacheKey {
    /// The partition of a principal: its name, with all that is not visible ASCII, and `%`, written as
    /// `%` and two digits.
    ///
    /// Two principals never have the same one, and none can end its part of a key early: names come
    /// from clients. Empty for the principal that is none.
    package static func partition(of principal: String) -> String {
        let isPlain = principal.utf8.allSatisfy(Self.isPlain)
        if isPlain { return principal }
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in principal.utf8 {
            if Self.isPlain(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The principal of a partition, for people.
    package static func principal(of partition: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(partition.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2,
                let high = ASCII.hexDigit(rest[rest.startIndex]),
                let low = ASCII.hexDigit(rest[rest.startIndex + 1])
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(high << 4 | low)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%")
    }

    /// Whether a response under this key may answer a GET for `uri`, whosever it is.
    ///
    /// Where the key leaves the query out, path and all before it count alone.
    package func isAbout(_ uri: TargetURI) -> Bool {
        let wanted = CacheKey(method: .get, uri: uri)
        let parts = self.parts
        if self.leavesOutSearch { return parts.uri == wanted.withoutSearch.parts.uri }
        return parts.uri == wanted.parts.uri
    }
}
