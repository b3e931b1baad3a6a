import Glibc
import Testing

@testable import LarderTransfer

@Suite("Memory that libcurl gets cleared")
struct CurlMemoryTests {
    @Test("is cleared where it was used before", arguments: [1, 24, 1024, 6000])
    func cleared(_ size: Int) {
        for _ in 0..<4 { #expect(Self.isClearedThenUsed(size)) }
    }

    /// Whether a block came cleared; it is written to and given back.
    private static func isClearedThenUsed(_ size: Int) -> Bool {
        guard let block = unsafe CurlLibrary.allocateCleared(size, 1) else { return false }
        let bytes = unsafe UnsafeMutableRawBufferPointer(start: block, count: size)
        let isCleared = unsafe bytes.allSatisfy { $0 == 0 }
        for i in 0..<size { unsafe bytes[i] = 0xFF }
        unsafe free(block)
        return isCleared
    }

    @Test("is refused where its size cannot be")
    func tooLarge() {
        let (overflowing, negative) = unsafe (
            CurlLibrary.allocateCleared(.max, 2) == nil, CurlLibrary.allocateCleared(-1, 1) == nil
        )
        #expect(overflowing)
        #expect(negative)
    }
}
