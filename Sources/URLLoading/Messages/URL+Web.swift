import Foundation
import LarderHTTP

extension URL {
    /// Whether its scheme is http or https, written as it nearly always is; false says nothing.
    ///
    /// `scheme` makes a string of it, at four times the cost, and every request asks three times.
    var isPlainlyWeb: Bool {
        let text = self.absoluteString
        let bytes = text.utf8.span
        guard bytes.count > 5, bytes[0] == UInt8(ascii: "h"), bytes[1] == UInt8(ascii: "t"),
            bytes[2] == UInt8(ascii: "t"), bytes[3] == UInt8(ascii: "p")
        else { return false }
        if bytes[4] == ASCII.colon { return true }
        return bytes[4] == UInt8(ascii: "s") && bytes[5] == ASCII.colon
    }
}
