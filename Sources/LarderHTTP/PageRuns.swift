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

        var isUnused: Bool { self.free.first?.count == self.pages }
    }

    static let pageSize = 4_096
    /// Pages of a stretch: one large page of the machine.
    static let stretchPages = 512
    /// How many stretches are looked through for room.
    private static let searchLimit = 8

    private var stretches: [UInt: Stretch] = [:]
    /// Those with room, the one that was given some last at the end.
    private var roomy: [UInt] = []
    /// Runs in use: their stretch and their length, by address.
    private var runs: [UInt: (stretch: UInt, pages: Int)] = [:]

    var stretchCount: Int { self.stretches.count }
    var runCount: Int { self.runs.count }

    static func pages(for bytes: Int) -> Int {
        max(1, bytes / self.pageSize + (bytes % self.pageSize == 0 ? 0 : 1))
    }

    /// The length of the run in use that begins here, in bytes.
    func length(at address: UInt) -> Int? {
        self.runs[address].map { $0.pages * Self.pageSize }
    }

    /// A run of so many pages, in use from now on; nil where no stretch has room: one is to be added.
    mutating func take(_ pages: Int) -> UInt? {
        for place in self.roomy.indices.suffix(Self.searchLimit).reversed() {
            let base = self.roomy[place]
            guard let hole = self.stretches[base]?.free.firstIndex(where: { $0.count >= pages })
            else { continue }
            return self.take(pages, of: base, at: hole, place)
        }
        return nil
    }

    private mutating func take(
        _ pages: Int, of base: UInt, at hole: Int, _ place: Int
    ) -> UInt? {
        guard var stretch = self.stretches[base] else { return nil }
        let room = stretch.free[hole]
        if room.count == pages {
            stretch.free.remove(at: hole)
        } else {
            stretch.free[hole] = room.lowerBound + pages..<room.upperBound
        }
        if stretch.free.isEmpty { self.roomy.remove(at: place) }
        self.stretches[base] = stretch
        let address = base + UInt(room.lowerBound * Self.pageSize)
        self.runs[address] = (base, pages)
        return address
    }

    /// New memory.
    mutating func add(_ base: UInt, pages: Int) {
        self.stretches[base] = Stretch(base: base, pages: pages, free: [0..<pages])
        self.roomy.append(base)
    }

    /// The run is in use no longer, nor free yet; its length in bytes, or nil where there is none.
    mutating func withdraw(_ address: UInt) -> (stretch: UInt, bytes: Int)? {
        self.runs.removeValue(forKey: address).map { ($0.stretch, $0.pages * Self.pageSize) }
    }

    /// The run may be taken again.
    ///
    /// - Returns: the stretch that is no part of this any more, as all of it is unused.
    mutating func giveBack(_ address: UInt, bytes: Int, of base: UInt) -> Stretch? {
        guard var stretch = self.stretches[base] else { return nil }
        let first = Int(address - base) / Self.pageSize
        if stretch.free.isEmpty { self.roomy.append(base) }
        Self.insert(first..<first + bytes / Self.pageSize, into: &stretch.free)
        self.stretches[base] = stretch
        guard stretch.isUnused else { return nil }
        self.stretches[base] = nil
        self.roomy.removeAll { $0 == base }
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
