import Glibc

/// Where in this process a file is mapped.
///
/// LMDB tells nobody (`me_mapaddr` is that of MDB_FIXEDMAP), so proc(5) is asked:
/// `START-END r--s OFFSET DEV INODE PATH`.
enum MapFinder {
    /// The map of a file that was just mapped.
    static func map(of identity: FileIdentity) throws(LMDBError) -> Range<UInt> {
        guard let range = Self.find(identity) else {
            throw LMDBError(.other, operation: "/proc/self/maps")
        }
        return range
    }

    /// The map of a file; nil where there is none.
    static func find(_ identity: FileIdentity) -> Range<UInt>? {
        Self.find(identity.inode)
    }

    private static func find(_ inode: UInt64) -> Range<UInt>? {
        guard let file = unsafe fopen("/proc/self/maps", "re") else { return nil }
        defer { unsafe _ = fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { unsafe free(line) }
        while unsafe getline(&line, &room, file) > 0 {
            guard let text = unsafe line.map({ unsafe String(cString: $0) }) else { continue }
            if let range = Self.range(of: text, inode: inode) { return range }
        }
        return nil
    }

    /// The addresses of a line that speaks of a shared map of this file, from its beginning.
    static func range(of line: String, inode: UInt64) -> Range<UInt>? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count >= 5, parts[1].hasSuffix("s"), UInt64(parts[2], radix: 16) == 0,
            UInt64(parts[4].prefix { $0.isNumber }) == inode
        else { return nil }
        let ends = parts[0].split(separator: "-")
        guard ends.count == 2, let start = UInt(ends[0], radix: 16),
            let end = UInt(ends[1], radix: 16), start < end
        else { return nil }
        return start..<end
    }
}
