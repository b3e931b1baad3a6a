import Crypto
import LarderHTTP
import NIOCore

/// Compares a block with the digest that its record names (ISO 28500:2017 §5.8).
struct BlockDigest {
    private enum Function {
        case sha1(Insecure.SHA1)
        case sha256(SHA256)
    }

    private var function: Function
    private let expected: [UInt8]

    /// nil where none is named that is known here.
    ///
    /// - Parameter value: the function's name, a colon, and the digest in base 16 or 32.
    init?(_ value: String?) {
        guard let value, let colon = value.firstIndex(of: ":") else { return nil }
        let digits = String(value[value.index(after: colon)...])
        switch value[..<colon].lowercased().filter({ $0 != "-" }) {
        case "sha1":
            guard let bytes = Self.bytes(digits, count: Insecure.SHA1.byteCount) else { return nil }
            self.function = .sha1(Insecure.SHA1())
            self.expected = bytes
        case "sha256":
            guard let bytes = Self.bytes(digits, count: SHA256.byteCount) else { return nil }
            self.function = .sha256(SHA256())
            self.expected = bytes
        default: return nil
        }
    }

    mutating func update(_ piece: ByteBuffer) {
        switch self.function {
        case .sha1(var hash):
            hash.update(data: Array(piece.readableBytesView))
            self.function = .sha1(hash)
        case .sha256(var hash):
            hash.update(data: Array(piece.readableBytesView))
            self.function = .sha256(hash)
        }
    }

    var agrees: Bool {
        switch self.function {
        case .sha1(let hash): Array(hash.finalize()) == self.expected
        case .sha256(let hash): Array(hash.finalize()) == self.expected
        }
    }

    private static func bytes(_ digits: String, count: Int) -> [UInt8]? {
        let text = Array(digits.utf8)
        if text.count == count * 2 { return self.decode(text, bits: 4) { ASCII.hexDigit($0) } }
        let bare = text.prefix { $0 != UInt8(ascii: "=") }
        let bytes = self.decode(Array(bare), bits: 5) { byte in
            let letter = ASCII.lowercased(byte) &- UInt8(ascii: "a")
            if letter < 26 { return letter }
            let digit = byte &- UInt8(ascii: "2")
            return digit < 6 ? digit + 26 : nil
        }
        return bytes?.count == count ? bytes : nil
    }

    private static func decode(
        _ text: [UInt8], bits: Int, _ value: (UInt8) -> UInt8?
    ) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest: UInt32 = 0
        var count = 0
        for byte in text {
            guard let digit = value(byte) else { return nil }
            rest = (rest & 0xFF) << UInt32(bits) | UInt32(digit)
            count += bits
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: rest >> UInt32(count)))
            }
        }
        return bytes
    }
}
