/// A place in a tree of a snapshot, found without LMDB.
///
/// The depth comes from the tree's record, so that a page that points back to one above it is a
/// page of the wrong kind: a walk down ends. A walk along the leaves comes to no more of them than
/// the record says that there are, so that it ends too where pages point to one and the same child.
struct TreeCursor: ~Copyable {
    /// A page on the way from the root, and which of its nodes the way takes.
    struct Step {
        var page: UInt64
        var index: Int
        var count: Int
    }

    let pages: TreePages
    let tree: TreeRecord
    /// The way from the root to a leaf; empty where the tree is, and before the first movement.
    private(set) var way: [Step] = []
    /// Leaves that ``next()`` has come to since the last other movement.
    private var leaves: UInt64 = 1

    init(_ pages: TreePages, _ tree: TreeRecord) {
        self.pages = pages
        self.tree = tree
        self.way.reserveCapacity(tree.depth)
    }

    /// Another cursor at the same place.
    func copy() -> TreeCursor {
        var copy = TreeCursor(self.pages, self.tree)
        copy.way = self.way
        return copy
    }

    /// Which edge of a subtree a way down follows.
    private enum Edge {
        case first
        case last
    }

    // MARK: Movements: true where there is an entry

    mutating func first() throws(TreeFailure) -> Bool {
        self.leaves = 1
        self.way.removeAll(keepingCapacity: true)
        return try self.descend(along: .first, from: self.tree.root, toLength: self.tree.depth)
    }

    mutating func last() throws(TreeFailure) -> Bool {
        self.leaves = 1
        self.way.removeAll(keepingCapacity: true)
        return try self.descend(along: .last, from: self.tree.root, toLength: self.tree.depth)
    }

    /// Moves to the first entry whose key is not below `key`.
    mutating func seek(_ key: borrowing Span<UInt8>) throws(TreeFailure) -> Bool {
        _ = try self.search(key)
        guard let leaf = self.way.last else { return false }
        if leaf.index < leaf.count { return true }
        guard try self.step(atLevel: self.way.count - 1, by: 1) else { return false }
        if self.isChecked { try self.expectFirstKey(above: key, orEqual: true) }
        return true
    }

    /// Moves to where `key` is or would be in its leaf, maybe behind the last node of it; true
    /// where it is there.
    mutating func search(_ key: borrowing Span<UInt8>) throws(TreeFailure) -> Bool {
        self.leaves = 1
        self.way.removeAll(keepingCapacity: true)
        guard self.tree.depth > 0 else { return false }
        var number = self.tree.root
        while true {
            let isLeaf = self.way.count + 1 == self.tree.depth
            let page = try unsafe self.pages.arrive(number, isLeaf: isLeaf)
            let bytes = unsafe page.span
            let header = try self.pages.header(bytes, number, isLeaf: isLeaf)
            let (index, isFound) = try self.pages.position(
                of: key, bytes, header, isLeaf: isLeaf)
            self.way.append(Step(page: number, index: index, count: header.nodeCount))
            if isLeaf { return isFound }
            number = try self.pages.node(bytes, header, index, isLeaf: false).child
        }
    }

    /// Moves on by one entry.
    mutating func next() throws(TreeFailure) -> Bool {
        guard let leaf = self.way.last else { return false }
        if leaf.index + 1 < leaf.count {
            self.way[self.way.count - 1].index += 1
            return true
        }
        self.leaves &+= 1
        guard self.leaves <= self.tree.leafPages else {
            let isEnd = try !self.step(atLevel: self.way.count - 1, by: 1)
            if isEnd { return false }
            throw .damaged(page: self.tree.root, .usedTwice)
        }
        guard try self.step(atLevel: self.way.count - 1, by: 1) else { return false }
        if self.isChecked { try self.expectAscent(from: leaf) }
        return true
    }

    /// Whether each leaf must go on behind the one before.
    ///
    /// The keys of the free tree are numbers. A walk that must not wait has one page at a time, copied,
    /// and is of a few entries. Neither is gone on with by a key.
    private var isChecked: Bool {
        self.pages.waiting == .allowed && self.tree.flags & PageFormat.integerKeys == 0
    }

