package import LarderHTTP
import LarderSession
package import NIOCore
import Synchronization

/// A body that a connection pushes in as it arrives, and a reader pulls out.
///
/// ```
/// push … push · (end | fail)        on the connection's loop
/// attach · next … next · [cancel]   by the reader, on any thread
/// ```
///
/// It holds at most `bound` bytes and the piece that passed it: `push` then says that it is full,
/// and the connection stops reading until `.roomAgain`. Small pieces are gathered: what they lie in
/// is bounded, too, however few bytes come at a time.
package final class BodyFeed: BodySource {
    /// What the reader's doing means to the connection.
    package enum Signal: Hashable, Sendable {
        /// The first `next`: the content is wanted.
        case wanted
        /// There is room again after the feed was full.
        case roomAgain
        /// The reader has gone.
        case abandoned
    }

    private enum Ending {
        case whole(Fields)
        case broken(BodyFailure)
    }

    private struct State {
        var pieces = PieceQueue()
        var held = 0
        var ending: Ending?
        var wake: (@Sendable () -> Void)?
        var readerWaits = false
        var wasAsked = false
        var isFull = false
        var isAbandoned = false
    }

    private let state = Mutex(State())
    private let bound: Int
    private let signal: @Sendable (Signal) -> Void

    /// - Parameter signal: called on the reader's thread, outside of any lock; must not block.
    package init(bound: Int, signal: @escaping @Sendable (Signal) -> Void) {
        self.bound = max(1, bound)
        self.signal = signal
    }

    // MARK: The connection's side

    /// Whether nothing more should be pushed for now.
    package var isFull: Bool { self.state.withLock { $0.isFull } }

    /// Adds bytes; empty ones are left out.
    ///
    /// After an end, a failure or a cancel they are dropped.
    ///
    /// - Returns: false when the feed is full.
    @discardableResult
    package func push(_ piece: ByteBuffer) -> Bool {
        guard piece.readableBytes > 0 else { return !self.isFull }
        let (wake, hasRoom) = self.state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
            guard state.ending == nil, !state.isAbandoned else { return (nil, true) }
            state.pieces.append(piece)
            state.held += piece.readableBytes
            if state.held >= self.bound { state.isFull = true }
            return (Self.reader(of: &state), !state.isFull)
        }
        wake?()
        return hasRoom
    }

    package func end(trailers: Fields) { self.finish(.whole(trailers)) }

    /// Says that the rest will not come.
    ///
    /// What was pushed before is still read.
    package func fail(_ failure: BodyFailure) { self.finish(.broken(failure)) }

    private func finish(_ ending: Ending) {
        let wake = self.state.withLock { state -> (@Sendable () -> Void)? in
            guard state.ending == nil, !state.isAbandoned else { return nil }
            state.ending = ending
            return Self.reader(of: &state)
        }
        wake?()
    }

    private static func reader(of state: inout State) -> (@Sendable () -> Void)? {
        guard state.readerWaits else { return nil }
        state.readerWaits = false
        return state.wake
    }

    // MARK: The reader's side

    package func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    package func next() -> BodyStep {
        let (step, signals) = self.state.withLock { state -> (BodyStep, [Signal]) in
            var signals: [Signal] = []
            if !state.wasAsked {
                state.wasAsked = true
                signals.append(.wanted)
            }
            if state.isAbandoned { return (.failed(.cancelled), signals) }
            if let piece = state.pieces.popFirst() {
                state.held -= piece.readableBytes
                if state.isFull, state.held <= self.bound / 2 {
                    state.isFull = false
                    signals.append(.roomAgain)
                }
                return (.piece(piece), signals)
            }
            switch state.ending {
            case .whole(let trailers): return (.end(trailers: trailers), signals)
            case .broken(let failure): return (.failed(failure), signals)
            case nil:
                state.readerWaits = true
                return (.pending, signals)
            }
        }
        for signal in signals { self.signal(signal) }
        return step
    }

    package func cancel() {
        let isFirst = self.state.withLock { state -> Bool in
            guard !state.isAbandoned else { return false }
            state.isAbandoned = true
            state.pieces.removeAll()
            state.held = 0
            state.isFull = false
            state.wake = nil
            return state.ending == nil
        }
        if isFirst { self.signal(.abandoned) }
    }
}
