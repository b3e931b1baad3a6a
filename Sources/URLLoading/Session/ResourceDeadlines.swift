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
        /// The number of the timer that is awaited; nil: of none.
        ///
        /// Known before there is a timer: one that is due at once fires while it is being made.
        var awaited: UInt64?
        var lastTimer: UInt64 = 0
        var timer: (any TimerToken)?

        mutating func awaitNext() -> UInt64 {
            self.lastTimer += 1
            self.awaited = self.lastTimer
            return self.lastTimer
        }
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
        let first = self.state.withLock { state in
            state.deadlines[number] = deadline
            return state.awaited == nil ? state.awaitNext() : nil
        }
        if let first { self.schedule(first, for: deadline, now: now) }
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

    private func schedule(
        _ timer: UInt64, for deadline: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        let token = self.timers.schedule(after: deadline - now) { [weak self] in
            self?.fired(for: deadline, now: .now)
        }
        self.state.withLock { state in
            if state.awaited == timer { state.timer = token }
        }
    }

    private func fired(for deadline: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        let due = max(deadline, now)
        let (over, next) = self.state.withLock { state in
            let over = state.deadlines.filter { $0.value <= due }.map(\.key).sorted()
            for number in over { state.deadlines.removeValue(forKey: number) }
            state.timer = nil
            state.awaited = nil
            let next = state.deadlines.values.min().map { ($0, state.awaitNext()) }
            return (over, next)
        }
        if let (deadline, timer) = next { self.schedule(timer, for: deadline, now: now) }
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
