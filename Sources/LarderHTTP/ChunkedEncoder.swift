package import NIOCore

/// Puts content into the chunked transfer coding (RFC 9112 §7.1).
///
/// A chunk is `writeHead`, its data, `writeDataEnd`; the message ends with `writeEnd`. The data
/// itself is written by the caller, so that it is not copied.
package enum ChunkedEncoder {
    /// Writes the size line of a chunk.
    ///
    /// Zero writes nothing: an empty chunk would end the message.
    package static func writeHead(of length: Int, into buffer: inout ByteBuffer) {
        guard length > 0 else { return }
        let digits = (64 - UInt64(length).leadingZeroBitCount + 3) / 4
        for place in stride(from: digits - 1, through: 0, by: -1) {
            let digit = UInt8(truncatingIfNeeded: length &>> (place * 4)) & 0xF
            buffer.writeInteger(digit < 10 ? 0x30 &+ digit : 0x57 &+ digit)
        }
        Self.writeDataEnd(into: &buffer)
    }

    /// Writes the line end that follows a chunk's data.
    package static func writeDataEnd(into buffer: inout ByteBuffer) {
        buffer.writeInteger(ASCII.cr)
        buffer.writeInteger(ASCII.lf)
    }

    /// Writes the last chunk, the trailer section and the empty line.
    package static func writeEnd(trailers: Fields = Fields(), into buffer: inout ByteBuffer) {
        buffer.writeInteger(UInt8(ascii: "0"))
        Self.writeDataEnd(into: &buffer)
        trailers.write(into: &buffer)
        Self.writeDataEnd(into: &buffer)
    }
}
