import CBlocks
import Glibc
import Testing

@testable import LarderTransfer

@Suite("Blocks for libcurl")
struct BlocksTests {
    /// Runs `body` with memory of its own in the hands of this thread.
    private func withMemory(_ body: (CurlMemory) -> Void) {
        let memory = CurlMemory()
        memory.lend { body(memory) }
    }

    /// Not where the build or the environment asks for an allocator that finds faults.
    private static let areKept: Bool = {
        let memory = CurlMemory()
        memory.lend { unsafe larder_blocks_give(larder_blocks_take(100)) }
        return memory.kept > 0
    }()

    private func fill(_ block: UnsafeMutableRawPointer, _ count: Int, _ byte: Int32) {
        _ = unsafe memset(block, byte, count)
    }

    private func holds(_ block: UnsafeMutableRawPointer, _ count: Int, _ byte: UInt8) -> Bool {
        unsafe UnsafeRawBufferPointer(start: block, count: count).allSatisfy { $0 == byte }
    }

    /// Both sides of each border between rooms, and what is too large to be kept.
    private static let sizes: [Int] = {
        let borders = (4...18).flatMap { shift in (4...7).map { (1 << shift) / 4 * $0 } }
        return [1] + borders.flatMap { [$0 - 1, $0, $0 + 1] } + [300_000, 1 << 20]
    }()

    @Test(
        "have the room that was asked for, aligned as malloc's, and keep their bytes when resized",
        arguments: [false, true])
    func sizes(hasStore: Bool) throws {
        let check = {
            // The second time they are those that were given back.
            for size in Self.sizes + Self.sizes {
                guard let block = unsafe larder_blocks_take(size) else {
                    Issue.record("no block of \(size)")
                    return
                }
                unsafe self.fill(block, size, 0x5A)
                guard let larger = unsafe larder_blocks_resize(block, size * 2) else { return }
                // jemalloc aligns fewer than 16 bytes to 8.
                #expect(UInt(bitPattern: larger) % (size < 8 ? 8 : 16) == 0)
                #expect(unsafe self.holds(larger, size, 0x5A), "\(size) made larger")
                unsafe self.fill(larger, size * 2, 0x5A)
                let few = size / 8 + 1
                guard let smaller = unsafe larder_blocks_resize(larger, few) else { return }
                #expect(unsafe self.holds(smaller, few, 0x5A), "\(size) made smaller")
                unsafe larder_blocks_give(smaller)
            }
        }
        if hasStore { self.withMemory { _ in check() } } else { check() }
    }

    @Test("are used again", .enabled(if: Self.areKept))
    func again() {
        self.withMemory { memory in
            for size in Self.sizes where size < 200_000 {
                let first = unsafe larder_blocks_take(size)
                unsafe larder_blocks_give(first)
                #expect(memory.kept >= size)
                let second = unsafe larder_blocks_take(size)
                #expect(unsafe second == first, "\(size)")
                #expect(memory.kept == 0)
                unsafe free(second)  // malloc's, as a program may take them that got one.
            }
        }
    }

    @Test("come zeroed where that was asked for, also when they were used before")
    func zeroed() {
        self.withMemory { _ in
            for _ in 0..<3 {
                guard let block = unsafe larder_blocks_take_zeroed(30, 100) else {
                    Issue.record("no block")
                    return
                }
                #expect(unsafe self.holds(block, 3000, 0))
                unsafe self.fill(block, 3000, 1)
                unsafe larder_blocks_give(block)
            }
        }
    }

    @Test("of an impossible size are none")
    func impossible() {
        self.withMemory { _ in
            #expect(unsafe larder_blocks_take(.max) == nil)
            #expect(unsafe larder_blocks_take(.max - 8) == nil)
            #expect(unsafe larder_blocks_take_zeroed(.max / 2, 3) == nil)
        }
    }

    @Test("copy text, and give back nothing where there is nothing")
    func text() {
        self.withMemory { _ in
            let copy = unsafe larder_blocks_copy("field: value")
            #expect(unsafe copy.map { unsafe String(cString: $0) } == "field: value")
            unsafe larder_blocks_give(copy)
            larder_blocks_give(nil)
        }
    }

    @Test(
        "of any origin may be given back, and are kept up to a bound", .enabled(if: Self.areKept),
        arguments: [(48, 64 * 48...64 * 48), (200_000, 3 << 20...4 << 20)])
    func bound(size: Int, bound: ClosedRange<Int>) {
        self.withMemory { memory in
            var blocks: [UnsafeMutableRawPointer?] = unsafe []
            for _ in 0..<300 { unsafe blocks.append(malloc(size)) }
            while let block = unsafe blocks.popLast() { unsafe larder_blocks_give(block) }
            #expect(bound.contains(memory.kept))
        }
    }

    @Test(
        "are kept by whoever has the memory in hand, and by nobody else", .enabled(if: Self.areKept)
    )
    func hands() {
        let memory = CurlMemory()
        let other = CurlMemory()
        unsafe larder_blocks_give(larder_blocks_take(5000))
        memory.lend {
            #expect(memory.kept == 0)
            other.lend { unsafe larder_blocks_give(larder_blocks_take(5000)) }
            #expect(memory.kept == 0 && other.kept > 5000)
            unsafe larder_blocks_give(larder_blocks_take(3000))
        }
        #expect((3000..<5000).contains(memory.kept))
    }
}
