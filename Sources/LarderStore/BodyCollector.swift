package import LarderHTTP
package import NIOCore
import Synchronization

/// Pulls a body to its end and hands it out whole, for whoever needs all of it at once.
///
/// Holds itself until the body has ended.
package final class BodyCollector: Sendable {
    private struct State {
        /// Let go with the end: it may hold, by its wake, what holds it.
        var source: (any BodySource)?
        var pieces: [ByteBuffer] = []
        /// The reading goes on, and a wake that comes meanwhile makes it go round once more.
        var isReading = false
        var isWoken = false
        var completion: (@Sendable ([ByteBuffer]?) -> Void)?
    }

    private let state: Mutex<State>

    /// - Parameter completion: gets the pieces; nil where the body was not whole. Called once, on any
    ///   thread.
    package init(
        _ source: any BodySource, _ completion: @escaping @Sendable ([ByteBuffer]?) -> Void
    ) {
        self.state = Mutex(State(source: source, completion: completion))
    }

    package func begin() {
        self.state.withLock { $0.source }?.attach { self.read() }
        self.read()
    }

    private func read() {
        let source: (any BodySource)? = self.state.withLock { state in
            if state.isReading {
                state.isWoken = true
                return nil
            }
            state.isReading = true
            return state.source
        }
        guard let source else { return }
        while true {
            switch source.next() {
            case .piece(let piece): self.state.withLock { $0.pieces.append(piece) }
            case .end: return self.end(isWhole: true)
            case .failed: return self.end(isWhole: false)
            case .pending:
                let goesOn = self.state.withLock { state in
                    defer { state.isWoken = false }
                    if !state.isWoken { state.isReading = false }
                    return state.isWoken
                }
                if !goesOn { return }
            }
        }
    }

    private func end(isWhole: Bool) {
        let (pieces, completion, source) = self.state.withLock { state in
            (state.pieces, state.completion.take(), state.source.take())
        }
        // Not with the lock held: it may be the last reference.
        withExtendedLifetime(source) {}
        completion?(isWhole ? pieces : nil)
    }
}
