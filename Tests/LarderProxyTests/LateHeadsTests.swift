import NIOCore
import Testing

@testable import LarderProxy

@Suite("Connections that owe the head of a request")
struct LateHeadsTests {
    struct Case: Sendable {
        /// Seconds at which each began to owe it.
        var since: [UInt64]
        var limit: Int
        var late: [Int]
        var next: UInt64?
    }

    @Test(
        "give way once their grace is over, the slowest first",
        arguments: [
            Case(since: [], limit: 3, late: [], next: nil),
            Case(since: [90, 80, 94], limit: 1, late: [1], next: nil),
            Case(since: [90, 80, 94], limit: 3, late: [1, 0, 2], next: nil),
            // The grace is of five seconds, and it is the hundredth.
            Case(since: [95, 96], limit: 2, late: [0], next: 101),
            Case(since: [99, 97, 98], limit: 1, late: [], next: 102),
            Case(since: [99, 80], limit: 1, late: [1], next: nil),
        ])
    func choice(_ c: Case) {
        func moment(_ seconds: UInt64) -> NIODeadline {
            .uptimeNanoseconds(seconds * 1_000_000_000)
        }
        let heads = LateHeads(
            since: c.since.map(moment), limit: c.limit, grace: .seconds(5), at: moment(100))
        #expect(heads.late == c.late)
        #expect(heads.next == c.next.map(moment))
    }
}
