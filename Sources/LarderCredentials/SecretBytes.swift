import Glibc

/// The octets of a secret in memory: one allocation of fixed size that never moves, cleared when it
/// is freed.
///
/// An array would not do: it leaves copies behind wherever it grows or is copied on write, and gives
/// its memory back as it is.
@safe final class SecretBytes: @unchecked Sendable {
    // Invariant: written in `init` alone, before anybody else knows of it.
    private let memory: UnsafeMutableRawBufferPointer

    init(_ octets: Span<UInt8>) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: octets.count, alignment: 1)
        unsafe octets.withUnsafeBytes { unsafe memory.copyMemory(from: $0) }
        unsafe self.memory = unsafe memory
    }

    deinit {
        self.clear()
        unsafe self.memory.deallocate()
    }

    /// Fills the memory with zeros; for the end, where nobody else has it any more.
    ///
    /// explicit_bzero(3): "performs the same task as bzero(). It differs from bzero() in that it
    /// guarantees that compiler optimizations will not remove the erase operation".
    func clear() {
        guard let start = unsafe self.memory.baseAddress else { return }
        unsafe explicit_bzero(start, self.memory.count)
    }

    func withBytes<R, E: Error>(_ body: (Span<UInt8>) throws(E) -> R) throws(E) -> R {
        let octets = unsafe self.memory.bindMemory(to: UInt8.self)
        // Alive until the body has returned, which a pointer alone would not ensure.
        defer { withExtendedLifetime(self) {} }
        return try body(unsafe UnsafeBufferPointer(octets).span)
    }
}
