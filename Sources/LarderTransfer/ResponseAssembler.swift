import LarderHTTP

/// Puts the lines that libcurl hands on together into heads and trailers.
///
/// A value: a line goes in, what it completed comes out.
///
/// ```
/// lines … empty line ─▶ 1xx? ─▶ lines … empty line ─▶ final head ─▶ body ─▶ trailer lines
/// ```
struct ResponseAssembler {
    /// What a line completed.
    enum Event {
        case nothing
        /// 100: the origin wants the content (RFC 9110 §15.2.1).
        case leave
        case informational(ResponseHead)
        case head(ResponseHead, BodyLength)
    }

    private let method: Method
    /// Whether the connection may have been agreed to speak HTTP/2.
    private let mayBeHTTP2: Bool
    private let maximumHead: Int
    private let limits: HeadLimits
    private var block: [UInt8] = []
    private var trailerBlock: [UInt8] = []
    /// Whether the final head is complete, so that lines from now on are trailers.
    private(set) var isHeadComplete = false

    init(method: Method, mayBeHTTP2: Bool = true, configuration: TransferConfiguration) {
        self.method = method
        self.mayBeHTTP2 = mayBeHTTP2
        self.maximumHead = configuration.maximumHead.clamped
        self.limits = HeadLimits(
            startLine: self.maximumHead, head: self.maximumHead,
            fieldCount: configuration.maximumFieldCount)
    }

    /// Whether any byte of a head came that is not complete.
    var isInsideHead: Bool { !self.isHeadComplete && !self.block.isEmpty }

    /// Takes one line with its end.
    mutating func line(_ bytes: UnsafeRawBufferPointer) throws(UpstreamFailure) -> Event {
        if self.isHeadComplete {
            unsafe try self.trailer(bytes)
            return .nothing
        }
        guard bytes.count <= self.maximumHead - self.block.count else { throw self.tooLarge }
        if self.block.isEmpty { self.block.reserveCapacity(512) }
        unsafe self.block.append(contentsOf: bytes)
        guard unsafe Self.isEmptyLine(bytes) else { return .nothing }
        let head = try OriginHead.parse(self.block, limits: self.limits)
        self.block = []
        // RFC 9112 §2.3: an origin answers in a version that it was asked in.
        guard head.version.major == 1 || self.mayBeHTTP2 else {
            throw .malformed("HTTP/\(head.version.major) on a connection of HTTP/1")
        }
        switch head.status.rawValue {
        case 100:
            return .leave
        case 101:
            throw .malformed("101 to a request without Upgrade")
        case 102..<200:
            return .informational(head)
        default:
            let length = try OriginHead.bodyLength(of: head, to: self.method)
            self.isHeadComplete = true
            return .head(head, length)
        }
    }

    /// The trailer section, when the body has ended.
    func trailers() throws(UpstreamFailure) -> Fields {
        guard !self.trailerBlock.isEmpty else { return Fields() }
        return try OriginHead.trailers(self.trailerBlock, limits: self.limits)
    }

    private mutating func trailer(_ bytes: UnsafeRawBufferPointer) throws(UpstreamFailure) {
        guard bytes.count <= self.maximumHead - self.trailerBlock.count else {
            throw self.tooLarge
        }
        if unsafe Self.isEmptyLine(bytes) { return }
        unsafe self.trailerBlock.append(contentsOf: bytes)
    }

    private var tooLarge: UpstreamFailure {
        UpstreamFailure(
            .httpResponseHeaderSectionSize, detail: "a head of more than \(self.maximumHead) bytes")
    }

    private static func isEmptyLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe (bytes.count == 2 && bytes[0] == ASCII.cr && bytes[1] == ASCII.lf)
            || (bytes.count == 1 && bytes[0] == ASCII.lf)
    }
}
