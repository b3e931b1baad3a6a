import NIOCore

/// Buffers of large pieces, filled again when nobody holds them any more.
///
/// Allocated and freed for each piece, they would be given back to the system and come again page
/// by page, by faults: with pieces of this size a response of 100 KiB cost 115 µs of CPU time in
/// place of 58. The loops of a thread share them, and nobody else has them; whoever gets a piece
/// may hold it for as long as he likes.
final class PieceBuffers {
    /// A response that libcurl reads at once is one piece (`WholeResponse`).
    static let size = 131_072
    /// Kept at most, whether in use or not: 8 MiB, beside those that paused transfers fill.
    static let most = 64

    private var kept: [ByteBuffer] = []

    /// An empty buffer of `size` that nobody else has; nil where all are in use.
    func take() -> ByteBuffer? {
        var kept = exchange(&self.kept, with: [])
        defer { self.kept = kept }
        for index in kept.indices {
            guard kept[index].modifyIfUniquelyOwned({ $0.clear() }) != nil else { continue }
            kept.swapAt(index, kept.count - 1)
            return kept.popLast()
        }
        guard kept.count < Self.most else { return nil }
        return ByteBufferAllocator().buffer(capacity: Self.size)
    }

    /// Keeps a buffer that has been filled, for when nobody else holds it.
    func keep(_ buffer: ByteBuffer) {
        guard self.kept.count < Self.most, buffer.capacity == Self.size else { return }
        var kept = exchange(&self.kept, with: [])
        kept.append(buffer)
        self.kept = kept
    }
}
