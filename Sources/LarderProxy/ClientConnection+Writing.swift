import LarderHTTP
import LarderSession
import NIOCore

/// Answers on their way to the client.
extension ClientConnection {
    /// Content up to this size goes into the buffer of its head: one piece to write is cheaper than
    /// two, and the copy is cheaper than the second.
    static let joinedBody = 8_192
    /// Pieces sent in one turn of the loop, so that one fast download does not starve the others.
    ///
    /// 1 MiB comes from disk in seventeen, and its end.
    private static let piecesPerTurn = 20

    /// Sends an answer's head and begins with its content.
    ///
    /// - Parameter failure: what the log says of an exchange that ended without an error of
    ///   transport.
    func send(_ answer: Answer, failure: String? = nil, isOwn: Bool = false) {
        guard let asked = self.exchange?.asked else { return }
        var framing = ResponseFraming(
            to: asked.method, version: asked.version, status: answer.head.status,
            bodyLength: Self.length(of: answer), hasBody: Self.hasBody(answer))
        let persists = self.state.responseBegan(
            mayPersist: !framing.endsWithConnection && asked.mayPersist
                && !self.shared.connections.isCrowded
                && self.upload?.isSmall(below: self.configuration.discardLimit) != false,
            hasUnread: self.inbound.readableBytes > 0)
        let head = self.head(of: answer, framing: framing, persists: persists)
        self.exchange?.isAnswered(with: answer, headBytes: head.readableBytes, isOwn: isOwn)
        if self.arrival != nil { self.keep(answer, head: head, persists: persists) }
        switch answer.body {
        case .resident(let body) where framing.hasContent:
            let isTrue = framing.count(body.readableBytes) && framing.isComplete
            self.exchange?.framing = framing
            self.send(head, body, isTrue: isTrue, failure: failure)
        case .source(let source) where framing.hasContent:
            self.exchange?.framing = framing
            self.exchange?.source = source
            self.attach(source)
            self.pump(behind: head)
        case .none, .resident, .source:
            if case .source(let source) = answer.body { source.cancel() }
            self.exchange?.framing = framing
            self.write(head)
            self.endContent(trailers: Fields(), failure: failure)
        }
    }

    /// Sends content that is in memory, in one piece with its head where it is small.
    ///
    /// - Parameter isTrue: whether it is as long as announced; if not, nothing of it can be
    ///   trusted.
    private func send(
        _ head: consuming ByteBuffer, _ body: ByteBuffer, isTrue: Bool, failure: String?
    ) {
        guard isTrue else {
            self.cut("the answer is not as long as it announced")
            return
        }
        self.exchange?.bodyBytes = UInt64(clamping: body.readableBytes)
        if body.readableBytes <= Self.joinedBody {
            head.writeImmutableBuffer(body)
            // Noted first: who has the answer may look for it in the log at once.
            self.closeExchange(failure: failure)
            self.sendWhole(head)
        } else {
            self.write(head, before: body)
        }
        self.responseEnded(failure: failure)
    }

    /// Sends a head and content that is not put behind it.
    func write(_ head: consuming ByteBuffer, before body: consuming ByteBuffer) {
        self.lend(&head, &body)
        self.write(head)
        self.write(body)
    }

    /// Gives the socket the pages of a body in place of a copy of their bytes, as far as it takes them.
    ///
    /// What it does not take stays, and goes the usual way: that is how a slow client is waited for.
    private func lend(_ head: inout ByteBuffer, _ body: inout ByteBuffer) {
        guard body.readableBytes >= PageLender.smallestBody, let socket = self.openSocket,
            self.hasNothingUnsent, LentMemory.holds(body)
        else { return }
        let before = head.readableBytes + body.readableBytes
        self.loop.lender.send(&head, &body, to: socket)
        self.loop.counters.sent(before - head.readableBytes - body.readableBytes)
    }

    private static func hasBody(_ answer: Answer) -> Bool {
        if case .none = answer.body { false } else { true }
    }

    /// Content in memory has a length, announced or not.
    private static func length(of answer: Answer) -> BodyLength {
        switch (answer.bodyLength, answer.body) {
        case (.unknown, .resident(let body)): .known(UInt64(clamping: body.readableBytes))
        case (.none, .source): .unknown
        default: answer.bodyLength
        }
    }

    private func head(
        of answer: Answer, framing: ResponseFraming, persists: Bool
    ) -> ByteBuffer {
        var size = answer.head.fields.bytes.count + 256
        if case .resident(let body) = answer.body, body.readableBytes <= Self.joinedBody {
            size += body.readableBytes
        }
        var buffer = self.loop.takeAnswerRoom(size)
        let hasDate = answer.head.fields.has(.date)
        self.shared.headWriter.write(
            answer.head, framing: framing, persistence: persists ? .implied : .close,
            date: hasDate ? nil : self.loop.date(at: self.shared.clock()), into: &buffer)
        return buffer
    }

    private func attach(_ source: any BodySource) {
        guard let client = self.exchange?.client ?? self.newClient() else { return }
        source.attach { client.bodyWoke() }
    }

