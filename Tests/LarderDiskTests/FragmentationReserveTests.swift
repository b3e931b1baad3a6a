import Testing

@testable import LarderDisk

@Suite("What is kept free so that runs of pages are found")
struct FragmentationReserveTests {
    @Test("is nothing as long as runs are found")
    func nothingAtFirst() {
        var reserve = FragmentationReserve(capacityPages: 64_000)
        reserve.wrote(1 << 40)
        #expect(reserve.pages == 0)
    }

    @Test("is more than what was free when none was found")
    func learns() {
        var reserve = FragmentationReserve(capacityPages: 64_000)
        reserve.foundNoRun(free: 6_000, least: 2_000)
        #expect(reserve.pages == 4_500)
        reserve.foundNoRun(free: 6_900, least: 2_000)
        #expect(reserve.pages == 5_400)
    }

    @Test("grows even where less was free than is asked for: eviction was behind")
    func growsBehind() {
        var reserve = FragmentationReserve(capacityPages: 64_000)
        reserve.foundNoRun(free: 6_000, least: 2_000)
        reserve.foundNoRun(free: 100, least: 2_000)
        #expect(reserve.pages == 5_000)
    }

    @Test("is a quarter of the capacity at most, and stays where more than that was free")
    func bounded() {
        var reserve = FragmentationReserve(capacityPages: 64_000)
        for _ in 0..<1_000 { reserve.foundNoRun(free: 10_000, least: 2_000) }
        #expect(reserve.pages == 16_000)
        var other = FragmentationReserve(capacityPages: 64_000)
        other.foundNoRun(free: 50_000, least: 2_000)
        #expect(other.pages == 0)
    }

    @Test("is forgotten by a sixty-fourth of the capacity with each capacity written")
    func forgets() {
        var reserve = FragmentationReserve(capacityPages: 64_000)
        reserve.foundNoRun(free: 6_000, least: 2_000)
        for _ in 0..<6_400 { reserve.wrote(10) }
        #expect(reserve.pages == 3_500)
        reserve.wrote(.max)
        #expect(reserve.pages == 0)
    }

    @Test("never leaves its bounds", arguments: [0, 1, 63, 64, 255, .max] as [UInt64])
    func extremes(capacity: UInt64) {
        var reserve = FragmentationReserve(capacityPages: capacity)
        for free in [0, 1, capacity / 4, capacity, .max] {
            reserve.foundNoRun(free: free, least: 0)
            #expect(reserve.pages <= capacity / 4)
            reserve.wrote(1)
        }
    }
}
