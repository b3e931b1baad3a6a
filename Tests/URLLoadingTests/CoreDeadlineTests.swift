import LarderSession
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The time for the whole of a resource (§2, §3.1)")
struct CoreDeadlineTests {
    @Test("is up for every task where timers fire before they are noted")
    func firesAtOnce() {
        let over = Event<[Int]>([])
        let deadlines = ResourceDeadlines(after: .zero, timers: PromptTimers()) { number in
            over.change { $0.append(number) }
        }
        for number in 1...3 { deadlines.begin(number) }
        #expect(over.value == [1, 2, 3])
    }

    @Test("does not run while a task stands still, and then has the rest of it")
    func standing() {
        let over = Event<[Int]>([])
        let timers = FiringTimers()
        let deadlines = ResourceDeadlines(after: .seconds(1000), timers: timers) { number in
            over.change { $0.append(number) }
        }
        let start = ContinuousClock.now
        deadlines.begin(1, now: start)
        deadlines.keep(1, running: false, turn: 1, now: start + .seconds(900))
        deadlines.begin(2, now: start + .seconds(1))
        timers.fireAll()
        #expect(over.value.isEmpty)
        // Before the second, whose timer is set already.
        deadlines.keep(1, running: true, turn: 2, now: start + .seconds(900))
        timers.fireAll()
        #expect(over.value == [1])
        timers.fireAll()
        #expect(over.value == [1, 2])
    }

    @Test("does not hear what comes late of a task that has gone on")
    func late() {
        let over = Event<[Int]>([])
        let timers = FiringTimers()
        let deadlines = ResourceDeadlines(after: .seconds(1000), timers: timers) { number in
            over.change { $0.append(number) }
        }
        deadlines.begin(1)
        deadlines.keep(1, running: true, turn: 2)
        deadlines.keep(1, running: false, turn: 1)
        #expect(deadlines.pass(1, on: 2))
        timers.fireAll()
        #expect(over.value == [2])
        #expect(!deadlines.pass(2, on: 3), "nothing is left of it")
        #expect(deadlines.isEmpty)
    }
}

/// Timers whose time is up before they have been made.
private struct PromptTimers: Timers {
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
