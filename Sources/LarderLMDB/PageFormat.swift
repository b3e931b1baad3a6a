import Glibc

/// What LMDB 0.9 writes into its pages (data version 1, 64-bit): offsets, flags and limits.
///
/// From `MDB_page`, `MDB_node`, `MDB_db` and `MDB_meta` of its mdb.c. Numbers are in the byte order
/// of the machine, which all of Larder's are little-endian.
enum PageFormat {
    /// Before the nodes' offsets, or an overflow page's bytes.
    static let headerSize = 16
    static let nodeHeaderSize = 8
    /// A sub-database's record in the leaf that names it.
    static let recordSize = 48
    /// Up to the end of the meta page's transaction number.
    static let metaSize = 152
    static let magic: UInt32 = 0xBEEF_C0DE
    static let version: UInt32 = 1
    /// "no page": the root of an empty tree.
    static let noPage = UInt64.max
    /// LMDB's cursors have room for so many levels (`CURSOR_STACK`).
    static let maximumDepth = 32
    /// `MDB_MAXKEYSIZE` as Debian and everyone else compiles it.
    static let maximumKeySize = 511

    static let branchFlag: UInt16 = 0x01
    static let leafFlag: UInt16 = 0x02
    static let overflowFlag: UInt16 = 0x04
    static let metaFlag: UInt16 = 0x08

    /// The value lies on overflow pages; the node holds the number of the first.
    static let bigData: UInt16 = 0x01
    /// The value is a sub-database's record.
    static let subDatabase: UInt16 = 0x02

    /// `MDB_INTEGERKEY`, which LMDB's own tree of free pages has.
    static let integerKeys: UInt16 = 0x08
    /// All flags that change how a tree is read: `MDB_REVERSEKEY` to `MDB_REVERSEDUP`.
    static let treeFlags: UInt16 = 0x7E

    /// Pages that a value of `size` bytes takes (`OVPAGES`).
    static func overflowPages(_ size: UInt64, pageSize: Int) -> UInt64 {
        (15 &+ size) / UInt64(max(1, pageSize)) &+ 1
    }
}

extension Span<UInt8> {
    /// The number at `offset`; nil where it does not fit.
    @inline(__always)
    func number<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as: T.Type) -> T? {
        let size = MemoryLayout<T>.size
        guard offset >= 0, self.count >= size, offset <= self.count &- size else { return nil }
        // Inside, by the line above; BitwiseCopyable integers have no invalid bytes.
        return unsafe T(
            littleEndian: self.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
    }
}

/// The header of a branch, leaf or overflow page.
struct PageHeader {
    var number: UInt64
    var flags: UInt16
    /// End of the nodes' offsets, from the beginning of the page.
    var lower: Int
    /// Beginning of the nodes.
    var upper: Int

    /// nil where there are not so many bytes.
    @inline(__always)
    init?(_ page: borrowing Span<UInt8>) {
        guard page.count >= PageFormat.headerSize,
            let number = page.number(at: 0, as: UInt64.self),
            let flags = page.number(at: 10, as: UInt16.self),
            let lower = page.number(at: 12, as: UInt16.self),
            let upper = page.number(at: 14, as: UInt16.self)
        else { return nil }
        self.number = number
        self.flags = flags
        self.lower = Int(lower)
        self.upper = Int(upper)
    }

    /// How many nodes a branch or leaf page has; not below zero.
    var nodeCount: Int { max(0, self.lower - PageFormat.headerSize) / 2 }
    /// How many pages an overflow page says that it and those after it are.
    var overflowCount: UInt64 { UInt64(self.lower) | UInt64(self.upper) << 16 }
    /// Bytes that the nodes and their offsets take; LMDB's `PAGEFILL` times the page's size.
    func used(pageSize: Int) -> Int {
        max(0, pageSize - PageFormat.headerSize - (self.upper - self.lower))
    }
}

/// Where the parts of a node lie in its page: all inside it.
struct PageNode {
    /// First byte of the node.
    var start: Int
    var keyStart: Int
    var keyCount: Int
    var flags: UInt16
    /// The child of a branch node.
    var child: UInt64
    /// Bytes of a leaf node's value, wherever that lies.
    var valueCount: UInt64
    /// The value in the page, or the number of its first overflow page.
    var valueStart: Int

    var isBig: Bool { self.flags & PageFormat.bigData != 0 }

    /// The node's bytes in the page, with the one that makes them even.
    func size(isLeaf: Bool) -> Int {
        let value = !isLeaf ? 0 : self.isBig ? 8 : Int(clamping: self.valueCount)
        let size = PageFormat.nodeHeaderSize + self.keyCount + value
        return size + size & 1
    }

    /// The node at `index`; nil where it does not lie in the page, or its value does not.
    @inline(__always)
    init?(_ page: borrowing Span<UInt8>, _ header: PageHeader, at index: Int, isLeaf: Bool) {
        guard index >= 0, index < header.nodeCount,
            let place = page.number(
                at: PageFormat.headerSize &+ 2 &* index, as: UInt16.self),
            Int(place) >= header.upper,
            let words = page.number(at: Int(place), as: UInt64.self)
        else { return nil }
        self.start = Int(place)
        self.flags = UInt16(truncatingIfNeeded: words >> 32)
        self.keyCount = Int(UInt16(truncatingIfNeeded: words >> 48))
        self.keyStart = Int(place) &+ PageFormat.nodeHeaderSize
        self.valueStart = self.keyStart &+ self.keyCount
        self.child = words & 0xFFFF_FFFF_FFFF
        self.valueCount = words & 0xFFFF_FFFF
        guard self.valueStart <= page.count else { return nil }
        guard isLeaf else { return }
        let inside = self.flags & PageFormat.bigData != 0 ? 8 : self.valueCount
        guard inside <= UInt64(page.count &- self.valueStart) else { return nil }
    }

