/// The pages that a step of LMDB's leads to.
extension WriteVetting {
    /// The way to `key` in the committed tree, and the overflow pages of its value.
    func path(
        to key: borrowing Span<UInt8>, in record: TreeRecord
    ) throws(TreeFailure) -> TreeCursor {
        self.kind = .plain
        var cursor = TreeCursor(self.pages(), record)
        guard try cursor.search(key), let leaf = cursor.way.last else { return cursor }
        try self.vetValue(of: leaf)
        return cursor
    }

    /// The leaf of the committed tree in which `key` is, and the bytes of its node there; nil where it
    /// is not in that tree.
    ///
    /// The pages on the way to it, or to where it would be, are looked at, and those of its value.
    func find(
        _ key: borrowing Span<UInt8>, in record: TreeRecord
    ) throws(TreeFailure) -> (leaf: UInt64, bytes: Int)? {
        self.kind = .plain
        let pages = self.pages()
        guard let found = try pages.find(key, in: record), found.isFound else { return nil }
        let page = try unsafe pages.page(found.leaf, isLeaf: true)
        let bytes = unsafe page.span
        let header = try pages.header(bytes, found.leaf, isLeaf: true)
        let node = try pages.node(bytes, header, found.index, isLeaf: true)
        try self.vetValue(of: node, bytes, inLeaf: found.leaf)
        return (found.leaf, node.size(isLeaf: true) + 2)
    }

    /// LMDB frees as many pages as the first one's header says, and lends what the node says.
    private func vetValue(of leaf: TreeCursor.Step) throws(TreeFailure) {
        let pages = self.pages()
        let page = try unsafe pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try pages.header(bytes, leaf.page, isLeaf: true)
        let node = try pages.node(bytes, header, leaf.index, isLeaf: true)
        try self.vetValue(of: node, bytes, inLeaf: leaf.page)
    }

    private func vetValue(
        of node: PageNode, _ bytes: borrowing Span<UInt8>, inLeaf leaf: UInt64
    ) throws(TreeFailure) {
        guard node.isBig else { return }
        _ = try unsafe self.pages().overflow(node, bytes, inLeaf: leaf)
        let first = node.firstOverflowPage(bytes)
        if self.free?.contains(first) == true { throw .damaged(page: first, .freeAndUsed) }
    }

    /// Bytes of the node that the way ends at, if there is one, and of all nodes of its page.
    func weight(of leaf: TreeCursor.Step) throws(TreeFailure) -> (node: Int, page: Int) {
        let pages = self.pages()
        let page = try unsafe pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try pages.header(bytes, leaf.page, isLeaf: true)
        let used = header.used(pageSize: self.map.pageSize)
        guard leaf.index < leaf.count else { return (0, used) }
        let node = try pages.node(bytes, header, leaf.index, isLeaf: true)
        return (node.size(isLeaf: true) + 2, used)
    }

    /// The pages that LMDB may look at when it balances the tree around a leaf.
    func vetNeighbours(
        of cursor: borrowing TreeCursor, _ reach: Int, _ account: BalanceAccount
    ) throws(TreeFailure) {
        guard reach > 0 else { return }
        try self.vetLeaves(beside: cursor, by: -1, reach)
        try self.vetLeaves(beside: cursor, by: 1, reach)
        var level = cursor.way.count - 2
        while level > 0 {
            guard account.mayBalanceBranch(nodes: cursor.way[level].count) else { return }
            // To give a branch page another first child LMDB looks for the lowest key below it
            // (mdb_page_search_lowest): all the way down.
            var own = cursor.copy()
            own.end(atLevel: level)
            try own.descendToFirst()
            for step in [-1, 1] {
                var beside = cursor.copy()
                for _ in 0..<account.branchReach {
                    guard try beside.step(atLevel: level, by: step) else { break }
                    var below = beside.copy()
                    try below.descendToFirst()
                }
            }
            level -= 1
        }
    }

    /// More leaves than this are not looked at on either side.
    private static let farthest = 256

    func vetLeaves(
        beside cursor: borrowing TreeCursor, by step: Int, _ reach: Int
    ) throws(TreeFailure) {
        var beside = cursor.copy()
        let level = cursor.way.count - 1
        var left = reach
        var total = 0
        while left > 0, total < Self.farthest, try beside.step(atLevel: level, by: step),
            let leaf = beside.way.last
        {
            total += 1
            // A leaf that is nearly empty as it is may vanish at once, and does not count.
            let used = try self.weight(of: leaf).page
            if used * 4 >= self.map.pageSize { left -= 1 }
        }
    }
}
