/// The `Via` field (RFC 9110 §7.6.3).
package enum Via {
    /// Adds this proxy to the path that a message has taken.
    ///
    /// - Parameters:
    ///   - version: the protocol in which the message was received.
    ///   - pseudonym: what stands for this proxy's host, a token.
    package static func append(
        to fields: inout Fields, version: HTTPVersion, pseudonym: String
    ) {
        fields.append("Via", self.value(version: version, pseudonym: pseudonym))
    }

    /// What that adds: `1.1 larder`.
    package static func value(version: HTTPVersion, pseudonym: String) -> [UInt8] {
        var value = Array(version.viaName.utf8)
        value.append(ASCII.space)
        let start = value.count
        for byte in pseudonym.utf8 {
            value.append(self.isReceivedByte(byte) ? byte : UInt8(ascii: "-"))
        }
        if value.count == start { value.append(UInt8(ascii: "-")) }
        return value
    }

    /// Whether the message has passed a proxy of this pseudonym: it runs in a circle.
    ///
    /// Names are compared without regard to case; what a comment says does not count.
    package static func contains(pseudonym: String, in fields: Fields) -> Bool {
        guard fields.contains(FieldName(.via)) else { return false }
        return fields.values(FieldName(.via)).contains { line in
            self.members(line).contains { member in
                let received = member.drop { !ASCII.isOWS($0) }.drop(while: ASCII.isOWS)
                    .prefix { !ASCII.isOWS($0) && $0 != UInt8(ascii: "(") }
                return received.elementsEqual(pseudonym.utf8) {
                    ASCII.lowercased($0) == ASCII.lowercased($1)
                }
            }
        }
    }

    /// The members of a line: split at commas outside comments, and at all of them where a comment has
    /// no end, as it would hide every hop behind it.
    private static func members(_ line: FieldValue) -> [FieldValue] {
        var commas: [Int] = []
        var depth = 0
        var isEscaped = false
        for index in line.indices {
            let byte = line[index]
            if isEscaped {
                isEscaped = false
            } else if depth > 0, byte == ASCII.backslash {
                isEscaped = true
            } else if byte == UInt8(ascii: "(") {
                depth += 1
            } else if depth > 0, byte == UInt8(ascii: ")") {
                depth -= 1
            } else if depth == 0, byte == ASCII.comma {
                commas.append(index)
            }
        }
        if depth > 0 { commas = line.indices.filter { line[$0] == ASCII.comma } }
        let starts = [line.startIndex] + commas.map { $0 + 1 }
        return zip(starts, commas + [line.endIndex]).map { line[$0..<$1].trimmingOWS() }
    }

    /// Bytes of `received-by`: a token, or a host with a port.
    private static func isReceivedByte(_ byte: UInt8) -> Bool {
        ASCII.isToken(byte) || byte == ASCII.colon || byte == UInt8(ascii: "[")
            || byte == UInt8(ascii: "]")
    }
}
