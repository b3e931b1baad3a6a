import LarderControl
import Testing

@testable import larder

@Suite("A line that says how far something has come")
struct ProgressLineTests {
    @Test("is shown after a second, ten times a second at most, and taken away")
    func life() {
        let start = ContinuousClock.now
        var line = ProgressLine("reading", at: start)
        #expect(line.update(1, of: 4, width: 80, at: start) == nil)
        #expect(line.update(1, of: 4, width: 80, at: start + .milliseconds(999)) == nil)
        #expect(line.hide() == nil)
        #expect(
            line.update(1, of: 4, width: 80, at: start + .seconds(1))
                == "\r\u{1B}[Kreading [#####...............] 25%  1 of 4")
        #expect(line.update(2, of: 4, width: 80, at: start + .milliseconds(1099)) == nil)
        #expect(
            line.update(2, of: 4, width: 20, at: start + .milliseconds(1100))
                == "\r\u{1B}[Kreading [##########")
        #expect(line.hide() == "\r\u{1B}[K")
        #expect(line.hide() == nil)
        #expect(
            line.update(1234, of: 0, width: 80, at: start + .seconds(3))
                == "\r\u{1B}[Kreading 1,234")
        #expect(
            line.update(9, of: 8, width: 80, at: start + .seconds(4))
                == "\r\u{1B}[Kreading [####################] 100%  8 of 8")
    }
}

@Suite("What both tiers hold, seen as one")
struct ResidentTableTests {
    @Test("is told apart by its name on disk, and on its way there by when it was stored")
    func table() {
        var table = ResidentTable()
        table.add(.init(ids: [9, 3], hits: [1, 2]))
        table.add(.init(ids: [5], hits: [7]))
        table.addLanding(
            .init(
                id: .max, url: "http://h/a", status: 200, bytes: 1536, ageMilliseconds: 0,
                freshForMilliseconds: 0, hits: 0, isOnDisk: false, landingMicroseconds: 77))
        table.settle()
        #expect([3, 5, 9].map { table.hits(of: $0) } == [2, 7, 1])
        #expect([0, 4, 10].allSatisfy { table.hits(of: $0) == nil })
        let row = CacheTextTests.row
        #expect(table.hasLanded(.init(row: row, storedMicroseconds: 77)))
        #expect(!table.hasLanded(.init(row: row, storedMicroseconds: 78)))
    }
}
