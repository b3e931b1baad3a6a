import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("The ownership of loops")
struct LoopOwnershipTests {
    /// An ownership that expectations can change.
    private final class Owned {
        private var value = LoopOwnership()

        func park(until alarm: UInt64?) {
            self.value.park(until: alarm.map { MonotonicTime(nanoseconds: $0) })
        }

        func posted() -> Bool { self.value.posted() }
        func wake() -> Bool { self.value.wake() }
        func enter() -> Bool { self.value.enter() }

        func leave(leavesWork: Bool, next: UInt64?) -> LoopOwnership.Leaving {
            self.value.leave(
                leavesWork: leavesWork, next: next.map { MonotonicTime(nanoseconds: $0) })
        }
    }

    private func asleep(until alarm: UInt64? = nil) -> Owned {
        let ownership = Owned()
        ownership.park(until: alarm)
        return ownership
    }

    @Test("lets a guest in only while the thread sleeps, and one at a time")
    func entering() {
        var ownership = Owned()
        #expect(!ownership.enter())
        ownership = self.asleep()
        #expect(ownership.enter())
        #expect(!ownership.enter())
        #expect(ownership.leave(leavesWork: false, next: nil) == .sleepsOn)
        #expect(ownership.enter())
    }

    @Test("wakes the thread for a command once, and not while a guest is there")
    func posting() {
        var ownership = Owned()
        #expect(!ownership.posted())
        ownership = self.asleep()
        #expect(ownership.posted())
        #expect(!ownership.posted())
        #expect(!ownership.enter())
        ownership = self.asleep()
        #expect(ownership.enter())
        #expect(!ownership.posted())
        #expect(ownership.leave(leavesWork: true, next: nil) == .wakes)
        #expect(!ownership.posted() && !ownership.enter())
    }

    @Test("has a thread that wakes up beside a guest wait until that leaves")
    func waiting() {
        var ownership = self.asleep()
        #expect(ownership.enter())
        #expect(!ownership.wake())
        #expect(!ownership.enter() && !ownership.posted())
        #expect(ownership.leave(leavesWork: false, next: nil) == .letIn)
        #expect(!ownership.enter())
        ownership = self.asleep()
        #expect(ownership.wake())
        #expect(!ownership.enter())
    }

    struct Alarm: Sendable {
        let alarm, next: UInt64?
        let leaving: LoopOwnership.Leaving
    }

    @Test(
        "wakes the thread where it would sleep too long",
        arguments: [
            Alarm(alarm: nil, next: nil, leaving: .sleepsOn),
            Alarm(alarm: nil, next: 7, leaving: .wakes),
            Alarm(alarm: 7, next: nil, leaving: .sleepsOn),
            Alarm(alarm: 7, next: 7, leaving: .sleepsOn),
            Alarm(alarm: 7, next: 8, leaving: .sleepsOn),
            Alarm(alarm: 8, next: 7, leaving: .wakes),
        ])
    func alarms(_ c: Alarm) {
        let ownership = self.asleep(until: c.alarm)
        #expect(ownership.enter())
        #expect(ownership.leave(leavesWork: false, next: c.next) == c.leaving)
    }

    @Test("keeps its alarm over guests that leave nothing to do")
    func manyGuests() {
        let ownership = self.asleep(until: 7)
        for _ in 0..<3 {
            #expect(ownership.enter())
            #expect(
                ownership.leave(leavesWork: false, next: 9) == .sleepsOn)
        }
        #expect(ownership.enter())
        #expect(ownership.leave(leavesWork: false, next: 1) == .wakes)
    }
}
