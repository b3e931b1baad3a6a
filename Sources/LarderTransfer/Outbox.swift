import LarderHTTP
import NIOCore

/// What a transfer has for its receiver and could not hand over yet, in the order that HTTP gives it.
///
/// ```
/// informational heads ─▶ head ─▶ pieces, of which the last may still be filled ─▶ ending
/// ```
///
/// Each has a place of its own: of a small response, which lies here as a whole before any of it is
/// handed over, nothing goes through a list, and nothing is copied out of one.
/// Bytes are gathered into pieces of up to 128 KiB; the transfer asks `byteCount` before it takes more
/// from libcurl, which bounds what lies here.
///
/// A class, as `ResponseAssembler`: no property of the transfer is lent while it changes. Confined to the
/// loop of its transfer.
final class Outbox {
    struct Head {
        let head: ResponseHead
        let bodyLength: BodyLength
        let connection: UpstreamConnectionFacts
    }

    enum Ending {
        case finished(trailers: Fields)
        // What is large lies apart: there is one place for all of them.
        indirect case failed(UpstreamFailure)
        indirect case connected(DialledSocket)
    }

    enum Event {
        case informational(ResponseHead)
        case head(Head)
        case piece(ByteBuffer)
        case ended(Ending)
    }

    static let pieceSize = PieceBuffers.size
    /// What is used where no large buffer is free.
    private static let smallerPiece = 65_536
    /// A piece smaller than this is followed by none that has room for much more.
    private static let smallPiece = 16_384

    private let buffers: PieceBuffers
    private var informational: [ResponseHead] = []
    private var head: Head?
    /// The head says how long the body is.
    private var isAnnounced = false
    /// Those that are full; the ones before `next` are taken.
    private var pieces: [ByteBuffer] = []
    private var next = 0
    /// The piece that is being filled, behind all others.
    private var open: ByteBuffer?
    private var ending: Ending?
    /// How long the last piece was.
    private var last: Int?
    private(set) var byteCount = 0

    init(_ buffers: PieceBuffers) {
        self.buffers = buffers
    }

    var isEmpty: Bool {
        self.informational.isEmpty && self.head == nil && self.next == self.pieces.count
            && self.open == nil && self.ending == nil
    }

    // MARK: Filling

    func append(informational head: ResponseHead) {
        self.informational = self.informational + [head]
    }

    func append(_ head: Head) {
        self.isAnnounced = head.bodyLength != .unknown
        self.head = head
    }

    /// Adds bytes of the body.
    ///
    /// - Parameter expected: bytes of the body still to come, these included, where that is known:
    ///   a short body gets a buffer of its size.
    func append(_ bytes: UnsafeRawBufferPointer, expected: UInt64?) {
        var rest = unsafe bytes
        self.byteCount += rest.count
        while unsafe !rest.isEmpty {
            var buffer = self.open.take() ?? self.buffer(for: rest.count, expected: expected)
            let room = max(buffer.capacity, Self.smallerPiece) - buffer.writerIndex
            let part = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(room))
            unsafe buffer.writeBytes(part)
            if part.count == room {
                self.fill(buffer)
            } else {
                self.open = buffer
            }
            unsafe rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }

    /// Nothing comes behind it: of several the first counts.
    func end(_ ending: Ending) {
        if self.ending == nil { self.ending = ending }
    }

    private func fill(_ piece: ByteBuffer) {
        self.seal(piece)
        var pieces = exchange(&self.pieces, with: [])
        pieces.append(piece)
        self.pieces = pieces
    }

    /// Nothing is added to a piece any more.
    private func seal(_ piece: ByteBuffer) {
        self.buffers.keep(piece)
        self.last = piece.readableBytes
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

    // MARK: Taking

    /// Takes the next event.
    func take() -> Event? {
        if let first = self.informational.first {
            self.informational = Array(self.informational.dropFirst())
            return .informational(first)
        }
        if let head = self.head.take() { return .head(head) }
        if let piece = self.takePiece() { return .piece(piece) }
        return self.ending.take().map { .ended($0) }
    }

    /// Takes the response, where it lies here from its head to its good end and in one piece, without
    /// trailers.
    ///
    /// Only where its length was announced, so that it does not depend on the chance of having come
    /// in one read how it is framed for whoever gets it next.
    func takeWhole() -> WholeResponse? {
        let count = self.pieces.count - self.next + (self.open == nil ? 0 : 1)
        guard count <= 1, self.isAnnounced, self.informational.isEmpty,
            case .finished(let trailers)? = self.ending, trailers.isEmpty,
            let head = self.head.take()
        else { return nil }
        self.ending = nil
        return WholeResponse(
            head: head.head, bodyLength: head.bodyLength, connection: head.connection,
            body: self.takePiece() ?? ByteBuffer())
    }

    private func takePiece() -> ByteBuffer? {
        guard let piece = self.takeFullPiece() ?? self.takeOpenPiece() else { return nil }
        self.byteCount -= piece.readableBytes
        return piece
    }

    private func takeFullPiece() -> ByteBuffer? {
        guard self.next < self.pieces.count else { return nil }
        let piece = self.pieces[self.next]
        self.next += 1
        if self.next == self.pieces.count {
            var pieces = exchange(&self.pieces, with: [])
            pieces.removeAll(keepingCapacity: true)
            self.pieces = pieces
            self.next = 0
        }
        return piece
    }

    private func takeOpenPiece() -> ByteBuffer? {
        guard let piece = self.open.take() else { return nil }
        self.seal(piece)
        return piece
    }
}
