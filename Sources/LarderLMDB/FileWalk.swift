/// A walk through all trees of one commit, page by page from the disk.
struct FileWalk {
    private let descriptor: Int32
    private let meta: MetaRecord
    private let check: PageCheck
    /// No page of the file lies behind this one, whatever the meta page says.
    private let lastInFile: UInt64
    private var used: PageBits
    private var free: PageBits
    private var seen: UInt64 = 0
    private var usedCount: UInt64 = 2
    private(set) var report = FileReport()

    /// Longer lists of free pages no transaction leaves: it would have freed 32 GiB.
    private static let freeListLimit: UInt64 = 64 << 20

    /// A page on the way down, whose nodes are being gone through.
    private struct Level {
        var number: UInt64
        var bytes: [UInt8]
        var next = 0
    }

    init(_ descriptor: Int32, _ meta: MetaRecord, fileBytes: UInt64) {
        self.descriptor = descriptor
        self.meta = meta
        self.check = PageCheck(pageSize: meta.pageSize, lastPage: meta.lastPage)
        let pagesInFile = fileBytes / UInt64(meta.pageSize)
        self.lastInFile = min(meta.lastPage, max(1, pagesInFile) - 1)
        // As large as the file, not as large as noise in a meta page says.
        self.used = PageBits(lastPage: self.lastInFile)
        self.free = PageBits(lastPage: self.lastInFile)
        self.report.transaction = meta.transaction
        self.report.pageSize = meta.pageSize
        self.report.lastPage = meta.lastPage
        self.report.fileBytes = fileBytes
    }

    /// Walks the free tree first, so that what is both free and used is known by its use.
    mutating func run(
        _ progress: (UInt64, UInt64) throws(LMDBError) -> Void
    ) throws(LMDBError) {
        self.used.insert(0)
        self.used.insert(1)
        guard self.meta.objection == nil else {
            self.note(self.meta.transaction & 1, .record)
            return
        }
        var records: [(name: [UInt8], record: TreeRecord)] = []
        var own = FileReport.Tree(name: [])
        try self.walk(self.meta.free, .free, &own, &records, progress)
        if let page = self.free.firstCommon(with: self.used) { self.note(page, .freeAndUsed) }
        try self.walk(self.meta.names, .names, &own, &records, progress)
        for (name, record) in records {
            var tree = FileReport.Tree(name: name, depth: record.depth)
            var none: [(name: [UInt8], record: TreeRecord)] = []
            try self.walk(record, .plain, &tree, &none, progress)
            let isAsRecorded =
                tree.branchPages == record.branchPages && tree.leafPages == record.leafPages
                && tree.overflowPages == record.overflowPages && tree.entries == record.entries
            // Where pages are damaged the sums cannot be right, and it was said already.
            if !isAsRecorded, self.report.problemCount == 0 { self.note(record.root, .record) }
            self.report.trees.append(tree)
        }
        self.report.usedPages = self.used.count
        self.report.freePages = self.free.count
        let all = self.lastInFile &+ 1
        let known = self.report.usedPages &+ self.report.freePages
        self.report.leakedPages = all > known ? all - known : 0
        try progress(all, all)
    }

    private mutating func walk(
        _ record: TreeRecord, _ kind: TreeKind, _ tree: inout FileReport.Tree,
        _ records: inout [(name: [UInt8], record: TreeRecord)],
        _ progress: (UInt64, UInt64) throws(LMDBError) -> Void
    ) throws(LMDBError) {
        guard record.depth > 0 else { return }
        var way: [Level] = []
        var lastKey: [UInt8] = []
        if let root = try self.page(record.root, isLeaf: record.depth == 1, kind, &tree) {
            way.append(root)
        }
        while let level = way.last {
            self.seen &+= 1
            // Where each page is a seek, this is every second or two.
            if self.seen % 256 == 0 { try progress(self.usedCount, self.lastInFile &+ 1) }
            if way.count == record.depth {
                try self.entries(of: level, kind, &tree, &records, &lastKey)
                way.removeLast()
                continue
            }
            guard let header = PageHeader(level.bytes.span), level.next < header.nodeCount,
                let node = PageNode(level.bytes.span, header, at: level.next, isLeaf: false)
            else {
                way.removeLast()
                continue
            }
            way[way.count - 1].next += 1
            let isLeaf = way.count + 1 == record.depth
            if let below = try self.page(node.child, isLeaf: isLeaf, kind, &tree) {
                way.append(below)
            }
        }
    }

