/// Which runs of pages are in use, in stretches of memory that were asked for: a value, which
/// touches no memory.
///
/// ```
/// take ─▶ (add, where nothing was free) ─▶ the run is in use ─▶ withdraw ─▶ giveBack
/// ```
///
/// Between the last two a run belongs to nobody: its pages are taken from it meanwhile.
struct PageRuns: Sendable {
    /// Memory that was asked for in one piece.
    struct Stretch: Sendable, Equatable {
        let base: UInt
        let pages: Int
        /// By their places, and never side by side.
        var free: [Range<Int>]
        /// Where it stands among those with room; nil: it has none.
        fileprivate var place: Place?

        var isUnused: Bool { self.free.first?.count == self.pages }

        init(base: UInt, pages: Int, free: [Range<Int>]) {
            self.base = base
            self.pages = pages
            self.free = free
        }
    }

    fileprivate struct Place: Sendable, Equatable {
        var size: Int
        var index: Int
    }

    /// In bytes: what madvise(2) takes and gives back is whole pages of the machine's.
    let pageSize: Int
    /// Pages of a stretch: one large page of most machines.
    let stretchPages: Int
    /// How many stretches of one size of holes are looked through for room.
    private static let searchLimit = 8

    private var stretches: [UInt: Stretch] = [:]
    /// Stretches with room, by the binary logarithm of their largest hole.
    private var roomy: [[UInt]] = Array(repeating: [], count: Int.bitWidth)
    /// Runs in use: their stretch and their length, by address.
    private var runs: [UInt: (stretch: UInt, pages: Int)] = [:]

    var stretchCount: Int { self.stretches.count }
    var runCount: Int { self.runs.count }

    /// - Parameter pageSize: a power of two; what sysconf(3) says of the machine (`_SC_PAGESIZE`).
    init(pageSize: Int) {
        self.pageSize = max(1, pageSize)
        self.stretchPages = max(1, (2 << 20) / self.pageSize)
    }

    func pages(for bytes: Int) -> Int {
        max(1, bytes / self.pageSize + (bytes % self.pageSize == 0 ? 0 : 1))
    }

    /// The length of the run in use that begins here, in bytes.
    func length(at address: UInt) -> Int? {
        self.runs[address].map { $0.pages * self.pageSize }
    }

    /// A run of so many pages, in use from now on; nil where no stretch has room: one is to be added.
    ///
    /// The stretches with the smallest holes come first: then others empty, and can be given back.
    mutating func take(_ pages: Int) -> UInt? {
        for size in Self.size(pages)..<self.roomy.count {
            for base in self.roomy[size].suffix(Self.searchLimit).reversed() {
                guard let hole = self.stretches[base]?.free.firstIndex(where: { $0.count >= pages })
                else { continue }
                return self.take(pages, of: base, at: hole)
            }
        }
        return nil
    }

    private mutating func take(_ pages: Int, of base: UInt, at hole: Int) -> UInt? {
        guard var stretch = self.stretches[base] else { return nil }
        let room = stretch.free[hole]
        if room.count == pages {
            stretch.free.remove(at: hole)
        } else {
            stretch.free[hole] = room.lowerBound + pages..<room.upperBound
        }
        self.put(stretch)
        let address = base + UInt(room.lowerBound * self.pageSize)
        self.runs[address] = (base, pages)
        return address
    }

    private static func size(_ pages: Int) -> Int {
        Int.bitWidth - 1 - max(1, pages).leadingZeroBitCount
    }

    /// Keeps a stretch that has changed, at its place among those with room.
    private mutating func put(_ changed: Stretch) {
        var stretch = changed
        let size = stretch.free.map(\.count).max().map(Self.size)
        if stretch.place?.size != size {
            self.leave(stretch.place)
            stretch.place = size.map { Place(size: $0, index: self.roomy[$0].count) }
            if let size { self.roomy[size].append(stretch.base) }
        }
        self.stretches[stretch.base] = stretch
    }

    /// The last of the same size takes the place that is left.
    private mutating func leave(_ place: Place?) {
        guard let place, let last = self.roomy[place.size].popLast(),
            place.index < self.roomy[place.size].count
        else { return }
        self.roomy[place.size][place.index] = last
        self.stretches[last]?.place = place
    }

    /// New memory.
    mutating func add(_ base: UInt, pages: Int) {
        self.put(Stretch(base: base, pages: pages, free: [0..<pages]))
    }

    /// The run is in use no longer, nor free yet; its length in bytes, or nil where there is none.
    mutating func withdraw(_ address: UInt) -> (stretch: UInt, bytes: Int)? {
        self.runs.removeValue(forKey: address).map { ($0.stretch, $0.pages * self.pageSize) }
    }

    /// The run may be taken again.
    ///
    /// - Returns: the stretch that is no part of this any more, as all of it is unused.
    mutating func giveBack(_ address: UInt, bytes: Int, of base: UInt) -> Stretch? {
        guard var stretch = self.stretches[base] else { return nil }
        let first = Int(address - base) / self.pageSize
        Self.insert(first..<first + bytes / self.pageSize, into: &stretch.free)
        guard stretch.isUnused else {
            self.put(stretch)
            return nil
        }
        self.leave(stretch.place)
        self.stretches[base] = nil
        return stretch
    }

    private static func insert(_ run: Range<Int>, into free: inout [Range<Int>]) {
        var run = run
        var place = free.firstIndex { $0.lowerBound > run.lowerBound } ?? free.count
        if place > 0, free[place - 1].upperBound == run.lowerBound {
            place -= 1
            run = free.remove(at: place).lowerBound..<run.upperBound
        }
        if place < free.count, free[place].lowerBound == run.upperBound {
            run = run.lowerBound..<free.remove(at: place).upperBound
        }
        free.insert(run, at: place)
    }
}
