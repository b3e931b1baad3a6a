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
    ///
    /// Numbers of inodes are the same on many file systems: one on the file's own device comes first.
    /// Where that says another device of its files than of its maps (btrfs, overlayfs), the inode
    /// must do.
    static func find(_ identity: FileIdentity) -> Range<UInt>? {
        var onAnother: Range<UInt>?
        guard let file = unsafe fopen("/proc/self/maps", "re") else { return nil }
        defer { unsafe _ = fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { unsafe free(line) }
        while unsafe getline(&line, &room, file) > 0 {
            guard let text = unsafe line.map({ unsafe String(cString: $0) }) else { continue }
            guard let found = Self.range(of: text, inode: identity.inode) else { continue }
            if Self.device(identity.device) == found.device { return found.range }
            onAnother = onAnother ?? found.range
        }
        return onAnother
    }

    /// A device's number as proc(5) writes it, taken apart as gnu_dev_major and gnu_dev_minor of
    /// <sys/sysmacros.h> do, which the C library's module leaves out.
    static func device(_ number: UInt64) -> String {
        let major = number >> 8 & 0xFFF | number >> 32 & 0xFFFF_F000
        let minor = number & 0xFF | number >> 12 & 0xFFFF_FF00
        let parts = [major, minor].map { part in
            let digits = String(part, radix: 16)
            return String(repeating: "0", count: max(0, 2 - digits.count)) + digits
        }
        return parts.joined(separator: ":")
    }

    /// The addresses and the device of a line that speaks of a shared map of a file with this inode,
    /// from its beginning.
    static func range(of line: String, inode: UInt64) -> (range: Range<UInt>, device: String)? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count >= 5, parts[1].hasSuffix("s"), UInt64(parts[2], radix: 16) == 0,
            UInt64(parts[4].prefix { $0.isNumber }) == inode
        else { return nil }
        let ends = parts[0].split(separator: "-")
        guard ends.count == 2, let start = UInt(ends[0], radix: 16),
            let end = UInt(ends[1], radix: 16), start < end
        else { return nil }
        return (start..<end, String(parts[3]))
    }
}
