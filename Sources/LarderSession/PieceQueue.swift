package import NIOCore

/// Pieces of a body in their order, small ones gathered in buffers of their own.
///
/// A piece shares the storage that it was read into and keeps all of that alive, many times its size
/// where it is small.
package struct PieceQueue: Sendable {
    /// nil before the first piece: a body that comes with its head needs no room here.
    private var pieces: CircularBuffer<ByteBuffer>?
    /// The last piece was gathered from small ones, and may take more.
    private var lastIsGathered = false

    /// Pieces below this size are gathered.
    private static let smallPiece = 4_096
    private static let gatheredLimit = 32_768

    package init() {}

    package var first: ByteBuffer? { self.pieces?.first }

    package mutating func append(_ piece: ByteBuffer) {
        if piece.readableBytes < Self.smallPiece {
            self.gather(piece)
        } else {
            self.hold(piece)
            self.lastIsGathered = false
        }
    }

    package mutating func popFirst() -> ByteBuffer? { self.pieces?.popFirst() }

    package mutating func removeAll() { self.pieces = nil }

    /// The bytes from `offset` on, which is counted from the first byte held, to the end of the piece
    /// that holds it; none behind the last.
    package func piece(at offset: UInt64) -> ByteBuffer {
        var start: UInt64 = 0
        guard let pieces = self.pieces else { return ByteBuffer() }
        for piece in pieces {
            let next = start &+ UInt64(piece.readableBytes)
            if offset < next {
                var rest = piece
                rest.moveReaderIndex(forwardBy: Int(clamping: offset &- start))
                return rest
            }
            start = next
        }
        return ByteBuffer()
    }

    private mutating func hold(_ piece: ByteBuffer) {
        if self.pieces == nil { self.pieces = CircularBuffer(initialCapacity: 4) }
        self.pieces?.append(piece)
    }

    private mutating func gather(_ piece: ByteBuffer) {
        // Taken out, so that it is changed in place where no reader shares it.
        if self.lastIsGathered, var last = self.pieces?.popLast() {
            let fits = last.readableBytes <= Self.gatheredLimit - piece.readableBytes
            if fits { last.writeImmutableBuffer(piece) }
            self.hold(last)
            if fits { return }
        }
        self.hold(ByteBuffer(bytes: piece.readableBytesView))
        self.lastIsGathered = true
    }
}
