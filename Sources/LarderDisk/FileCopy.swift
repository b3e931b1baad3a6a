import LarderLMDB

/// Copies all that a cache file holds into an empty one, a bounded part at a time.
///
/// In the order of keys, so that the pages of the copy are full and lie in this order; LMDB's own
/// copy (`MDB_CP_COMPACT`) is one transaction over the whole file, which cannot be broken off, tells
/// no progress, and writes with whatever mode the umask leaves. Used by one thread; nobody may write
/// to either file meanwhile.
struct FileCopy {
    /// Bytes that one pair of transactions copies: their pages lie in memory until the commit.
    private static let bytesPerStep = 16 << 20

    private let source: (Environment, Schema)
    private let target: (Environment, Schema)
    /// The database that is being copied.
    private var number = 0
    /// The last key of it that is copied.
    private var place: [UInt8] = []
    /// Keys and values that are copied.
    private(set) var bytes: UInt64 = 0

    init(from source: (Environment, Schema), to target: (Environment, Schema)) {
        self.source = source
        self.target = target
    }

    /// Copies a part; false when nothing is left.
    mutating func step() throws(LMDBError) -> Bool {
        let (from, to) = (self.source.1.all, self.target.1.all)
        guard self.number < from.count, self.number < to.count else { return false }
        let (source, target) = (from[self.number], to[self.number])
        let place = self.place
        let target0 = self.target.0
        let (last, bytes) = try self.source.0.read { (reading) throws(LMDBError) in
            try target0.write { (writing) throws(LMDBError) in
                try reading.withCursor(source) { (cursor) throws(LMDBError) in
                    try Self.copy(cursor, after: place, to: target, writing)
                }
            }
        }
        self.bytes &+= UInt64(clamping: bytes)
        self.place = last ?? []
        if last == nil { self.number += 1 }
        return self.number < from.count
    }

    /// - Returns: the key to go on behind, nil where that was the end, and how much was copied.
    private static func copy(
        _ cursor: borrowing Cursor, after place: [UInt8], to target: Database,
        _ writing: borrowing WriteTransaction
    ) throws(LMDBError) -> (last: [UInt8]?, bytes: Int) {
        var bytes = 0
        var last: [UInt8]?
        // Whether to go on; what was copied last is found again, and left out.
        func visit(_ key: Span<UInt8>, _ value: Span<UInt8>) throws(LMDBError) -> Bool {
            let name = key.copied
            if name == place { return true }
            try writing.put(target, key, value)
            bytes += key.count + value.count
            if bytes < Self.bytesPerStep { return true }
            last = name
            return false
        }
        var goesOn = try cursor.seek(atOrAfter: place.span, visit) ?? false
        while goesOn { goesOn = try cursor.next(visit) ?? false }
        return (last, bytes)
    }
}
