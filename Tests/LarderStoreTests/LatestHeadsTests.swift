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
        }
    }

    @Test("are bounded")
    func bounded() {
        var heads = LatestHeads()
        heads.note(Self.one, Self.head(at: 1))
        heads.note(Self.one, Self.head(at: 2))
        #expect(heads[Self.one] == Self.head(at: 2))
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == nil)
        #expect(heads[ObjectID(rawValue: 199)] != nil)
    }

    @Test("are kept where they invalidate, until the lower tier has written each of them")
    func invalidated() {
        var heads = LatestHeads()
        heads.note(Self.one, Self.head(at: 1))
        for seconds in 2...3 as ClosedRange<Int64> {
            heads.note(Self.one, Self.head(at: seconds, isInvalidated: true))
        }
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 3, isInvalidated: true))
        heads.wrote(Self.one)
        heads.note(Self.one, Self.head(at: 4))
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == Self.head(at: 4), "the first is written, the second is not")
        heads.wrote(Self.one)
        #expect(heads[Self.one] == Self.head(at: 4), "a lookup may be under way")
        Self.noteOthers(&heads)
        #expect(heads[Self.one] == nil)
        heads.wrote(Self.one)
        #expect(heads[Self.one] == nil)
    }
}
