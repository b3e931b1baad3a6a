import LarderHTTP
import LarderSession
import NIOCore

/// A request to switch protocols, asked of its origin over a connection of its own.
///
/// Until the origin has switched, this is HTTP: its answer is parsed, and what is not a 101 becomes
/// an ordinary answer whose content is read from here. Confined to the loop of its connection.
final class UpgradeExchange {
    /// What comes of it; the last three are final.
    enum Outcome {
        case informational(ResponseHead)
        /// The origin switched; these bytes came right behind its head.
        case switched(ResponseHead, ByteBuffer)
        case answered(Answer)
        case failed(ExchangeFailure)
    }

    private enum Body {
        case length(remaining: UInt64)
        case chunked(ChunkedDecoder)
        case untilClose
    }

    private let context: ChannelHandlerContext
    private let method: Method
    private let limits: (head: HeadLimits, chunk: ChunkLimits)
    private let bound: Int
    /// The cache's name in `Cache-Status`.
    private let name: String
    private let report: (Outcome) -> Void
    private var parser: ResponseHeadParser
    /// Received and not yet understood.
    private(set) var buffer = ByteBuffer()
    private var isAnswered = false
    /// What the origin may switch to.
    private var offered: [String] = []
    /// Bytes of heads that were not final: an origin may send any number of them (RFC 9110 §15.2).
    private var informationalBytes = 0
    private var body: Body?
    private var feed: BodyFeed?
    private var isPaused = false
    private let timeout: Duration
    private var timer: NIOScheduledCallback?

    init(
        context: ChannelHandlerContext, method: Method, configuration: ProxyConfiguration,
        report: @escaping (Outcome) -> Void
    ) {
        self.context = context
        self.method = method
        self.limits = (configuration.headLimits, configuration.chunkLimits)
        self.bound = configuration.requestBuffer.clamped
        self.name = configuration.name
        self.timeout = configuration.upgradeTimeout
        self.report = report
        self.parser = ResponseHeadParser(limits: configuration.headLimits)
    }

    /// Sends the request and waits for the answer's head.
    func begin(_ request: Request, protocols: [String]) {
        self.offered = protocols
        var buffer = self.context.channel.allocator.buffer(capacity: 1_024)
        buffer.writeString("\(request.method) \(request.uri.pathAndQuery) HTTP/1.1\r\n")
        buffer.writeString("Host: \(request.uri.authority)\r\n")
        buffer.writeBytes(request.fields.serialized())
        buffer.writeString("Connection: upgrade\r\nUpgrade: ")
        buffer.writeString(protocols.joined(separator: ", ") + "\r\n\r\n")
        self.context.writeAndFlush(NIOAny(buffer), promise: nil)
        self.context.read()
        self.setTimer()
    }

    // MARK: Time

    private struct TimerHandler: NIOScheduledCallbackHandler {
        let upgrade: UpgradeExchange

        func handleScheduledCallback(eventLoop: some EventLoop) { self.upgrade.timerFired() }
    }

    /// Sets the time anew that the origin has for the head of its answer, or for more of its content.
    ///
    /// While the client takes nothing, nothing is asked of the origin.
    private func setTimer() {
        self.cancelTimer()
        guard !self.isAnswered || (self.feed != nil && !self.isPaused) else { return }
        self.timer = try? self.context.eventLoop.assumeIsolated().scheduleCallback(
            in: .nanoseconds(self.timeout.inNanoseconds), handler: TimerHandler(upgrade: self))
    }

    private func cancelTimer() {
        self.timer?.cancel()
        self.timer = nil
    }

    private func timerFired() {
        self.timer = nil
        if self.isAnswered {
            self.fail("the origin's answer stalled", kind: .connectionReadTimeout)
        } else {
            self.fail("the origin did not answer in time", kind: .httpResponseTimeout, status: 504)
        }
    }

    private func answerBegan() {
        self.isAnswered = true
        self.cancelTimer()
    }

    // MARK: Events of the channel

    func received(_ bytes: ByteBuffer) {
        if self.buffer.readableBytes == 0 {
            self.buffer = bytes
        } else {
            var bytes = bytes
            // Taking moves an index only: what was passed on would stay until the end.
            self.buffer.discardReadBytes()
            self.buffer.writeBuffer(&bytes)
        }
        if self.body == nil { self.readHeads() }
        self.readBody()
        if self.buffer.readableBytes == 0 { self.buffer = ByteBuffer() }
        if self.isAnswered { self.setTimer() }
    }

    func readCompleted() {
        if !self.isPaused, !self.isSwitched { self.context.read() }
    }

    func inputEnded() {
        if case .untilClose? = self.body {
            self.finish(trailers: Fields())
        } else {
            self.fail("the origin closed the connection")
        }
    }

    func closed() {
        self.fail("the origin's connection was lost")
    }

    // MARK: Heads

    private var isSwitched = false

    private func readHeads() {
        while !self.isAnswered {
            do throws(HeadError) {
                let unread = self.buffer.readableBytes
                guard let head = try self.parser.parse(&self.buffer) else { return }
                try self.take(head, size: unread - self.buffer.readableBytes)
            } catch {
                self.fail("\(error.reason.rawValue): \(error.detail)", kind: .httpProtocolError)
            }
        }
    }

