import LarderHTTP
import LarderStore
import NIOCore
import Synchronization

/// One client's way through the body of a filling.
///
/// Reads from memory while it keeps up, and from the sink what it has fallen behind.
final class FillingReader: BodySource {
    private struct State {
        var wake: (@Sendable () -> Void)?
        var readBack: (any BodySource)?
        var isOver = false
    }

    private let filling: Filling
    private let id: UInt64
    private let state = Mutex(State())

    init(filling: Filling, id: UInt64) {
        self.filling = filling
        self.id = id
    }

    deinit {
        self.filling.readerLeft(self.id)
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
        self.filling.attach(self.id, wake: wake)
    }

    /// Passes over the bytes before `offset`; called before the first `next`.
    func skip(to offset: UInt64) {
        if offset > 0 { self.filling.advance(self.id, by: Int(clamping: offset)) }
    }

    /// Says that the first bytes are about to be asked for, where that may be long after the reader was
    /// made.
    ///
    /// - Returns: false where they are gone, as others did not wait: the source is over then.
    func begin() -> Bool { self.filling.begin(self.id) }

    func next() -> BodyStep {
        while true {
            if let source = self.state.withLock({ $0.readBack }) {
                switch source.next() {
                case .piece(let piece):
                    self.filling.advance(self.id, by: piece.readableBytes)
                    return .piece(piece)
                case .pending: return .pending
                case .end: self.state.withLock { $0.readBack = nil }
                case .failed(let failure): return self.over(.failed(failure))
                }
                continue
            }
            switch self.filling.next(self.id) {
            case .body(.pending): return .pending
            case .body(.piece(let piece)): return .piece(piece)
            case .body(let last): return self.over(last)
            case .readBack(let sink, let offset):
                guard let source = sink.reader(from: offset) else {
                    return self.over(.failed(.store("the store no longer holds what was written")))
                }
                if let wake = self.state.withLock({ $0.wake }) { source.attach(wake: wake) }
                self.state.withLock { $0.readBack = source }
            }
        }
    }

    func cancel() {
        let source = self.state.withLock { state in
            state.isOver = true
            return state.readBack.take()
        }
        source?.cancel()
        self.filling.readerLeft(self.id)
    }

    /// Ends the reading with its last step; the filling need not hold anything for it any more.
    private func over(_ last: BodyStep) -> BodyStep {
        let first = self.state.withLock { state in
            let first = !state.isOver
            state.isOver = true
            return first
        }
        if first { self.filling.readerLeft(self.id) }
        return last
    }
}
