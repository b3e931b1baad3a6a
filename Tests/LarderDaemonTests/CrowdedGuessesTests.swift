import LarderProxy
import Testing

@testable import LarderDaemon

@Suite("Guesses that wait while there is no room")
struct CrowdedGuessesTests {
    struct Case: Sendable {
        /// The sources of those that wait, in the order in which they came.
        var waiting: [UInt128]
        var newcomer: UInt128
        var givesWay: Int?
    }

    @Test(
        "give way to those of others, the oldest of whoever has most first",
        arguments: [
            Case(waiting: [], newcomer: 1, givesWay: nil),
            Case(waiting: [7, 7, 7], newcomer: 1, givesWay: 0),
            Case(waiting: [1, 7, 7], newcomer: 1, givesWay: 1),
            Case(waiting: [2, 7, 3, 7], newcomer: 1, givesWay: 1),
            Case(waiting: [2, 3, 4], newcomer: 1, givesWay: 0),
            Case(waiting: [7, 1, 7, 1], newcomer: 1, givesWay: nil),
            Case(waiting: [7, 7, 1], newcomer: 7, givesWay: nil),
            Case(waiting: [1, 2], newcomer: 1, givesWay: nil),
        ])
    func choice(_ c: Case) {
        let waiting = c.waiting.enumerated().reversed().map { number, source in
            CrowdedGuesses.Waiting(
                key: number, source: .v4(source), number: UInt64(number))
        }
        #expect(CrowdedGuesses.givingWay(waiting, to: .v4(c.newcomer)) == c.givesWay)
    }
}
