import LarderSession
import NIOCore
import Testing

@Suite("Pieces of a body, of which small ones are gathered")
struct PieceQueueTests {
    private static func queue(_ sizes: [Int]) -> PieceQueue {
        var queue = PieceQueue()
        var next: UInt8 = 0
        for size in sizes {
            let bytes = (0..<size).map { next &+ UInt8(truncatingIfNeeded: $0) }
            next &+= UInt8(truncatingIfNeeded: size)
            queue.append(ByteBuffer(bytes: bytes))
        }
        return queue
    }

    struct Case: Sendable {
        let sizes: [Int]
        let held: [Int]
    }

    @Test(
        "go into one buffer until that is large, and into none that was not made for them",
        arguments: [
            Case(sizes: [], held: []), Case(sizes: [1, 2, 3], held: [6]),
            Case(sizes: [4_096, 1, 1], held: [4_096, 2]),
            Case(sizes: [1, 4_096, 1, 4_095], held: [1, 4_096, 4_096]),
            Case(sizes: [4_095, 4_096, 4_095], held: [4_095, 4_096, 4_095]),
            Case(sizes: Array(repeating: 4_000, count: 9), held: [32_000, 4_000]),
            Case(sizes: Array(repeating: 2_048, count: 17), held: [32_768, 2_048]),
        ])
    func sizes(_ c: Case) {
        var queue = Self.queue(c.sizes)
        #expect(queue.first?.readableBytes == c.held.first)
        var bytes: [UInt8] = []
        var held: [Int] = []
        while let piece = queue.popFirst() {
            held.append(piece.readableBytes)
            bytes += piece.readableBytesView
        }
        #expect(held == c.held)
        #expect(bytes == (0..<c.sizes.reduce(0, +)).map { UInt8(truncatingIfNeeded: $0) })
    }

    @Test("are found by their place, each to its end")
    func places() {
        var queue = Self.queue([10, 4_096, 5])
        for (offset, count) in [(0, 10), (9, 1), (10, 4_096), (4_105, 1), (4_106, 5), (4_111, 0)] {
            let piece = queue.piece(at: UInt64(offset))
            #expect(piece.readableBytes == count, "\(offset)")
            #expect(
                piece.getInteger(at: piece.readerIndex, as: UInt8.self)
                    == (count > 0 ? UInt8(truncatingIfNeeded: offset) : nil), "\(offset)")
        }
        queue.removeAll()
        #expect(queue.first == nil && queue.piece(at: 0).readableBytes == 0)
    }
}
