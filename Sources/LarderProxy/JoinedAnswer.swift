import NIOCore

/// Where head and content of an answer are put behind one another, to be sent in one piece.
///
/// Written over by each answer: by the time of the next the last has left, and so nothing is allocated
/// for it. Confined to its loop.
@safe
final class JoinedAnswer {
    private let room: UnsafeMutableRawBufferPointer

    /// - Parameter capacity: bytes of the longest answer that is joined.
    init(capacity: Int) {
        unsafe self.room = .allocate(byteCount: capacity, alignment: 64)
    }

    deinit {
        unsafe self.room.deallocate()
    }

    /// What a function makes of head and content, one behind the other; nil where there is no room
    /// for both.
    ///
    /// - Parameter send: keeps nothing of the bytes.
    func withBytes<Result>(
        of head: ByteBuffer, _ body: ByteBuffer?, _ send: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        let (count, more) = (head.readableBytes, body?.readableBytes ?? 0)
        guard unsafe count + more <= self.room.count else { return nil }
        unsafe head.withUnsafeReadableBytes { unsafe self.room.copyMemory(from: $0) }
        if let body {
            unsafe body.withUnsafeReadableBytes {
                unsafe UnsafeMutableRawBufferPointer(rebasing: self.room[count...])
                    .copyMemory(from: $0)
            }
        }
        return unsafe send(UnsafeRawBufferPointer(rebasing: self.room[..<(count + more)]))
    }
}
