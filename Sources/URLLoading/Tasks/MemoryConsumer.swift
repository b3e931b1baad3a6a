import Foundation
import Glibc
import NIOCore
import Synchronization

/// Keeps a body in memory, for handlers and async methods, and hands it out as one `Data`.
///
/// A body that comes in one piece is copied once. A longer one grows in place: large blocks are
/// moved by their pages, and the `Data` takes over the block, so that it exists once.
final class MemoryConsumer: BodyConsumer {
    private let body: Mutex<GrowingBlock>

    /// - Parameter expected: what the response announced, in bytes; -1: nothing.
    init(expected: Int64 = -1) {
        self.body = Mutex(GrowingBlock(expected: expected))
    }

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        let isTaken = self.body.withLock { $0.append(piece) }
        if isTaken { return ready(nil) }
        // Not a trap: how much there is to allocate is up to a stranger.
        let info: [String: Any] = [NSUnderlyingErrorKey: POSIXError(.ENOMEM)]
        ready(BodyConsumerError(error: URLError(.dataLengthExceedsMaximum, userInfo: info)))
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) { done(nil) }

    func stop() { self.body.withLock { $0 = GrowingBlock(expected: -1) } }

    /// What has come, and forgets it.
    ///
    /// An empty body is an empty `Data`.
    func takeData() -> Data {
        self.body.withLock { $0.take() }
    }
}

/// Memory that a body grows in.
@safe private struct GrowingBlock: ~Copyable {
    /// What is reserved at most for an announcement alone.
    private static let reserved = 16 << 20

    private let expected: Int64
    /// As long as there is but one piece.
    private var first: ByteBuffer?
    private var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    private var count = 0

    init(expected: Int64) {
        self.expected = expected
    }

    deinit { unsafe free(self.memory) }

    /// false where memory is short; then nothing has changed.
    mutating func append(_ piece: ByteBuffer) -> Bool {
        if self.count == 0 {
            self.first = piece
            self.count = piece.readableBytes
            return true
        }
        let (sum, overflow) = self.count.addingReportingOverflow(piece.readableBytes)
        guard !overflow, self.reserve(sum) else { return false }
        if let first = self.first.take() { self.copy(first, at: 0) }
        self.copy(piece, at: self.count)
        self.count = sum
        return true
    }

    private mutating func reserve(_ wanted: Int) -> Bool {
        guard wanted > self.capacity else { return true }
        let (twice, overflow) = self.capacity.multipliedReportingOverflow(by: 2)
        var capacity = max(wanted, overflow ? wanted : twice, 65_536)
        if let expected = Int(exactly: self.expected), expected >= wanted {
            // Exactly as announced, once so much of it has come that it can be believed.
            capacity = min(expected, max(capacity, Self.reserved))
        }
        guard let memory = unsafe realloc(self.memory, capacity) else { return false }
        unsafe self.memory = memory
        self.capacity = capacity
        return true
    }

    private func copy(_ piece: ByteBuffer, at offset: Int) {
        unsafe piece.withUnsafeReadableBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            unsafe self.memory?.advanced(by: offset).copyMemory(from: base, byteCount: bytes.count)
        }
    }

    mutating func take() -> Data {
        defer {
            self.count = 0
            self.capacity = 0
        }
        // From the bytes: of a collection `Data` first asks at run time whether it lies in one piece.
        if let first = self.first.take() {
            return unsafe first.withUnsafeReadableBytes { unsafe Data($0) }
        }
        guard let memory = unsafe self.memory, self.count > 0 else { return Data() }
        unsafe self.memory = nil
        // Pages behind the end were never touched; a shorter block is the same one.
        let block = unsafe realloc(memory, self.count) ?? memory
        return unsafe Data(bytesNoCopy: block, count: self.count, deallocator: .free)
    }
}
