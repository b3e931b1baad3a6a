/// The pages of one snapshot's trees, each looked at before it is believed.
///
/// Whatever the bytes are, nothing outside the page is read.
struct TreePages {
    let map: PageMap
    let lastPage: UInt64
    let waiting: Waiting
    /// Where a walk that must not wait copies pages to.
    var copies: PageCopies?
    /// Sees each page that a walk comes to.
    var visitor: (any PageVisitor)?

    /// The page that a walk comes to, in memory where it must not wait.
    @unsafe @inline(__always)
    func arrive(
        _ number: UInt64, isLeaf: Bool
    ) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        guard number >= 2 else { throw .damaged(page: number, .outside) }
        if self.waiting == .forbidden {
            return try unsafe self.pageInMemory(number, isLeaf: isLeaf)
        }
        let page = try unsafe self.map.page(number, lastPage: self.lastPage)
        if let visitor = self.visitor {
            try visitor.arrived(at: number, unsafe page.span, isLeaf: isLeaf)
        }
        return unsafe page
    }

    /// A page that the walk came to before.
    @unsafe @inline(__always)
    func page(_ number: UInt64, isLeaf: Bool) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        if self.waiting == .forbidden {
            return try unsafe self.pageInMemory(number, isLeaf: isLeaf)
        }
        return try unsafe self.map.page(number, lastPage: self.lastPage)
    }

    /// A page that can be had without waiting: one that is asked for all the time by the map, any
    /// other copied.
    ///
    /// Measured, in µs of CPU a page in the page cache: 0.6 to copy it, against 0.8 for mincore(2)
    /// and 1 to 3 for the fault that maps it, which brings its neighbours into the process as well.
    @unsafe
    private func pageInMemory(
        _ number: UInt64, isLeaf: Bool
    ) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        if let copy = unsafe self.copies?.page(number, isLeaf: isLeaf) { return unsafe copy }
        let page = try unsafe self.map.page(number, lastPage: self.lastPage)
        if self.map.isOftenUsed(number) { return unsafe page }
        guard let copies = self.copies else {
            guard self.map.isResident(page: number, count: self.map.pageSize) else {
                throw .notResident
            }
            return unsafe page
        }
        return try unsafe copies.copy(number, isLeaf: isLeaf, of: self.map)
    }

    /// The header of a page of the tree, where it can be that.
    @inline(__always)
    func header(
        _ page: borrowing Span<UInt8>, _ number: UInt64, isLeaf: Bool
    ) throws(TreeFailure) -> PageHeader {
        guard let header = PageHeader(page), header.number == number else {
            throw .damaged(page: number, .number)
        }
        guard header.flags == (isLeaf ? PageFormat.leafFlag : PageFormat.branchFlag) else {
            throw .damaged(page: number, .kind)
        }
        guard header.nodeCount >= 1, header.lower <= header.upper, header.upper <= page.count
        else { throw .damaged(page: number, .bounds) }
        return header
    }

    @inline(__always)
    func node(
        _ page: borrowing Span<UInt8>, _ header: PageHeader, _ index: Int, isLeaf: Bool
    ) throws(TreeFailure) -> PageNode {
        guard let node = PageNode(page, header, at: index, isLeaf: isLeaf) else {
            throw .damaged(page: header.number, .node)
        }
        return node
    }

    /// In a leaf the first node whose key is not below `key`, maybe behind the last; in a branch
    /// page the node of the child that `key` belongs to.
    @inline(__always)
    func position(
        of key: borrowing Span<UInt8>, _ page: borrowing Span<UInt8>, _ header: PageHeader,
        isLeaf: Bool
    ) throws(TreeFailure) -> (index: Int, isFound: Bool) {
        // The key of a branch page's first node stands for whatever is below the second's.
        var low = isLeaf ? 0 : 1
        var high = header.nodeCount
        var isFound = false
        while low < high {
            let middle = (low &+ high) / 2
            let order = try self.node(page, header, middle, isLeaf: isLeaf)
                .compareKey(page, with: key)
            if order == 0 { isFound = true }
            if order < 0 || (order == 0 && !isLeaf) { low = middle &+ 1 } else { high = middle }
        }
        return (isLeaf ? low : low &- 1, isFound)
    }

    /// The leaf that `key` belongs to, and where it is or would be in there; nil in an empty tree.
    @inline(__always)
    func find(
        _ key: borrowing Span<UInt8>, in tree: TreeRecord
    ) throws(TreeFailure) -> (leaf: UInt64, index: Int, isFound: Bool)? {
        guard tree.depth > 0 else { return nil }
        var number = tree.root
        var level = 1
        while true {
            let isLeaf = level == tree.depth
            let page = try unsafe self.arrive(number, isLeaf: isLeaf)
            let bytes = unsafe page.span
            let header = try self.header(bytes, number, isLeaf: isLeaf)
            let (index, isFound) = try self.position(of: key, bytes, header, isLeaf: isLeaf)
            if isLeaf { return (number, index, isFound) }
            number = try self.node(bytes, header, index, isLeaf: false).child
            level &+= 1
        }
    }

    // MARK: Entries

    /// Lends the entry at `index` of a leaf; what `body` throws is handed through.
    @inline(__always)
    func withEntry<R>(
        ofLeaf number: UInt64, at index: Int,
        _ body: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> R
    ) throws(TreeFailure) -> Result<R, LMDBError> {
        let page = try unsafe self.page(number, isLeaf: true)
        let bytes = unsafe page.span
        let header = try self.header(bytes, number, isLeaf: true)
        let node = try self.node(bytes, header, index, isLeaf: true)
        let key = bytes.extracting(node.keyStart..<node.keyStart &+ node.keyCount)
        guard node.isBig else {
            let end = node.valueStart &+ Int(node.valueCount)
            let value = bytes.extracting(node.valueStart..<end)
            do throws(LMDBError) { return .success(try body(key, value)) } catch {
                return .failure(error)
            }
        }
        let value = try unsafe self.overflow(node, bytes, inLeaf: number)
        do throws(LMDBError) { return .success(try body(key, unsafe value.span)) } catch {
            return .failure(error)
        }
    }

    /// Where the value of the entry at `index` lies in the file; the value itself is not touched.
    func place(ofLeaf number: UInt64, at index: Int) throws(TreeFailure) -> ValuePlace {
        let page = try unsafe self.page(number, isLeaf: true)
        let bytes = unsafe page.span
        let header = try self.header(bytes, number, isLeaf: true)
        let node = try self.node(bytes, header, index, isLeaf: true)
        let pageSize = UInt64(self.map.pageSize)
        guard node.isBig else {
            return .at(
                offset: number &* pageSize &+ UInt64(node.valueStart), length: Int(node.valueCount))
        }
        let first = try self.overflowPages(node, bytes, inLeaf: number).first
        return .at(
            offset: first &* pageSize &+ UInt64(PageFormat.headerSize),
            length: Int(node.valueCount))
    }

    /// The overflow pages that a big value must have, all inside the file.
    func overflowPages(
        _ node: PageNode, _ leaf: borrowing Span<UInt8>, inLeaf number: UInt64
    ) throws(TreeFailure) -> (first: UInt64, count: UInt64) {
        let first = node.firstOverflowPage(leaf)
        let count = PageFormat.overflowPages(node.valueCount, pageSize: self.map.pageSize)
        guard first >= 2, first <= self.lastPage, count &- 1 <= self.lastPage &- first else {
            throw .damaged(page: number, .overflow)
        }
        return (first, count)
    }

    /// A big value's bytes, after a look at the header of its overflow pages.
    @unsafe
    func overflow(
        _ node: PageNode, _ leaf: borrowing Span<UInt8>, inLeaf number: UInt64
    ) throws(TreeFailure) -> UnsafeBufferPointer<UInt8> {
        let (first, pages) = try self.overflowPages(node, leaf, inLeaf: number)
        let count = PageFormat.headerSize &+ Int(node.valueCount)
        let buffer = try unsafe self.map.bytes(
            ofPage: first, count: count, lastPage: self.lastPage)
        if self.waiting == .forbidden, !self.map.isResident(page: first, count: count) {
            throw .notResident
        }
        try self.checkOverflow(unsafe buffer.span, first, pages)
        return unsafe UnsafeBufferPointer(rebasing: buffer[PageFormat.headerSize...])
    }

    /// Throws where these are not the first bytes of `pages` or more overflow pages.
    ///
    /// More there may be: a value that is overwritten with a shorter one in the transaction that
    /// made it keeps its pages.
    func checkOverflow(
        _ bytes: borrowing Span<UInt8>, _ first: UInt64, _ pages: UInt64
    ) throws(TreeFailure) {
        guard let header = PageHeader(bytes), header.number == first else {
            throw .damaged(page: first, .number)
        }
        guard header.flags == PageFormat.overflowFlag else { throw .damaged(page: first, .kind) }
        guard header.overflowCount >= pages, header.overflowCount &- 1 <= self.lastPage &- first
        else { throw .damaged(page: first, .overflow) }
    }
}

/// Sees each page that a walk comes to, before its nodes are.
protocol PageVisitor: AnyObject {
    /// - Throws: what is wrong with the page.
    func arrived(
        at number: UInt64, _ page: borrowing Span<UInt8>, isLeaf: Bool
    ) throws(TreeFailure)
}
