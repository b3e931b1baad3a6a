import CXXHash
import SeededNumbers
import Testing

@testable import LarderDisk

@Suite("XXH3")
struct ChecksumTests {
    @Test("has the same result by whatever instructions the machine has")
    func instructions() {
        var numbers = SplitMix64(seed: 7)
        let bytes = (0..<70_000).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        let lengths = Array(0...2_200) + [3_071, 3_072, 3_073, 4_096, 65_520, 65_535, 69_990]
        for length in lengths {
            for start in [0, 1, 10, 16] {
                let seed = start == 0 ? 0 : numbers.next()
                unsafe bytes.withUnsafeBytes { bytes in
                    let base = unsafe bytes.baseAddress?.advanced(by: start)
                    #expect(
                        unsafe larder_xxh3_64(base, length, seed)
                            == larder_xxh3_64_plain(base, length, seed))
                }
            }
        }
    }
}
