import LarderHTTP

/// Makes text harmless inside a log line.
enum LogEscape {
    /// A field between spaces: everything but printable ASCII is `%XX`, and nothing is `-`.
    ///
    /// A quotation mark and a backslash are escaped, too: in the combined format the request stands
    /// in quotation marks. `%` stays, so that a URL is logged as it was sent.
    static func word(_ text: String, _ line: inout [UInt8]) {
        if text.isEmpty { line.append(UInt8(ascii: "-")) }
        for byte in text.utf8 {
            let isPlain =
                byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"")
                && byte != UInt8(ascii: "\\")
            if isPlain {
                line.append(byte)
            } else {
                line.append(UInt8(ascii: "%"))
                line.append(Self.digit(byte >> 4))
                line.append(Self.digit(byte & 15))
            }
        }
    }

    /// A field inside quotation marks: `\"`, `\\`, and `\xXX` for what is no printable ASCII.
    static func quoted(_ text: String, _ line: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                line.append(UInt8(ascii: "\\"))
                line.append(byte)
            case 0x20..<0x7F: line.append(byte)
            default:
                line += "\\x".utf8
                line.append(Self.digit(byte >> 4))
                line.append(Self.digit(byte & 15))
            }
        }
    }

    /// A JSON string with its quotation marks (RFC 8259 §7).
    ///
    /// Control characters of all kinds are escaped, those that JSON lets through included:
    /// terminals act on them.
    static func json(_ text: String, _ line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C:
                line.append(UInt8(ascii: "\\"))
                line.append(UInt8(truncatingIfNeeded: scalar.value))
            case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069:
                line += "\\u".utf8
                for shift in [12, 8, 4, 0] as [UInt32] {
                    line.append(Self.digit(UInt8(scalar.value >> shift & 15)))
                }
            default: line += String(scalar).utf8
            }
        }
        line.append(UInt8(ascii: "\""))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x41 + value - 10
    }
}

/// Members of a JSON object without a line break, added to a line.
enum LogObject {
    /// - Parameter name: one of ours, that needs no escape.
    private static func begin(_ name: StaticString, _ line: inout [UInt8]) {
        if line.last != UInt8(ascii: "{") { line.append(UInt8(ascii: ",")) }
        line.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { unsafe line += $0 }
        line.append(UInt8(ascii: "\""))
        line.append(UInt8(ascii: ":"))
    }

    /// Adds a text; nothing where there is none.
    static func add(_ name: StaticString, _ text: String?, _ line: inout [UInt8]) {
        guard let text, !text.isEmpty else { return }
        self.begin(name, &line)
        LogEscape.json(text, &line)
    }

    /// Adds a list of texts; nothing where it is empty.
    static func add(_ name: StaticString, _ texts: [String], _ line: inout [UInt8]) {
        guard !texts.isEmpty else { return }
        self.begin(name, &line)
        line.append(UInt8(ascii: "["))
        for (index, text) in texts.enumerated() {
            if index > 0 { line.append(UInt8(ascii: ",")) }
            LogEscape.json(text, &line)
        }
        line.append(UInt8(ascii: "]"))
    }

    static func add(_ name: StaticString, number: Int64, _ line: inout [UInt8]) {
        self.begin(name, &line)
        line.add(decimal: number)
    }

    static func add(_ name: StaticString, isTrue: Bool, _ line: inout [UInt8]) {
        self.begin(name, &line)
        line += (isTrue ? "true" : "false").utf8
    }
}
