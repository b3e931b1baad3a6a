/// Ways to cut bytes in pieces, as a connection may deliver them.
enum Pieces {
    /// Byte by byte, and in two at a few places that depend on the bytes alone, so that a finding
    /// is found again.
    static func some(_ bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
        var ways = [bytes.indices.map { bytes[$0...$0] }]
        guard !bytes.isEmpty else { return ways }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for _ in 0..<3 {
            hash = hash &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let place = Int((hash >> 33) % UInt64(bytes.count))
            ways.append([bytes[..<place], bytes[place...]])
        }
        return ways
    }
}

extension [UInt8] {
    /// The pieces between line feeds.
    var textLines: [ArraySlice<UInt8>] {
        self.split(separator: 0x0A, omittingEmptySubsequences: false)
    }

    var text: String { String(decoding: self, as: UTF8.self) }
}
