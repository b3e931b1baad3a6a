/// One element of the `Forwarded` field: what a proxy tells of the client it serves (RFC 7239 §4).
package struct ForwardedElement: Sendable, Equatable {
    /// Who is meant (RFC 7239 §6).
    package enum Node: Sendable, Equatable {
        /// An IP address as text, without brackets, and perhaps a port.
        case address(String, port: UInt16?)
        case unknown
        /// An identifier that tells the outside nothing; written with the `_` that it must begin with.
        case obfuscated(String)

        var text: String {
            switch self {
            case .address(let address, let port):
                let isV6 = address.utf8.contains(ASCII.colon)
                let host = isV6 ? "[\(address)]" : address
                return port.map { "\(host):\($0)" } ?? host
            case .unknown:
                return "unknown"
            case .obfuscated(let identifier):
                let safe = identifier.utf8.map { byte in
                    let isLetter = ASCII.lowercased(byte) &- UInt8(ascii: "a") < 26
                    let isMark = "._-".utf8.contains(byte)
                    return isLetter || isMark || ASCII.isDigit(byte) ? byte : UInt8(ascii: "-")
                }
                return "_" + String(decoding: safe, as: UTF8.self)
            }
        }
    }

    /// The client (§5.2).
    package var client: Node?
    /// The interface at which the request came in (§5.1).
    package var by: Node?
    /// `Host` as received (§5.3).
    package var host: String?
    /// The scheme that the client used (§5.4).
    package var proto: Scheme?

    package init(
        client: Node? = nil, by: Node? = nil, host: String? = nil, proto: Scheme? = nil
    ) {
        self.client = client
        self.by = by
        self.host = host
        self.proto = proto
    }

    /// The element as it stands in the field: `for="[2001:db8::1]:4711";proto=http`.
    package var text: String {
        var pairs: [String] = []
        if let by = self.by { pairs.append("by=\(Self.value(by.text))") }
        if let client = self.client { pairs.append("for=\(Self.value(client.text))") }
        if let host = self.host { pairs.append("host=\(Self.value(host))") }
        if let proto = self.proto { pairs.append("proto=\(proto.rawValue)") }
        return pairs.joined(separator: ";")
    }

    /// Adds the element behind those that earlier proxies wrote; nothing when it says nothing.
    ///
    /// A line in which a quoted string has no end is left out: it would hide this element.
    package func append(to fields: inout Fields) {
        let text = self.text
        guard !text.isEmpty else { return }
        let name: FieldName = "Forwarded"
        if fields.contains(name) {
            fields.keep { section, line in
                !section.matches(line, name) || Self.endsQuotes(section.value(of: line))
            }
        }
        fields.append("Forwarded", text)
    }

    private static func endsQuotes(_ line: FieldValue) -> Bool {
        var (isQuoted, isEscaped) = (false, false)
        for byte in line {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == ASCII.backslash {
                isEscaped = true
            } else if byte == ASCII.quote {
                isQuoted.toggle()
            }
        }
        return !isQuoted
    }

    /// `token / quoted-string`.
    private static func value(_ text: String) -> String {
        if !text.isEmpty, text.utf8.allSatisfy(ASCII.isToken) { return text }
        var out: [UInt8] = [ASCII.quote]
        for byte in text.utf8 {
            if byte == ASCII.quote || byte == ASCII.backslash { out.append(ASCII.backslash) }
            out.append(ASCII.isFieldValue(byte) ? byte : ASCII.space)
        }
        out.append(ASCII.quote)
        return String(decoding: out, as: UTF8.self)
    }
}