    /// The first overflow page of a big value.
    func firstOverflowPage(_ page: borrowing Span<UInt8>) -> UInt64 {
        page.number(at: self.valueStart, as: UInt64.self) ?? PageFormat.noPage
    }

    /// Compares the node's key with another as LMDB does: by bytes, the shorter first.
    @inline(__always)
    func compareKey(_ page: borrowing Span<UInt8>, with key: borrowing Span<UInt8>) -> Int {
        let own = page.extracting(self.keyStart..<self.keyStart &+ self.keyCount)
        let common = min(own.count, key.count)
        let order = unsafe own.withUnsafeBufferPointer { own in
            unsafe key.withUnsafeBufferPointer { key in
                guard common > 0, let left = own.baseAddress,
                    let right = key.baseAddress
                else { return 0 as Int32 }
                return unsafe memcmp(left, right, common)
            }
        }
        return order != 0 ? Int(order) : own.count - key.count
    }
}

/// LMDB's record of a tree (`MDB_db`): where it begins and what it holds.
struct TreeRecord: Equatable {
    var flags: UInt16
    /// Levels, the leaves among them; 0 for an empty tree.
    var depth: Int
    var branchPages: UInt64
    var leafPages: UInt64
    var overflowPages: UInt64
    var entries: UInt64
    var root: UInt64

    /// A tree that holds nothing.
    static let empty = TreeRecord()

    private init() {
        self.flags = 0
        self.depth = 0
        self.branchPages = 0
        self.leafPages = 0
        self.overflowPages = 0
        self.entries = 0
        self.root = PageFormat.noPage
    }

    /// The record at `offset`; nil where it does not fit.
    init?(_ bytes: borrowing Span<UInt8>, at offset: Int) {
        guard let flags = bytes.number(at: offset + 4, as: UInt16.self),
            let depth = bytes.number(at: offset + 6, as: UInt16.self),
            let branchPages = bytes.number(at: offset + 8, as: UInt64.self),
            let leafPages = bytes.number(at: offset + 16, as: UInt64.self),
            let overflowPages = bytes.number(at: offset + 24, as: UInt64.self),
            let entries = bytes.number(at: offset + 32, as: UInt64.self),
            let root = bytes.number(at: offset + 40, as: UInt64.self)
        else { return nil }
        self.flags = flags
        self.depth = Int(depth)
        self.branchPages = branchPages
        self.leafPages = leafPages
        self.overflowPages = overflowPages
        self.entries = entries
        self.root = root
    }

    /// Whether it can be the record of a tree in a file up to `lastPage`.
    ///
    /// - Parameter flags: what the tree's flags must be: Larder makes none but plain trees.
    func isSane(lastPage: UInt64, flags: UInt16 = 0) -> Bool {
        guard self.flags & PageFormat.treeFlags == flags else { return false }
        if self.root == PageFormat.noPage { return self.depth == 0 && self.entries == 0 }
        return self.depth >= 1 && self.depth <= PageFormat.maximumDepth && self.root >= 2
            && self.root <= lastPage && self.leafPages >= 1
            && self.leafPages <= lastPage && self.branchPages <= lastPage
            && self.overflowPages <= lastPage
    }
}

/// A meta page: what one commit made of the file.
struct MetaRecord: Equatable {
    var pageSize: Int
    var mapSize: UInt64
    /// The tree of free pages.
    var free: TreeRecord
    /// The tree that names the others.
    var names: TreeRecord
    var lastPage: UInt64
    var transaction: UInt64

    /// The meta page `number` (0 or 1); nil where it is not one of data version 1.
    init?(_ page: borrowing Span<UInt8>, number: UInt64) {
        guard let header = PageHeader(page), header.number == number,
            header.flags == PageFormat.metaFlag,
            page.number(at: 16, as: UInt32.self) == PageFormat.magic,
            page.number(at: 20, as: UInt32.self) == PageFormat.version,
            let mapSize = page.number(at: 32, as: UInt64.self),
            let pageSize = page.number(at: 40, as: UInt32.self),
            let free = TreeRecord(page, at: 40), let names = TreeRecord(page, at: 88),
            let lastPage = page.number(at: 136, as: UInt64.self),
            let transaction = page.number(at: 144, as: UInt64.self),
            // LMDB takes the operating system's page size for new files, and whatever the file says
            // for old ones.
            pageSize >= 512, pageSize <= 65_536, pageSize.nonzeroBitCount == 1,
            lastPage >= 1, lastPage < UInt64(Int64.max) / UInt64(pageSize)
        else { return nil }
        self.pageSize = Int(pageSize)
        self.mapSize = mapSize
        self.free = free
        self.names = names
        self.lastPage = lastPage
        self.transaction = transaction
    }

    /// What speaks against its trees; nil where nothing does.
    var objection: PageDamage? {
        let isSound =
            self.free.isSane(lastPage: self.lastPage, flags: PageFormat.integerKeys)
            && self.names.isSane(lastPage: self.lastPage)
        return isSound ? nil : .record
    }
}
