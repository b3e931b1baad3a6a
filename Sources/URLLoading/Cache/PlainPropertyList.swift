import Foundation

/// Whether the bytes of a binary property list name nothing but what a note has: texts, data, dates,
/// numbers, truth values, lists, and tables whose keys are texts.
///
/// Foundation's reader takes sets and archived references for values, too, and falls when it bridges
/// what is in them. What comes from a disk is looked through before that reader sees it.
struct PlainPropertyList {
    private let bytes: [UInt8]
    private let offsets: [Int]
    private let referenceSize: Int

    /// nil where it is none.
    init?(_ data: Data) {
        let bytes = [UInt8](data)
        guard bytes.starts(with: "bplist00".utf8), bytes.count >= 40 else { return nil }
        let trailer = bytes.count - 32
        let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let count = Self.number(bytes, trailer + 8, 8),
            let table = Self.number(bytes, trailer + 24, 8), (8...trailer).contains(table),
            count > 0, count <= (trailer - table) / offsetSize
        else { return nil }
        var offsets: [Int] = []
        for index in 0..<count {
            guard let offset = Self.number(bytes, table + index * offsetSize, offsetSize),
                (8..<table).contains(offset)
            else { return nil }
            offsets.append(offset)
        }
        self.bytes = bytes
        self.offsets = offsets
        self.referenceSize = referenceSize
        guard offsets.allSatisfy({ self.isPlain($0) }) else { return nil }
    }

    private static func number(_ bytes: [UInt8], _ place: Int, _ size: Int) -> Int? {
        guard place >= 0, size <= 8, place <= bytes.count - size else { return nil }
        let value = bytes[place..<place + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }

    private func isPlain(_ offset: Int) -> Bool {
        switch self.bytes[offset] >> 4 {
        case 0x0: self.bytes[offset] == 0x08 || self.bytes[offset] == 0x09
        case 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0xA: true
        case 0xD: self.hasTexts(asKeysOf: offset)
        default: false
        }
    }

    private func hasTexts(asKeysOf offset: Int) -> Bool {
        var (count, place) = (Int(self.bytes[offset] & 0xF), offset + 1)
        if count == 0xF {
            // The count stands behind, as a number of its own.
            guard place < self.bytes.count, self.bytes[place] >> 4 == 0x1 else { return false }
            let size = 1 << Int(self.bytes[place] & 0xF)
            guard let counted = Self.number(self.bytes, place + 1, size) else { return false }
            (count, place) = (counted, place + 1 + size)
        }
        guard count <= (self.bytes.count - place) / self.referenceSize else { return false }
        return (0..<count).allSatisfy { index in
            let key = Self.number(
                self.bytes, place + index * self.referenceSize, self.referenceSize)
            guard let key, key < self.offsets.count else { return false }
            let kind = self.bytes[self.offsets[key]] >> 4
            return kind == 0x5 || kind == 0x6
        }
    }
}
