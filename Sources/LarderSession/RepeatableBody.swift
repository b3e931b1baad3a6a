import LarderHTTP
import NIOCore
import Synchronization

/// The content of a request that may have to be sent more than once.
///
/// ```
/// reader() ─▶ next … ─▶ rewind() ─▶ reader() ─▶ what was kept, then the rest ─▶ … release()
/// ```
///
/// Each reader takes the place of the one before, which gets nothing further. What the client sends
/// is asked for once; it is kept up to a limit, and content beyond that cannot be repeated. Any
/// thread.
final class RepeatableBody: Sendable {
    /// How much is kept.
    static let limit = 65_536

    private struct State: ~Copyable {
        var kept: [ByteBuffer] = []
        var keptBytes = 0
        /// More came than is kept.
        var isLost = false
        /// How it ended.
        var end: BodyStep?
        /// The reader whose turn it is, which whoever sends the request holds, and how many of the
        /// kept pieces it has.
        weak var reader: Reader?
        var position = 0
        var isAttached = false
        /// A thread is asking the client's source.
        var isAsking = false
        /// The source has said that it will wake.
        var isPending = false
        var wokeMeanwhile = false
        var isReleased = false
        var isReaderCancelled = false
        var isSourceCancelled = false
        var hasBegun = false
    }

    private let source: any BodySource
    private let state = Mutex(State())

    init(_ source: any BodySource) {
        self.source = source
    }

    /// Whether content of this length can be repeated for certain.
    static func keeps(_ length: BodyLength) -> Bool {
        switch length {
        case .none: true
        case .known(let bytes): bytes <= UInt64(Self.limit)
        case .unknown: false
        }
    }

    /// Whether a reader made now would get all of it.
    var isRepeatable: Bool { self.state.withLock { !$0.isLost && !$0.isReleased } }

    /// Whether any of it was asked for.
    var hasBegun: Bool { self.state.withLock { $0.hasBegun } }

    /// All of it, where it has come and is kept.
    var whole: [UInt8]? {
        self.state.withLock { state in
            guard !state.isLost, !state.isReleased, case .end? = state.end else { return nil }
            return state.kept.flatMap { Array($0.readableBytesView) }
        }
    }

    /// Takes it away from the reader that has it, so that the next one can begin from the front.
    ///
    /// - Returns: false where that is not possible any more; then nothing has changed.
    func rewind() -> Bool {
        self.state.withLock { state in
            guard !state.isLost, !state.isReleased else { return false }
            state.reader = nil
            state.position = 0
            return true
        }
    }

    /// Begins from the front; after the first time only behind `rewind`.
    func reader() -> any BodySource {
        let reader = Reader(self)
        let isFirst = self.state.withLock { state in
            defer { state.isAttached = true }
            state.reader = reader
            state.position = 0
            state.isReaderCancelled = false
            return !state.isAttached
        }
        if isFirst { self.source.attach { [weak self] in self?.woken() } }
        return reader
    }

    /// It will not be sent again.
    func release() {
        let cancels = self.state.withLock { state in
            state.isReleased = true
            state.kept.removeFirst(Swift.min(state.position, state.kept.count))
            state.position = 0
            return Self.cancels(&state)
        }
        if cancels { self.source.cancel() }
    }

    /// Nobody wants it.
    func cancel() {
        let cancels = self.state.withLock { state in
            state.isReleased = true
            state.isReaderCancelled = true
            return Self.cancels(&state)
        }
        if cancels { self.source.cancel() }
    }

    private static func cancels(_ state: inout State) -> Bool {
        guard state.isReleased, state.isReaderCancelled, !state.isSourceCancelled else {
            return false
        }
        state.isSourceCancelled = true
        return state.end == nil
    }

    private func woken() {
        let reader = self.state.withLock { state in
            state.isPending = false
            if state.isAsking { state.wokeMeanwhile = true }
            return state.reader
        }
        reader?.wake()
    }

    // MARK: The readers

    /// One reading; belongs to whoever sends the request.
    private final class Reader: BodySource {
        private let body: RepeatableBody
        private let waker = Mutex<(@Sendable () -> Void)?>(nil)

        init(_ body: RepeatableBody) {
            self.body = body
        }

        func attach(wake: @escaping @Sendable () -> Void) { self.waker.withLock { $0 = wake } }
        func wake() { self.waker.withLock { $0 }?() }
        func next() -> BodyStep { self.body.next(self) }
        func cancel() { self.body.cancelled(self) }
    }

    private enum Turn {
        case step(BodyStep)
        case ask
    }

    private func next(_ reader: Reader) -> BodyStep {
        let turn = self.state.withLock { state in Self.turn(&state, reader) }
        switch turn {
        case .step(let step): return step
        case .ask: break
        }
        let step = self.source.next()
        let (answer, waiting) = self.state.withLock { state in
            Self.note(&state, step, reader)
        }
        // A reader that came while this one was asking got nothing, and waits.
        waiting?.wake()
        return answer
    }

    private static func turn(_ state: inout State, _ reader: Reader) -> Turn {
        guard state.reader === reader else { return .step(.failed(.cancelled)) }
        state.hasBegun = true
        if state.position < state.kept.count {
            let piece = state.kept[state.position]
            if state.isReleased { state.kept.removeFirst() } else { state.position += 1 }
            return .step(.piece(piece))
        }
        if let end = state.end { return .step(end) }
        if state.isAsking || state.isPending { return .step(.pending) }
        state.isAsking = true
        state.wokeMeanwhile = false
        return .ask
    }

    private static func note(
        _ state: inout State, _ step: BodyStep, _ reader: Reader
    ) -> (BodyStep, waiting: Reader?) {
        state.isAsking = false
        let isCurrent = state.reader === reader
        switch step {
        case .piece(let piece):
            self.keep(piece, &state, isCurrent)
        case .pending: state.isPending = !state.wokeMeanwhile
        case .end, .failed: state.end = step
        }
        return isCurrent ? (step, nil) : (.failed(.cancelled), state.reader)
    }

    private static func keep(
        _ piece: ByteBuffer, _ state: inout State, _ isCurrent: Bool
    ) {
        if isCurrent, state.isLost || state.isReleased { return }
        state.keptBytes += piece.readableBytes
        // One that another reader waits for is kept, however long.
        if isCurrent, state.keptBytes > Self.limit {
            state.isLost = true
            state.kept = []
            state.position = 0
            return
        }
        state.kept.append(piece)
        if isCurrent { state.position += 1 }
    }

    private func cancelled(_ reader: Reader) {
        let cancels = self.state.withLock { state in
            guard state.reader === reader else { return false }
            state.isReaderCancelled = true
            return Self.cancels(&state)
        }
        if cancels { self.source.cancel() }
    }
}
