package import NIOCore

/// Bounds on what the chunked coding adds to content.
package struct ChunkLimits: Hashable, Sendable {
    /// Bytes of a chunk's size line, without its extensions and its end.
    package var line: Int
    /// Bytes of the extensions of one chunk, and of those of all together beyond the content that comes
    /// with them: nobody reads them, so they are not paid for.
    package var extensions: Int
    /// Bytes of the trailer section, its empty line included.
    package var trailers: Int
    /// Field lines in the trailer section.
    package var trailerCount: Int
    /// The largest piece handed out, in bytes.
    package var piece: Int

    package init(
        line: Int = 1_024, extensions: Int = 16_384, trailers: Int = 16_384,
        trailerCount: Int = 64, piece: Int = 65_536
    ) {
        self.line = line
        self.extensions = extensions
        self.trailers = trailers
        self.trailerCount = trailerCount
        self.piece = piece
    }
}

/// Takes content out of the chunked transfer coding (RFC 9112 §7.1).
///
/// ```
/// size ─▶ [extension] ─▶ CR ─▶ LF ─▶ data ─▶ CR ─▶ LF ─▶ size …
///                               └─(size 0)─▶ trailer section ─▶ ended
/// ```
///
/// Line ends are CRLF and nothing else; extensions are checked and dropped. Pieces are slices that
/// share the buffer's memory.
package struct ChunkedDecoder: Sendable {
    package enum Step: Equatable, Sendable {
        /// The next bytes of content; never empty.
        case piece(ByteBuffer)
        /// The buffer ran out: call again when there is more.
        case needMore
        /// The content is whole; what remains in the buffer belongs to the next message.
        ///
        /// Trailer fields that must not stand there (RFC 9110 §6.5.1) or go no further (§7.6.1) were
        /// left out.
        case end(trailers: Fields)
    }

    private enum State: Sendable {
        case size(UInt64)
        case afterSize(UInt64)
        case chunkExtension(UInt64)
        case sizeLF(UInt64)
        case data(UInt64)
        case dataCR
        case dataLF
        case trailers
        case ended
    }

    private let limits: ChunkLimits
    private let named: NamedFields
    private var state = State.size(0)
    private var lineLength = 0
    private var extensionLength = 0
    /// How many bytes of extensions there were beyond those of content.
    private var extensionExcess = 0
    private var scanner = HeadScanner()
    private var section: FieldSectionParser

    /// - Parameter named: what the `Connection` of the message's head names: no trailers either
    ///   (RFC 9110 §7.6.1).
    package init(
        limits: ChunkLimits = ChunkLimits(), named: NamedFields = NamedFields([])
    ) {
        self.limits = limits
        self.named = named
        self.section = FieldSectionParser(
            start: 0, limit: Swift.min(Swift.max(limits.trailers, 2), 1 << 24),
            fieldCount: limits.trailerCount)
    }

    /// Takes the next step from the front of `buffer`, consuming what it has read.
    ///
    /// Not usable after an error. The errors have statuses that answer a request; from an origin's
    /// response they mean 502.
    package mutating func decode(_ buffer: inout ByteBuffer) throws(HeadError) -> Step {
        while true {
            switch self.state {
            case .data(let remaining):
                let most = UInt64(Swift.max(self.limits.piece, 1))
                let length = Int(
                    clamping: Swift.min(remaining, most, UInt64(buffer.readableBytes)))
                guard length > 0, let piece = buffer.readSlice(length: length) else {
                    return .needMore
                }
                let rest = remaining - UInt64(length)
                self.state = rest == 0 ? .dataCR : .data(rest)
                return .piece(piece)
            case .trailers:
                return try self.readTrailers(&buffer)
            case .ended:
                return .end(trailers: Fields())
            case .size, .afterSize, .chunkExtension, .sizeLF, .dataCR, .dataLF:
                guard let byte = buffer.readInteger(as: UInt8.self) else { return .needMore }
                try self.frame(byte)
            }
        }
    }

    /// Takes one byte of what stands between pieces of content.
    private mutating func frame(_ byte: UInt8) throws(HeadError) {
        switch self.state {
        case .size(let size):
            try self.countLine(byte)
            try self.readSize(byte, size)
        case .afterSize(let size):
            try self.countLine(byte)
            guard ASCII.isOWS(byte) || byte == ASCII.semicolon else {
                throw HeadError(.badChunkSize, "something other than an extension after a size")
            }
            if byte == ASCII.semicolon { self.state = .chunkExtension(size) }
        case .chunkExtension(let size):
            try self.readExtension(byte, size)
        case .sizeLF(let size):
            guard byte == ASCII.lf else {
                throw HeadError(.bareCR, "a CR without a LF after it in a chunk's size line")
            }
            self.lineLength = 0
            self.extensionExcess = Swift.max(0, self.extensionExcess - Int(clamping: size))
            self.extensionLength = 0
            self.state = size == 0 ? .trailers : .data(size)
        case .dataCR:
            guard byte == ASCII.cr else {
                throw HeadError(.badChunkEnd, "no CRLF after a chunk's data")
            }
            self.state = .dataLF
        case .dataLF:
            guard byte == ASCII.lf else {
                throw HeadError(.badChunkEnd, "no CRLF after a chunk's data")
            }
            self.state = .size(0)
        case .data, .trailers, .ended:
            return  // Not read byte by byte.
        }
    }

    private mutating func readSize(_ byte: UInt8, _ size: UInt64) throws(HeadError) {
        if let digit = ASCII.hexDigit(byte) {
            // Below 2^63, so that sums of lengths stay in reach.
            guard size < 1 << 59 else {
                throw HeadError(.chunkSizeOverflow, "a chunk larger than can be counted")
            }
            self.state = .size(size &<< 4 | UInt64(digit))
            return
        }
        guard self.lineLength > 1 else {
            throw HeadError(.badChunkSize, "a chunk's size has no digits")
        }
        switch byte {
        case ASCII.cr: self.state = .sizeLF(size)
        case ASCII.lf: throw HeadError(.bareLF, "a LF without a CR before it in a size line")
        case ASCII.semicolon: self.state = .chunkExtension(size)
        case ASCII.space, ASCII.tab: self.state = .afterSize(size)
        default: throw HeadError(.badChunkSize, "a chunk's size is not a hexadecimal number")
        }
    }

    private mutating func readExtension(_ byte: UInt8, _ size: UInt64) throws(HeadError) {
        if byte == ASCII.cr {
            self.state = .sizeLF(size)
            return
        }
        guard byte != ASCII.lf else {
            throw HeadError(.bareLF, "a LF without a CR before it in a size line")
        }
        guard ASCII.isFieldValue(byte) else {
            throw HeadError(.badChunkSize, "a control character in a chunk extension")
        }
        self.extensionLength += 1
        self.extensionExcess += 1
        guard self.extensionLength <= self.limits.extensions,
            self.extensionExcess <= self.limits.extensions
        else {
            throw HeadError(.chunkExtensionTooLong, "more chunk extensions than are accepted")
        }
    }

    /// Counts a byte of the size line against its limit; its CR does not count.
    private mutating func countLine(_ byte: UInt8) throws(HeadError) {
        self.lineLength += 1
        guard byte == ASCII.cr || self.lineLength <= self.limits.line else {
            throw HeadError(.chunkExtensionTooLong, "a chunk's size line is too long")
        }
    }

    private mutating func readTrailers(_ buffer: inout ByteBuffer) throws(HeadError) -> Step {
        let fields: Fields?
        do throws(HeadError) {
            fields = try self.section.parse(buffer.readableBytesUInt8Span, scanner: &self.scanner)
        } catch {
            throw error.reason == .headTooLarge
                ? HeadError(.trailersTooLarge, "the trailer section is too large") : error
        }
        guard var fields else { return .needMore }
        buffer.moveReaderIndex(forwardBy: self.scanner.lineStart)
        self.state = .ended
        Trailers.strip(&fields, named: self.named)
        return .end(trailers: fields)
    }
}
