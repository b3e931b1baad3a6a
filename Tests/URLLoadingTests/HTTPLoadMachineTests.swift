import Testing

@testable import URLLoading

@Suite("The life of a load, as a value")
struct HTTPLoadMachineTests {
    @Test("ends once, and is measured last: when the upstream has nothing more to measure")
    func measuring() {
        var machine = HTTPLoadMachine()
        let heard1 = machine.begins()
        #expect(heard1 == 1)
        machine.fetchBegins()
        let heard2 = machine.answered()
        #expect(heard2)
        let heard3 = machine.answered()
        #expect(!heard3)
        machine.told()
        let heard4 = machine.isDue()
        #expect(!heard4)
        machine.fetchMeasured()
        let heard5 = machine.isDue()
        #expect(!heard5)
        let heard6 = machine.ends()
        #expect(heard6)
        let heard7 = machine.isDue()
        #expect(heard7)
        let heard8 = machine.isDue()
        #expect(!heard8)
        let heard9 = machine.ends()
        #expect(!heard9)
    }

    @Test("is not measured before the observer has heard of its failure")
    func telling() {
        var machine = HTTPLoadMachine()
        _ = machine.begins()
        machine.fetchBegins()
        let heard10 = machine.failed(asks: false, waits: false, mayRepeat: true)
        #expect(heard10 == .tell)
        machine.fetchMeasured()
        let heard11 = machine.isDue()
        #expect(!heard11)
        machine.told()
        let heard12 = machine.isDue()
        #expect(heard12)
    }

    @Test("is measured though it was cancelled, once what the upstream began is over")
    func cancelling() {
        var machine = HTTPLoadMachine()
        _ = machine.begins()
        machine.fetchBegins()
        let heard13 = machine.ends()
        #expect(heard13)
        let heard14 = machine.isDue()
        #expect(!heard14)
        let heard15 = machine.failed(asks: true, waits: true, mayRepeat: true)
        #expect(heard15 == .nothing)
        let heard16 = machine.begins()
        #expect(heard16 == nil)
        machine.fetchMeasured()
        let heard17 = machine.isDue()
        #expect(heard17)
    }

    @Test("asks, or waits, only where its content is whole", arguments: [true, false])
    func repeating(_ mayRepeat: Bool) {
        for asks in [true, false] {
            var machine = HTTPLoadMachine()
            _ = machine.begins()
            let action = machine.failed(asks: asks, waits: !asks, mayRepeat: mayRepeat)
            #expect(action == (mayRepeat ? asks ? .ask : .wait : .tell))
            let heard18 = machine.begins()
            #expect(heard18 == (mayRepeat ? 2 : nil))
        }
    }

    @Test("goes on or is refused once, whatever is said how often")
    func deciding() {
        var machine = HTTPLoadMachine()
        _ = machine.begins()
        _ = machine.failed(asks: true, waits: false, mayRepeat: true)
        let heard19 = machine.begins()
        #expect(heard19 == 2)
        let heard20 = machine.begins()
        #expect(heard20 == nil)
        // What the first attempt brings back is of no use any more, though another one is asking.
        #expect([machine.isAsking(attempt: 1), machine.isAsking(attempt: 2)] == [false, true])
        let heard21 = machine.refused()
        #expect(!heard21)
        let heard22 = machine.failed(asks: true, waits: false, mayRepeat: true)
        #expect(heard22 == .ask)
        let heard23 = machine.refused()
        #expect(heard23)
        let heard24 = machine.refused()
        #expect(!heard24)
    }
}
