import Glibc

/// What the pages of a whole file are, read without LMDB.
package struct FileReport: Sendable, Equatable {
    /// One thing that is wrong with one page.
    package struct Problem: Sendable, Equatable {
        package var page: UInt64
        package var damage: PageDamage
    }

    /// Trees, their pages and entries, as found.
    package struct Tree: Sendable, Equatable {
        package var name: [UInt8]
        package var depth = 0
        package var branchPages: UInt64 = 0
        package var leafPages: UInt64 = 0
        package var overflowPages: UInt64 = 0
        package var entries: UInt64 = 0
    }

    /// The commit whose trees were walked.
    package var transaction: UInt64 = 0
    package var pageSize = 0
    package var lastPage: UInt64 = 0
    package var fileBytes: UInt64 = 0
    /// The databases; LMDB's own trees are not among them.
    package var trees: [Tree] = []
    package var usedPages: UInt64 = 0
    package var freePages: UInt64 = 0
    /// Pages that are neither used nor free: room lost, and nothing worse.
    package var leakedPages: UInt64 = 0
    /// How many problems there are; ``problems`` holds the first of them.
    package var problemCount: UInt64 = 0
    package var problems: [Problem] = []

    package init() {}

    package var isSound: Bool { self.problemCount == 0 }
}

/// The check of a whole file by reading it: for files that nobody writes to meanwhile.
///
/// Every branch and leaf page is read and looked at whole, of overflow pages the first. In memory
/// are two bits a page, and a page a level.
package enum FileStructure {
    /// Problems that a report names.
    package static let problemLimit = 100

    /// Walks all trees of the file at `path`, as the newer meta page names them, and as the other does
    /// where that is none; waits for the disk.
    ///
    /// - Parameter progress: told now and then how many of the file's pages were seen, and of how
    ///   many; may end it by throwing.
    /// - Throws: `.alreadyOpen` where this process has it open, `.corrupted` where neither meta page
    ///   is one, `.noSuchFile`, and what `progress` and reading it throw.
    package static func check(
        path: String,
        progress: (_ done: UInt64, _ total: UInt64) throws(LMDBError) -> Void = { _, _ in }
    ) throws(LMDBError) -> FileReport {
        // lmdb.h: "close()ing it breaks fcntl() advisory locking" for whoever has it open.
        if Environment.shared(path: path) != nil {
            throw LMDBError(.alreadyOpen, operation: "check")
        }
        let descriptor = try OwnPlace.open(path, O_RDONLY)
        defer { _ = close(descriptor) }
        let metas = try Self.metas(descriptor).compactMap { $0 }
        guard let newest = metas.max(by: { $0.transaction < $1.transaction }) else {
            throw LMDBError(.corrupted, operation: "no LMDB meta page")
        }
        var walk = FileWalk(descriptor, newest, fileBytes: try FileHeader.size(descriptor))
        try walk.run(progress)
        return walk.report
    }

    /// Both meta pages; nil for one that is none.
    private static func metas(_ descriptor: Int32) throws(LMDBError) -> [MetaRecord?] {
        let first = try FileHeader.read(descriptor, at: 0, PageFormat.metaSize)
        if let meta = MetaRecord(first.span, number: 0) {
            let second = try FileHeader.read(
                descriptor, at: UInt64(meta.pageSize), PageFormat.metaSize)
            let other = MetaRecord(second.span, number: 1)
            return [meta, other?.pageSize == meta.pageSize ? other : nil]
        }
        // Without the first the page size is not known: the second says it of itself.
        for shift in 9...16 {
            let second = try FileHeader.read(
                descriptor, at: 1 << UInt64(shift), PageFormat.metaSize)
            if let meta = MetaRecord(second.span, number: 1), meta.pageSize == 1 << shift {
                return [nil, meta]
            }
        }
        return [nil, nil]
    }
}
