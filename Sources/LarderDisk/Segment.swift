import LarderStore
import NIOCore

/// A piece of a body as it lies in `segments`.
///
/// ```
/// 0        4        6       8                                65,520
/// checksum │ length │ start │ payload ………………………………………………………│
/// ```
///
/// A body is cut at fixed places: segment `index` holds what lies in its *cell* of `payloadSize` bytes,
/// or a part of that which begins at `start` in the cell, where a response is partial. Bytes between
/// the parts of one cell have no meaning: the record says what is stored.
///
/// LMDB puts a value of this size on pages of its own behind a header of 16 bytes: exactly sixteen
/// pages, so that the run that one segment leaves is the run that the next one takes, and the file
/// does not grow under churn. Only the last segment of a complete body is shorter.
enum Segment {
    static let valueSize = 65_520
    static let headerSize = 8
    static let payloadSize = valueSize - headerSize
    /// The page size that estimates assume.
    ///
    /// The file's own, which LMDB takes from the system, is read where it is opened, and bounds the
    /// capacity.
    static let pageSize = 4096
    /// Pages of a full segment.
    static let pages: UInt64 = 16

    /// Pages of its own that a segment with so much payload takes: none where it lies in a page of
    /// the tree.
    static func pages(ofPayload length: Int) -> Int {
        // LMDB keeps what is smaller than half a page, less its headers, in the tree.
        length < 2000 ? 0 : (16 + Self.headerSize + length + Self.pageSize - 1) / Self.pageSize
    }

    /// How many segments a body of this length has; nil where the number has no place.
    static func count(of length: UInt64) -> UInt32? {
        let size = UInt64(Self.payloadSize)
        return UInt32(exactly: length / size + (length % size == 0 ? 0 : 1))
    }

    static func index(of offset: UInt64) -> UInt32 {
        UInt32(clamping: offset / UInt64(Self.payloadSize))
    }

    static func offset(of index: UInt32) -> UInt64 { UInt64(index) * UInt64(Self.payloadSize) }

    /// How long the payload of segment `index` of a body of `length` bytes is.
    static func payloadLength(of index: UInt32, bodyLength length: UInt64) -> Int {
        let start = Self.offset(of: index)
        return start >= length ? 0 : Int(min(UInt64(Self.payloadSize), length - start))
    }

    /// What of `range` lies in cell `index`, counted from the beginning of the cell.
    static func cell(_ index: UInt32, of range: Range<UInt64>) -> Range<Int> {
        let start = Self.offset(of: index)
        let part = range.clamped(to: start..<start + UInt64(Self.payloadSize))
        return Int(part.lowerBound - start)..<Int(part.upperBound - start)
    }

    /// Writes header and payload into `value`, which has exactly the room for both.
    ///
    /// - Parameter start: where in the cell the payload begins.
    static func write(
        _ pieces: [ByteBuffer], id: ObjectID, index: UInt32, start: Int = 0,
        into value: inout MutableSpan<UInt8>
    ) {
        let start = UInt16(clamping: start)
        let length = value.count - Self.headerSize
        unsafe value.withUnsafeMutableBytes { bytes in
            var offset = Self.headerSize
            for piece in pieces {
                unsafe piece.withUnsafeReadableBytes { source in
                    let count = min(source.count, bytes.count - offset)
                    guard count > 0 else { return }
                    unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + count])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<count]))
                    offset += count
                }
            }
            // Too few bytes cannot come about; if they did, old bytes must not shine through.
            while offset < bytes.count {
                unsafe bytes[offset] = 0
                offset += 1
            }
        }
        let sum = Checksum.segment(
            value.span.extracting(Self.headerSize...), id: id, index: index, start: start)
        Self.write(sum, at: 0, into: &value)
        Self.write(UInt32(UInt16(clamping: length)) | UInt32(start) << 16, at: 4, into: &value)
    }

    private static func write(
        _ number: UInt32, at offset: Int, into value: inout MutableSpan<UInt8>
    ) {
        for i in 0..<4 { value[offset + i] = UInt8(truncatingIfNeeded: number >> (8 * UInt32(i))) }
    }

    /// What a value in `segments` turned out to be.
    enum Verdict: Sendable, Equatable {
        /// What was written under this key: that part of its cell.
        case sound(Range<Int>)
        case damaged(String)
    }

    static func verify(_ value: Span<UInt8>, id: ObjectID, index: UInt32) -> Verdict {
        guard let sum: UInt32 = value.littleEndian(0), let length: UInt16 = value.littleEndian(4),
            let start: UInt16 = value.littleEndian(6)
        else { return .damaged("segment \(index) is too short") }
        let end = Int(start) + Int(length)
        guard value.count == Self.headerSize + Int(length), end <= Self.payloadSize else {
            return .damaged("segment \(index) has a wrong length")
        }
        let payload = value.extracting(Self.headerSize...)
        return Checksum.segment(payload, id: id, index: index, start: start) == sum
            ? .sound(Int(start)..<end) : .damaged("segment \(index) has a wrong checksum")
    }

    /// Where in `value` the bytes of `wanted`, a part of the cell, lie, once it is found sound.
    static func place(
        of wanted: Range<Int>, in value: Span<UInt8>, id: ObjectID, index: UInt32
    ) -> Result<Range<Int>, SegmentReadFailure> {
        switch Self.verify(value, id: id, index: index) {
        case .damaged(let reason): return .failure(.damaged(reason))
        case .sound(let held):
            guard held.lowerBound <= wanted.lowerBound, wanted.upperBound <= held.upperBound else {
                return .failure(.damaged("segment \(index) has a wrong length"))
            }
            let from = Self.headerSize + wanted.lowerBound - held.lowerBound
            return .success(from..<from + wanted.count)
        }
    }
}
