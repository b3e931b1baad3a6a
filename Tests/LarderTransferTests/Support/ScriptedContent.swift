import LarderHTTP
import NIOCore
import Synchronization

/// A body source of which the test says step by step what it has.
final class ScriptedContent: BodySource {
    private struct State {
        var steps: [BodyStep] = []
        var wake: (@Sendable () -> Void)?
        var isWaiting = false
        var isCancelled = false
        var asked = 0
    }

    private let state = Mutex(State())
    /// Opened when the reader asks for the first time.
    let wasAsked = Gate()
    /// Opened when the reader has gone.
    let wasCancelled = Gate()

    init(_ steps: [BodyStep] = []) {
        self.state.withLock { $0.steps = steps }
    }

    convenience init(text: String, trailers: Fields = Fields()) {
        self.init([.piece(ByteBuffer(string: text)), .end(trailers: trailers)])
    }

    var isCancelled: Bool { self.state.withLock { $0.isCancelled } }
    var asked: Int { self.state.withLock { $0.asked } }

    func push(_ step: BodyStep) {
        let wake: (@Sendable () -> Void)? = self.state.withLock { state in
            state.steps.append(step)
            defer { state.isWaiting = false }
            return state.isWaiting ? state.wake : nil
        }
        wake?()
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        let step = self.state.withLock { state -> BodyStep in
            state.asked += 1
            guard !state.steps.isEmpty else {
                state.isWaiting = true
                return .pending
            }
            return state.steps.removeFirst()
        }
        self.wasAsked.open()
        return step
    }

    func cancel() {
        self.state.withLock { $0.isCancelled = true }
        self.wasCancelled.open()
    }
}
