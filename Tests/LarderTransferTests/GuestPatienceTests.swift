import Testing

@testable import LarderTransfer

@Suite("How long a guest waits")
struct GuestPatienceTests {
    @Test(
        "is told by how it went lately: after each time in vain ever more requests go by",
        arguments: [
            ("", "www"), ("+++", "wwww"), ("-", "w--w"), ("--", "w--w----w"),
            ("---", "w--w----w--------w"), ("-+", "w--www"), ("-+-", "w--ww--w"),
            ("+-+", "ww--www"),
        ])
    func series(_ outcomes: String, _ expected: String) {
        var patience = GuestPatience()
        var outcomes = Substring(outcomes)
        var waits = ""
        for _ in expected {
            let mayWait = patience.mayWait()
            waits += mayWait ? "w" : "-"
            if mayWait { patience.ended(isAnswered: outcomes.popFirst() != "-") }
        }
        #expect(waits == expected)
    }

    @Test("comes back to the one that answers in time, however long it was in vain")
    func limit() {
        var patience = GuestPatience()
        var passedOver = 0
        for _ in 0..<20 {
            passedOver = 0
            while !patience.mayWait() { passedOver += 1 }
            patience.ended(isAnswered: false)
        }
        #expect(passedOver == GuestPatience.mostPassedOver)
        while !patience.mayWait() {}
        patience.ended(isAnswered: true)
        #expect(patience == GuestPatience())
    }
}
