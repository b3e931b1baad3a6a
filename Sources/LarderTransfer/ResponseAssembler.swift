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
        /// The same, and heads need not be shown any more.
        case lastHead
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
    private let last: LastHead
    private var block: [UInt8] = []
    /// The head before this one; empty where it is another.
    private var pattern: [UInt8] = []
    /// How much of it this one repeats: all that came of it so far.
    private var repeated = 0
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
        challenges: Set<UInt16> = [], last: LastHead = LastHead(),
        configuration: TransferConfiguration
    ) {
        self.last = last
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
        self.isHeadComplete || !self.block.isEmpty || self.repeated > 0
            || self.informationalBytes > 0
    }

    /// From now on libcurl's write callback gets heads, too (CURLOPT_HEADER(3)).
    func guardFirstField() { self.firstField = FirstFieldGuard() }

    /// Takes what libcurl's write callback got.
    func shown(_ bytes: UnsafeRawBufferPointer) -> Shown {
        guard var firstField = self.firstField, !self.isHeadComplete else { return .content }
        guard unsafe firstField.admits(bytes) else { return .refused }
        self.firstField = firstField.isOver ? nil : firstField
        return firstField.isOver ? .lastHead : .head
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
        if unsafe self.repeats(bytes) { return .nothing }
        if self.repeated > 0, unsafe self.endsRepetition(bytes) { return try self.headRepeated() }
        var block = exchange(&self.block, with: [])
        defer { self.block = block }
        if self.repeated > 0 { self.takeRepeated(into: &block) }
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
        let whole = exchange(&block, with: [])
        return try self.headEnded(head, whole, isRepeated: false)
    }

    /// Whether a line is the next of the head before, and not its last: then it is taken.
    ///
    /// libcurl hands each on as often as there are lines, so this is asked before anything else.
    func repeats(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if self.repeated == 0 {
            guard self.block.isEmpty, !self.isHeadComplete, self.held == nil else { return false }
            self.pattern = self.last.block
        }
        let end = self.repeated + bytes.count
        guard end < self.pattern.count, unsafe self.pattern.contain(bytes, at: self.repeated) else {
            return false
        }
        self.repeated = end
        return true
    }

    /// Whether a line is the empty one that ends the head before, of which all else has come again.
    private func endsRepetition(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe self.repeated + bytes.count == self.pattern.count && Self.isEmptyLine(bytes)
            && self.pattern.contain(bytes, at: self.repeated)
    }

    /// A head has come that is the one before it once more.
    private func headRepeated() throws(UpstreamFailure) -> Event {
        let block = exchange(&self.pattern, with: [])
        self.repeated = 0
        if let reading = self.last.reading(of: block, for: self.method) {
            try self.checkVersion(of: reading.head)
            return self.finalHeadEnded(reading.head, reading.length)
        }
        return try self.headEnded(
            try OriginHead.parse(block, limits: self.limits), block, isRepeated: true)
    }

    /// Gathers the lines by themselves that were seen to be those of the head before.
    private func takeRepeated(into block: inout [UInt8]) {
        block.reserveCapacity(512)
        block.append(contentsOf: self.pattern[..<self.repeated])
        self.pattern = []
        self.repeated = 0
    }

    private func headEnded(
        _ head: ResponseHead, _ block: [UInt8], isRepeated: Bool
    ) throws(UpstreamFailure) -> Event {
        try self.checkVersion(of: head)
        switch head.status.rawValue {
        case 100:
            return .leave
        case 101:
            throw .malformed("101 to a request without Upgrade")
        case 102..<200:
            return .informational(head)
        default:
            let length = try OriginHead.bodyLength(of: head, to: self.method)
            self.last.note(
                block, LastHead.Reading(head: head, method: self.method, length: length),
                isRepeated: isRepeated)
            return self.finalHeadEnded(head, length)
        }
    }

    /// RFC 9112 §2.3: an origin answers in a version that it was asked in.
    private func checkVersion(of head: ResponseHead) throws(UpstreamFailure) {
        guard head.version.major == 1 || self.mayBeHTTP2 else {
            throw .malformed("HTTP/\(head.version.major) on a connection of HTTP/1")
        }
    }

    private func finalHeadEnded(_ head: ResponseHead, _ length: BodyLength) -> Event {
        if self.challenges.contains(head.status.rawValue) {
            self.held = (head, length)
            return .nothing
        }
        self.isHeadComplete = true
        return .head(head, length)
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
        var failure = UpstreamFailure(
            .httpResponseHeaderSectionSize, cause: .headTooLarge,
            detail: "a head of more than \(self.maximumHead) bytes")
        failure.limit = .head
        return failure
    }

    private static func isEmptyLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe (bytes.count == 2 && bytes[0] == ASCII.cr && bytes[1] == ASCII.lf)
            || (bytes.count == 1 && bytes[0] == ASCII.lf)
    }
}