    /// Throws where the leaf that was come to does not go on behind the one before.
    ///
    /// A walk that is broken off, and gone on with by its last key, would otherwise go round and round
    /// where a page points back: each part of it comes to few leaves.
    private func expectAscent(from leaf: Step) throws(TreeFailure) {
        let page = try unsafe self.pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try self.pages.header(bytes, leaf.page, isLeaf: true)
        let node = try self.pages.node(bytes, header, leaf.index, isLeaf: true)
        let last = bytes.extracting(node.keyStart..<node.keyStart &+ node.keyCount)
        try self.expectFirstKey(above: last, orEqual: false)
    }

    private func expectFirstKey(
        above key: borrowing Span<UInt8>, orEqual: Bool
    ) throws(TreeFailure) {
        guard let leaf = self.way.last else { return }
        let page = try unsafe self.pages.page(leaf.page, isLeaf: true)
        let bytes = unsafe page.span
        let header = try self.pages.header(bytes, leaf.page, isLeaf: true)
        let order = try self.pages.node(bytes, header, leaf.index, isLeaf: true)
            .compareKey(bytes, with: key)
        if order < 0 || order == 0 && !orEqual { throw .damaged(page: leaf.page, .order) }
    }

    /// Moves to the page beside the one at `level`, whichever page is above it, and ends the way
    /// there; false, and the place is lost, where there is none.
    mutating func step(atLevel level: Int, by step: Int) throws(TreeFailure) -> Bool {
        var above = level - 1
        while above >= 0 {
            let index = self.way[above].index + step
            if index >= 0, index < self.way[above].count {
                self.way.removeSubrange((above + 1)...)
                self.way[above].index = index
                return try self.descend(
                    along: step < 0 ? .last : .first, from: try self.child(), toLength: level + 1)
            }
            above -= 1
        }
        self.way.removeAll(keepingCapacity: true)
        return false
    }

    /// Forgets the way below `level`.
    mutating func end(atLevel level: Int) {
        if level >= 0, level + 1 < self.way.count { self.way.removeSubrange((level + 1)...) }
    }

    /// Goes on down along the first nodes, from the page where the way ends to a leaf.
    mutating func descendToFirst() throws(TreeFailure) {
        guard !self.way.isEmpty, self.way.count < self.tree.depth else { return }
        self.way[self.way.count - 1].index = 0
        _ = try self.descend(
            along: .first, from: try self.child(), toLength: self.tree.depth)
    }

    /// From page `root` down along one edge, until the way is so long.
    private mutating func descend(
        along edge: Edge, from root: UInt64, toLength length: Int
    ) throws(TreeFailure) -> Bool {
        var number = root
        while self.way.count < length {
            let isLeaf = self.way.count + 1 == self.tree.depth
            let page = try unsafe self.pages.arrive(number, isLeaf: isLeaf)
            let bytes = unsafe page.span
            let header = try self.pages.header(bytes, number, isLeaf: isLeaf)
            let index = edge == .first ? 0 : header.nodeCount - 1
            self.way.append(Step(page: number, index: index, count: header.nodeCount))
            if self.way.count == length { return true }
            number = try self.pages.node(bytes, header, index, isLeaf: false).child
        }
        return false
    }

    /// The page below the end of the way.
    private func child() throws(TreeFailure) -> UInt64 {
        guard let end = self.way.last else { return PageFormat.noPage }
        let page = try unsafe self.pages.page(end.page, isLeaf: false)
        let bytes = unsafe page.span
        let header = try self.pages.header(bytes, end.page, isLeaf: false)
        return try self.pages.node(bytes, header, end.index, isLeaf: false).child
    }

    /// Lends what the cursor is at; call it only where a movement said that there is an entry.
    func withEntry<R>(
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(TreeFailure) -> Result<R, LMDBError> {
        guard let leaf = self.way.last else { throw .damaged(page: self.tree.root, .bounds) }
        return try self.pages.withEntry(ofLeaf: leaf.page, at: leaf.index, body)
    }
}
