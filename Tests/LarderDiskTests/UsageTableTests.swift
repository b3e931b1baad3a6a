import LarderHTTP
import LarderStore
import Testing

@testable import LarderDisk

@Suite("The table of uses")
struct UsageTableTests {
    private let table = UsageTable()

    private func key(_ number: UInt64) -> ObjectKey {
        ObjectKey(hash: KeyHash(high: number, low: 0), id: ObjectID(rawValue: number))
    }

    private func note(_ number: UInt64, at second: Int64 = 0) -> Bool {
        self.table.note(self.key(number), at: Timestamp(seconds: second))
    }

    @Test("has a first use written at once, and later ones once a round")
    func rounds() {
        #expect(self.note(1))
        #expect(!self.note(1, at: 5))
        #expect(self.table.take(10).map(\.count) == [2])
        #expect(!self.table.hasDue)
        for second in 6...9 { #expect(!self.note(1, at: Int64(second))) }
        #expect(!self.table.hasDue)
        #expect(self.table.use(of: ObjectID(rawValue: 1))?.count == 4)
        self.table.beginRound()
        let taken = self.table.take(10)
        #expect(taken.map(\.count) == [4])
        #expect(taken.map(\.last) == [Timestamp(seconds: 9)])
    }

    @Test("forgets what a whole round brought no use of")
    func idle() {
        _ = self.note(1)
        _ = self.table.take(10)
        #expect(!self.table.isEmpty)
        self.table.beginRound()
        #expect(self.table.isEmpty && !self.table.hasDue)
        #expect(self.note(1))
    }

    @Test("gives each use once, the oldest first, whatever begins or is forgotten meanwhile")
    func order() {
        for number in 1...9 { #expect(self.note(UInt64(number)) == (number == 1)) }
        self.table.beginRound()
        #expect(self.table.take(3).map(\.key.id.rawValue) == [1, 2, 3])
        self.table.forget(ObjectID(rawValue: 5))
        _ = self.note(2)
        self.table.beginRound()
        #expect(self.table.take(100).map(\.key.id.rawValue) == [4, 6, 7, 8, 9, 2])
        #expect(self.table.take(100).isEmpty && !self.table.hasDue)
    }

    @Test("gives no use twice of what was forgotten and is used again")
    func again() {
        _ = self.note(1)
        self.table.forget(ObjectID(rawValue: 1))
        _ = self.note(1)
        #expect(self.table.take(100).map(\.count) == [1])
        #expect(self.table.take(100).isEmpty)
    }

    @Test("is bounded, and has room again when the writer came round")
    func bound() {
        for number in 1...70_000 { _ = self.note(UInt64(number)) }
        #expect(self.table.use(of: ObjectID(rawValue: 70_000)) == nil)
        #expect(self.table.take(10_000).count == 10_000)
        #expect(!self.note(70_000))
        #expect(self.table.use(of: ObjectID(rawValue: 70_000))?.count == 1)
    }
}
