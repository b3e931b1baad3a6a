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

    private static func noteOthers(_ heads: inout LatestHeads) {
        for number in 100..<200 as Range<UInt64> {
            heads.note(ObjectID(rawValue: number), Self.head(at: 9))
            heads.wrote(ObjectID(rawValue: number))
        }
    }

    @Test("are kept until the lower tier has written each of them, and a few for a while longer")
    func written() {
        var heads = LatestHeads()
        for seconds in 2...3 as ClosedRange<Int64> {
            heads.note(Self.one, Self.head(at: seconds, isInvalidated: seconds == 3))
        }
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 3, isInvalidated: true))
        heads.wrote(Self.one)
        heads.note(Self.one, Self.head(at: 4))
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
}
