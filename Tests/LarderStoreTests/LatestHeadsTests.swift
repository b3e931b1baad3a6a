import LarderPolicy
import Testing

@testable import LarderStore

@Suite("The heads that the lower tier is about to have")
struct LatestHeadsTests {
    private static func head(at seconds: Int64, isInvalidated: Bool = false) -> StoredHead {
        var head = Sample.head(at: seconds)
        head.isInvalidated = isInvalidated
        return head
    }

    private static let one = ObjectID(rawValue: 1)

    /// Notes a head of which the lower tier is told before any other.
    private static func tell(_ heads: inout LatestHeads, _ id: ObjectID, _ head: StoredHead) {
        let noted = heads.note(id, head)
        let later = heads.told(id, noted)
        #expect(later == nil)
    }

    private static func noteOthers(_ heads: inout LatestHeads) {
        for number in 100..<200 as Range<UInt64> {
            Self.tell(&heads, ObjectID(rawValue: number), Self.head(at: 9))
            heads.wrote(ObjectID(rawValue: number))
        }
    }

    @Test("are kept until the lower tier has written each of them, and a few for a while longer")
    func written() {
        var heads = LatestHeads()
        for seconds in 2...3 as ClosedRange<Int64> {
            Self.tell(&heads, Self.one, Self.head(at: seconds, isInvalidated: seconds == 3))
        }
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 3, isInvalidated: true))
        heads.wrote(Self.one)
        Self.tell(&heads, Self.one, Self.head(at: 4))
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 4), "the first is written, the others are not")
        heads.wrote(Self.one)
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 4), "the last is not")
        heads.wrote(Self.one)
        #expect(heads[Self.one] == Self.head(at: 4), "a lookup may be under way")
        #expect(heads[ObjectID(rawValue: 199)] != nil)
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == nil)
        heads.wrote(Self.one)
        #expect(heads[Self.one] == nil)
    }

    @Test("are told again by whom another has overtaken, also where all is written by then")
    func overtaken() throws {
        var heads = LatestHeads()
        let first = heads.note(Self.one, Self.head(at: 2))
        let second = heads.note(Self.one, Self.head(at: 3))
        let afterSecond = heads.told(Self.one, second)
        #expect(afterSecond == nil)
        heads.wrote(Self.one)
        heads.wrote(Self.one)
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 3), "the lower tier may have the first one")
        let afterFirst = heads.told(Self.one, first)
        let again = try #require(afterFirst)
        #expect(again.head == Self.head(at: 3))
        let afterAll = heads.told(Self.one, again)
        #expect(afterAll == nil)
        heads.wrote(Self.one)
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == nil)
    }
}
