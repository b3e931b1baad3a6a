import LarderHTTP
import LarderStore
import Testing

@testable import LarderEngine

@Suite("When a transfer is asked for again")
struct TransferMachineTests {
    private let start = Timestamp(seconds: 1_800_000_000)

    private func machine(_ patience: Duration = .seconds(7 * 86_400)) -> TransferMachine {
        TransferMachine(deadline: self.start + patience)
    }

    /// Goes on with one that waits.
    private func goOn(_ machine: inout TransferMachine) {
        let isDue = machine.isDue()
        machine.begins()
        #expect(isDue && machine.state == .running)
    }

    @Test("each failure in a row doubles the pause, up to ten minutes")
    func pauses() {
        var machine = self.machine()
        for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            let step = machine.brokeOff(at: self.start, because: "x", hasProgressed: false)
            #expect(step == .wait(.seconds(pause)))
            #expect(
                machine.state == .waiting(until: self.start + .seconds(pause), cause: "x"))
            self.goOn(&machine)
        }
    }

    @Test("one that brought something begins anew with a second")
    func progress() {
        var machine = self.machine()
        for _ in 0..<5 {
            _ = machine.brokeOff(at: self.start, because: "x", hasProgressed: false)
            self.goOn(&machine)
        }
        let step = machine.brokeOff(at: self.start, because: "x", hasProgressed: true)
        #expect(step == .wait(.seconds(1)))
    }

    @Test(
        "an origin that asks for more time gets it (RFC 9110 §10.2.3), but not beyond the end",
        arguments: [(0, 1), (30, 30), (3600, 3600), (1_000_000, 7 * 86_400)] as [(Int64, Int64)])
    func wanted(_ wanted: Int64, _ pause: Int64) {
        var machine = self.machine()
        let step = machine.brokeOff(
            at: self.start, because: "x", hasProgressed: false, wanted: .seconds(wanted))
        #expect(step == .wait(.seconds(pause)))
    }

    @Test("it is given up where it is not complete in time")
    func expired() {
        var machine = self.machine(.seconds(10))
        let step = machine.brokeOff(
            at: self.start + .seconds(9), because: "x", hasProgressed: true)
        #expect(step == .wait(.seconds(1)))
        self.goOn(&machine)
        let last = machine.brokeOff(
            at: self.start + .seconds(10), because: "y", hasProgressed: true)
        #expect(last == .end(.expired(cause: "y")))
        #expect(machine.state == .over)
    }

    @Test("what is told of one that waits or is over changes nothing")
    func late() {
        var machine = self.machine()
        _ = machine.brokeOff(at: self.start, because: "x", hasProgressed: false)
        let step = machine.brokeOff(at: self.start, because: "y", hasProgressed: false)
        #expect(step == .nothing)
        machine = self.machine(.zero)
        _ = machine.brokeOff(at: self.start, because: "x", hasProgressed: false)
        let (isDue, isTakenOver) = (machine.isDue(), machine.isTakenOver())
        #expect(!isDue && !isTakenOver)
        machine.begins()
        #expect(machine.state == .over)
    }

    @Test("of which a part has come, which may be the last one, is looked at without a pause")
    func part() {
        var machine = self.machine()
        let wasRunning = machine.isToBeSeenTo()
        #expect(wasRunning && machine.state == .queued)
        let isQueued = machine.isToBeSeenTo()
        #expect(!isQueued && machine.state == .queued)
    }

    @Test("a client's fetch takes one over that waits, or waits for its turn, and no other")
    func takenOver() {
        var machine = self.machine()
        let wasRunning = !machine.isTakenOver()
        #expect(wasRunning)
        _ = machine.brokeOff(at: self.start, because: "x", hasProgressed: false)
        let waited = machine.isTakenOver()
        #expect(waited && machine.state == .running)
        var queued = TransferMachine(deadline: self.start, isQueued: true)
        let wasQueued = queued.isTakenOver()
        #expect(wasQueued)
    }

    @Test(
        "which answers may be others later",
        arguments: [
            (408, true), (425, true), (429, true), (500, true), (502, true), (503, true),
            (504, true), (501, false), (505, false), (301, false), (304, false), (400, false),
            (401, false), (403, false), (404, false), (410, false), (416, false),
        ] as [(UInt16, Bool)])
    func answers(_ status: UInt16, _ mayChange: Bool) {
        #expect(TransferMachine.mayChange(StatusCode(status)) == mayChange)
    }

    @Test(
        "what the store may take the next time is asked for again",
        arguments: SinkAbandonment.allCases)
    func stores(_ why: SinkAbandonment) {
        let again: Set<SinkAbandonment> = [.noSpace, .storeFailed, .tooSlow, .byWriter, .closing]
        #expect((TransferMachine.end(after: why) == nil) == again.contains(why))
    }
}
