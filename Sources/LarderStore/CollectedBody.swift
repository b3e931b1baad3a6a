import LarderHTTP
import NIOCore
import Synchronization

/// The body of a response that is being stored, collected into one buffer of its own.
///
/// Its bytes are copied: a piece is a slice of a receive buffer, which may be far larger than it,
/// and the bound of the tier can count only storage that no one else holds.
final class CollectedBody: Sendable {
    private struct State {
        /// nil once it has been given up.
        var buffer: ByteBuffer?
        /// What is there is all there will be.
        var isFinished = false
        let limit: Int
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
        self.state = Mutex(
            State(buffer: ByteBufferAllocator().buffer(capacity: expected), limit: limit))
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
