import NIOCore
import Testing

@testable import LarderTransfer

@Suite("Pieces of bodies, and their buffers")
struct OutboxTests {
    struct Case: Sendable {
        var total: Int
        var isAnnounced = true
        /// Large buffers that somebody else holds.
        var inUse = 0
        var pieces: [Int]
    }

    @Test(
        "are as large as can be, in order, and whole",
        arguments: [
            Case(total: 1, pieces: [1]),
            Case(total: 16_384, pieces: [16_384]),
            Case(total: 65_536, pieces: [65_536]),
            Case(total: 65_537, pieces: [65_537]),
            Case(total: 131_072, pieces: [131_072]),
            Case(total: 131_073, pieces: [131_072, 1]),
            Case(total: 300_000, pieces: [131_072, 131_072, 37_856]),
            Case(total: 100_000, inUse: PieceBuffers.most, pieces: [65_536, 34_464]),
            Case(total: 100_000, isAnnounced: false, pieces: [65_536, 34_464]),
            Case(total: 10_000, isAnnounced: false, pieces: [10_000]),
        ])
    func pieces(_ c: Case) throws {
        let buffers = PieceBuffers()
        let held = Self.fill(buffers, c.inUse)
        var outbox = Outbox(buffers)
        let bytes = (0..<c.total).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 20) }
        // As libcurl hands them on.
        for start in stride(from: 0, to: c.total, by: 16_384) {
            let part = bytes[start..<min(c.total, start + 16_384)]
            let left = c.isAnnounced ? UInt64(c.total - start) : nil
            unsafe part.withUnsafeBytes { unsafe outbox.append($0, expected: left) }
        }
        #expect(outbox.byteCount == c.total)
        var pieces: [ByteBuffer] = []
        while case .piece(let piece)? = outbox.take() { pieces.append(piece) }
        #expect(pieces.map(\.readableBytes) == c.pieces)
        #expect(pieces.flatMap { Array(buffer: $0) } == bytes)
        #expect(outbox.isEmpty)
        #expect(held.count == c.inUse)
    }

    @Test(
        "hold no more than eight times the bytes where these come little by little",
        arguments: [100, 4_096, 16_384, 60_000])
    func trickle(size: Int) throws {
        var outbox = Outbox(PieceBuffers())
        var memory = 0
        for turn in 0..<64 {
            let part = [UInt8](repeating: UInt8(turn), count: size)
            unsafe part.withUnsafeBytes { unsafe outbox.append($0, expected: 100 << 20) }
            guard case .piece(let piece)? = outbox.take() else { return }
            #expect(piece.readableBytes == size)
            memory += piece.storageCapacity
        }
        #expect(memory <= 64 * 8 * size + PieceBuffers.size)
    }

    @Test("are used again when nobody holds them, and never before")
    func reuse() throws {
        let buffers = PieceBuffers()
        var first = try #require(buffers.take())
        first.writeString("one")
        buffers.keep(first)
        var second = try #require(buffers.take())
        second.writeString("two")
        buffers.keep(second)
        #expect(String(buffer: first) == "one")
        let place = unsafe first.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
        first = ByteBuffer()
        let third = try #require(buffers.take())
        #expect(third.readableBytes == 0)
        let again = unsafe third.withVeryUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        #expect(again == place)
        #expect(String(buffer: second) == "two")
    }

    @Test("are no more than a bound, and none of another size")
    func bound() {
        let buffers = PieceBuffers()
        let held = Self.fill(buffers, PieceBuffers.most)
        #expect(buffers.take() == nil)
        buffers.keep(ByteBuffer(repeating: 1, count: PieceBuffers.size))
        #expect(buffers.take() == nil)
        #expect(held.count == PieceBuffers.most)
        let others = PieceBuffers()
        others.keep(ByteBuffer(string: "small"))
        #expect(others.take()?.capacity == PieceBuffers.size)
    }

    /// Has somebody hold so many of them.
    private static func fill(_ buffers: PieceBuffers, _ count: Int) -> [ByteBuffer] {
        let held = (0..<count).compactMap { _ in buffers.take() }
        for buffer in held { buffers.keep(buffer) }
        return held
    }
}
