import SeededNumbers
import Testing

@testable import LarderHTTP

/// A table that `#require` can change.
private final class Table {
    private var runs: PageRuns

    init(pageSize: Int = PageRunsTests.pageSize) {
        self.runs = PageRuns(pageSize: pageSize)
    }

    func pages(for bytes: Int) -> Int { self.runs.pages(for: bytes) }
    func take(_ pages: Int) -> UInt? { self.runs.take(pages) }
    func add(_ base: UInt, pages: Int) { self.runs.add(base, pages: pages) }
    func length(at address: UInt) -> Int? { self.runs.length(at: address) }
    func withdraw(_ address: UInt) -> (stretch: UInt, bytes: Int)? { self.runs.withdraw(address) }
    func giveBack(_ address: UInt, bytes: Int, of base: UInt) -> PageRuns.Stretch? {
        self.runs.giveBack(address, bytes: bytes, of: base)
    }
    var runCount: Int { self.runs.runCount }
    var stretchCount: Int { self.runs.stretchCount }
}

@Suite("Runs of pages")
struct PageRunsTests {
    static let pageSize = 4_096
    private let base: UInt = 1 << 32
    private let page = UInt(Self.pageSize)

    @Test(
        "hold whole pages",
        arguments: [(0, 1), (1, 1), (4_096, 1), (4_097, 2), (65_536, 16), (65_537, 17)])
    func pages(_ bytes: Int, _ pages: Int) {
        #expect(Table().pages(for: bytes) == pages)
    }

    @Test(
        "hold whole pages of the machine, whatever their size: others would lose part of theirs",
        arguments: [(4_096, 17), (16_384, 5), (65_536, 2), (4 << 20, 1)])
    func pageSizes(_ size: Int, _ pages: Int) throws {
        let runs = Table(pageSize: size)
        #expect(runs.pages(for: 65_537) == pages)
        runs.add(self.base, pages: 2 * pages)
        #expect(runs.take(pages) == self.base)
        #expect(runs.take(pages) == self.base + UInt(pages * size))
        let (stretch, bytes) = try #require(runs.withdraw(self.base))
        #expect(bytes == pages * size)
        #expect(runs.giveBack(self.base, bytes: bytes, of: stretch) == nil)
        #expect(runs.take(pages) == self.base)
    }

    @Test(
        "come in stretches of a large page, or of one page where that is larger",
        arguments: [(4_096, 512), (16_384, 128), (65_536, 32), (4 << 20, 1)])
    func stretches(_ size: Int, _ pages: Int) {
        #expect(PageRuns(pageSize: size).stretchPages == pages)
    }

    @Test("there are none without memory, and none that a stretch has no room for")
    func room() {
        let runs = Table()
        #expect(runs.take(1) == nil)
        runs.add(self.base, pages: 4)
        #expect(runs.take(5) == nil)
        #expect(runs.take(3) == self.base)
        #expect(runs.take(2) == nil)
        #expect(runs.take(1) == self.base + 3 * self.page)
        #expect(runs.take(1) == nil)
        #expect(runs.length(at: self.base) == 3 * Self.pageSize)
        #expect(runs.length(at: self.base + self.page) == nil)
    }

    @Test("are in use until withdrawn, and free only when given back")
    func life() throws {
        let runs = Table()
        runs.add(self.base, pages: 2)
        let first = try #require(runs.take(1))
        let second = try #require(runs.take(1))
        let (stretch, bytes) = try #require(runs.withdraw(first))
        #expect(bytes == Self.pageSize)
        #expect(runs.length(at: first) == nil)
        #expect(runs.withdraw(first) == nil)
        #expect(runs.take(1) == nil)
        #expect(runs.giveBack(first, bytes: bytes, of: stretch) == nil)
        #expect(runs.take(1) == first)
        #expect(runs.length(at: second) == Self.pageSize)
    }

    @Test("of a stretch that nobody uses any more take it with them")
    func unused() throws {
        let runs = Table()
        runs.add(self.base, pages: 3)
        let taken = try (0..<3).map { _ in try #require(runs.take(1)) }
        var gone: PageRuns.Stretch?
        for address in [taken[1], taken[0], taken[2]] {
            #expect(gone == nil)
            let (stretch, bytes) = try #require(runs.withdraw(address))
            gone = runs.giveBack(address, bytes: bytes, of: stretch)
        }
        #expect(gone?.base == self.base && gone?.pages == 3 && gone?.free == [0..<3])
        #expect(runs.stretchCount == 0)
        #expect(runs.take(1) == nil)
    }

    @Test("are found wherever there is room, however many stretches have none that is as large")
    func holes() throws {
        // Twenty runs leave twelve pages of each stretch, which is too few for another.
        let runs = Table()
        var taken: [[UInt]] = []
        for stretch in 0..<100 {
            runs.add(self.base + UInt(stretch) << 21, pages: 512)
            taken.append(try (0..<20).map { _ in try #require(runs.take(25)) })
            #expect(runs.take(25) == nil)
        }
        for freed in [0, 50, 99] {
            let address = taken[freed][7]
            let (stretch, bytes) = try #require(runs.withdraw(address))
            #expect(runs.giveBack(address, bytes: bytes, of: stretch) == nil)
            #expect(runs.take(25) == address)
        }
    }

    @Test("go where holes are small, so that others empty")
    func packing() throws {
        let runs = Table()
        runs.add(self.base, pages: 64)
        #expect(runs.take(60) == self.base)
        runs.add(self.base << 1, pages: 64)
        #expect(runs.take(4) == self.base + 60 * self.page)
        #expect(runs.take(4) == self.base << 1)
    }

    @Test("never overlap, whatever comes and goes", arguments: [1, 2, 3] as [UInt64])
    func random(seed: UInt64) throws {
        var numbers = SplitMix64(seed: seed)
        let runs = Table()
        var inUse: [UInt: Int] = [:]
        var stretches: UInt = 0
        for _ in 0..<3_000 {
            if Bool.random(using: &numbers),
                let address = inUse.keys.sorted().randomElement(using: &numbers)
            {
                let (stretch, bytes) = try #require(runs.withdraw(address))
                let pages = inUse.removeValue(forKey: address) ?? 0
                #expect(bytes == pages * Self.pageSize)
                _ = runs.giveBack(address, bytes: bytes, of: stretch)
                continue
            }
            let pages = Int.random(in: 1...40, using: &numbers)
            if let address = runs.take(pages) {
                inUse[address] = pages
            } else {
                stretches += 1
                runs.add(stretches << 32, pages: 64)
            }
        }
        let sorted = inUse.sorted { $0.key < $1.key }
        for (run, next) in zip(sorted, sorted.dropFirst()) {
            #expect(run.key + UInt(run.value * Self.pageSize) <= next.key)
        }
        #expect(runs.runCount == inUse.count)
        for (address, _) in inUse {
            let (stretch, bytes) = try #require(runs.withdraw(address))
            _ = runs.giveBack(address, bytes: bytes, of: stretch)
        }
        #expect(runs.runCount == 0)
    }
}
