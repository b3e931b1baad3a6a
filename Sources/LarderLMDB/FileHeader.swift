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
        /// Not an LMDB file, or one that was cut short; says why.
        case unsound(String)
    }

    /// The meta page with the higher transaction is the one in force.
    private struct Meta {
        var pageSize: UInt64
        var mapSize: UInt64
        var lastPage: UInt64
        var transaction: UInt64
        var roots: [UInt64]
    }

    private static let magic: UInt64 = 0xBEEF_C0DE
    private static let version: UInt64 = 1
    private static let metaFlag: UInt64 = 0x08
    private static let branchOrLeaf: UInt64 = 0x03
    private static let noPage = UInt64.max

    /// Looks at the file at `path`; never call it for a file that this process has open in LMDB.
    package static func check(path: String) throws(LMDBError) -> Finding {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return .absent }
            throw LMDBError(returnCode: errno, operation: "open")
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw LMDBError(returnCode: errno, operation: "fstat")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return .unsound("not a file") }
        let size = UInt64(clamping: status.st_size)
        if size == 0 { return .absent }
        return try Self.check(descriptor, size: size)
    }

    private static func check(_ descriptor: Int32, size: UInt64) throws(LMDBError) -> Finding {
        guard let first = Self.meta(try Self.read(descriptor, at: 0, 152), page: 0) else {
            return .unsound("no LMDB meta page at its beginning")
        }
        let bytes = try Self.read(descriptor, at: first.pageSize, 152)
        guard let second = Self.meta(bytes, page: 1), second.pageSize == first.pageSize else {
            return .unsound("no second LMDB meta page")
        }
        let meta = second.transaction > first.transaction ? second : first
        let (needed, overflow) = (meta.lastPage &+ 1).multipliedReportingOverflow(by: meta.pageSize)
        guard !overflow, meta.lastPage < .max, needed <= size else {
            return .unsound("cut short: \(size) bytes of \(overflow ? .max : needed)")
        }
        for root in meta.roots where root != Self.noPage {
            guard root > 1, root <= meta.lastPage else { return .unsound("root outside the file") }
            let page = try Self.read(descriptor, at: root &* meta.pageSize, 16)
            guard page.count == 16, Self.number(page, 0, 8) == root,
                Self.number(page, 10, 2) & Self.branchOrLeaf != 0,
                Self.number(page, 12, 2) <= Self.number(page, 14, 2),
                Self.number(page, 14, 2) <= meta.pageSize
            else { return .unsound("its root page is damaged") }
        }
        return .sound(
            mapSize: meta.mapSize, lastPage: meta.lastPage, pageSize: meta.pageSize)
    }

    private static func meta(_ page: [UInt8], page number: UInt64) -> Meta? {
        guard page.count == 152, Self.number(page, 0, 8) == number,
            Self.number(page, 10, 2) == Self.metaFlag,
            Self.number(page, 16, 4) == Self.magic, Self.number(page, 20, 4) == Self.version
        else { return nil }
        let pageSize = Self.number(page, 40, 4)
        // LMDB takes the operating system's page size for new files, and whatever the file says for
        // old ones.
        guard pageSize >= 512, pageSize <= 65_536, pageSize.nonzeroBitCount == 1 else { return nil }
        return Meta(
            pageSize: pageSize, mapSize: Self.number(page, 32, 8),
            lastPage: Self.number(page, 136, 8), transaction: Self.number(page, 144, 8),
            roots: [Self.number(page, 80, 8), Self.number(page, 128, 8)])
    }

    /// A number in the byte order of the machine, which all of Larder's are little-endian.
    private static func number(_ bytes: [UInt8], _ offset: Int, _ width: Int) -> UInt64 {
        var value: UInt64 = 0
        for i in (0..<width).reversed() where offset + i < bytes.count {
            value = value << 8 | UInt64(bytes[offset + i])
        }
        return value
    }

    private static func read(
        _ descriptor: Int32, at offset: UInt64, _ count: Int
    ) throws(LMDBError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = unsafe pread(descriptor, &bytes, count, off_t(clamping: offset))
        guard got >= 0 else { throw LMDBError(returnCode: errno, operation: "pread") }
        return Array(bytes.prefix(got))
    }
}
