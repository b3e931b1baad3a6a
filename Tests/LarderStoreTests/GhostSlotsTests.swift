import Testing

@testable import LarderStore

@Suite("The slots of a table of ghosts")
struct GhostSlotsTests {
    @Test("are zero, and take no memory, before they are written", arguments: [0, 1, 992, 5_000])
    func unwritten(count: Int) {
        var slots = GhostSlots(count: count)
        for index in 0..<count {
            #expect(slots[index] == 0)
            slots[index] = 0
        }
        #expect(slots.count == count)
        #expect(slots.resident == 0)
        #expect(slots.count { _ in true } == 0)
    }

    @Test("keep what is written, each by itself")
    func written() {
        var slots = GhostSlots(count: 5_000)
        let places = [0, 991, 992, 2_500, 4_999]
        for place in places { slots[place] = UInt32(place) + 1 }
        for index in 0..<5_000 {
            #expect(slots[index] == (places.contains(index) ? UInt32(index) + 1 : 0))
        }
        #expect(slots.count { _ in true } == places.count)
        #expect(slots.resident == 4 * GhostSlots.pieceSize)
        slots[991] = 0
        #expect(slots[991] == 0)
    }
}
