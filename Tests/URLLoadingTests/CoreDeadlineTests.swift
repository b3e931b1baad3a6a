@testable import LarderProcess
import LarderSession
import Testing
@testable import URLLoading

@Suite("When the tasks of a session have taken too long (timeoutIntervalForResource)")
struct CoreDeadlineTests {
    @Test("a timer that fires while it is being made leaves the next task its own")
    func timerDueAtOnce() {
        let expired = Event<[Int]>([])
        let deadlines = ResourceDeadlines(after: .zero, timers: ImpatientTimers()) { number in
            expired.change { $0.append(number) }
        }
        deadlines.begin(1)
        deadlines.begin(2)
        #expect(expired.value == [1, 2])
    }
}

/// Timers whose time has come before the one who makes them knows it.
private struct ImpatientTimers: Timers {
    private struct Token: TimerToken {
        func cancel() {}
    }

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        work()
        return Token()
    }
}
