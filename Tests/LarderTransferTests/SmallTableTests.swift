import SeededNumbers
import Testing

@testable import LarderTransfer

@Suite("A table with mostly one entry")
struct SmallTableTests {
    @Test("does as a dictionary does, whatever comes and goes", arguments: 0..<50)
    func model(_ seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        var table = SmallTable<Int, Int>()
        var model: [Int: Int] = [:]
        for step in 0..<400 {
            // Few keys, so that they meet, and few at a time, so that one is often alone.
            let key = Int.random(in: 0..<6, using: &numbers)
            switch Int.random(in: 0..<5, using: &numbers) {
            case 0, 1: #expect(table.remove(key) == model.removeValue(forKey: key))
            case 2: #expect(table.update(step, for: key) == model.updateValue(step, forKey: key))
            case 3: (table[key], model[key]) = (step, step)
            default: (table[key], model[key]) = (nil, nil)
            }
            for key in 0..<6 { #expect(table[key] == model[key]) }
            #expect(table.count == model.count && table.isEmpty == model.isEmpty)
            #expect(
                Dictionary(table.entries.map { ($0.key, $0.value) }, uniquingKeysWith: max)
                    == model)
        }
    }
}
