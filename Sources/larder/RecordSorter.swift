import Glibc

/// Sorts any number of records in bounded memory (external merge sort).
///
/// ```
/// add* ─▶ finish
///   memory full ─▶ sorted run in a temporary file     runs ─▶ merged, `fanIn` at a time
/// ```
///
/// A record is a string of bytes, and its bytes are its order, as memcmp(3) has it: whoever makes
/// them puts what counts first. Where only the first so many are wanted, records that cannot be
/// among them are dropped as soon as that is known, and mostly no file is needed.
struct RecordSorter {
    /// What bounds a sorter; tests make it small.
    struct Limits {
        /// Memory for records and their index.
        var runBytes = 32 << 20
        var runRecords = Int.max
        /// Runs that are read at the same time, each through a buffer of its own.
        var fanIn = 256
        var bufferBytes = 64 << 10
    }

    /// A record in `arena`.
    private struct Entry {
        /// Its first eight bytes, which decide most comparisons.
        var prefix: UInt64
        var offset: Int
        var count: Int
    }

    private let limits: Limits
    private let wanted: Int?
    private let isReversed: Bool
    private let makeFile: () throws(CommandFailure) -> TemporaryFile

    private var arena: [UInt8] = []
    private var entries: [Entry] = []
    private var file: TemporaryFile?
    private var runs: [SortedRun] = []
    /// What does not come before it is not wanted.
    private var bar: [UInt8]?
    /// How many records are kept at this moment; fewer than came where not all are wanted.
    private(set) var count: UInt64 = 0

    /// - Parameters:
    ///   - wanted: how many records `finish` is to give at most; nil for all.
    ///   - isReversed: whether what sorts last comes first.
    init(
        wanted: Int? = nil, isReversed: Bool = false, limits: Limits = Limits(),
        makeFile: @escaping () throws(CommandFailure) -> TemporaryFile = {
            () throws(CommandFailure) in try TemporaryFile()
        }
    ) {
        self.wanted = wanted
        self.isReversed = isReversed
        self.limits = limits
        self.makeFile = makeFile
    }

    mutating func add(_ record: [UInt8]) throws(CommandFailure) {
        if self.wanted == 0 { return }
        if let bar = self.bar, !self.order(record, bar) { return }
        if self.isFull(with: record.count) { try self.makeRoom() }
        self.append(record[...])
        self.count += 1
    }

    private mutating func append(_ record: ArraySlice<UInt8>) {
        // Room for all at once: an array that grows holds what it had twice. Pages that are never
        // touched take no memory.
        if self.arena.capacity == 0 { self.arena.reserveCapacity(self.limits.runBytes) }
        var prefix: UInt64 = 0
        for byte in record.prefix(8) { prefix = prefix << 8 | UInt64(byte) }
        if record.count < 8 { prefix <<= UInt64(8 * (8 - record.count)) }
        self.entries.append(
            Entry(prefix: prefix, offset: self.arena.count, count: record.count))
        self.arena += record
    }

    private var usedBytes: Int {
        self.arena.count + self.entries.count * MemoryLayout<Entry>.stride
    }

    private func isFull(with more: Int) -> Bool {
        if self.entries.isEmpty { return false }
        if let wanted = self.wanted, wanted < Int.max / 4,
            self.entries.count >= max(2 * wanted, min(1024, self.limits.runRecords))
        {
            return true
        }
        return self.entries.count >= self.limits.runRecords
            || self.usedBytes + more > self.limits.runBytes
    }

    /// Drops what is not wanted, and writes a run where that was not enough.
    private mutating func makeRoom() throws(CommandFailure) {
        self.sort()
        if let wanted = self.wanted, self.entries.count >= wanted {
            self.cut(to: wanted)
            self.bar = self.entries.last.map { Array(self.bytes(of: $0)) }
        }
        if self.entries.count > self.limits.runRecords / 2
            || self.usedBytes > self.limits.runBytes / 2
        {
            try self.spill()
        }
    }

    // MARK: In memory

    private func bytes(of entry: Entry) -> ArraySlice<UInt8> {
        self.arena[entry.offset..<entry.offset + entry.count]
    }

    private mutating func sort() {
        let isReversed = self.isReversed
        var entries = self.entries
        self.entries = []
        unsafe self.arena.withUnsafeBytes { arena in
            entries.sort { a, b in
                if a.prefix != b.prefix { return (a.prefix < b.prefix) != isReversed }
                let order = unsafe Self.compare(
                    UnsafeRawBufferPointer(rebasing: arena[a.offset..<a.offset + a.count]),
                    UnsafeRawBufferPointer(rebasing: arena[b.offset..<b.offset + b.count]))
                return isReversed ? order > 0 : order < 0
            }
        }
        self.entries = entries
    }