    private func take(_ head: ResponseHead, size: Int) throws(HeadError) {
        guard head.version.major == 1 else {
            throw HeadError(
                status: .badGateway, reason: .badVersion,
                detail: "a version other than HTTP/1 on a connection of HTTP/1")
        }
        var head = head
        if head.status.rawValue == 101 {
            try self.checkSwitch(head)
            HopByHop.strip(&head.fields, except: .upgrade)
            self.answerBegan()
            self.isSwitched = true
            let rest = self.buffer
            self.buffer = ByteBuffer()
            self.report(.switched(head, rest))
        } else if head.status.isInformational {
            self.informationalBytes += size
            guard self.informationalBytes <= self.limits.head.head else {
                self.fail(
                    "heads of more than \(self.limits.head.head) bytes",
                    kind: .httpResponseHeaderSectionSize)
                return
            }
            HopByHop.strip(&head.fields)
            self.report(.informational(head))
        } else {
            try self.answer(head)
        }
    }

    /// Refuses a switch to what was not offered, or to nothing that is named (RFC 9110 §7.8).
    private func checkSwitch(_ head: ResponseHead) throws(HeadError) {
        let named = Upgrade.protocols(in: head.fields, version: head.version)
        let offered = self.offered.map { $0.lowercased() }
        let isOffered = named.allSatisfy { offered.contains($0.lowercased()) }
        guard !named.isEmpty, isOffered else {
            throw HeadError(
                status: .badGateway, reason: .badStatusLine,
                detail: "101 switches to no protocol, or to one that was not offered")
        }
    }

    private func answer(_ head: ResponseHead) throws(HeadError) {
        let length = try MessageFraming.responseBody(of: head, to: self.method, hadTE: false)
        let isChunked = try MessageFraming.isChunked(head)
        let named = HopByHop.namedFields(head.fields)
        self.answerBegan()
        var head = head
        HopByHop.strip(&head.fields, except: HopByHop.subject(of: head.status))
        head.fields.remove(FieldName(.contentLength))
        let status = CacheStatus(forward: .bypass, forwardStatus: head.status, detail: "upgrade")
        status.append(to: &head.fields, named: self.name)
        let loop = self.context.eventLoop
        let bound = NIOLoopBound(self, eventLoop: loop)
        let feed = BodyFeed(bound: self.bound) { signal in
            loop.execute { bound.value.signalled(signal) }
        }
        let answer: Answer
        switch length {
        case .none:
            answer = Answer(head: head, bodyLength: length, body: .none, cacheStatus: status)
            self.body = .length(remaining: 0)
        case .known(let bytes):
            answer = Answer(
                head: head, bodyLength: length, body: .source(feed), cacheStatus: status)
            self.body = .length(remaining: bytes)
        case .unknown:
            answer = Answer(
                head: head, bodyLength: length, body: .source(feed), cacheStatus: status)
            self.body =
                isChunked
                ? .chunked(ChunkedDecoder(limits: self.limits.chunk, named: named)) : .untilClose
        }
        self.feed = feed
        self.report(.answered(answer))
    }

    // MARK: Content

    private func signalled(_ signal: BodyFeed.Signal) {
        switch signal {
        case .wanted: break
        case .roomAgain:
            self.isPaused = false
            self.setTimer()
            self.context.read()
        case .abandoned: self.context.close(promise: nil)
        }
    }

    private func readBody() {
        while let feed = self.feed {
            switch self.body {
            case nil:
                return
            case .untilClose:
                guard self.buffer.readableBytes > 0 else { return }
                let piece = self.buffer
                self.buffer = ByteBuffer()
                self.push(piece, to: feed)
            case .length(let remaining):
                guard remaining > 0 else {
                    self.finish(trailers: Fields())
                    return
                }
                let count = Int(clamping: min(remaining, UInt64(clamping: buffer.readableBytes)))
                guard count > 0, let piece = self.buffer.readSlice(length: count) else { return }
                self.body = .length(remaining: remaining - UInt64(clamping: count))
                self.push(piece, to: feed)
            case .chunked(var decoder):
                do throws(HeadError) {
                    let step = try decoder.decode(&self.buffer)
                    self.body = .chunked(decoder)
                    guard self.take(step, feed: feed) else { return }
                } catch {
                    self.fail(error.detail, kind: .httpProtocolError)
                }
            }
        }
    }

    private func take(_ step: ChunkedDecoder.Step, feed: BodyFeed) -> Bool {
        switch step {
        case .piece(let piece): self.push(piece, to: feed)
        case .needMore: return false
        case .end(let trailers): self.finish(trailers: trailers)
        }
        return true
    }

    private func push(_ piece: ByteBuffer, to feed: BodyFeed) {
        if !feed.push(piece) { self.isPaused = true }
    }

    /// The content is whole; what the origin sends beyond it goes with its connection.
    private func finish(trailers: Fields) {
        self.feed?.end(trailers: trailers)
        self.feed = nil
        self.cancelTimer()
        self.context.close(promise: nil)
    }

    private func fail(
        _ detail: String, kind: UpstreamFailure.Kind = .connectionTerminated, status: UInt16 = 502
    ) {
        guard !self.isSwitched else { return }
        self.cancelTimer()
        if let feed = self.feed {
            self.feed = nil
            feed.fail(.upstream(UpstreamFailure(kind, detail: detail)))
        } else if !self.isAnswered {
            self.answerBegan()
            self.report(.failed(.tunnel(status, kind, detail)))
        }
        self.context.close(promise: nil)
    }
}

extension ExchangeFailure {
    /// A failure on the way to the origin of a tunnel or an upgrade.
    static func tunnel(
        _ status: UInt16, _ kind: UpstreamFailure.Kind, _ detail: String
    ) -> ExchangeFailure {
        ExchangeFailure(
            status: StatusCode(status), error: kind.errorType, detail: detail, party: .origin,
            cacheStatus: CacheStatus(forward: .bypass))
    }
}
