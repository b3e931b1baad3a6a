import CLinux
import Glibc
@_spi(CustomByteBufferAllocator) package import NIOCore
import Synchronization

/// Memory for bodies whose pages a socket may borrow in place of a copy of their bytes.
///
/// A page that was lent stays with the kernel until the last of its bytes has been received, whatever
/// the process does meanwhile. So such memory must never be written to again, not even when it has
/// been freed. That is how it differs from what malloc(3) gives: what is freed here loses its pages
/// (madvise(2), MADV_DONTNEED), which whoever borrowed them keeps unchanged, and what is put there next
/// gets new ones. It is filled once, by ``copy(of:)``.
///
/// In stretches of 2 MiB, for which the kernel is asked for large pages: a client on the same machine
/// takes 1 MiB out of pages that lie side by side in 160 µs, and in 340 out of scattered ones.
package enum LentMemory {
    private static let pageSize = max(4096, sysconf(Int32(_SC_PAGESIZE)))
    private static let runs = Mutex(PageRuns(pageSize: Self.pageSize))
    /// A large page of most machines, in bytes.
    private static let largePage = 2 << 20

    private static let allocator = unsafe ByteBufferAllocator(
        allocate: { unsafe malloc($0) },
        reallocate: { unsafe LentMemory.reallocate($0, $1, $2) },
        deallocate: { unsafe LentMemory.free($0) },
        copy: { unsafe $0.copyMemory(from: $1, byteCount: $2) })

    /// A copy of bytes in such memory; nil where there is none to be had, or nothing to copy.
    package static func copy(of bytes: ByteBuffer) -> ByteBuffer? {
        let count = bytes.readableBytes
        guard count > 0, let memory = unsafe self.take(count) else { return nil }
        let target = unsafe UnsafeMutableRawBufferPointer(start: memory, count: count)
        unsafe bytes.withUnsafeReadableBytes { unsafe target.copyMemory(from: $0) }
        return unsafe ByteBuffer(takingOwnershipOf: target, allocator: self.allocator)
    }

    /// Whether the bytes lie in such memory, from its first page on.
    package static func holds(_ bytes: ByteBuffer) -> Bool {
        self.size(of: bytes) != nil
    }

    /// What the pages take that such bytes lie in; nil where they do not.
    package static func size(of bytes: ByteBuffer) -> Int? {
        guard bytes.readableBytes > 0 else { return nil }
        let address = unsafe bytes.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
        return self.runs.withLock { $0.length(at: address) }.flatMap { length in
            bytes.readableBytes <= length ? length : nil
        }
    }

    /// What is in use, for tests.
    static var counts: (runs: Int, stretches: Int) {
        self.runs.withLock { ($0.runCount, $0.stretchCount) }
    }

    // MARK: Pages

    private static func take(_ bytes: Int) -> UnsafeMutableRawPointer? {
        let (pages, stretchPages, free) = self.runs.withLock { runs in
            let pages = runs.pages(for: bytes)
            return (pages, runs.stretchPages, runs.take(pages))
        }
        if let free { return unsafe UnsafeMutableRawPointer(bitPattern: free) }
        let count = max(pages, stretchPages)
        guard let base = unsafe self.map(count * self.pageSize) else { return nil }
        let address = self.runs.withLock { runs in
            runs.add(UInt(bitPattern: base), pages: count)
            return runs.take(pages)
        }
        return unsafe address.flatMap { unsafe UnsafeMutableRawPointer(bitPattern: $0) }
    }

    /// Memory that begins where a large page may.
    private static func map(_ size: Int) -> UnsafeMutableRawPointer? {
        let large = self.largePage
        guard let memory = unsafe larder_map_memory(UInt(size + large)) else { return nil }
        let before = (large - Int(UInt(bitPattern: memory) % UInt(large))) % large
        if before > 0 { unsafe munmap(memory, before) }
        let base = unsafe memory + before
        if large - before > 0 { unsafe munmap(base + size, large - before) }
        // No more than a wish.
        _ = unsafe larder_want_large_pages(base, UInt(size))
        return unsafe base
    }

    private static func free(_ memory: UnsafeMutableRawPointer) {
        let address = UInt(bitPattern: memory)
        guard let (base, bytes) = self.runs.withLock({ $0.withdraw(address) }) else {
            // What took the place of such memory when somebody wrote to a copy.
            return unsafe Glibc.free(memory)
        }
        // Pages that could not be taken back are never used again: somebody may still read them.
        // khugepaged may fill those that were with zeros, in large pages: memory that nobody reads.
        guard unsafe larder_give_pages_back(memory, UInt(bytes)) == 0 else { return }
        guard
            let unused = self.runs.withLock({ $0.giveBack(address, bytes: bytes, of: base) }),
            let stretch = unsafe UnsafeMutableRawPointer(bitPattern: unused.base)
        else { return }
        unsafe munmap(stretch, unused.pages * self.pageSize)
    }

    /// A buffer that is changed leaves this memory.
    private static func reallocate(
        _ memory: UnsafeMutableRawPointer?, _ old: Int, _ new: Int
    ) -> UnsafeMutableRawPointer? {
        guard let memory = unsafe memory else { return unsafe malloc(new) }
        let address = UInt(bitPattern: memory)
        guard self.runs.withLock({ $0.length(at: address) }) != nil else {
            return unsafe realloc(memory, new)
        }
        guard let moved = unsafe malloc(new) else { return nil }
        unsafe moved.copyMemory(from: memory, byteCount: min(old, new))
        unsafe self.free(memory)
        return unsafe moved
    }
}
