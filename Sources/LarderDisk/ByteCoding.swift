import NIOCore

extension [UInt8] {
    /// Appends a number, least significant byte first.
    mutating func append(littleEndian value: some FixedWidthInteger) {
        var rest = value
        for _ in 0..<value.bitWidth / 8 {
            self.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    /// Appends a number, most significant byte first, so that keys sort as their numbers do.
    mutating func append(bigEndian value: some FixedWidthInteger) {
        var shift = value.bitWidth
        while shift > 0 {
            shift -= 8
            self.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    /// Overwrites a number where there is room for it.
    mutating func replace(littleEndian value: some FixedWidthInteger, at offset: Int) {
        let width = value.bitWidth / 8
        guard offset >= 0, offset + width <= self.count else { return }
        var rest = value
        for i in 0..<width {
            self[offset + i] = UInt8(truncatingIfNeeded: rest)
            rest >>= 8
        }
    }
}

extension FixedWidthInteger {
    /// One of its bytes, the most significant first.
    func byte(_ place: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: self >> (Self.bitWidth - 8 - 8 * place))
    }
}

extension Span<UInt8> {
    /// The number at `offset`, least significant byte first; nil where it does not fit.
    func littleEndian<T: FixedWidthInteger & BitwiseCopyable>(
        _ offset: Int, as: T.Type = T.self
    ) -> T? {
        self.number(offset).map { T(littleEndian: $0) }
    }

    /// The number at `offset`, most significant byte first; nil where it does not fit.
    func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(
        _ offset: Int, as: T.Type = T.self
    ) -> T? {
        self.number(offset).map { T(bigEndian: $0) }
    }

    private func number<T: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> T? {
        guard offset >= 0, offset <= self.count - MemoryLayout<T>.size else { return nil }
        // Inside, by the line above; integers have no invalid bytes.
        return unsafe self.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: T.self)
    }

    /// A copy of `count` bytes from `offset`; nil where there are not so many.
    func array(_ offset: Int, _ count: Int) -> [UInt8]? {
        guard offset >= 0, count >= 0, offset <= self.count - count else { return nil }
        let part = self.extracting(offset..<offset + count)
        return unsafe part.withUnsafeBufferPointer { unsafe Array($0) }
    }

    /// A copy of all bytes.
    var copied: [UInt8] { unsafe self.withUnsafeBufferPointer { unsafe Array($0) } }

    /// A copy of `range`, which must lie inside, in a buffer of its own.
    func buffer(_ range: Range<Int>) -> ByteBuffer {
        let part = self.extracting(range)
        var buffer = ByteBufferAllocator().buffer(capacity: range.count)
        unsafe part.withUnsafeBytes { bytes in _ = unsafe buffer.writeBytes(bytes) }
        return buffer
    }

    func hasPrefix(_ prefix: [UInt8]) -> Bool {
        guard self.count >= prefix.count else { return false }
        for i in prefix.indices where self[i] != prefix[i] { return false }
        return true
    }
}
