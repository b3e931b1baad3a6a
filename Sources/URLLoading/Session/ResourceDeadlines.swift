import Dispatch
import LarderHTTP
import LarderSession
import LarderTransfer
import Synchronization

/// When the tasks of a session have taken too long as a whole (`timeoutIntervalForResource`), not
/// counting the time in which they were suspended.
///
/// One timer for all of them, for whoever comes first: by far the most end long before.
final class ResourceDeadlines: Sendable {
    /// Microseconds since this was made: an instant of the clock has no size that a compiler knows, and each
    /// task would pay for that.
    private typealias Moment = Int64

    /// What is left of a task's time.
    private enum Time {
        case until(Moment)
        /// In microseconds.
        case standing(left: Int64)
    }

    private struct Entry {
        var time: Time
        /// The last of the task's turns that was heard of.
        var turn = 0

        var deadline: Moment? {
            if case .until(let deadline) = self.time { deadline } else { nil }
        }
    }

    private struct Alarm {
        let number: Int
        let deadline: Moment
    }

    private struct State {
        var entries = SmallTable<Int, Entry>()
        var alarm: Alarm?
        /// The alarm's, which may fire before it has been noted.
        var timer: (any TimerToken)?
        var alarms = 0

        /// There is an alarm at a deadline, or before.
        func isAimed(at deadline: Moment) -> Bool {
            guard let alarm = self.alarm else { return false }
            return alarm.deadline <= deadline
        }

        /// Sees to it that there is an alarm at a deadline, or before.
        ///
        /// - Returns: the one to be set; nil: there is one.
        mutating func aim(
            at deadline: Moment
        ) -> (next: Alarm, superseded: (any TimerToken)?)? {
            if self.isAimed(at: deadline) { return nil }
            self.alarms += 1
            let next = Alarm(number: self.alarms, deadline: deadline)
            self.alarm = next
            return (next, self.timer.take())
        }

        /// Has a task's time run or stand still; what comes late does not count.
        ///
        /// - Returns: the alarm to be set for it.
        mutating func keep(
            _ number: Int, running: Bool, turn: Int, now: Moment
        ) -> (next: Alarm, superseded: (any TimerToken)?)? {
            guard var entry = self.entries[number], turn > entry.turn else { return nil }
            entry.turn = turn
            defer { self.entries[number] = entry }
            switch (entry.time, running) {
            case (.until(let deadline), false):
                entry.time = .standing(left: deadline - now)
                return nil
            case (.standing(let left), true):
                entry.time = .until(now + left)
                return self.aim(at: now + left)
            case (.until, true), (.standing, false): return nil
            }
        }
    }

    private let timers: any Timers
    private let origin = ContinuousClock.now
    /// In microseconds.
    private let limit: Int64
    private let expired: @Sendable (Int) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: of at most a human life (`Duration.bounded`).
    ///   - expired: hears the number of each task whose time is over; any thread.
    init(
        after limit: Duration, timers: any Timers, expired: @escaping @Sendable (Int) -> Void
    ) {
        self.limit = limit.inMicroseconds
        self.timers = timers
        self.expired = expired
    }

    deinit {
        self.state.withLock { $0.timer.take() }?.cancel()
    }

    func begin(_ number: Int, now: ContinuousClock.Instant = .now) {
        let now = self.moment(now)
        let deadline = now + self.limit
        let isAimed = self.state.withLock { state in
            state.entries[number] = Entry(time: .until(deadline))
            return state.isAimed(at: deadline)
        }
        if isAimed { return }
        let alarm = self.state.withLock { $0.aim(at: deadline) }
        self.set(alarm?.next, insteadOf: alarm?.superseded, now: now)
    }

    /// Has a task's time run or stand still.
    ///
    /// - Parameter turn: higher each time that this changes; what comes behind a later one does not
    ///   count.
    func keep(
        _ number: Int, running: Bool, turn: Int, now: ContinuousClock.Instant = .now
    ) {
        let now = self.moment(now)
        let alarm = self.state.withLock { state in
            state.keep(number, running: running, turn: turn, now: now)
        }
        self.set(alarm?.next, insteadOf: alarm?.superseded, now: now)
    }

    /// The task hands what is left of its time on to another.
    ///
    /// - Returns: false where nothing is left of it.
    func pass(_ number: Int, on successor: Int) -> Bool {
        self.state.withLock { state in
            guard let entry = state.entries.remove(number) else { return false }
            state.entries[successor] = entry
            return true
        }
    }

    /// Nobody's time is being kept.
    var isEmpty: Bool { self.state.withLock { $0.entries.isEmpty } }

    func end(_ number: Int) {
        self.state.withLock { _ = $0.entries.remove(number) }
    }

    private func set(
        _ alarm: Alarm?, insteadOf superseded: (any TimerToken)?, now: Moment
    ) {
        superseded?.cancel()
        guard let alarm else { return }
        let delay = Duration.microseconds(alarm.deadline - now)
        let timer = self.timers.schedule(after: delay) { [weak self] in
            guard let self else { return }
            self.fired(alarm.number, now: self.moment(.now))
        }
        let isOver = self.state.withLock { state in
            guard state.alarm?.number == alarm.number else { return true }
            state.timer = timer
            return false
        }
        if isOver { timer.cancel() }
    }

    private func moment(_ instant: ContinuousClock.Instant) -> Moment {
        (instant - self.origin).inMicroseconds
    }

    private func fired(_ number: Int, now: Moment) {
        let (over, next) = self.state.withLock { state -> ([Int], Alarm?) in
            guard let alarm = state.alarm, alarm.number == number else { return ([], nil) }
            state.alarm = nil
            state.timer = nil
            let due = max(alarm.deadline, now)
            let over = state.entries.entries
                .filter { $0.value.deadline.map { $0 <= due } ?? false }.map(\.key).sorted()
            for number in over { state.entries.remove(number) }
            let first = state.entries.entries.compactMap(\.value.deadline).min()
            return (over, first.flatMap { state.aim(at: $0)?.next })
        }
        self.set(next, insteadOf: nil, now: now)
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
