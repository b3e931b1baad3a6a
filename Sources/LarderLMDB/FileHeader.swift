import Glibc

/// What the first two pages of a file say of it, read without LMDB.
///
/// LMDB trusts its files: it maps what it opens, follows page numbers in it, and ends the process
/// by an assertion or a fault where they lead astray. So a file from who knows where is looked at
/// first. The layout is that of LMDB 0.9 on 64-bit machines (`MDB_page`, `MDB_meta` in its mdb.c).
package enum FileHeader {
    /// What the look at a file found.
    package enum Finding: Sendable, Equatable {
        /// Nothing there, or an empty file, which LMDB makes into a new one.
        case absent
        case sound(mapSize: UInt64, lastPage: UInt64, pageSize: UInt64)
        /// Not an LMDB file; says why.
        case unsound(String)
        /// It ends before its last page; says where.
        ///
        /// It was cut short, or its last pages were given free before they were ever written, and its
        /// writer was killed before it made the file reach to them
        /// (``Environment/extendFileToLastPage()``): ``FileStructure`` tells which.
        case short(String)
    }

    /// Looks at the file at `path`; never call it for a file that this process has open in LMDB.
    package static func check(path: String) throws(LMDBError) -> Finding {
        // O_NONBLOCK: a FIFO of that name must not hold anybody up.
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 {
            let number = errno
            if number == ENOENT { return .absent }
            if number == ELOOP { try OwnPlace.check(path) }
            throw LMDBError(returnCode: number, operation: "open")
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return .unsound("not a file") }
        try OwnPlace.check(status, path)
        let size = UInt64(clamping: status.st_size)
        if size == 0 { return .absent }
        return try Self.check(descriptor, size: size)
    }

    /// Throws `.corrupted` where LMDB would not open the file, or would map it by numbers that
    /// cannot be; before LMDB has it open.
    ///
    /// Another process may be writing a meta page just now: what looks damaged is looked at again.
    static func checkMetas(path: String) throws(LMDBError) {
        var last: String?
        for _ in 0..<3 {
            let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
            guard descriptor >= 0 else { throw LMDBError(returnCode: errno, operation: "open") }
            defer { _ = close(descriptor) }
            let size = try Self.size(descriptor)
            // LMDB makes an empty file into a new one.
            if size == 0 { return }
            guard let (first, second) = try Self.metas(descriptor) else {
                last = Self.noMeta
                continue
            }
            let newer = second.transaction > first.transaction ? second : first
            if newer.lastPage < newer.mapSize / UInt64(newer.pageSize) { return }
            last = "a last page beyond the map"
        }
        if let last { throw LMDBError(.corrupted, operation: last) }
    }

    private static let noMeta = "no LMDB meta pages at its beginning"

    static func size(_ descriptor: Int32) throws(LMDBError) -> UInt64 {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        return UInt64(clamping: status.st_size)
    }

    /// Both meta pages; nil where they are not that.
    static func metas(
        _ descriptor: Int32
    ) throws(LMDBError) -> (MetaRecord, MetaRecord)? {
        let size = PageFormat.metaSize
        let bytes = try Self.read(descriptor, at: 0, size)
        guard let first = MetaRecord(bytes.span, number: 0) else { return nil }
        let others = try Self.read(descriptor, at: UInt64(first.pageSize), size)
        guard let second = MetaRecord(others.span, number: 1), second.pageSize == first.pageSize
        else { return nil }
        return (first, second)
    }

    private static func check(_ descriptor: Int32, size: UInt64) throws(LMDBError) -> Finding {
        guard let (first, second) = try Self.metas(descriptor) else { return .unsound(Self.noMeta) }
        let meta = second.transaction > first.transaction ? second : first
        let pageSize = UInt64(meta.pageSize)
        let needed = (meta.lastPage &+ 1) &* pageSize
        guard needed <= size else { return .short("cut short: \(size) bytes of \(needed)") }
        guard meta.objection == nil else { return .unsound("roots that cannot be") }
        for tree in [meta.free, meta.names] where tree.root != PageFormat.noPage {
            let page = try Self.read(descriptor, at: tree.root &* pageSize, meta.pageSize)
            let check = PageCheck(pageSize: meta.pageSize, lastPage: meta.lastPage)
            let kind: TreeKind = tree == meta.free ? .free : .names
            let damage = check.damage(
                of: page.span, number: tree.root, isLeaf: tree.depth == 1, kind: kind)
            if let damage {
                return .unsound("its root page \(tree.root) is damaged: \(damage.rawValue)")
            }
        }
        return .sound(mapSize: meta.mapSize, lastPage: meta.lastPage, pageSize: pageSize)
    }

    /// Up to `count` bytes; fewer at the end of the file.
    static func read(
        _ descriptor: Int32, at offset: UInt64, _ count: Int
    ) throws(LMDBError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = unsafe pread(descriptor, &bytes, count, off_t(clamping: offset))
        guard got >= 0 else { throw LMDBError(returnCode: errno, operation: "pread") }
        return Array(bytes.prefix(got))
    }
}
