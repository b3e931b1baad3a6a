package import LarderHTTP
package import NIOCore

/// How the end of one response's content is told to the client, and the count that keeps it true
/// (RFC 9112 §6).
package struct ResponseFraming: Sendable, Equatable {
    package enum Coding: Sendable, Equatable {
        /// The response has no content, whatever its fields say.
        case none
        /// This many bytes are still to come.
        case length(remaining: UInt64)
        case chunked(hasBegun: Bool)
        /// The end of the connection is the end of the content: for HTTP/1.0 clients.
        case untilClose
    }

    package private(set) var coding: Coding
    /// What `Content-Length` says; nil where the field is left out.
    package let announcedLength: UInt64?

    /// - Parameters:
    ///   - bodyLength: what a GET would get.
    ///   - hasBody: false where the answer has no content to give.
    package init(
        to method: Method, version: HTTPVersion, status: StatusCode, bodyLength: BodyLength,
        hasBody: Bool
    ) {
        if method == .head || status.forbidsContent {
            self.coding = .none
            // A 204 must not have the field, a 304 may (RFC 9110 §8.6).
            if case .known(let length) = bodyLength, status != .noContent {
                self.announcedLength = length
            } else {
                self.announcedLength = nil
            }
            return
        }
        switch bodyLength {
        case .known(let length):
            self.coding = .length(remaining: length)
            self.announcedLength = length
        case .unknown where hasBody:
            self.coding = version >= .http11 ? .chunked(hasBegun: false) : .untilClose
            self.announcedLength = nil
        case .unknown, .none:
            self.coding = .length(remaining: 0)
            self.announcedLength = 0
        }
    }

    package var isChunked: Bool { if case .chunked = self.coding { true } else { false } }
    package var endsWithConnection: Bool { self.coding == .untilClose }
    package var hasContent: Bool { self.coding != .none }

    /// Counts a piece in.
    ///
    /// - Returns: false when it is more than was announced: the response must be cut off.
    package mutating func count(_ bytes: Int) -> Bool {
        guard case .length(let remaining) = self.coding else { return self.coding != .none }
        let (left, overflow) = remaining.subtractingReportingOverflow(UInt64(clamping: bytes))
        guard !overflow else { return false }
        self.coding = .length(remaining: left)
        return true
    }

    /// Writes the line in front of a chunk of so many bytes (RFC 9112 §7.1), and the end of the
    /// chunk before it.
    package mutating func writeChunkLine(_ bytes: Int, into buffer: inout ByteBuffer) {
        if case .chunked(true) = self.coding { buffer.writeStaticString("\r\n") }
        self.coding = .chunked(hasBegun: true)
        buffer.writeString(String(bytes, radix: 16))
        buffer.writeStaticString("\r\n")
    }

    /// Writes what ends a chunked response.
    package mutating func writeLastChunk(trailers: Fields, into buffer: inout ByteBuffer) {
        if case .chunked(true) = self.coding { buffer.writeStaticString("\r\n") }
        buffer.writeStaticString("0\r\n")
        if !trailers.isEmpty {
            var trailers = trailers
            Trailers.strip(&trailers)
            buffer.writeBytes(trailers.serialized())
        }
        buffer.writeStaticString("\r\n")
    }

    /// Whether no more than so many bytes are to come, as far as is known.
    func isNearlyComplete(within bytes: Int) -> Bool {
        if case .length(let remaining) = self.coding { remaining <= UInt64(bytes) } else { false }
    }

    /// Whether the content is as long as was announced.
    package var isComplete: Bool {
        if case .length(let remaining) = self.coding { remaining == 0 } else { true }
    }
}