    private func newClient() -> ConnectionClient? {
        guard let bound = self.bound, let exchange = self.exchange else { return nil }
        let client = ConnectionClient(
            connection: bound, number: exchange.number,
            mail: self.loop.mail(to: bound.eventLoop))
        self.exchange?.client = client
        return client
    }

    func bodyWoke(number: UInt64) {
        guard self.exchange?.number == number else { return }
        self.pump()
        self.settle()
    }

    /// Moves content from its source to the socket for as long as the socket takes it.
    ///
    /// - Parameter head: what goes before it; empty: nothing.
    func pump(behind head: ByteBuffer = ByteBuffer()) {
        guard !self.isPumping, self.exchange?.source != nil else { return self.write(head) }
        self.isPumping = true
        self.beginGathering()
        self.write(head)
        var left = Self.piecesPerTurn
        while left > 0, let source = self.exchange?.source,
            self.context != nil, self.isWritable
        {
            left -= 1
            guard self.take(source.next()) else { break }
        }
        self.endGathering()
        self.isPumping = false
        if left == 0, let client = self.exchange?.client { client.bodyWoke() }
    }

    /// - Returns: whether the source may be asked again at once.
    private func take(_ step: BodyStep) -> Bool {
        switch step {
        case .piece(let piece):
            return self.writeContent(piece)
        case .pending:
            return false
        case .end(let trailers):
            // If that let the next exchange begin, its content is the loop's next.
            self.endContent(trailers: trailers)
            return true
        case .failed(let failure):
            self.exchange?.source = nil
            self.exchange?.errorType = Self.errorType(of: failure)
            self.cut(Self.describe(failure))
            return false
        }
    }

    private func writeContent(_ piece: ByteBuffer) -> Bool {
        guard var framing = self.exchange?.framing else { return false }
        guard framing.count(piece.readableBytes) else {
            self.cut("the answer is longer than it announced")
            return false
        }
        if framing.isChunked {
            guard piece.readableBytes > 0 else { return true }
            var line = ByteBuffer()
            framing.writeChunkLine(piece.readableBytes, into: &line)
            self.write(line)
        }
        self.exchange?.framing = framing
        self.exchange?.bodyBytes &+= UInt64(clamping: piece.readableBytes)
        self.write(piece)
        self.sendEnough(before: framing)
        return true
    }

    private func endContent(trailers: Fields, failure: String? = nil) {
        guard var framing = self.exchange?.framing else { return }
        self.exchange?.source = nil
        guard framing.isComplete else {
            self.cut("the answer is shorter than it announced")
            return
        }
        if framing.isChunked {
            var last = ByteBuffer()
            framing.writeLastChunk(trailers: trailers, into: &last)
            self.write(last)
            self.exchange?.framing = framing
        }
        self.responseEnded(failure: failure)
    }

    private func responseEnded(failure: String?) {
        self.closeExchange(failure: failure)
        // What the next exchange writes need not wait for more.
        self.endGathering()
        // Its reader has answered without it, and has gone.
        self.abandonUpload()?.fail(.cancelled)
        self.apply(self.state.responseEnded(hasUnread: self.inbound.readableBytes > 0))
    }

    private static func describe(_ failure: BodyFailure) -> String {
        switch failure {
        case .client(let detail): "client: \(detail)"
        case .upstream(let failure): failure.detail
        case .store(let detail): "store: \(detail)"
        case .cancelled: "cancelled"
        }
    }

    private static func errorType(of failure: BodyFailure) -> ProxyErrorType? {
        switch failure {
        case .client, .cancelled: nil
        case .upstream(let failure): failure.kind.errorType
        case .store: .proxyInternalError
        }
    }

    /// Ends the connection in the middle of an answer, so that no one can take it for whole.
    ///
    /// What was written is still sent: it may be of use to a client that can resume. Only where the
    /// end of the connection would mean the end of the content, a reset must say otherwise.
    func cut(_ reason: String) {
        let endsWithConnection = self.exchange?.framing?.endsWithConnection == true
        _ = self.state.connectionEnded()
        self.abandonExchange(reason)
        if endsWithConnection {
            self.reset()
        } else {
            self.closeWhenSent()
        }
    }

    /// Ends the connection in the middle of an answer at once: what is not sent yet is lost.
    func cutAtOnce(_ reason: String) {
        // Of an answer that is written, and that the client has not taken whole, it is not known any more.
        let endsWithConnection =
            self.exchange.map { $0.framing?.endsWithConnection == true } ?? (self.unsentBytes > 0)
        _ = self.state.connectionEnded()
        self.abandonExchange(reason)
        if endsWithConnection {
            self.reset()
        } else {
            self.context?.close(promise: nil)
        }
    }

    private func reset() {
        guard let context = self.context else { return }
        self.isClosing = true
        guard let options = context.channel as? any SocketOptionProvider else {
            context.close(promise: nil)
            return
        }
        // `struct linger { int l_onoff; int l_linger; }` (socket(7)): on, and no time. Its own
        // initialiser belongs to a module of NIO's own.
        let atOnce = unsafe unsafeBitCast((CInt(1), CInt(0)), to: NIOLinger.self)
        options.setSoLinger(atOnce).assumeIsolated().whenComplete { _ in
            self.context?.close(promise: nil)
        }
    }
}
