import Dispatch
import LarderHTTP
import LarderSession
import Synchronization

/// When the tasks of a session have taken too long as a whole (`timeoutIntervalForResource`).
///
/// One timer for all of them, for whoever comes first: by far the most end long before.
final class ResourceDeadlines: Sendable {
    private struct State {
        var deadlines: [Int: ContinuousClock.Instant] = [:]
        var timer: (any TimerToken)?
    }

    private let timers: any Timers
    private let limit: Duration
    private let expired: @Sendable (Int) -> Void
    private let state = Mutex(State())

    /// - Parameter expired: hears the number of each task whose time is over; any thread.
    init(
        after limit: Duration, timers: any Timers, expired: @escaping @Sendable (Int) -> Void
    ) {
        self.limit = limit
        self.timers = timers
        self.expired = expired
    }

    deinit {
        self.state.withLock { $0.timer.take() }?.cancel()
    }

    func begin(_ number: Int, now: ContinuousClock.Instant = .now) {
        let deadline = now + self.limit
        let isFirst = self.state.withLock { state in
            state.deadlines[number] = deadline
            return state.timer == nil
        }
        if isFirst { self.schedule(for: deadline, now: now) }
    }

    /// The task hands what is left of its time on to another.
    func pass(_ number: Int, on successor: Int) {
        self.state.withLock { state in
            state.deadlines[successor] = state.deadlines.removeValue(forKey: number)
        }
    }

    func end(_ number: Int) {
        self.state.withLock { _ = $0.deadlines.removeValue(forKey: number) }
    }

    private func schedule(for deadline: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        let timer = self.timers.schedule(after: deadline - now) { [weak self] in
            self?.fired(for: deadline, now: .now)
        }
        let superfluous = self.state.withLock { state in
            guard state.timer == nil else { return Optional(timer) }
            state.timer = timer
            return nil
        }
        superfluous?.cancel()
    }

    private func fired(for deadline: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        let due = max(deadline, now)
        let (over, next) = self.state.withLock { state in
            state.timer = nil
            let over = state.deadlines.filter { $0.value <= due }.map(\.key).sorted()
            for number in over { state.deadlines.removeValue(forKey: number) }
            return (over, state.deadlines.values.min())
        }
        if let next { self.schedule(for: next, now: now) }
        for number in over { self.expired(number) }
    }
}

/// Timers that leave nothing behind when they are cancelled, however far off their time is.
struct SourceTimers: Timers {
    static let shared = SourceTimers()

    private let queue = DispatchQueue(label: "urlloading.timers")

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        let source = DispatchSource.makeTimerSource(queue: self.queue)
        let microseconds = Int(clamping: max(0, delay.inMicroseconds))
        source.schedule(deadline: .now() + .microseconds(microseconds))
        source.setEventHandler(handler: work)
        source.activate()
        return Token(source: source)
    }

    /// A dispatch source may be cancelled from any thread, but is not marked so.
    private struct Token: TimerToken, @unchecked Sendable {
        let source: any DispatchSourceTimer

        func cancel() {
            self.source.cancel()
        }
    }
}
