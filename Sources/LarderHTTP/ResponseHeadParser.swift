package import NIOCore

/// The parser of response heads (RFC 9112 §4, §5).
///
/// As strict as the one for requests, except where RFC 9112 tells a proxy to mend what an origin
/// sends: folded lines are joined with spaces (§5.2), the space after the status code may be
/// missing, and bare LF line ends are accepted where asked for. Its errors have the status 502.
///
/// Folded lines that frame the content are refused, as §5.2 allows: libcurl goes by the first line
/// alone, and what two parsers frame differently must not be passed on, nor stored.
package struct ResponseHeadParser: Sendable {
    private let limits: HeadLimits
    private let acceptsBareLF: Bool
    private var scanner: HeadScanner
    private var statusLine: StatusLine?
    private var fieldsStart = 0
    /// Field lines found so far, folded ones joined; offsets from the head's first byte.
    private var lines: [Range<Int>] = []
    /// Line ends inside folded lines, to be overwritten with spaces.
    private var folds: [Range<Int>] = []

    /// - Parameter lenientLineEnds: accept LF alone as a line end (RFC 9112 §2.2).
    package init(limits: HeadLimits = HeadLimits(), lenientLineEnds: Bool = false) {
        self.limits = limits.bounded
        self.acceptsBareLF = lenientLineEnds
        self.scanner = HeadScanner(acceptsBareLF: lenientLineEnds)
    }

    /// Takes one head from the front of `buffer`; nil, consuming nothing, when it is not whole yet.
    ///
    /// Call again with the same bytes and more behind them. Not usable after an error.
    package mutating func parse(_ buffer: inout ByteBuffer) throws(HeadError) -> ResponseHead? {
        guard let head = try self.parse(buffer.readableBytesUInt8Span) else { return nil }
        buffer.moveReaderIndex(forwardBy: self.scanner.lineStart)
        self = ResponseHeadParser(limits: self.limits, lenientLineEnds: self.acceptsBareLF)
        return head
    }

    /// Reads a block that is exactly one head, its empty line included: all header lines of one
    /// response, as libcurl hands them over.
    ///
    /// Status lines without a minor version (`HTTP/2 200 `), which libcurl writes for HTTP/2 and
    /// HTTP/3, are understood.
    package static func parse(
        block: Span<UInt8>, limits: HeadLimits = HeadLimits(), lenientLineEnds: Bool = false
    ) throws(HeadError) -> ResponseHead {
        var parser = ResponseHeadParser(limits: limits, lenientLineEnds: lenientLineEnds)
        guard let head = try parser.parse(block), parser.scanner.lineStart == block.count else {
            throw HeadError(.incomplete, "the block is not exactly one head").inResponse
        }
        return head
    }

    private mutating func parse(_ bytes: Span<UInt8>) throws(HeadError) -> ResponseHead? {
        do throws(HeadError) {
            if self.statusLine == nil {
                self.statusLine = try self.parseStatusLine(bytes)
            }
            guard let statusLine = self.statusLine, let end = try self.findFields(bytes) else {
                return nil
            }
            return ResponseHead(
                status: statusLine.status, reason: statusLine.reason, version: statusLine.version,
                fields: try self.parseFields(bytes, end: end))
        } catch {
            throw error.inResponse
        }
    }

    private mutating func parseStatusLine(_ bytes: Span<UInt8>) throws(HeadError) -> StatusLine? {
        let limit = Swift.min(self.limits.startLine + 2, self.limits.head)
        guard let line = try self.scanner.nextLine(in: bytes.extracting(first: limit)) else {
            guard bytes.count < limit else {
                throw HeadError(.startLineTooLong, "the status line is too long")
            }
            return nil
        }
        self.fieldsStart = self.scanner.lineStart
        return try StatusLine(parsing: bytes.extracting(line))
    }

    /// Looks for field lines up to the empty line; where that begins, once it has come.
    private mutating func findFields(_ bytes: Span<UInt8>) throws(HeadError) -> Int? {
        let seen = bytes.extracting(first: self.limits.head)
        while let line = try self.scanner.nextLine(in: seen) {
            if line.isEmpty { return line.lowerBound }
            if ASCII.isOWS(bytes[line.lowerBound]) {
                guard let folded = self.lines.popLast() else {
                    throw HeadError(.foldedLine, "white space before the first field")
                }
                self.folds.append(folded.upperBound..<line.lowerBound)
                self.lines.append(folded.lowerBound..<line.upperBound)
            } else {
                guard self.lines.count < self.limits.fieldCount else {
                    throw HeadError(.tooManyFields, "too many field lines")
                }
                if self.lines.isEmpty { self.lines.reserveCapacity(16) }
                self.lines.append(line)
            }
        }
        guard bytes.count < self.limits.head else {
            throw HeadError(.headTooLarge, "the header section is too large")
        }
        return nil
    }

    private func parseFields(_ bytes: Span<UInt8>, end: Int) throws(HeadError) -> Fields {
        var block = bytes.copy(self.fieldsStart..<end)
        for fold in self.folds {
            for i in fold { block[i - self.fieldsStart] = ASCII.space }
        }
        var records: [Fields.Line] = []
        records.reserveCapacity(self.lines.count)
        for line in self.lines {
            let range = line.lowerBound - self.fieldsStart..<line.upperBound - self.fieldsStart
            let record = try FieldLineParser.parse(block.span, range, base: 0)
            if !self.folds.isEmpty { try self.checkFolds(of: line, record.known) }
            records.append(record)
        }
        return Fields(parsed: block, lines: records)
    }

    /// - Parameter line: its place, folds included.
    private func checkFolds(of line: Range<Int>, _ field: KnownField) throws(HeadError) {
        guard field == .transferEncoding || field == .contentLength,
            self.folds.contains(where: { line.contains($0.lowerBound) })
        else { return }
        throw HeadError(.foldedLine, "a folded line that says where the content ends")
    }
}

