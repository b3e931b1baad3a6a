/// Which of a file's trees a page belongs to, and so what its nodes can be.
enum TreeKind {
    /// LMDB's free pages: numbers of transactions, and lists of pages.
    case free
    /// The names of the other trees, and their records.
    case names
    /// Keys and values.
    case plain
}

/// Looks at all of a page: what passes holds nothing by which LMDB could be led astray.
struct PageCheck {
    let pageSize: Int
    let lastPage: UInt64

    /// What is wrong with a branch or leaf page; nil where nothing is.
    func damage(
        of page: borrowing Span<UInt8>, number: UInt64, isLeaf: Bool, kind: TreeKind
    ) -> PageDamage? {
        guard let header = PageHeader(page), header.number == number else { return .number }
        guard header.flags == (isLeaf ? PageFormat.leafFlag : PageFormat.branchFlag) else {
            return .kind
        }
        // "A branch page must never have less than 2 keys", save while LMDB balances its free tree.
        let fewest = isLeaf || kind == .free ? 1 : 2
        guard header.lower % 2 == 0, header.upper % 2 == 0, header.nodeCount >= fewest,
            header.lower <= header.upper, header.upper <= page.count, page.count == self.pageSize
        else { return .bounds }
        return self.damage(ofNodesIn: page, header, isLeaf: isLeaf, kind: kind)
    }

    private func damage(
        ofNodesIn page: borrowing Span<UInt8>, _ header: PageHeader, isLeaf: Bool, kind: TreeKind
    ) -> PageDamage? {
        var sum = 0
        var last: PageNode?
        for index in 0..<header.nodeCount {
            guard let node = PageNode(page, header, at: index, isLeaf: isLeaf),
                node.start % 2 == 0
            else { return .node }
            let damage =
                isLeaf
                ? self.damage(ofLeafNode: node, page, kind)
                : self.damage(ofBranchNode: node, index, kind)
            if let damage { return damage }
            // The first key of a branch page counts for nothing, and may be empty.
            if let last, isLeaf || index > 1, !Self.isAscending(page, last, node, kind) {
                return .order
            }
            sum += node.size(isLeaf: isLeaf)
            last = node
        }
        // LMDB keeps nodes side by side: none over another, none forgotten.
        return sum == self.pageSize - header.upper ? nil : .node
    }

    private func damage(ofBranchNode node: PageNode, _ index: Int, _ kind: TreeKind) -> PageDamage?
    {
        guard node.child >= 2, node.child <= self.lastPage else { return .child }
        if index == 0, node.keyCount == 0 { return nil }
        return self.isKeySize(node.keyCount, kind) ? nil : .key
    }

    private func damage(
        ofLeafNode node: PageNode, _ page: borrowing Span<UInt8>, _ kind: TreeKind
    ) -> PageDamage? {
        guard self.isKeySize(node.keyCount, kind) else { return .key }
        switch kind {
        case .names:
            guard node.flags == PageFormat.subDatabase,
                node.valueCount == UInt64(PageFormat.recordSize),
                let record = TreeRecord(page, at: node.valueStart),
                record.isSane(lastPage: self.lastPage)
            else { return .record }
        case .free, .plain:
            guard node.flags & ~PageFormat.bigData == 0 else { return .value }
            guard node.isBig else { return nil }
            let first = node.firstOverflowPage(page)
            let count = PageFormat.overflowPages(node.valueCount, pageSize: self.pageSize)
            guard first >= 2, first <= self.lastPage, count &- 1 <= self.lastPage &- first else {
                return .overflow
            }
        }
        return nil
    }

    private func isKeySize(_ count: Int, _ kind: TreeKind) -> Bool {
        kind == .free ? count == 8 : count >= 1 && count <= PageFormat.maximumKeySize
    }

    private static func isAscending(
        _ page: borrowing Span<UInt8>, _ left: PageNode, _ right: PageNode, _ kind: TreeKind
    ) -> Bool {
        guard kind != .free else {
            guard let first = page.number(at: left.keyStart, as: UInt64.self),
                let second = page.number(at: right.keyStart, as: UInt64.self)
            else { return false }
            return first < second
        }
        let key = page.extracting(right.keyStart..<right.keyStart &+ right.keyCount)
        return left.compareKey(page, with: key) < 0
    }

    /// What is wrong with the list of free pages that a commit left; nil where nothing is.
    ///
    /// `MDB_IDL`: their number, then the pages, the highest first.
    func damage(
        ofFreeList list: borrowing Span<UInt8>, _ page: (UInt64) -> PageDamage?
    ) -> PageDamage? {
        guard let count = list.number(at: 0, as: UInt64.self),
            count < UInt64(list.count / 8)
        else { return .freeList }
        var last = self.lastPage &+ 1
        for index in 0..<Int(count) {
            guard let number = list.number(at: 8 &+ 8 &* index, as: UInt64.self),
                number >= 2, number < last
            else { return .freeList }
            if let damage = page(number) { return damage }
            last = number
        }
        return nil
    }
}

/// A bit for each page of a file.
struct PageBits {
    private var words: [UInt64]

    init() {
        self.words = []
    }

    init(lastPage: UInt64) {
        self.words = Array(repeating: 0, count: Int(clamping: lastPage / 64) + 1)
    }

    func contains(_ page: UInt64) -> Bool {
        let word = Int(clamping: page / 64)
        return word < self.words.count && self.words[word] & (1 << (page % 64)) != 0
    }

    /// Sets the page's bit; false where it was set, or there is none.
    @discardableResult
    mutating func insert(_ page: UInt64) -> Bool {
        let word = Int(clamping: page / 64)
        guard word < self.words.count else { return false }
        let bit: UInt64 = 1 << (page % 64)
        if self.words[word] & bit != 0 { return false }
        self.words[word] |= bit
        return true
    }

    /// Makes room for pages up to `lastPage`.
    mutating func grow(lastPage: UInt64) {
        let missing = Int(clamping: lastPage / 64) + 1 - self.words.count
        if missing > 0 { self.words.append(contentsOf: repeatElement(0, count: missing)) }
    }

    /// The first page that both have.
    func firstCommon(with other: PageBits) -> UInt64? {
        for (index, words) in zip(self.words, other.words).enumerated() {
            let common = words.0 & words.1
            if common != 0 { return UInt64(index * 64 + common.trailingZeroBitCount) }
        }
        return nil
    }

    var count: UInt64 {
        self.words.reduce(0) { $0 &+ UInt64($1.nonzeroBitCount) }
    }
}
