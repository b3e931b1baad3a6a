import SeededNumbers

extension SplitMix64 {
    /// What often stands at an edge of a grammar or of a number.
    private static let fragments =
        [
            "\r", "\n", "\r\n", "\r\n\r\n", "\n\n", " ", "\t", ":", ",", ";", "=", "\"", "\\",
            "\\\"",
            "%", "#", "@", "[", "]", "(", ")", "*", "-", "+", ".", "/", "?", "\u{0}", "\u{7F}", "0",
            "00", "-1", "+1", "1.5", "2147483647", "2147483648", "4294967296",
            "9223372036854775807", "9223372036854775808", "18446744073709551615",
            "18446744073709551616", "ffffffffffffffff", "chunked", "Content-Length: 1\r\n",
            "Transfer-Encoding: chunked\r\n", "Host: x\r\n", " HTTP/1.1\r\n", "W/\"a\"", "bytes=",
            "max-age=", "no-store", "no-cache=\"", " GMT", "Sunday, ", "29 Feb 2023", "q=0.001",
            "\u{301}", "é",
        ].map { Array($0.utf8) } + [[0xFF], [0x80, 0xC3], [0xED, 0xA0, 0x80]]

    /// Damages bytes in a few places: changed, removed, doubled, fragments and other bytes put in.
    mutating func mutated(_ bytes: [UInt8], crossing other: [UInt8]) -> [UInt8] {
        var out = bytes
        for _ in 0..<Int.random(in: 1...4, using: &self) {
            let i = Int.random(in: 0...out.count, using: &self)
            let end = min(i + Int.random(in: 1...8, using: &self), out.count)
            switch Int.random(in: 0..<7, using: &self) {
            case 0 where i < out.count: out[i] = UInt8.random(in: 0...255, using: &self)
            case 1 where i < out.count: out[i] ^= 1 << UInt8.random(in: 0..<8, using: &self)
            case 2: out.removeSubrange(i..<end)
            case 3: out.insert(contentsOf: out[i..<end], at: i)
            case 4 where !other.isEmpty:
                let from = Int.random(in: other.indices, using: &self)
                out.insert(contentsOf: other[from...].prefix(24), at: i)
            default:
                let pick = Int.random(in: Self.fragments.indices, using: &self)
                out.insert(contentsOf: Self.fragments[pick], at: i)
            }
        }
        return out
    }

    /// Bytes without sense, mostly those that grammars care about.
    mutating func junk() -> [UInt8] {
        let marks = Array(" \t\r\n\"\\,;:=/*-0123456789abcdefGMTW()%@?[]\u{0}\u{7F}".utf8) + [0xFF]
        return (0..<Int.random(in: 0...64, using: &self)).map { _ in
            Bool.random(using: &self)
                ? marks[Int.random(in: marks.indices, using: &self)]
                : UInt8.random(in: 0...255, using: &self)
        }
    }
}
