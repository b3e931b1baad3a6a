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

    /// Appends bytes that lie in one block.
    mutating func append(_ bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
    }

    /// Overwrites a number where there is room for it.
    mutating func replace(
        littleEndian value: some FixedWidthInteger & BitwiseCopyable, at offset: Int
    ) {
        guard offset >= 0, offset + value.bitWidth / 8 <= self.count else { return }
        var span = self.mutableSpan
        var bytes = unsafe span.mutableBytes
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
    }
}

extension OutputSpan<UInt8> {
    /// Appends a number, least significant byte first.
    mutating func append(littleEndian value: some FixedWidthInteger) {
        var rest = value
        for _ in 0..<value.bitWidth / 8 {
            self.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }
}

extension InlineArray where Element == UInt8 {
    /// Writes a number, most significant byte first, over what stands at `offset`: so keys sort as
    /// their numbers do.
    mutating func put(bigEndian value: some FixedWidthInteger & BitwiseCopyable, at offset: Int) {
        self.put(value.bigEndian, at: offset)
    }

    /// Writes a number, least significant byte first, over what stands at `offset`.
    mutating func put(
        littleEndian value: some FixedWidthInteger & BitwiseCopyable, at offset: Int
    ) {
        self.put(value.littleEndian, at: offset)
    }

    private mutating func put<T: BitwiseCopyable>(_ value: T, at offset: Int) {
        var span = self.mutableSpan
        var bytes = unsafe span.mutableBytes
        bytes.storeBytes(of: value, toByteOffset: offset, as: T.self)
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
