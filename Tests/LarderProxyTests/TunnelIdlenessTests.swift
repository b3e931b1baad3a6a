import NIOCore
import Testing

@testable import LarderProxy

@Suite("Whether a tunnel is idle")
struct TunnelIdlenessTests {
    /// Seconds after the beginning, all that has come, what of it waits to be taken.
    struct Look: Sendable {
        var time: Int64
        var carried: UInt64
        var waiting: Int
        /// Whether it came just now.
        var isActive = false
        var isOver = false
        /// When it is looked at again.
        var deadline: Int64
    }

    static let cases: [[Look]] = [
        // Nothing comes.
        [Look(time: 10, carried: 0, waiting: 0, isOver: true, deadline: 10)],
        // Something came and was taken: so long after it, and no longer.
        [
            Look(time: 1, carried: 9, waiting: 0, isActive: true, deadline: 11),
            Look(time: 10, carried: 9, waiting: 0, deadline: 11),
            Look(time: 11, carried: 9, waiting: 0, isOver: true, deadline: 11),
        ],
        // What came is taken bit by bit, and then no more.
        [
            Look(time: 1, carried: 900, waiting: 900, isActive: true, deadline: 11),
            Look(time: 10, carried: 900, waiting: 700, deadline: 20),
            Look(time: 20, carried: 900, waiting: 699, deadline: 30),
            Look(time: 30, carried: 900, waiting: 699, isOver: true, deadline: 30),
        ],
        // More has come than was taken meanwhile.
        [
            Look(time: 1, carried: 100, waiting: 100, isActive: true, deadline: 11),
            Look(time: 9, carried: 900, waiting: 850, isActive: true, deadline: 19),
            Look(time: 19, carried: 900, waiting: 850, isOver: true, deadline: 19),
        ],
        // Nothing of what came is taken.
        [
            Look(time: 1, carried: 900, waiting: 900, isActive: true, deadline: 11),
            Look(time: 11, carried: 900, waiting: 900, isOver: true, deadline: 11),
        ],
    ]

    @Test("depends on what comes, and on what is taken", arguments: Self.cases)
    func looks(_ looks: [Look]) {
        let start = NIODeadline.uptimeNanoseconds(1)
        var idleness = TunnelIdleness(limit: .seconds(10), now: start)
        #expect(idleness.deadline == start + .seconds(10))
        for look in looks {
            let now = start + .seconds(look.time)
            if look.isActive { idleness.noteActivity(at: now) }
            let isOver = idleness.isOver(at: now, carried: look.carried, waiting: look.waiting)
            #expect(isOver == look.isOver)
            #expect(idleness.deadline == start + .seconds(look.deadline))
        }
    }
}
