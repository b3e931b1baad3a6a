import LarderHTTP

/// Puts the lines that libcurl hands on together into heads and trailers.
///
/// A line goes in, what it completed comes out. Confined to the loop of its transfer.
///
/// ```
/// lines … empty line ─▶ 1xx? ─▶ lines … empty line ─▶ final head ─▶ body ─▶ trailer lines
///                                      ▲     └──▶ held ──────┘
///                                      └───(answered)─┘
/// ```
///
/// libcurl shows the head of a challenge before it decides whether it answers it, and then, maybe
/// on another connection, the head of what came of that. So the head of a response that may be
/// answered is held until one knows: a further request drops it, content or the end releases it.
final class ResponseAssembler {
    /// What libcurl's write callback got.
    enum Shown {
        case content
        /// A part of a head, which comes to ``line(_:)`` afterwards.
        case head
        /// A part of a head that libcurl must not take up.
        case refused
    }

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
    /// A line may end in LF alone.
    private let acceptsBareLF: Bool
    /// Statuses of responses that libcurl may answer by itself.
    private let challenges: Set<UInt16>
    private let maximumHead: Int
    private let limits: HeadLimits
    private var block: [UInt8] = []
    /// Bytes of heads that were not final: an origin may send any number of them (RFC 9110 §15.2).
    private var informationalBytes = 0
    private var trailerBlock: [UInt8] = []
    /// Whether the final head is complete, so that lines from now on are trailers.
    private(set) var isHeadComplete = false
    private var held: (ResponseHead, BodyLength)?
    /// nil: heads are not shown to the write callback.
    private var firstField: FirstFieldGuard?

    init(
        method: Method, mayBeHTTP2: Bool = true, acceptsBareLF: Bool = false,
        challenges: Set<UInt16> = [], configuration: TransferConfiguration
    ) {
        self.method = method
        self.mayBeHTTP2 = mayBeHTTP2
        self.acceptsBareLF = acceptsBareLF
        self.challenges = challenges
        self.maximumHead = configuration.maximumHead.clamped
        self.limits = HeadLimits(
            startLine: self.maximumHead, head: self.maximumHead,
            fieldCount: configuration.maximumFieldCount)
    }

    /// Whether part of the answer came: a line of its head, or what may come before that.
    var hasBegun: Bool {
        self.isHeadComplete || !self.block.isEmpty || self.informationalBytes > 0
    }

    /// From now on libcurl's write callback gets heads, too (CURLOPT_HEADER(3)).
    func guardFirstField() { self.firstField = FirstFieldGuard() }

    /// Takes what libcurl's write callback got.
    func shown(_ bytes: UnsafeRawBufferPointer) -> Shown {
        guard self.firstField != nil, !self.isHeadComplete else { return .content }
        var firstField = self.firstField
        defer { self.firstField = firstField }
        return unsafe firstField?.admits(bytes) == true ? .head : .refused
    }

    /// A request goes out, perhaps once more; true where that is the answer to a challenge.
    func requestBegins() -> Bool {
        var firstField = self.firstField
        firstField?.requestBegins()
        self.firstField = firstField
        return self.dropHeld()
    }

    /// Takes one line with its end.
    func line(_ bytes: UnsafeRawBufferPointer) throws(UpstreamFailure) -> Event {
        // No trailer's name holds a slash: this is the answer to the next request.
        if self.held != nil, unsafe bytes.starts(with: "HTTP/".utf8) { _ = self.dropHeld() }
        if self.isHeadComplete || self.held != nil {
            unsafe try self.trailer(bytes)
            return .nothing
        }
        var block = exchange(&self.block, with: [])
        defer { self.block = block }
        guard bytes.count <= self.maximumHead - block.count else { throw self.tooLarge }
        // libcurl takes it for the end of the head (RFC 9112 §2.2: a bare CR is invalid).
        guard unsafe bytes.first != ASCII.cr || Self.isEmptyLine(bytes) else {
            throw .malformed("a line that begins with CR")
        }
        if block.isEmpty { block.reserveCapacity(512) }
        unsafe Self.append(bytes, to: &block, mending: self.acceptsBareLF)
        guard unsafe Self.isEmptyLine(bytes) else { return .nothing }
        let head = try OriginHead.parse(block, limits: self.limits)
        if head.status.rawValue < 200 {
            self.informationalBytes += block.count
            guard self.informationalBytes <= self.maximumHead else { throw self.tooLarge }
        }
        block = []
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
            if self.challenges.contains(head.status.rawValue) {
                self.held = (head, length)
                return .nothing
            }
            self.isHeadComplete = true
            return .head(head, length)
        }
    }

    /// Forgets a challenge that is being answered; false when none was held.
    private func dropHeld() -> Bool {
        self.trailerBlock = []
        return self.held.take() != nil
    }

    /// Gives out a challenge that is the final response after all.
    func takeHeld() -> (ResponseHead, BodyLength)? {
        guard let held = self.held.take() else { return nil }
        self.isHeadComplete = true
        return held
    }

    /// The trailer section, when the body has ended.
    func trailers() throws(UpstreamFailure) -> Fields {
        guard !self.trailerBlock.isEmpty else { return Fields() }
        return try OriginHead.trailers(self.trailerBlock, limits: self.limits)
    }

    private func trailer(_ bytes: UnsafeRawBufferPointer) throws(UpstreamFailure) {
        guard bytes.count <= self.maximumHead - self.trailerBlock.count else {
            throw self.tooLarge
        }
        if unsafe Self.isEmptyLine(bytes) { return }
        var block = exchange(&self.trailerBlock, with: [])
        unsafe Self.append(bytes, to: &block, mending: self.acceptsBareLF)
        self.trailerBlock = block
    }

    /// Adds a line to a block; mending it gives it a CR that it lacks before its LF.
    private static func append(
        _ line: UnsafeRawBufferPointer, to block: inout [UInt8], mending: Bool
    ) {
        unsafe block.append(contentsOf: line.assumingMemoryBound(to: UInt8.self))
        let count = line.count
        guard mending, count > 0, unsafe line[count - 1] == ASCII.lf,
            unsafe count == 1 || line[count - 2] != ASCII.cr
        else { return }
        block[block.count - 1] = ASCII.cr
        block.append(ASCII.lf)
    }

    private var tooLarge: UpstreamFailure {
        UpstreamFailure(
            .httpResponseHeaderSectionSize, cause: .headTooLarge,
            detail: "a head of more than \(self.maximumHead) bytes")
    }

    private static func isEmptyLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe (bytes.count == 2 && bytes[0] == ASCII.cr && bytes[1] == ASCII.lf)
            || (bytes.count == 1 && bytes[0] == ASCII.lf)
    }
}
