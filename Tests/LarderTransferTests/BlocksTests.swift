import CBlocks
import Foundation
import Glibc
import Testing

/// Each test has a thread of its own, which keeps what is given back on it.
@Suite("Blocks for libcurl")
struct BlocksTests {
    /// Runs `body` on a thread that begins with no store.
    private func onThread<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: body()) }.start()
        }
    }

    @Test(
        "have the room that was asked for, aligned as malloc's, and keep their bytes when resized")
    func sizes() async {
        let isSound = await self.onThread {
            _ = larder_blocks_open()
            defer { larder_blocks_close() }
            var isSound = true
            // Both sides of each border between rooms, and what is too large to be kept.
            let borders = (5...18).flatMap { shift in (4...7).map { (1 << shift) / 4 * $0 } }
            for size in [0, 1] + borders.flatMap({ [$0 - 1, $0, $0 + 1] }) + [1 << 20] {
                guard let block = unsafe larder_blocks_take(size) else { return false }
                unsafe memset(block, 0x5A, size)
                let larger = unsafe larder_blocks_resize(block, size * 2)
                guard let larger = unsafe larger else { return false }
                let bytes = unsafe UnsafeRawBufferPointer(start: larger, count: size)
                isSound = isSound && UInt(bitPattern: larger) % 16 == 0
                isSound = unsafe isSound && bytes.allSatisfy { $0 == 0x5A }
                let smaller = unsafe larder_blocks_resize(larger, size / 8)
                guard let smaller = unsafe smaller else { return false }
                let rest = unsafe UnsafeRawBufferPointer(start: smaller, count: size / 8)
                isSound = unsafe isSound && rest.allSatisfy { $0 == 0x5A }
                unsafe larder_blocks_give(smaller)
            }
            return isSound
        }
        #expect(isSound)
    }

    @Test("come zeroed where that was asked for, also when they were used before")
    func zeroed() async {
        let isZeroed = await self.onThread {
            _ = larder_blocks_open()
            defer { larder_blocks_close() }
            for _ in 0..<3 {
                guard let block = unsafe larder_blocks_take_zeroed(30, 100) else { return false }
                let bytes = unsafe UnsafeMutableRawBufferPointer(start: block, count: 3000)
                guard unsafe bytes.allSatisfy({ $0 == 0 }) else { return false }
                unsafe memset(block, 1, 3000)
                unsafe larder_blocks_give(block)
            }
            return true
        }
        #expect(isZeroed)
    }

    @Test("of an impossible size are none")
    func impossible() {
        #expect(unsafe larder_blocks_take(.max) == nil)
        #expect(unsafe larder_blocks_take(.max - 8) == nil)
        #expect(unsafe larder_blocks_take_zeroed(.max / 2, 3) == nil)
    }

    @Test("copy text")
    func text() {
        let copy = unsafe larder_blocks_copy("field: value")
        #expect(unsafe copy.map { unsafe String(cString: $0) } == "field: value")
        unsafe larder_blocks_give(copy)
        larder_blocks_give(nil)
    }

    @Test("are kept up to a bound by a thread that opened a store, and by no other")
    func bound() async {
        let (kept, keeps) = await self.onThread {
            let keeps = larder_blocks_open() != 0
            defer { larder_blocks_close() }
            let blocks = (0..<100).map { _ in
                unsafe UInt(bitPattern: larder_blocks_take(200_000))
            }
            for block in blocks {
                unsafe larder_blocks_give(UnsafeMutableRawPointer(bitPattern: block))
            }
            return (Int(larder_blocks_kept()), keeps)
        }
        let limit = 8 << 20
        #expect(keeps ? (limit - 262_144...limit).contains(kept) : kept == 0)
        let others = await self.onThread {
            unsafe larder_blocks_give(larder_blocks_take(1000))
            return larder_blocks_kept()
        }
        #expect(others == 0)
    }

    @Test("may be given back on another thread, and after the store was closed")
    func crossing() async {
        let place = await self.onThread {
            _ = larder_blocks_open()
            let block = unsafe UInt(bitPattern: larder_blocks_take(5000))
            larder_blocks_close()
            return block
        }
        let kept = await self.onThread {
            let keeps = larder_blocks_open() != 0
            defer { larder_blocks_close() }
            unsafe larder_blocks_give(UnsafeMutableRawPointer(bitPattern: place))
            return keeps ? larder_blocks_kept() : 5120
        }
        #expect(kept == 5120)
    }

    @Test("given back twice end the process")
    func twice() async {
        await #expect(processExitsWith: .failure) {
            _ = larder_blocks_open()
            let block = unsafe larder_blocks_take(100)
            unsafe larder_blocks_give(block)
            unsafe larder_blocks_give(block)
        }
    }
}
