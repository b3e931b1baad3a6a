import Testing

@testable import LarderLMDB

@Suite("What a write transaction has looked at")
struct KnownTreeTests {
    private let tree = KnownTree(.empty, pageSize: 4096)

    /// A way to leaf 9 by a node of page 3.
    private static func way(node: Int) -> [TreeCursor.Step] {
        [
            TreeCursor.Step(page: 3, index: node, count: 5),
            TreeCursor.Step(page: 9, index: 1, count: 7),
        ]
    }

    @Test("is not looked at again before the reach has grown beyond the look")
    func growth() {
        let way = Self.way(node: 0)
        let looks = [0, 2, 2, 1, 5, 7, 8, 12, 13].map { self.tree.looksAround(way, reach: $0) }
        #expect(looks == [nil, 2, nil, nil, 7, nil, 12, nil, 19])
    }

    @Test("is looked at on each way that leads there, and anew when it may be another's")
    func ways() {
        #expect(self.tree.looksAround(Self.way(node: 0), reach: 2) == 2)
        #expect(self.tree.looksAround(Self.way(node: 1), reach: 2) == 2)
        #expect(self.tree.looksAround(Self.way(node: 1), reach: 2) == nil)
        self.tree.forgetLooks()
        #expect(self.tree.looksAround(Self.way(node: 1), reach: 2) == 2)
    }

    @Test("is looked at anew where branches may be balanced further than before")
    func branches() {
        let way = Self.way(node: 0)
        _ = self.tree.account.changed(leafPages: 9, branchPages: 1)
        #expect(self.tree.looksAround(way, reach: 2) == 2)
        _ = self.tree.account.changed(leafPages: 8, branchPages: 1)
        #expect(self.tree.looksAround(way, reach: 2) == 2)
        #expect(self.tree.looksAround(way, reach: 2) == nil)
    }

    @Test("needs no look ahead where it was looked at on both sides")
    func ahead() {
        let way = Self.way(node: 0)
        #expect(self.tree.looksAhead(of: way) == 2)
        #expect(self.tree.looksAhead(of: way) == nil)
        let other = Self.way(node: 1)
        _ = self.tree.looksAround(other, reach: 2)
        #expect(self.tree.looksAhead(of: other) == nil)
    }
}
