import Foundation
import Testing

@testable import LarderLMDB

/// A file whose pages can be changed one field at a time, found by Larder's own reading of it.
private struct CraftedFile {
    let sample: SampleFile
    var bytes: [UInt8]
    /// The meta page in force.
    let meta: MetaRecord
    /// The tree of the entries, and where its record lies.
    let tree: TreeRecord
    let recordOffset: Int

    init(entries: Int = 600) throws {
        let sample = try SampleFile(entries: entries)
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: sample.path)))
        let metas = [0, 1].compactMap { number in
            MetaRecord(bytes.span.extracting((number * 4096)...), number: UInt64(number))
        }
        let meta = try #require(metas.max { $0.transaction < $1.transaction })
        let leaf = Int(meta.names.root) * 4096
        let page = bytes.span.extracting(leaf..<leaf + 4096)
        // "empty" sorts before "full".
        guard let header = PageHeader(page),
            let node = PageNode(page, header, at: 1, isLeaf: true),
            let tree = TreeRecord(page, at: node.valueStart)
        else { throw CancellationError() }
        self.sample = sample
        self.bytes = bytes
        self.meta = meta
        self.recordOffset = leaf + node.valueStart
        self.tree = tree
    }

    /// The header of a page; a wrong one fails the test that relies on it.
    func header(_ page: UInt64) throws -> PageHeader {
        let header = PageHeader(self.bytes.span.extracting((Int(page) * 4096)...))
        return try #require(header)
    }

    mutating func set<T: FixedWidthInteger>(_ value: T, at offset: Int) {
        for i in 0..<T.bitWidth / 8 {
            self.bytes[offset + i] = UInt8(truncatingIfNeeded: value >> (8 * i))
        }
    }

    /// Where a node of a page lies in the file.
    func node(_ page: UInt64, _ index: Int) -> Int {
        let place = Int(page) * 4096 + 16 + 2 * index
        return Int(page) * 4096 + Int(self.bytes[place]) + Int(self.bytes[place + 1]) << 8
    }

    mutating func setChild(_ page: UInt64, _ index: Int, to child: UInt64) {
        let node = self.node(page, index)
        self.set(UInt32(truncatingIfNeeded: child), at: node)
        self.set(UInt16(truncatingIfNeeded: child >> 32), at: node + 4)
    }

    func child(_ page: UInt64, _ index: Int) -> UInt64 {
        let node = self.node(page, index)
        return (0..<6).reversed().reduce(0) { $0 << 8 | UInt64(self.bytes[node + $1]) }
    }

    /// Reads, then writes, all that should be there; gives the error that ends it.
    func use(writing: Bool) throws -> LMDBError? {
        try Data(self.bytes).write(to: URL(fileURLWithPath: self.sample.path))
        do throws(LMDBError) {
            let environment = try self.sample.open()
            defer { environment.close() }
            let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
            // In their order: a page number that leads astray leads to something else once the page has
            // been given free and taken again.
            let keys = self.sample.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
            if writing {
                for key in keys {
                    try environment.write { (transaction) throws(LMDBError) in
                        _ = try transaction.delete(database, key.span)
                    }
                }
                return nil
            }
            try environment.read { (transaction) throws(LMDBError) in
                for key in keys {
                    _ = try transaction.contains(database, key.span)
                }
                try transaction.withCursor(database) { (cursor) throws(LMDBError) in
                    var isThere = try cursor.first { _, _ in true }
                    while isThere != nil { isThere = try cursor.next { _, _ in true } }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    func problems() throws -> [FileReport.Problem] {
        try Data(self.bytes).write(to: URL(fileURLWithPath: self.sample.path))
        return try FileStructure.check(path: self.sample.path).problems
    }
}

@Suite("A file made to lead astray")
struct CraftedFileTests {
    private func expectRefusal(
        _ file: CraftedFile, _ damages: Set<PageDamage>, both: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for writing in both ? [false, true] : [true] {
            let error = try file.use(writing: writing)
            #expect(error?.code == .corrupted, sourceLocation: sourceLocation)
            #expect(
                damages.contains { error?.operation.hasSuffix($0.rawValue) == true },
                "\(error as Any)", sourceLocation: sourceLocation)
        }
        let problems = try file.problems()
        #expect(
            problems.contains { damages.contains($0.damage) }, "\(problems)",
            sourceLocation: sourceLocation)
    }

    @Test("with a child that is its own parent is not walked in circles")
    func cycle() throws {
        var file = try CraftedFile()
        try #require(file.tree.depth >= 2)
        file.setChild(file.tree.root, 0, to: file.tree.root)
        try self.expectRefusal(file, [.kind, .usedTwice])
    }

    @Test("with one child for all nodes is not walked for ever")
    func sharedChild() throws {
        var file = try CraftedFile()
        let only = file.child(file.tree.root, 0)
        for index in 1..<(try file.header(file.tree.root).nodeCount) {
            file.setChild(file.tree.root, index, to: only)
        }
        // No page of it is damaged: the walk ends, and the check of the whole says what is wrong.
        _ = try file.use(writing: false)
        _ = try file.use(writing: true)
        #expect(try file.problems().contains { $0.damage == .usedTwice })
    }

    @Test("with a child that points back is not walked round and round, in however many parts")
    func back() throws {
        var file = try CraftedFile()
        let count = try file.header(file.tree.root).nodeCount
        try #require(file.tree.depth == 2 && count > 3)
        file.setChild(file.tree.root, count - 1, to: file.child(file.tree.root, 0))
        let error = try file.use(writing: false)
        #expect(error?.operation.hasSuffix(PageDamage.order.rawValue) == true)
        // A place behind all that the leaf before has: what is found there must lie behind it, too.
        let leaf = file.child(file.tree.root, count - 2)
        let start = Int(leaf) * 4096
        let page = file.bytes.span.extracting(start..<start + 4096)
        let header = try file.header(leaf)
        guard let last = PageNode(page, header, at: header.nodeCount - 1, isLeaf: true) else {
            throw CancellationError()
        }
        let place = (0..<last.keyCount).map { page[last.keyStart + $0] } + [0]
        let environment = try file.sample.open()
        defer { environment.close() }
        let database = try environment.openDatabases(SampleFile.names, creating: false)[1]
        let found = #expect(throws: LMDBError.self) {
            try environment.read { (transaction) throws(LMDBError) in
                try transaction.withCursor(database) { (cursor) throws(LMDBError) in
                    _ = try cursor.seek(atOrAfter: place.span) { _, _ in true }
                }
            }
        }
        #expect(found?.operation.hasSuffix(PageDamage.order.rawValue) == true)
    }

    @Test("with a depth that is not the tree's is refused", arguments: [1, 3, 4, 31, 33, 65_535])
    func depth(depth: Int) throws {
        var file = try CraftedFile()
        guard depth != file.tree.depth else { return }
        file.set(UInt16(depth), at: file.recordOffset + 6)
        try self.expectRefusal(file, [.kind, .record])
    }

    @Test("with a child outside it is refused", arguments: [0, 1, 1 << 20, 1 << 47] as [UInt64])
    func outside(child: UInt64) throws {
        var file = try CraftedFile()
        file.setChild(file.tree.root, 1, to: child)
        try self.expectRefusal(file, [.child, .outside])
    }

    @Test("with flags of a tree that nobody made is refused", arguments: [0x02, 0x04, 0x10])
    func flags(flags: Int) throws {
        var file = try CraftedFile()
        file.set(UInt16(flags), at: file.recordOffset + 4)
        try self.expectRefusal(file, [.record])
    }

    /// The first list of free pages that lies in a leaf of the free tree.
    private func freeList(_ file: CraftedFile) throws -> (offset: Int, count: Int) {
        try #require(file.meta.free.depth == 1)
        let start = Int(file.meta.free.root) * 4096
        let page = file.bytes.span.extracting(start..<start + 4096)
        let header = try file.header(file.meta.free.root)
        for index in 0..<header.nodeCount {
            guard let node = PageNode(page, header, at: index, isLeaf: true),
                let count = page.number(at: node.valueStart, as: UInt64.self)
            else { break }
            if !node.isBig, count >= 2 { return (start + node.valueStart, Int(count)) }
        }
        throw CancellationError()
    }

    @Test("that gives used pages away is refused before anything is written")
    func freeAndUsed() throws {
        for isRoot in [true, false] {
            var file = try CraftedFile()
            let (list, count) = try self.freeList(file)
            // The highest of the list, so that it stays sorted, or the page of the names.
            let used = isRoot ? file.meta.names.root : file.tree.root
            let numbers =
                [used]
                + (1..<count).map { index in
                    (0..<8).reversed().reduce(0 as UInt64) {
                        $0 << 8 | UInt64(file.bytes[list + 8 + 8 * index + $1])
                    }
                }
            for (index, number) in Set(numbers).sorted(by: >).enumerated() {
                file.set(number, at: list + 8 + 8 * index)
            }
            file.set(UInt64(Set(numbers).count), at: list)
            try self.expectRefusal(file, [.freeAndUsed, .freeList], both: false)
        }
    }

    @Test("with lists of free pages that LMDB would choke on is refused before it writes")
    func freeLists() throws {
        let changes: [(inout CraftedFile, Int, Int) -> Void] = [
            { file, list, _ in file.set(UInt64.max, at: list) },
            { file, list, _ in file.set(UInt64(1) << 40, at: list) },
            { file, list, _ in file.set(UInt64(1), at: list + 8) },
            { file, list, _ in file.set(UInt64(1) << 32, at: list + 8) },
            // The same page twice: LMDB would give it out twice, and abort.
            { file, list, _ in
                for i in 0..<8 { file.bytes[list + 16 + i] = file.bytes[list + 8 + i] }
            },
        ]
        for change in changes {
            var file = try CraftedFile()
            let (list, count) = try self.freeList(file)
            change(&file, list, count)
            try self.expectRefusal(file, [.freeList], both: false)
        }
    }

    @Test("with an overflow page that claims its neighbours is refused when it would be freed")
    func overflow() throws {
        var file = try CraftedFile()
        var page = 2
        while page < file.bytes.count / 4096, file.bytes[page * 4096 + 10] != 4 { page += 1 }
        #expect(try file.header(UInt64(page)).number == UInt64(page))
        file.set(UInt32.max, at: page * 4096 + 12)
        let error = try file.use(writing: true)
        #expect(error?.operation.hasSuffix(PageDamage.overflow.rawValue) == true)
    }
}
