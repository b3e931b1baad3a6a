import LarderHTTP
import NIOCore

/// What a transfer has for its receiver and could not hand over yet, in order.
///
/// A value. Bytes are gathered into pieces of up to 128 KiB; the transfer asks `byteCount` before it
/// takes more from libcurl, which bounds what lies here.
struct Outbox {
    enum Event {
        // What is large lies apart: events are copied several times, and three of them would be more
        // than malloc(3) keeps at hand for each thread.
        indirect case informational(ResponseHead)
        indirect case head(ResponseHead, BodyLength, UpstreamConnectionFacts)
        case piece(ByteBuffer)
        case finished(trailers: Fields)
        indirect case failed(UpstreamFailure)
        indirect case connected(DialledSocket)
    }

    static let pieceSize = PieceBuffers.size
    /// What is used where no large buffer is free.
    private static let smallerPiece = 65_536
    /// A piece smaller than this is followed by none that has room for much more.
    private static let smallPiece = 16_384

    private let buffers: PieceBuffers
    private var events: [Event] = []
    private var next = 0
    /// The piece that is being filled, behind all events.
    private var open: ByteBuffer?
    /// How long the last piece was.
    private var last: Int?
    private(set) var byteCount = 0

    init(_ buffers: PieceBuffers) {
        self.buffers = buffers
    }

    var isEmpty: Bool { self.next == self.events.count && self.open == nil }

    /// Adds an event behind the bytes that came before it.
    mutating func append(_ event: Event) {
        self.seal()
        // Head, body and end of a small response.
        if self.events.isEmpty { self.events.reserveCapacity(3) }
        self.events.append(event)
    }

    /// Adds bytes of the body.
    ///
    /// - Parameter expected: bytes of the body still to come, these included, where that is known:
    ///   a short body gets a buffer of its size.
    mutating func append(_ bytes: UnsafeRawBufferPointer, expected: UInt64?) {
        var rest = unsafe bytes
        self.byteCount += rest.count
        while unsafe !rest.isEmpty {
            var buffer = self.open.take() ?? self.buffer(for: rest.count, expected: expected)
            let room = max(buffer.capacity, Self.smallerPiece) - buffer.writerIndex
            let part = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(room))
            unsafe buffer.writeBytes(part)
            self.open = buffer
            if part.count == room { self.seal() }
            unsafe rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }

    /// Takes the next event.
    mutating func take() -> Event? {
        if self.next == self.events.count { self.seal() }
        guard self.next < self.events.count else { return nil }
        let event = self.events[self.next]
        self.next += 1
        if self.next == self.events.count {
            self.events.removeAll(keepingCapacity: true)
            self.next = 0
        }
        if case .piece(let piece) = event { self.byteCount -= piece.readableBytes }
        return event
    }

    /// The response, where it lies here from its head to its good end and in one piece, without
    /// trailers.
    ///
    /// Only where its length was announced, so that it does not depend on the chance of having come
    /// in one read how it is framed for whoever gets it next.
    var whole: WholeResponse? {
        guard self.open == nil, self.next < self.events.count,
            case .head(let head, let length, let facts) = self.events[self.next],
            length != .unknown, case .finished(let trailers)? = self.events.last, trailers.isEmpty
        else { return nil }
        switch self.events.count - self.next {
        case 2:
            return WholeResponse(
                head: head, bodyLength: length, connection: facts, body: ByteBuffer())
        case 3:
            guard case .piece(let piece) = self.events[self.next + 1] else { return nil }
            return WholeResponse(head: head, bodyLength: length, connection: facts, body: piece)
        default:
            return nil
        }
    }

    /// Forgets everything: nobody listens any more, or a failure overtakes it.
    mutating func removeAll() {
        self = Outbox(self.buffers)
    }

    private mutating func seal() {
        guard let piece = self.open.take() else { return }
        self.buffers.keep(piece)
        self.last = piece.readableBytes
        self.events.append(.piece(piece))
    }

    private func buffer(for count: Int, expected: UInt64?) -> ByteBuffer {
        // Of unknown length: what one read brings, mostly, so that buffers are not moved.
        var wish = expected.map { Int(clamping: $0) } ?? 16_384
        // Of a body that comes little by little, pieces would hold far more memory than bytes: and
        // what a slow client lets wait is counted in bytes.
        if let last, last < Self.smallPiece { wish = min(wish, 2 * last) }
        wish = max(wish, count)
        if wish > Self.smallerPiece, let large = self.buffers.take() { return large }
        return ByteBufferAllocator().buffer(capacity: min(Self.smallerPiece, wish))
    }
}
