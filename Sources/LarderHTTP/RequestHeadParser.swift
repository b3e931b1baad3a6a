package import NIOCore

/// The one parser of request heads (RFC 9112 §2–§6).
///
/// ```
/// [empty lines] ─▶ request line ─▶ field line … field line ─▶ empty line ─▶ RequestHead
///        └──────────────┴───────── HeadError ─────────┴─────────────┘
/// ```
///
/// Strict where RFC 9112 permits leniency in reading line ends, spaces and lengths, because the next
/// recipient may be lenient in another way. Lines are checked as they become whole, so a bad head
/// is refused early; a byte is looked at once for its line end and once for its meaning however it
/// arrives. A head costs one copy of its field block.
package struct RequestHeadParser: Sendable {
    private let limits: HeadLimits
    private let isOwnPort: @Sendable (UInt16) -> Bool
    private var scanner = HeadScanner()
    private var requestLine: RequestLine?
    private var section: FieldSectionParser
    private var emptyLines = 0

    /// The line of the last request whose head was refused behind it: what a log can say of it.
    package var refused: RequestHead?

    /// - Parameter isOwnPort: whether a `Host` with that port may name the proxy itself, in place of the
    ///   target's authority.
    package init(
        limits: HeadLimits = HeadLimits(),
        isOwnPort: @escaping @Sendable (UInt16) -> Bool = { _ in false }
    ) {
        self.limits = limits.bounded
        self.isOwnPort = isOwnPort
        self.section = FieldSectionParser(start: 0, limit: 0, fieldCount: 0)
    }

    /// Whether a head has begun but is not whole: what tells a client that left in the middle of a
    /// request from one that is done.
    package private(set) var isMidHead = false

    /// Takes one head from the front of `buffer`; nil when it is not whole yet.
    ///
    /// Call again with the same bytes and more behind them: nothing but leading empty lines is
    /// consumed before the head is whole. After an error neither the parser nor the connection
    /// can be used further.
    package mutating func parse(_ buffer: inout ByteBuffer) throws(HeadError) -> RequestHead? {
        if self.requestLine == nil, !self.isMidHead {
            guard try self.skipEmptyLines(&buffer) else { return nil }
        }
        guard buffer.readableBytes > 0 else { return nil }
        self.isMidHead = true
        guard let head = try self.parse(buffer.readableBytesUInt8Span) else { return nil }
        buffer.moveReaderIndex(forwardBy: self.scanner.lineStart)
        self.reset()
        return head
    }

    private mutating func reset() {
        self.scanner = HeadScanner()
        self.requestLine = nil
        self.emptyLines = 0
        self.isMidHead = false
    }

    /// Passes over CRLFs that stand before a request line (RFC 9112 §2.2), up to the limit.
    ///
    /// - Returns: whether what follows has begun.
    private mutating func skipEmptyLines(_ buffer: inout ByteBuffer) throws(HeadError) -> Bool {
        while let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) {
            if first == ASCII.lf { throw HeadError(.bareLF, "a LF without a CR before it") }
            guard first == ASCII.cr else { return true }
            guard let second = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt8.self)
            else { return false }
            guard second == ASCII.lf else {
                throw HeadError(.bareCR, "a CR without a LF after it")
            }
            self.emptyLines += 1
            guard self.emptyLines <= self.limits.emptyLines else {
                throw HeadError(.emptyLines, "too many empty lines before a request")
            }
            buffer.moveReaderIndex(forwardBy: 2)
        }
        return false
    }

    private mutating func parse(_ bytes: Span<UInt8>) throws(HeadError) -> RequestHead? {
        let requestLine: RequestLine
        if let parsed = self.requestLine.take() {
            requestLine = parsed
        } else {
            guard let parsed = try self.parseRequestLine(bytes) else { return nil }
            requestLine = parsed
            self.section = FieldSectionParser(
                start: self.scanner.lineStart, limit: self.limits.head,
                fieldCount: self.limits.fieldCount)
        }
        do throws(HeadError) {
            guard let fields = try self.section.parse(bytes, scanner: &self.scanner) else {
                // Kept only now: nearly every head is whole when it is first seen.
                self.requestLine = requestLine
                return nil
            }
            try requestLine.target.checkHost(
                in: fields, requestLine.version, isOwnPort: self.isOwnPort,
                hadUserInfo: requestLine.userInfo != nil)
            let bodyLength = try MessageFraming.requestBody(
                fields, requestLine.version, of: requestLine.method)
            var head = RequestHead(
                method: requestLine.method, target: requestLine.target,
                version: requestLine.version, fields: fields, bodyLength: bodyLength)
            head.userInfo = requestLine.userInfo
            return head
        } catch {
            self.refused = RequestHead(
                method: requestLine.method, target: requestLine.target,
                version: requestLine.version)
            throw error
        }
    }

    private mutating func parseRequestLine(
        _ bytes: Span<UInt8>
    ) throws(HeadError) -> RequestLine? {
        // Says at once what a TLS handshake on this port would otherwise wait a time-out to hear.
        guard ASCII.isToken(bytes[0]) else {
            throw HeadError(.badMethod, "the request line does not begin with a method")
        }
        let limit = Swift.min(self.limits.startLine + 2, self.limits.head)
        let seen = bytes.extracting(first: limit)
        guard let line = try self.scanner.nextLine(in: seen) else {
            guard bytes.count < limit else {
                throw HeadError(.startLineTooLong, "the request line is too long")
            }
            return nil
        }
        return try RequestLine(parsing: bytes.extracting(line))
    }
}
