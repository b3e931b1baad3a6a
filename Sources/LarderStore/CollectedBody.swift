import LarderHTTP
import NIOCore
import Synchronization

/// The body of a response that is being stored, collected into one buffer of its own.
///
/// Its bytes are copied where a piece may be a slice of a receive buffer that is far larger than it:
/// the bound of the tier counts what is kept. A piece that is the whole body, in storage no larger than
/// a copy would have, is kept as it is; what else holds it are those who write it to clients and to the
/// lower tier, and soon nobody.
final class CollectedBody: Sendable {
    private struct State {
        /// nil once it has been given up.
        var buffer: ByteBuffer?
        /// What is there is all there will be.
        var isFinished = false
        let limit: Int
        /// The room that is taken with the first piece.
        let expected: Int

        /// Keeps a piece that is all of the body, if that takes no more memory than a copy of it.
        mutating func adopts(_ piece: ByteBuffer) -> Bool {
            let count = piece.readableBytes
            guard count > 0, count == self.expected, piece.readerIndex == 0,
                piece.storageCapacity / 2 < count
            else { return false }
            self.buffer = piece
            return true
        }
    }

    /// Bodies of these sizes go to where their pages can be lent to sockets.
    ///
    /// Below it a copy for each client is cheaper; above it the one copy that this takes would hold up
    /// the thread that stores for milliseconds.
    static let lentSizes = 65_536...4 << 20

    private let state: Mutex<State>

    /// - Parameters:
    ///   - length: the expected length, to get the room for it at once.
    ///   - limit: the most bytes that it takes.
    ///   - isCertain: whether the length is known, and not an origin's word so far, for which no
    ///     great room is taken.
    init(length: UInt64?, limit: UInt64, isCertain: Bool = false) {
        let limit = Int(clamping: limit)
        let expected = min(Int(clamping: length ?? 0), limit, isCertain ? limit : 65_536)
        self.state = Mutex(State(buffer: ByteBuffer(), limit: limit, expected: expected))
    }

    /// Takes a piece.
    ///
    /// false, and nothing is taken, when it does not fit; what was taken before stays readable until
    /// it is given up.
    func append(_ piece: ByteBuffer) -> Bool {
        self.state.withLock { state in
            guard !state.isFinished, let held = state.buffer?.readableBytes,
                piece.readableBytes <= state.limit - held
            else { return false }
            if held == 0 {
                if state.adopts(piece) { return true }
                state.buffer?.reserveCapacity(state.expected)
            }
            _ = state.buffer?.writeImmutableBuffer(piece)
            return true
        }
    }

    /// The whole body in a storage that is not much larger than it; nil if it was given up.
    ///
    /// What has been collected stays readable through readers. Nothing is taken any more.
    func finish() -> ByteBuffer? {
        let (bytes, isFirst) = self.state.withLock { state in
            defer { state.isFinished = true }
            if let bytes = state.buffer, bytes.readableBytes == 0 { state.buffer = ByteBuffer() }
            return (state.buffer, !state.isFinished)
        }
        guard isFirst, let bytes, Self.lentSizes.contains(bytes.readableBytes),
            let lent = LentMemory.copy(of: bytes)
        else { return bytes }
        self.state.withLock { if $0.buffer != nil { $0.buffer = lent } }
        return lent
    }

    func giveUp() {
        self.state.withLock { $0.buffer = nil }
    }

    /// A source of what has been collected from `offset` on.
    func reader(from offset: UInt64) -> (any BodySource)? {
        let end = self.state.withLock { $0.buffer?.readableBytes }
        guard let end, let start = Int(exactly: offset), start <= end else { return nil }
        return CollectedSource(self, range: start..<end)
    }

    /// A copy of at most `length` bytes at `start`: a shared slice would make the next piece that
    /// is appended copy all that was collected.
    fileprivate func copy(at start: Int, length: Int) -> ByteBuffer? {
        self.state.withLock { state in
            state.buffer?.viewBytes(at: start, length: length).map { ByteBuffer(bytes: $0) }
        }
    }
}

/// Reads a body that may still grow, up to where it ended when the reader was asked for.
private final class CollectedSource: BodySource {
    private static let pieceSize = 65_536

    private let body: CollectedBody
    /// What is left; nil after `cancel`.
    private let rest: Mutex<Range<Int>?>

    init(_ body: CollectedBody, range: Range<Int>) {
        self.body = body
        self.rest = Mutex(range)
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        guard let range = self.rest.withLock({ $0 }) else { return .failed(.cancelled) }
        if range.isEmpty { return .end(trailers: Fields()) }
        let length = min(range.count, Self.pieceSize)
        guard let piece = self.body.copy(at: range.lowerBound, length: length) else {
            return .failed(.store("the response is no longer being stored"))
        }
        self.rest.withLock { if $0 != nil { $0 = range.lowerBound + length..<range.upperBound } }
        return .piece(piece)
    }

    func cancel() {
        self.rest.withLock { $0 = nil }
    }
}
