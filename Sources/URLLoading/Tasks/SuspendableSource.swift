import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// The content of a task, of which nothing is handed out while that is suspended.
final class SuspendableSource: BodySource {
    private struct State {
        var isPaused = false
        var isSpent = false
        /// Not yet handed out, in bytes; nil: nobody knows.
        var rest: Int64?
        var wake: (@Sendable () -> Void)?
    }

    private let source: any BodySource
    private let state: Mutex<State>

    /// - Parameter content: of known length or not.
    init(_ content: UploadSource) {
        self.source = content.source
        self.state = Mutex(State(rest: content.length))
    }

    /// Whether it stands still; only a flag, as that of a `BodyPump`: `run` then makes it count.
    var isPaused: Bool {
        get { self.state.withLock { $0.isPaused } }
        set { self.state.withLock { $0.isPaused = newValue } }
    }

    /// All of it has been handed out.
    var isSpent: Bool { self.state.withLock { $0.isSpent } }

    /// Tells whoever reads it that there is more, unless it stands still.
    func run() {
        let wake = self.state.withLock { $0.isPaused ? nil : $0.wake }
        wake?()
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
        self.source.attach(wake: wake)
    }

    func next() -> BodyStep {
        if self.isPaused { return .pending }
        let step = self.source.next()
        switch step {
        case .end: self.ended(isSpent: true)
        case .failed: self.ended(isSpent: false)
        case .piece(let piece):
            // Whoever knows the length need not ask for the end.
            self.state.withLock { state in
                guard let rest = state.rest else { return }
                state.rest = rest - Int64(piece.readableBytes)
                if rest <= piece.readableBytes { state.isSpent = true }
            }
        case .pending: break
        }
        return step
    }

    func cancel() {
        self.ended(isSpent: false)
        self.source.cancel()
    }

    private func ended(isSpent: Bool) {
        let wake = self.state.withLock { state in
            if isSpent { state.isSpent = true }
            return state.wake.take()
        }
        // Released out of the lock: what it holds may end with it.
        withExtendedLifetime(wake) {}
    }
}

extension SuspendableSource: UploadFailing {
    var failure: URLError? { (self.source as? any UploadFailing)?.failure }
}
