import LarderHTTP
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
        let outbox = Outbox(buffers)
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

    @Test("come behind the heads, and before the end", arguments: [true, false])
    func order(isFailed: Bool) throws {
        let outbox = Outbox(PieceBuffers())
        for status in [102, 103] as [UInt16] {
            outbox.append(informational: ResponseHead(status: StatusCode(status)))
        }
        outbox.append(Self.head(.known(4)))
        Self.append("body", to: outbox)
        outbox.end(
            isFailed ? .failed(.malformed("broken")) : .finished(trailers: [:]))
        outbox.end(.finished(trailers: ["Too": "late"]))
        var heard: [String] = []
        while let event = outbox.take() {
            switch event {
            case .informational(let head): heard.append("\(head.status.rawValue)")
            case .head(let head): heard.append("\(head.head.status.rawValue)")
            case .piece(let piece): heard.append(String(buffer: piece))
            case .ended(.finished(let trailers)): heard.append("end \(trailers.count)")
            case .ended(.failed), .ended(.connected): heard.append("failure")
            }
        }
        #expect(heard == ["102", "103", "200", "body", isFailed ? "failure" : "end 0"])
        #expect(outbox.isEmpty)
    }

    struct WholeCase: Sendable {
        var length = BodyLength.known(4)
        var pieces = ["body"]
        var trailers: Fields? = [:]
        var isInformed = false
        var isWhole = true
    }

    @Test(
        "are handed over with head and end where one is all there is",
        arguments: [
            WholeCase(),
            WholeCase(pieces: []),
            WholeCase(length: .none, pieces: []),
            WholeCase(length: .unknown, isWhole: false),
            WholeCase(trailers: ["A": "b"], isWhole: false),
            WholeCase(trailers: nil, isWhole: false),
            WholeCase(isInformed: true, isWhole: false),
            WholeCase(
                length: .known(131_073), pieces: [String(repeating: "a", count: 131_072), "b"],
                isWhole: false),
        ])
    func whole(_ c: WholeCase) throws {
        let outbox = Outbox(PieceBuffers())
        if c.isInformed { outbox.append(informational: ResponseHead(status: StatusCode(103))) }
        outbox.append(Self.head(c.length))
        for piece in c.pieces { Self.append(piece, to: outbox) }
        if let trailers = c.trailers { outbox.end(.finished(trailers: trailers)) }
        let whole = outbox.takeWhole()
        #expect((whole != nil) == c.isWhole)
        #expect(outbox.isEmpty == c.isWhole)
        guard let whole else { return }
        #expect(whole.head.status.rawValue == 200 && whole.bodyLength == c.length)
        #expect(String(buffer: whole.body) == c.pieces.joined())
        #expect(outbox.byteCount == 0 && outbox.take() == nil)
    }

    private static func head(_ length: BodyLength) -> Outbox.Head {
        Outbox.Head(
            head: ResponseHead(status: StatusCode(200)), bodyLength: length,
            connection: UpstreamConnectionFacts())
    }

    private static func append(_ text: String, to outbox: Outbox) {
        var text = text
        text.withUTF8 {
            unsafe outbox.append(UnsafeRawBufferPointer($0), expected: UInt64($0.count))
        }
    }

    @Test(
        "hold no more than eight times the bytes where these come little by little",
        arguments: [100, 4_096, 16_384, 60_000])
    func trickle(size: Int) throws {
        let outbox = Outbox(PieceBuffers())
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
