import LarderStore
import NIOCore

/// A piece of a body as it lies in `segments`.
///
/// ```
/// 0        4        8                                65,520
/// checksum │ length │ payload ………………………………………………………………│
/// ```
///
/// LMDB puts a value of this size on pages of its own behind a header of 16 bytes: exactly sixteen
/// pages, so that the run that one segment leaves is the run that the next one takes, and the file
/// does not grow under churn. Only the last segment of a body is shorter.
enum Segment {
    static let valueSize = 65_520
    static let headerSize = 8
    static let payloadSize = valueSize - headerSize
    /// Pages of a full segment.
    static let pages: UInt64 = 16

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

    /// Writes header and payload into `value`, which has exactly the room for both.
    static func write(
        _ pieces: [ByteBuffer], id: ObjectID, index: UInt32, into value: inout MutableSpan<UInt8>
    ) {
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
            value.span.extracting(Self.headerSize...), id: id, index: index)
        Self.write(sum, at: 0, into: &value)
        Self.write(UInt32(clamping: length), at: 4, into: &value)
    }

    private static func write(
        _ number: UInt32, at offset: Int, into value: inout MutableSpan<UInt8>
    ) {
        for i in 0..<4 { value[offset + i] = UInt8(truncatingIfNeeded: number >> (8 * UInt32(i))) }
    }

    /// Whether `value` is the segment that was written under this key, with a payload of
    /// `length` bytes; nil means that it is.
    static func damage(
        in value: Span<UInt8>, id: ObjectID, index: UInt32, length: Int
    ) -> String? {
        guard let sum: UInt32 = value.littleEndian(0), let said: UInt32 = value.littleEndian(4)
        else {
            return "segment \(index) is too short"
        }
        guard value.count == Self.headerSize + length, Int(said) == length else {
            return "segment \(index) has a wrong length"
        }
        let payload = value.extracting(Self.headerSize...)
        return Checksum.segment(payload, id: id, index: index) == sum
            ? nil : "segment \(index) has a wrong checksum"
    }
}