    private mutating func cut(to count: Int) {
        self.count -= UInt64(self.entries.count - count)
        let kept = self.entries.prefix(count)
        let arena = self.arena
        self.arena = []
        self.entries = []
        for entry in kept { self.append(arena[entry.offset..<entry.offset + entry.count]) }
    }

    @unsafe private static func compare(
        _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer
    ) -> Int {
        let shared = min(a.count, b.count)
        if shared > 0, let x = a.baseAddress, let y = b.baseAddress {
            let order = unsafe memcmp(x, y, shared)
            if order != 0 { return Int(order) }
        }
        return a.count - b.count
    }

    /// Whether one record comes before another; holds nothing of the sorter.
    private var order: ([UInt8], [UInt8]) -> Bool {
        let isReversed = self.isReversed
        return { a, b in
            let order = unsafe a.withUnsafeBytes { a in
                unsafe b.withUnsafeBytes { b in unsafe Self.compare(a, b) }
            }
            return isReversed ? order > 0 : order < 0
        }
    }

    // MARK: In files

    /// Writes what is in memory, which is sorted, as a run.
    private mutating func spill() throws(CommandFailure) {
        if self.runs.count >= self.limits.fanIn { try self.collapse() }
        if self.file == nil { self.file = try self.makeFile() }
        guard let file = self.file else { return }
        let start = file.size
        for entry in self.entries {
            try file.append(SortedRun.header(entry.count))
            try file.append(self.bytes(of: entry))
        }
        try file.flush()
        self.runs.append(SortedRun(file: file, start: start, end: file.size))
        self.arena.removeAll(keepingCapacity: true)
        self.entries.removeAll(keepingCapacity: true)
    }

    /// Makes one run of all, in another file, so that the old one's space is given back.
    private mutating func collapse() throws(CommandFailure) {
        let file = try self.makeFile()
        var kept: UInt64 = 0
        var merge = try RunMerge(self.runs, self.limits.bufferBytes, by: self.order)
        while let record = try merge.next() {
            if let wanted = self.wanted, kept >= UInt64(wanted) { break }
            try file.append(SortedRun.header(record.count))
            try file.append(record)
            kept += 1
        }
        try file.flush()
        self.file = file
        self.runs = [SortedRun(file: file, start: 0, end: file.size)]
        self.count = kept + UInt64(self.entries.count)
    }

    /// Calls `body` with the records in order, until it returns false.
    ///
    /// The sorter is of no use after it.
    mutating func finish(_ body: ([UInt8]) throws -> Bool) throws {
        self.sort()
        let wanted = self.wanted ?? .max
        if self.runs.isEmpty {
            for entry in self.entries.prefix(wanted) {
                guard try body(Array(self.bytes(of: entry))) else { return }
            }
            return
        }
        try self.spill()
        (self.arena, self.entries) = ([], [])
        var merge = try RunMerge(self.runs, self.limits.bufferBytes, by: self.order)
        var given = 0
        while given < wanted, let record = try merge.next() {
            guard try body(record) else { return }
            given += 1
        }
    }
}

/// The records of several sorted runs in one order: a heap of the first record of each.
struct RunMerge {
    private struct Head {
        var record: [UInt8]
        var reader: RunReader
    }

    private var heads: [Head] = []
    private let precedes: ([UInt8], [UInt8]) -> Bool

    init(
        _ runs: [SortedRun], _ bufferSize: Int, by precedes: @escaping ([UInt8], [UInt8]) -> Bool
    ) throws(CommandFailure) {
        self.precedes = precedes
        for run in runs {
            var reader = RunReader(run, bufferSize: bufferSize)
            guard let record = try reader.next() else { continue }
            self.heads.append(Head(record: record, reader: reader))
        }
        for index in (0..<self.heads.count / 2).reversed() { self.sink(index) }
    }

    mutating func next() throws(CommandFailure) -> [UInt8]? {
        guard let first = self.heads.first?.record else { return nil }
        if let record = try self.heads[0].reader.next() {
            self.heads[0].record = record
        } else {
            self.heads.swapAt(0, self.heads.count - 1)
            self.heads.removeLast()
        }
        self.sink(0)
        return first
    }

    /// Moves a head down until both below it come after it.
    private mutating func sink(_ index: Int) {
        var index = index
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < self.heads.count {
                if self.precedes(self.heads[child].record, self.heads[least].record) {
                    least = child
                }
            }
            if least == index { return }
            self.heads.swapAt(index, least)
            index = least
        }
    }
}
