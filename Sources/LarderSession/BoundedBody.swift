import LarderHTTP
import NIOCore
import Synchronization

/// So many bytes of a body that may go on behind them.
///
/// Lets go of the body with the last of them.
final class BoundedBody: BodySource {
    private struct State {
        var remaining: UInt64
        /// The last step, from the moment when it is known.
        var last: BodyStep?
    }

    private let source: any BodySource
    private let state: Mutex<State>

    /// - Parameter length: above zero.
    init(_ source: any BodySource, length: UInt64) {
        self.source = source
        self.state = Mutex(State(remaining: length))
    }

    func attach(wake: @escaping @Sendable () -> Void) { self.source.attach(wake: wake) }

    func cancel() { self.source.cancel() }

    func next() -> BodyStep {
        if let last = self.state.withLock({ $0.last }) { return last }
        switch self.source.next() {
        case .piece(let piece): return self.bounded(piece)
        case .pending: return .pending
        case .end:
            return .failed(
                .upstream(
                    UpstreamFailure(
                        .httpResponseIncomplete, detail: "fewer bytes than were announced")))
        case .failed(let failure): return .failed(failure)
        }
    }

    private func bounded(_ piece: ByteBuffer) -> BodyStep {
        let (length, isOver) = self.state.withLock { state in
            let length = min(UInt64(piece.readableBytes), state.remaining)
            state.remaining -= length
            if state.remaining == 0 { state.last = .end(trailers: Fields()) }
            return (length, state.remaining == 0)
        }
        if isOver { self.source.cancel() }
        return .piece(
            piece.getSlice(at: piece.readerIndex, length: Int(clamping: length)) ?? piece)
    }
}
