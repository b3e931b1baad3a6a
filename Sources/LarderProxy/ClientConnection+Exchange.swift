import LarderHTTP
import LarderSession
import NIOCore

/// The life of one exchange, from its head to its entry in the log.
extension ClientConnection {
    func open(_ number: UInt64, head: RequestHead?) {
        self.exchange = OpenExchange(
            number: number, id: self.loop.newExchange(), head: head, began: .now(),
            beganAt: self.shared.clock())
    }

    /// Does what a request wants whose client is known, as far as it has to be.
    func proceed(_ head: RequestHead) {
        let (route, options) = self.route(head)
        switch route {
        case .exchange(let request):
            self.perform(request, of: head, options: options)
        case .answer(let answer):
            self.refuse(head, with: answer)
        case .tunnel(let host, let port):
            self.dial(
                host: host, port: port, via: self.shared.router.via(of: head), purpose: .tunnel)
        case .upgrade(let request, let protocols):
            self.dial(
                host: request.uri.host, port: request.uri.port,
                via: self.shared.router.via(of: head),
                purpose: .upgrade(request, protocols: protocols))
        }
    }

    func expectContent(of head: RequestHead, feed: BodyFeed?, clientWaits: Bool) {
        self.upload = Upload(
            of: head, limits: self.configuration.chunkLimits, feed: feed, clientWaits: clientWaits)
    }

    private func perform(_ request: Request, of head: RequestHead, options: ExchangeOptions) {
        guard let bound = self.bound, let session = self.exchange?.session else { return }
        let number = self.state.exchangeNumber
        let client = ConnectionClient(
            connection: bound, number: number, mail: self.loop.mail(to: bound.eventLoop))
        self.exchange?.client = client
        var body: BodyFeed?
        if request.bodyLength != .none {
            let feed = BodyFeed(bound: self.configuration.requestBuffer.clamped) {
                client.contentSignalled($0)
            }
            body = feed
            if head.hasContent {
                self.expectContent(of: head, feed: feed, clientWaits: request.expectsContinue)
            } else {
                feed.end(trailers: Fields())
            }
        }
        let handle = session.perform(request, body: body, options: options, client: client)
        if self.exchange?.number == number {
            self.exchange?.handle = handle
        } else if self.state.isClosed {
            handle.cancel()
        }
    }

    // MARK: What the session says

    func informational(_ head: ResponseHead, number: UInt64) {
        guard let exchange = self.exchange, exchange.number == number, self.state.awaitsAnswer,
            exchange.version >= .http11, head.status.isInformational,
            head.status.rawValue != 100, head.status.rawValue != 101
        else { return }
        var buffer = ByteBuffer()
        self.shared.headWriter.write(
            head, framing: nil, persistence: .implied, date: nil, into: &buffer)
        self.write(buffer)
        self.settleUnlessAdvancing()
    }

    func answered(_ answer: Answer, number: UInt64) {
        guard self.exchange?.number == number, self.state.awaitsAnswer else {
            if case .source(let source) = answer.body { source.cancel() }
            return
        }
        self.send(answer)
        self.settleUnlessAdvancing()
    }

    func failed(_ failure: ExchangeFailure, number: UInt64) {
        guard self.exchange?.number == number, self.state.awaitsAnswer else { return }
        self.exchange?.handle = nil
        self.exchange?.cacheStatus = failure.cacheStatus
        self.exchange?.acts = failure.acts
        if let origin = failure.origin { self.exchange?.origin = origin }
        self.respond(OwnAnswer(failure), failure: failure.detail)
        self.settleUnlessAdvancing()
    }

    /// While `advance` is at work, what it ends with will settle.
    func settleUnlessAdvancing() {
        if !self.isAdvancing { self.settle() }
    }

    // MARK: Answers of our own

    func respond(_ own: OwnAnswer, failure: String? = nil) {
        self.loop.counters.answered(own.status)
        self.exchange?.errorType = own.error
        let request = self.exchange?.head?.fields ?? Fields()
        let isFailed = own.status.rawValue >= 400
        self.exchange?.rule = own.rule
        self.send(
            own.answer(to: request, name: self.configuration.name),
            failure: failure ?? (isFailed ? own.detail : nil), isOwn: true)
    }

    /// What the client owes did not come in time.
    func answerTimeout() {
        if self.state.awaitsAnswer {
            self.contentFailed("the client's content stalled", answer: .headTimeout)
        } else {
            let number = self.state.headEnded(hasContent: false, persists: false)
            self.open(number, head: nil)
            self.respond(.headTimeout)
        }
    }

    // MARK: The end

    /// Notes an exchange that is over, in the log and nowhere else.
    func closeExchange(failure: String?, isCut: Bool = false) {
        guard let exchange = self.exchange.take() else { return }
        let now = NIODeadline.now()
        self.timer.now = now
        self.timer.hasProgressed = true
        guard self.shared.log.isOn else { return }
        var entry = self.entry(of: exchange)
        entry.duration = .nanoseconds((now - exchange.began).nanoseconds)
        entry.wasCut = isCut
        entry.failure = failure
        self.loop.recorder.record(entry)
    }

    /// What the log is told of an exchange, but for its end.
    func entry(of exchange: OpenExchange) -> ExchangeEntry {
        var entry = ExchangeEntry(
            exchange: exchange.id, client: self.client, request: exchange.head,
            status: exchange.status, began: exchange.beganAt)
        entry.user = exchange.user
        entry.session = exchange.sessionName
        entry.responseHeadBytes = exchange.headBytes
        entry.responseBodyBytes = exchange.bodyBytes
        entry.requestBodyBytes = self.upload?.received ?? exchange.requestBodyBytes
        entry.cacheStatus = exchange.cacheStatus
        entry.acts = exchange.acts
        entry.origin = exchange.origin
        entry.errorType = exchange.errorType
        entry.rule = exchange.rule
        entry.isTunnel = self.tunnel != nil
        entry.responseFields = exchange.responseFields
        return entry
    }

    /// Ends an exchange whose client is gone or must be cut off: whoever works for it may stop.
    func abandonExchange(_ reason: String) {
        let exchange = self.exchange
        if exchange?.framing != nil { self.loop.counters.wasCut() }
        let feed = self.upload?.feed
        self.closeExchange(failure: reason, isCut: true)
        self.upload = nil
        exchange?.source?.cancel()
        feed?.fail(.client(reason))
        exchange?.handle?.cancel()
    }
}
