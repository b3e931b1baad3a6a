import NIOCore
import Testing

@testable import LarderProxy

@Suite("The places for connections")
struct CrowdingTests {
    @Test("are said to be taken once, and to be free once an eighth of them is")
    func hysteresis() {
        var crowding = Crowding()
        let now = NIODeadline.now()
        #expect(crowding.left(15, of: 16) == nil)
        #expect(crowding.waited(at: now) == .full(count: 1))
        #expect(crowding.waited(at: now) == nil)
        #expect(crowding.left(15, of: 16) == nil)
        #expect(crowding.waited(at: now) == nil)
        #expect(crowding.left(14, of: 16) == .over(count: 3))
        #expect(crowding.left(0, of: 16) == nil)
    }

    @Test("are said to be taken once an hour at most, and what was not said is not over")
    func silence() {
        var crowding = Crowding()
        let now = NIODeadline.now()
        #expect(crowding.waited(at: now) == .full(count: 1))
        #expect(crowding.left(0, of: 1) == .over(count: 1))
        #expect(crowding.waited(at: now + .minutes(59)) == nil)
        #expect(crowding.left(0, of: 1) == nil)
        #expect(crowding.waited(at: now + .hours(1)) == .full(count: 3))
    }
}