extension Fields {
    /// Reads a block of field lines without an empty line at the end: trailer fields as libcurl
    /// hands them over.
    ///
    /// Folded lines are joined, as in a head. The status of an error is 502.
    package init(
        parsing block: Span<UInt8>, limits: HeadLimits = HeadLimits()
    ) throws(HeadError) {
        var bytes = Array("HTTP/1.1 200\r\n".utf8)
        bytes += block.copy(0..<block.count)
        bytes += [ASCII.cr, ASCII.lf]
        self = try ResponseHeadParser.parse(block: bytes.span, limits: limits).fields
    }
}

/// A status line, taken apart (RFC 9112 §4).
struct StatusLine: Sendable {
    let version: HTTPVersion
    let status: StatusCode
    let reason: String

    init(parsing line: Span<UInt8>) throws(HeadError) {
        guard let space = line.firstIndex(of: ASCII.space, in: 0..<line.count) else {
            throw HeadError(.badStatusLine, "the status line is not version, status, reason")
        }
        self.version = try Self.version(line.extracting(0..<space))
        let start = space + 1
        let end = Swift.min(start + 3, line.count)
        var code: UInt16 = 0
        for i in start..<end {
            guard ASCII.isDigit(line[i]) else { break }
            code = code &* 10 &+ UInt16(line[i] &- 0x30)
        }
        guard code >= 100, end == line.count || line[end] == ASCII.space else {
            throw HeadError(.badStatusLine, "the status is not a number of three digits")
        }
        self.status = StatusCode(code)
        let reasonStart = Swift.min(end + 1, line.count)
        guard line.areFieldValue(reasonStart..<line.count) else {
            throw HeadError(.badStatusLine, "a control character in the reason phrase")
        }
        let reason = line.extracting(reasonStart..<line.count)
        // Of what nearly all say no text is made.
        let isOK =
            reason.count == 2 && reason[0] == UInt8(ascii: "O") && reason[1] == UInt8(ascii: "K")
        if isOK {
            self.reason = "OK"
        } else {
            // `obs-text` may be of any character set; nobody need look at the phrase.
            self.reason = reason.validText() ?? self.status.reasonPhrase
        }
    }

    private static func version(_ bytes: Span<UInt8>) throws(HeadError) -> HTTPVersion {
        let version: HTTPVersion
        if bytes.count == 6 {
            var padded = bytes.copy(0..<6)
            padded += [UInt8(ascii: "."), UInt8(ascii: "0")]
            version = try HTTPVersion(parsing: padded.span)
            guard version.major >= 2 else {
                throw HeadError(.badVersion, "the HTTP version lacks its minor number")
            }
        } else {
            version = try HTTPVersion(parsing: bytes)
        }
        guard (1...3).contains(version.major) else {
            throw HeadError(.unsupportedVersion, "a version of HTTP that is not known")
        }
        return version
    }
}
