import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// Carries a body from its source to its consumer, a piece at a time: the next is pulled when the
/// consumer has taken the one before, and while nobody has paused it.
///
///     start ─▶ (next ─▶ take ─▶ ready)* ─▶ finish ─▶ ended
///
/// No thread waits: whoever brings the next reason to go on (the source's wake, the consumer's
/// `ready`, `run`) carries on, and one of them at a time.
final class BodyPump: Sendable {
    /// How it came to its end.
    enum End: Sendable {
        case whole
        case broken(BodyFailure)
        /// The consumer could not go on.
        case refused(BodyConsumerError)
    }

    private struct State {
        var turn = OneAtATime()
        var awaitsConsumer = false
        var isStarted = false
        var isPaused = false
        var isCancelled = false
        /// The source has no more to say.
        var isSpent = false
        /// The consumer has been told of the end.
        var isStopped = false
    }

    private let body: any BodySource
    private let consumer: any BodyConsumer
    private let received: @Sendable (Int) -> Void
    private let ended: @Sendable (End) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - received: hears how long each piece is, before the consumer takes it.
    ///   - ended: hears once how it ended; not after `cancel`.
    init(
        _ body: any BodySource, into consumer: any BodyConsumer,
        received: @escaping @Sendable (Int) -> Void, ended: @escaping @Sendable (End) -> Void
    ) {
        self.body = body
        self.consumer = consumer
        self.received = received
        self.ended = ended
    }

    /// Begins, unless it is paused; once.
    func start() {
        // The source lives as long as this does; it must not keep this alive in turn.
        self.body.attach { [weak self] in self?.run() }
        self.state.withLock { $0.isStarted = true }
        self.run()
    }

    /// Whether it stands still; what is under way when it is set still goes to the consumer.
    ///
    /// Only a flag, so that whoever decides about it can set it under a lock of its own: set apart
    /// from the decision, an older one could come behind a newer. `run` then makes it count.
    var isPaused: Bool {
        get { self.state.withLock { $0.isPaused } }
        set { self.state.withLock { $0.isPaused = newValue } }
    }

    /// Lets go of the source and stops the consumer.
    func cancel() {
        let wasCancelled = self.state.withLock { state in
            defer { state.isCancelled = true }
            return state.isCancelled
        }
        guard !wasCancelled else { return }
        self.body.cancel()
        // Takes the turn in order to tell the consumer between two of its calls.
        self.run()
    }

    /// Goes on as far as it can, unless somebody is at that.
    func run() {
        guard self.state.withLock({ $0.turn.begins() }) else { return }
        repeat { while self.step() {} } while self.state.withLock { $0.turn.goesOn() }
    }

    private enum Turn { case pull, stop, wait }

    /// - Returns: whether another may follow at once.
    private func step() -> Bool {
        let turn: Turn = self.state.withLock { state in
            if state.isCancelled {
                guard !state.isStopped else { return .wait }
                state.isStopped = true
                return .stop
            }
            guard state.isStarted, !state.isPaused, !state.awaitsConsumer, !state.isSpent else {
                return .wait
            }
            return .pull
        }
        switch turn {
        case .wait: return false
        case .stop:
            self.consumer.stop()
            return false
        case .pull: return self.pull()
        }
    }

    private func pull() -> Bool {
        switch self.body.next() {
        case .pending: return false
        case .piece(let piece):
            self.state.withLock { $0.awaitsConsumer = true }
            self.received(piece.readableBytes)
            self.consumer.take(piece) { [self] in self.taken($0) }
            return true
        case .end:
            let isHeard = self.state.withLock { state in
                state.isSpent = true
                return !state.isCancelled
            }
            // The next turn stops the consumer.
            guard isHeard else { return true }
            self.consumer.finish { [self] in self.finished($0) }
            return false
        case .failed(let failure):
            let isHeard = self.state.withLock { state in
                state.isSpent = true
                guard !state.isCancelled else { return false }
                state.isStopped = true
                return true
            }
            guard isHeard else { return true }
            self.consumer.stop()
            if let error = (self.body as? any ProgramBody)?.programError {
                self.ended(.refused(BodyConsumerError(error: error)))
            } else {
                self.ended(.broken(failure))
            }
            return false
        }
    }

    private func taken(_ error: BodyConsumerError?) {
        let isOver = self.state.withLock { state in
            state.awaitsConsumer = false
            guard error != nil else { return false }
            defer { state.isSpent = true }
            return state.isSpent || state.isCancelled
        }
        if let error {
            guard !isOver else { return }
            self.body.cancel()
            self.ended(.refused(error))
        } else {
            self.run()
        }
    }

    private func finished(_ error: BodyConsumerError?) {
        guard !self.state.withLock({ $0.isCancelled }) else { return }
        self.ended(error.map { .refused($0) } ?? .whole)
    }
}
