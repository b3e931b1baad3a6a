/// Byte classes of the HTTP grammar (RFC 9110 §5.6, RFC 9112).
package enum ASCII {
    package static let tab: UInt8 = 0x09
    package static let lf: UInt8 = 0x0A
    package static let cr: UInt8 = 0x0D
    package static let space: UInt8 = 0x20
    package static let quote: UInt8 = 0x22
    package static let comma: UInt8 = 0x2C
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B
    package static let equals: UInt8 = 0x3D
    package static let backslash: UInt8 = 0x5C

    @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// `tchar` (RFC 9110 §5.6.2).
    @inline(__always)
    package static func isToken(_ byte: UInt8) -> Bool {
        // What names are mostly made of.
        if (byte | 0x20) &- 0x61 < 26 { return true }
        // Two words of a bitmap: 0–63 and 64–127.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte < 64 { return low &>> UInt64(byte) & 1 == 1 }
        if byte < 128 { return high &>> UInt64(byte &- 64) & 1 == 1 }
        return false
    }

    /// The value of a hexadecimal digit (RFC 5234 `HEXDIG`, either case).
    @inline(__always)
    package static func hexDigit(_ byte: UInt8) -> UInt8? {
        let digit = byte &- 0x30
        if digit < 10 { return digit }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// Optional white space: a space or a tab (RFC 9110 §5.6.3).
    @inline(__always)
    package static func isOWS(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    /// What a field value may hold: visible ASCII, space, tab, obs-text (RFC 9110 §5.5).
    @inline(__always)
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == tab
    }
}
