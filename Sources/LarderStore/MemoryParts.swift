import LarderHTTP
import LarderPolicy
import NIOCore
import Synchronization

/// Parts of a body that lie in memory: partial content (RFC 9111 §3.3).
///
/// Never changed: what is added makes another one, so that it can be made without a lock and put in
/// the place of just this one.
final class MemoryParts: StoredBody {
    /// Bytes that lie side by side, in storage that holds nothing else.
    private struct Part: Sendable {
        let offset: UInt64
        var bytes: ByteBuffer

        var end: UInt64 { self.offset + UInt64(self.bytes.readableBytes) }

        /// What of `range` is in it.
        func slice(_ range: Range<UInt64>) -> ByteBuffer? {
            let wanted = range.clamped(to: self.offset..<self.end)
            guard !wanted.isEmpty else { return nil }
            return self.bytes.getSlice(
                at: self.bytes.readerIndex + Int(wanted.lowerBound - self.offset),
                length: wanted.count)
        }
    }

    let extent: StoredExtent
    /// In order; none overlaps another.
    private let parts: [Part]

    private init(extent: StoredExtent, parts: [Part]) {
        self.extent = extent
        self.parts = parts
    }

    /// - Parameter bytes: those of the one range of `extent`.
    convenience init(_ bytes: ByteBuffer, at offset: UInt64, extent: StoredExtent) {
        self.init(extent: extent, parts: [Part(offset: offset, bytes: bytes)])
    }

    var resident: ByteBuffer? { nil }

    func reader(range: Range<UInt64>) -> any BodySource {
        guard self.extent.contains(range) else {
            return FailedSource(.store("range outside of what is stored"))
        }
        return PartsSource(self.parts.compactMap { $0.slice(range) })
    }

    /// The storage of each part, for who counts it.
    var buffers: [ByteBuffer] { self.parts.map(\.bytes) }

    /// The whole body, where nothing is missing any more.
    var whole: ByteBuffer {
        var whole = ByteBufferAllocator().buffer(capacity: Int(clamping: self.extent.storedBytes))
        for part in self.parts { whole.writeImmutableBuffer(part.bytes) }
        return whole
    }

    /// These parts and `bytes` at `offset`, which make `extent` together; nil where bytes that are
    /// there are not the same.
    func adding(_ bytes: ByteBuffer, at offset: UInt64, making extent: StoredExtent) -> MemoryParts?
    {
        let new = Part(offset: offset, bytes: bytes)
        let range = new.offset..<new.end
        for part in self.parts {
            guard let old = part.slice(range) else { continue }
            if new.slice(part.offset..<part.end) != old { return nil }
        }
        var parts = self.parts
        for gap in self.extent.gaps(in: range) {
            if gap == range {
                parts.append(new)
            } else if let slice = new.slice(gap) {
                parts.append(Part(offset: gap.lowerBound, bytes: Self.copy([slice])))
            }
        }
        parts.sort { $0.offset < $1.offset }
        return MemoryParts(extent: extent, parts: Self.compacted(parts, extent))
    }

    /// Joins parts that touch, once there are many: seldom enough for the copying to be paid for by
    /// what was added since.
    private static func compacted(_ parts: [Part], _ extent: StoredExtent) -> [Part] {
        guard parts.count > StoredExtent.rangeLimit * 2 else { return parts }
        return extent.ranges.map { range in
            let touching = parts.filter { range.contains($0.offset) }
            if touching.count == 1 { return touching[0] }
            return Part(offset: range.lowerBound, bytes: Self.copy(touching.map(\.bytes)))
        }
    }

    private static func copy(_ buffers: [ByteBuffer]) -> ByteBuffer {
        var copy = ByteBufferAllocator().buffer(
            capacity: buffers.reduce(0) { $0 + $1.readableBytes })
        for buffer in buffers { copy.writeImmutableBuffer(buffer) }
        return copy
    }
}

/// Hands out parts that lie in memory one after the other, in pieces that share their storage.
///
/// Never pending.
private final class PartsSource: BodySource {
    private static let pieceSize = 65_536

    /// The next one last; nil after `cancel`.
    private let rest: Mutex<[ByteBuffer]?>

    init(_ parts: [ByteBuffer]) {
        self.rest = Mutex(parts.reversed())
    }

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.rest.withLock { rest in
            guard rest != nil else { return .failed(.cancelled) }
            while var part = rest?.popLast() {
                let length = min(part.readableBytes, Self.pieceSize)
                guard let piece = part.readSlice(length: length), length > 0 else { continue }
                if part.readableBytes > 0 { rest?.append(part) }
                return .piece(piece)
            }
            return .end(trailers: Fields())
        }
    }

    func cancel() {
        self.rest.withLock { $0 = nil }
    }
}
