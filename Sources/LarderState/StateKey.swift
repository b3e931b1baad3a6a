import LarderCredentials

/// The secret key of a session's state: 32 random bytes, and their form in a file.
///
/// ```
/// larder-key 1⏎
/// 64 hexadecimal digits⏎
/// ```
package struct StateKey: Sendable, Equatable {
    static let size = 32
    private static let firstLine = "larder-key 1\n"
    /// No file of a key is longer.
    static let textSize = Self.firstLine.utf8.count + Self.size * 2 + 1

    let secret: Secret

    /// A new key, from the system's generator.
    package init() {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<Self.size).map { _ in
            UInt8.random(in: .min ... .max, using: &generator)
        }
        self.secret = Secret(bytes)
    }

    /// Reads the text of a key file; nil where it is not exactly one, its last line break aside.
    init?(_ text: Span<UInt8>) {
        let start = Self.firstLine.utf8.count
        guard text.count == Self.textSize || text.count == Self.textSize - 1 else { return nil }
        for (i, byte) in Self.firstLine.utf8.enumerated() where text[i] != byte { return nil }
        if text.count == Self.textSize, text[Self.textSize - 1] != UInt8(ascii: "\n") { return nil }
        var writer = RecordWriter()
        for i in 0..<Self.size {
            guard let high = Self.value(text[start + i * 2]),
                let low = Self.value(text[start + i * 2 + 1])
            else { return nil }
            writer.append(high << 4 | low)
        }
        self.secret = writer.withBytes { Secret($0) }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    func writeText(to writer: inout RecordWriter) {
        for byte in Self.firstLine.utf8 { writer.append(byte) }
        self.secret.withBytes { bytes in
            for i in bytes.indices {
                writer.append(Self.digit(bytes[i] >> 4))
                writer.append(Self.digit(bytes[i] & 15))
            }
        }
        writer.append(UInt8(ascii: "\n"))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