    /// Reads a branch or leaf page; nil, and a problem, where it is not sound.
    private mutating func page(
        _ number: UInt64, isLeaf: Bool, _ kind: TreeKind, _ tree: inout FileReport.Tree
    ) throws(LMDBError) -> Level? {
        guard self.use(number) else { return nil }
        let bytes = try self.read(number, self.meta.pageSize)
        let damage = self.check.damage(of: bytes.span, number: number, isLeaf: isLeaf, kind: kind)
        if let damage {
            self.note(number, damage)
            return nil
        }
        if isLeaf { tree.leafPages &+= 1 } else { tree.branchPages &+= 1 }
        return Level(number: number, bytes: bytes)
    }

    private mutating func entries(
        of leaf: Level, _ kind: TreeKind, _ tree: inout FileReport.Tree,
        _ records: inout [(name: [UInt8], record: TreeRecord)], _ lastKey: inout [UInt8]
    ) throws(LMDBError) {
        let bytes = leaf.bytes.span
        guard let header = PageHeader(bytes) else { return }
        for index in 0..<header.nodeCount {
            guard let node = PageNode(bytes, header, at: index, isLeaf: true) else { return }
            tree.entries &+= 1
            if index == 0, !lastKey.isEmpty, kind != .free,
                node.compareKey(bytes, with: lastKey.span) <= 0
            {
                self.note(leaf.number, .order)
            }
            if node.isBig {
                try self.overflow(node, leaf, kind, &tree)
            } else if kind == .free {
                let list = bytes.extracting(
                    node.valueStart..<node.valueStart + Int(node.valueCount))
                self.freeList(list, leaf.number)
            } else if kind == .names, let record = TreeRecord(bytes, at: node.valueStart) {
                records.append((Self.key(of: node, bytes), record))
            }
            if index == header.nodeCount - 1 { lastKey = Self.key(of: node, bytes) }
        }
    }

    private static func key(of node: PageNode, _ page: borrowing Span<UInt8>) -> [UInt8] {
        (node.keyStart..<node.keyStart + node.keyCount).map { page[$0] }
    }

    private mutating func overflow(
        _ node: PageNode, _ leaf: Level, _ kind: TreeKind, _ tree: inout FileReport.Tree
    ) throws(LMDBError) {
        let first = node.firstOverflowPage(leaf.bytes.span)
        let least = PageFormat.overflowPages(node.valueCount, pageSize: self.meta.pageSize)
        let bytes = try self.read(first, PageFormat.headerSize)
        guard let header = PageHeader(bytes.span), header.number == first else {
            return self.note(first, bytes.count < PageFormat.headerSize ? .cutShort : .number)
        }
        let count = header.overflowCount
        guard header.flags == PageFormat.overflowFlag, count >= least,
            count &- 1 <= self.meta.lastPage &- first
        else { return self.note(first, .overflow) }
        for page in first..<first &+ count where !self.use(page) { return }
        tree.overflowPages &+= count
        guard kind == .free else { return }
        guard node.valueCount <= Self.freeListLimit else { return self.note(first, .freeList) }
        let size = PageFormat.headerSize + Int(node.valueCount)
        let value = try self.read(first, size)
        self.freeList(value.span.extracting(droppingFirst: PageFormat.headerSize), first)
    }

    private mutating func freeList(_ list: borrowing Span<UInt8>, _ page: UInt64) {
        var free = self.free
        self.free = PageBits(lastPage: 0)
        let last = self.lastInFile
        let damage = self.check.damage(ofFreeList: list) { number in
            // Pages behind the end of the file were given free before they were written.
            number > last || free.insert(number) ? nil : .freeList
        }
        self.free = free
        if let damage { self.note(page, damage) }
    }

    /// Marks a page as used; false, and a problem, where it cannot be.
    private mutating func use(_ page: UInt64) -> Bool {
        guard page >= 2, page <= self.meta.lastPage else {
            self.note(page, .outside)
            return false
        }
        guard page <= self.lastInFile else {
            self.note(page, .cutShort)
            return false
        }
        guard self.used.insert(page) else {
            self.note(page, .usedTwice)
            return false
        }
        self.usedCount &+= 1
        if self.free.contains(page) { self.note(page, .freeAndUsed) }
        return true
    }

    private mutating func note(_ page: UInt64, _ damage: PageDamage) {
        self.report.problemCount &+= 1
        guard self.report.problems.count < FileStructure.problemLimit else { return }
        self.report.problems.append(FileReport.Problem(page: page, damage: damage))
    }

    /// `count` bytes from the beginning of a page; fewer at the end of the file.
    private func read(_ page: UInt64, _ count: Int) throws(LMDBError) -> [UInt8] {
        try FileHeader.read(self.descriptor, at: page &* UInt64(self.meta.pageSize), count)
    }
}
