import COpenSSL
import Glibc

/// How the server of a WebSocket shows that it understood the handshake (RFC 6455 §4.2.2).
package enum WebSocketKey {
    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// The value of `Sec-WebSocket-Accept` that answers a key; nil where OpenSSL has no SHA-1.
    package static func accept(for key: String) -> String? {
        CurlLibrary.prepare()
        let text = Array((key + self.suffix).utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        var length: UInt32 = 0
        let code = unsafe EVP_Digest(text, text.count, &digest, &length, EVP_sha1(), nil)
        guard code == 1, length == 20 else { return nil }
        // 20 octets become 28 characters, and a zero behind them.
        var out = [UInt8](repeating: 0, count: 29)
        let count = unsafe EVP_EncodeBlock(&out, digest, 20)
        return count == 28 ? String(decoding: out[..<28], as: UTF8.self) : nil
    }
}
