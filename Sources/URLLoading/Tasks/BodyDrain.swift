import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// Reads the rest of a response that nobody wants, so that its connection can be used again; not
/// more than a little, nor for long: beyond that a new connection costs less.
final class BodyDrain: Sendable {
    static let limit = 64 << 10
    /// How long it may take, however it comes.
    static let patience = Duration.seconds(1)

    private let body: any BodySource
    private let state: Mutex<State>

    private struct State {
        var rest = BodyDrain.limit
        var turn = OneAtATime()
        var isOver = false
        /// Called when it is over.
        var then: (@Sendable () -> Void)?
        var timer: (any TimerToken)?
    }

    private init(_ body: any BodySource, then: (@Sendable () -> Void)?) {
        self.body = body
        self.state = Mutex(State(then: then))
    }

    deinit {
        self.state.withLock { $0.timer.take() }?.cancel()
    }

    /// - Parameters:
    ///   - length: of the body, as far as it is known (-1: not). One that is short is worth waiting
    ///     for; others are read while the task goes on.
    ///   - then: what comes next, once.
    static func drain(
        _ body: any BodySource, expecting length: Int64, timers: any Timers,
        then: @escaping @Sendable () -> Void
    ) {
        let isShort = (0...Int64(Self.limit)).contains(length)
        let drain = BodyDrain(body, then: isShort ? then : nil)
        // The source keeps this alive until it has ended, or is let go.
        body.attach { drain.run() }
        drain.run()
        drain.limit(by: timers)
        if !isShort { then() }
    }

    /// Lets go of what has not come in time: it would keep what comes next waiting, or a connection.
    private func limit(by timers: any Timers) {
        if self.state.withLock({ $0.isOver }) { return }
        // A source that is let go of lets go of this, and there is nothing to be waited for then.
        let timer = timers.schedule(after: Self.patience) { [weak self] in self?.letGo() }
        let isOver = self.state.withLock { state in
            if !state.isOver { state.timer = timer }
            return state.isOver
        }
        if isOver { timer.cancel() }
    }

    private func letGo() {
        if self.state.withLock({ $0.isOver }) { return }
        self.body.cancel()
        self.end()
    }

    private func run() {
        guard self.state.withLock({ !$0.isOver && $0.turn.begins() }) else { return }
        repeat { self.read() } while self.state.withLock { !$0.isOver && $0.turn.goesOn() }
    }

    private func read() {
        while true {
            switch self.body.next() {
            case .pending: return
            case .piece(let piece):
                let rest = self.state.withLock { state in
                    state.rest -= min(piece.readableBytes, state.rest)
                    return state.rest
                }
                guard rest > 0 else {
                    self.body.cancel()
                    return self.end()
                }
            case .end, .failed: return self.end()
            }
        }
    }

    private func end() {
        let (then, timer) = self.state.withLock { state in
            state.isOver = true
            return (state.then.take(), state.timer.take())
        }
        timer?.cancel()
        then?()
    }
}

/// A body without a byte.
final class EmptyBody: BodySource {
    func attach(wake: @escaping @Sendable () -> Void) {}
    func next() -> BodyStep { .end(trailers: Fields()) }
    func cancel() {}
}
