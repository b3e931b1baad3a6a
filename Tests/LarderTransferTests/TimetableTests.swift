import LarderHTTP
import SeededNumbers
import Testing

@testable import LarderTransfer

@Suite("What is to happen when")
struct TimetableTests {
    private final class Entry: Timed {
        let number: Int
        var moment = MonotonicTime(nanoseconds: 0)
        var place: Int?

        init(_ number: Int) { self.number = number }
    }

    @Test("What is due first comes first, as entries come, are put off and go", arguments: 1...20)
    func order(seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        let timetable = Timetable<Entry>()
        let entries = (0..<40).map(Entry.init)
        // No two at the same moment, so that there is one order.
        var expected: [Int: UInt64] = [:]
        for step in 0..<600 {
            let entry = entries[Int.random(in: entries.indices, using: &numbers)]
            if Int.random(in: 0..<3, using: &numbers) == 0 {
                timetable.leave(entry)
                expected[entry.number] = nil
                #expect(entry.place == nil)
            } else {
                let moment =
                    UInt64.random(in: 0..<1_000, using: &numbers) * 1_000 + UInt64(step)
                timetable.enter(entry, at: MonotonicTime(nanoseconds: moment))
                expected[entry.number] = moment
                #expect(entry.moment == MonotonicTime(nanoseconds: moment))
            }
            #expect(timetable.first?.number == expected.min { $0.value < $1.value }?.key)
        }
        var left: [Int] = []
        while let first = timetable.first {
            left.append(first.number)
            timetable.leave(first)
        }
        #expect(left == expected.sorted { $0.value < $1.value }.map(\.key))
        #expect(entries.allSatisfy { $0.place == nil })
    }
}
