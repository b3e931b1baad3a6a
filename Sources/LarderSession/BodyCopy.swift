import LarderHTTP
import LarderStore
import NIOCore
import Synchronization

/// Copies bytes within the store, from what is stored into what is being stored, piece by piece.
///
/// Its sink holds it until that has ended. Any thread.
final class BodyCopy: ObjectSinkObserver {
    private struct State: ~Copyable {
        var source: (any BodySource)?
        var sink: (any ObjectSink)?
        var given: UInt64 = 0
        var written: UInt64 = 0
        /// A thread moves pieces; another one that has something new only says so.
        var isMoving = false
        var movesAgain = false
        /// The source has nothing for now, and will wake.
        var isPending = false
        /// Told of the sink's end; nil: it has been.
        var end: (@Sendable (SinkOutcome) -> Void)?
    }

    private enum Turn {
        case read(any BodySource, any ObjectSink)
        /// The sink, where it has to take something first.
        case rest((any ObjectSink)?)
        case again
    }

    /// How far the copying runs ahead of the store.
    private static let window: UInt64 = 262_144

    private let length: UInt64
    private let isWhole: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - length: of what is copied, in bytes.
    ///   - isWhole: it is a whole body, whose trailers go along.
    ///   - end: called once, on any thread, with what became of the sink.
    init(length: UInt64, isWhole: Bool, end: @escaping @Sendable (SinkOutcome) -> Void) {
        self.length = length
        self.isWhole = isWhole
        self.state = Mutex(State(end: end))
    }

    /// Begins to copy into a sink that has this for its observer.
    func begin(from source: any BodySource, into sink: any ObjectSink) {
        source.attach { [weak self] in self?.move() }
        let isOver = self.state.withLock { state in
            guard state.end != nil else { return true }
            (state.sink, state.source) = (sink, source)
            return false
        }
        if isOver { source.cancel() } else { self.move() }
    }

    private func move() {
        let isMine = self.state.withLock { state in
            if state.isMoving { state.movesAgain = true }
            defer { state.isMoving = true }
            return !state.isMoving
        }
        guard isMine else { return }
        while true {
            switch self.state.withLock({ Self.turn(&$0) }) {
            case .rest(let sink):
                sink?.hurry()
                return
            case .again: continue
            case .read(let source, let sink): self.read(source, sink)
            }
        }
    }

    private static func turn(_ state: inout State) -> Turn {
        let isFull = state.given &- min(state.written, state.given) >= self.window
        if let source = state.source, let sink = state.sink, !isFull, !state.isPending {
            return .read(source, sink)
        }
        defer { state.movesAgain = false }
        if state.movesAgain {
            state.isPending = false
            return .again
        }
        state.isMoving = false
        state.isPending = false
        return .rest(isFull ? state.sink : nil)
    }

    private func read(_ source: any BodySource, _ sink: any ObjectSink) {
        switch source.next() {
        case .piece(let piece):
            self.state.withLock { $0.given &+= UInt64(piece.readableBytes) }
            sink.write(piece)
        case .pending: self.state.withLock { $0.isPending = true }
        case .end(let trailers):
            let isAll = self.state.withLock { state in
                state.source = nil
                return state.given == self.length
            }
            guard isAll else { return sink.abandon() }
            sink.commit(trailers: self.isWhole ? trailers : Fields())
        case .failed:
            self.state.withLock { $0.source = nil }
            sink.abandon()
        }
    }

    // MARK: What the store says

    func sink(written offset: UInt64) {
        self.state.withLock { $0.written = max($0.written, offset) }
        self.move()
    }

    func sinkEnded(_ outcome: SinkOutcome) {
        let (source, end) = self.state.withLock { state in
            state.sink = nil
            return (state.source.take(), state.end.take())
        }
        source?.cancel()
        end?(outcome)
    }
}
