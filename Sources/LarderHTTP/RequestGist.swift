package import NIOCore

/// The gist of a request: what of its head may decide on the answer.
///
/// That is the head as it was sent, without the lines of fields that neither a rule of caching nor the
/// proxy reads: numbers that clients give their requests, the name of the program, the page that led
/// there. Where nothing that is stored varies by one of these, requests of the same gist are answered
/// alike. All lines are checked by the grammar, those that are left out, too: a head that the parser
/// would refuse has no gist, or one that the parser would refuse, too.
package enum RequestGist {
    /// Whether the lines of a field are left out.
    @inline(__always)
    package static func leavesOut(_ field: KnownField) -> Bool {
        switch field {
        case .other, .from, .referer, .userAgent: true
        default: false
        }
    }

    /// How many of the bytes are the request line, up to its end; nil where that is not among them.
    package static func requestLineLength(_ bytes: Span<UInt8>) -> Int? {
        var place = 0
        while place < bytes.count {
            let byte = bytes[place]
            // A LF alone is no line end in a request.
            if byte <= ASCII.cr, byte == ASCII.cr || byte == ASCII.lf {
                return byte == ASCII.cr && place > 0 ? place : nil
            }
            place &+= 1
        }
        return nil
    }

    /// Writes the gist of the bytes behind what `gist` holds.
    ///
    /// - Returns: false, and of no use what was written, where they are not one head and nothing else.
    package static func write(
        of bytes: Span<UInt8>, limits: HeadLimits, into gist: inout ByteBuffer
    ) -> Bool {
        let limits = limits.bounded
        guard bytes.count <= limits.head, let first = self.requestLineLength(bytes),
            var start = self.lineEnd(bytes, at: first)
        else { return false }
        // Where the lines begin that are still to be written.
        var unwritten = 0
        var count = 0
        while start < bytes.count, bytes[start] != ASCII.cr {
            count &+= 1
            guard count <= limits.fieldCount, let line = FieldLine(in: bytes, at: start) else {
                return false
            }
            if line.isLeftOut {
                if unwritten < start { gist.write(bytes, unwritten..<start) }
                unwritten = line.end
            }
            start = line.end
        }
        gist.write(bytes, unwritten..<bytes.count)
        return self.lineEnd(bytes, at: start) == bytes.count
    }

    /// The place behind a line end; nil where there is none.
    @inline(__always)
    private static func lineEnd(_ bytes: Span<UInt8>, at place: Int) -> Int? {
        guard place < bytes.count, bytes[place] == ASCII.cr, place &+ 1 < bytes.count,
            bytes[place &+ 1] == ASCII.lf
        else { return nil }
        return place &+ 2
    }

    /// A line as ``HeadScanner`` and ``FieldLineParser`` accept it, looked through in one go.
    private struct FieldLine {
        let isLeftOut: Bool
        /// The place behind its line end.
        let end: Int

        init?(in bytes: Span<UInt8>, at start: Int) {
            var place = start
            while place < bytes.count, ASCII.isToken(bytes[place]) { place &+= 1 }
            let nameEnd = place
            guard nameEnd > start, nameEnd &- start <= Int(UInt16.max), nameEnd < bytes.count,
                bytes[nameEnd] == ASCII.colon
            else { return nil }
            place &+= 1
            while place < bytes.count, ASCII.isFieldValue(bytes[place]) { place &+= 1 }
            guard let end = RequestGist.lineEnd(bytes, at: place) else { return nil }
            self.end = end
            self.isLeftOut = RequestGist.leavesOut(
                KnownField(matching: bytes.extracting(start..<nameEnd)))
        }
    }
}

extension ByteBuffer {
    fileprivate mutating func write(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        let part = bytes.extracting(range)
        unsafe part.withUnsafeBytes { unsafe _ = self.writeBytes($0) }
    }
}
