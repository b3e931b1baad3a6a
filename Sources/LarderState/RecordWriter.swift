import Glibc
import LarderCredentials

/// Fills memory with zeros, also where nobody reads it afterwards (explicit_bzero(3)).
@unsafe func clear(_ memory: UnsafeMutableRawBufferPointer) {
    guard let start = memory.baseAddress else { return }
    unsafe explicit_bzero(start, memory.count)
}

/// The bytes of a record while it is written: cleared when they move and when they go.
///
/// Numbers stand least significant byte first, octets and texts behind their length.
@safe struct RecordWriter: ~Copyable {
    // Invariant: owned by this value alone, which cannot be copied.
    private var memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init() {
        unsafe self.memory = .allocate(byteCount: 512, alignment: 1)
    }

    deinit {
        unsafe clear(self.memory)
        unsafe self.memory.deallocate()
    }

    private mutating func makeRoom(_ more: Int) {
        let (needed, overflow) = self.count.addingReportingOverflow(more)
        guard unsafe overflow || needed > self.memory.count else { return }
        // A sum that overflows cannot be allocated, as what is written lies in memory already.
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: unsafe max(needed, self.memory.count * 2), alignment: 1)
        unsafe larger.copyMemory(from: UnsafeRawBufferPointer(self.memory))
        unsafe clear(self.memory)
        unsafe self.memory.deallocate()
        unsafe self.memory = unsafe larger
    }

    mutating func append(_ byte: UInt8) {
        self.makeRoom(1)
        unsafe self.memory[self.count] = byte
        self.count += 1
    }

    mutating func append(_ flag: Bool) {
        self.append(flag ? 1 : 0 as UInt8)
    }

    mutating func append(number: some FixedWidthInteger) {
        var rest = number
        for _ in 0..<number.bitWidth / 8 {
            self.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    mutating func append(octets: Span<UInt8>) {
        self.append(number: UInt32(clamping: octets.count))
        self.append(raw: octets)
    }

    mutating func append(octets: [UInt8]) {
        self.append(octets: octets.span)
    }

    mutating func append(text: String) {
        self.append(octets: Array(text.utf8))
    }

    mutating func append(optional text: String?) {
        self.append(text != nil)
        if let text { self.append(text: text) }
    }

    mutating func append(_ secret: Secret) {
        secret.withBytes { self.append(octets: $0) }
    }

    /// Bytes without their length.
    mutating func append(raw octets: Span<UInt8>) {
        self.makeRoom(octets.count)
        for i in octets.indices { unsafe self.memory[self.count + i] = octets[i] }
        self.count += octets.count
    }

    /// Zeros up to the next multiple, so that the length of what is sealed tells little.
    mutating func pad(to multiple: Int) {
        while self.count % max(1, multiple) != 0 { self.append(0 as UInt8) }
    }

    /// Lends what was written.
    borrowing func withBytes<R>(_ body: (Span<UInt8>) throws -> R) rethrows -> R {
        let bytes = unsafe UnsafeRawBufferPointer(self.memory).prefix(self.count)
        let typed = unsafe UnsafeRawBufferPointer(rebasing: bytes).bindMemory(to: UInt8.self)
        return try body(unsafe typed.span)
    }
}
