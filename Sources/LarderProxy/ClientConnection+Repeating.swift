import LarderHTTP
import LarderSession
import NIOCore

/// Requests that came before, in the same words or in words of the same gist: answered as before where
/// the session's store did, and otherwise understood as before.
extension ClientConnection {
    /// A read that may hold one request and nothing else.
    struct Arrival {
        /// What came, or the gist of it.
        let bytes: ByteBuffer
        let hash: UInt64
        let isGist: Bool
        /// The number that the exchange will have.
        let number: UInt64
        /// How it was understood before.
        let understood: UnderstoodRequest?
        /// What travels on by the head alone, once that is known.
        var request: Request?
    }

    /// Answers a read that is one known request, whole; false, and nothing has happened, where it has
    /// to be understood first.
    ///
    /// Everything that parsing it would lead to is done: the access rules judge, counters count, the
    /// log gets its line. What is left out is what would come to the same as before.
    func answerKnown(_ bytes: ByteBuffer) -> Bool {
        guard self.mayBeKnown(bytes) else { return false }
        let (known, hash) = self.loop.known.find(bytes)
        if let known {
            if let isAnswered = self.answer(as: known, bytes) { return isAnswered }
            // Should it come once more, what it gets then may be kept.
            self.loop.known.forget(known)
            return false
        }
        let understood = self.loop.understood.find(bytes, hash: hash)
        guard understood == nil, !self.loop.known.wasSeen(hash) else {
            self.note(bytes, hash, understood, isGist: false)
            return false
        }
        return self.answerAlike(bytes)
    }

    /// Answers a read that has never been seen with these bytes, but perhaps with others of the
    /// same gist.
    private func answerAlike(_ bytes: ByteBuffer) -> Bool {
        // Most of what comes for the first time is for what nobody has asked for yet.
        guard self.loop.alike.wasRequestLineSeen(bytes) else { return false }
        self.loop.gist.clear()
        guard
            RequestGist.write(
                of: bytes.readableBytesUInt8Span, limits: self.configuration.headLimits,
                into: &self.loop.gist)
        else { return false }
        let gist = self.loop.gist
        let (known, hash) = self.loop.alike.find(gist)
        guard let known else {
            self.note(gist, hash, nil, isGist: true)
            return false
        }
        if let isAnswered = self.answer(as: known, bytes) { return isAnswered }
        self.loop.alike.forget(known)
        return false
    }

    /// - Returns: false where it has to be understood first; nil where its answer does not stand any
    ///   more.
    private func answer(as known: AnsweredRequest, _ bytes: ByteBuffer) -> Bool? {
        guard !self.own.hasPort(known.port), self.admits(known),
            let session = self.standing.usualSession(in: self.directory)
        else { return false }
        let began = NIODeadline.now()
        guard
            let repetition = session.again(
                known.standing, cachePolicy: self.listener.cachePolicy)
        else { return nil }
        self.send(repetition, of: known, to: bytes, began)
        return true
    }

    private func mayBeKnown(_ bytes: ByteBuffer) -> Bool {
        bytes.readableBytes <= KnownRequest.longestHead && self.listener.authentication == nil
            && self.state.isIdle && self.state.takesInput && self.state.reading == .head
            && !self.isMidHead && self.isWritable
            && self.exchange == nil && self.upload == nil && !self.isClosing
            && !self.isAdvancing && !self.shared.connections.isCrowded
    }

    private func note(
        _ bytes: ByteBuffer, _ hash: UInt64, _ understood: UnderstoodRequest?, isGist: Bool
    ) {
        self.arrival = Arrival(
            bytes: bytes, hash: hash, isGist: isGist, number: self.state.exchangeNumber &+ 1,
            understood: understood)
    }

    /// How the read at work was understood when it came before, if it did.
    ///
    /// It is one head and nothing else: the number is a safeguard, so that no other is taken for it.
    var understood: UnderstoodRequest? {
        guard let arrival = self.arrival, let understood = arrival.understood,
            arrival.number == self.state.exchangeNumber &+ 1
        else { return nil }
        return understood
    }

    /// What travels on of the request at work, where it was understood before and the access rules let
    /// this client have it.
    var understoodRequest: Request? {
        guard let understood = self.arrival?.understood, !self.own.hasPort(understood.port),
            self.admits(understood)
        else { return nil }
        return understood.request
    }

    /// Whether the access rules of this moment let this client have it.
    private func admits(_ known: KnownRequest) -> Bool {
        let generation = self.shared.access.generation
        if let generation, let admitted = known.admitted, admitted.generation == generation,
            admitted.client == self.standing.place
        {
            return true
        }
        let client = self.standing.identity
        let query = AccessQuery(
            client: client.address, user: client.user, method: known.method,
            host: known.host, port: known.port)
        guard self.shared.access.judge(query) == .allowed else { return false }
        known.admitted = generation.map { (self.standing.place, $0) }
        return true
    }

    private func send(
        _ repetition: StandingAnswer.Repetition, of known: AnsweredRequest, to bytes: ByteBuffer,
        _ began: NIODeadline
    ) {
        let (moment, body) = (repetition.moment, repetition.body)
        self.loop.counters.requestBegan()
        _ = self.state.headEnded(hasContent: false, persists: true)
        let id = self.loop.newExchange()
        _ = self.state.responseBegan(mayPersist: true, hasUnread: false)
        let head = known.head(age: moment.age, ttl: moment.ttl)
        if let body, body.readableBytes > Self.joinedBody {
            self.write(head, before: body)
        } else {
            self.sendAtOnce(head, body)
        }
        self.timer.now = began
        self.timer.hasProgressed = true
        if self.shared.log.isOn { self.record(known, by: bytes, id, moment, began) }
        let action = self.state.responseEnded(hasUnread: false)
        // Nothing lies unread.
        if action != .readHead { self.apply(action) }
    }

    /// Apart from what calls it: what it holds would be cleared away after each answer, log or no log.
    @inline(never)
    private func record(
        _ known: AnsweredRequest, by bytes: ByteBuffer, _ id: UInt64,
        _ moment: StandingAnswer.Moment, _ began: NIODeadline
    ) {
        let facts = EntryFacts(
            exchange: id, client: self.client, session: self.standing.sessionName,
            ended: self.shared.clock(), took: NIODeadline.now() - began,
            responseHeadBytes: UInt64(clamping: known.answerHead.bytes.readableBytes),
            ttl: moment.ttl)
        guard known.isGist else { return self.loop.recorder.record(facts, of: known.pattern) }
        // What the gist leaves out is what people read in a log.
        var entry = known.pattern.entry(with: facts)
        var parser = self.newParser
        var bytes = bytes
        if let head = try? parser.parse(&bytes) { entry.request = head }
        self.loop.recorder.record(entry)
    }

    /// Keeps the request that came in the last read, with its answer, if that stands: to be called
    /// once its exchange knows of the answer.
    ///
    /// - Parameter bytes: the answer's head, as it is sent.
    func keep(_ answer: Answer, head bytes: ByteBuffer, persists: Bool) {
        guard let arrival = self.arrival else { return }
        self.arrival = nil
        guard let standing = answer.standing, persists, let exchange = self.exchange,
            exchange.number == arrival.number, let head = self.knowableHead(of: exchange),
            case .absolute(let uri) = head.target,
            answer.origin.address.isEmpty, answer.acts.isEmpty,
            bytes.readableBytes <= KnownRequest.longestHead,
            standing.isByGist || !arrival.isGist, let answerHead = RepeatedHead(bytes)
        else { return }
        var entry = self.entry(of: exchange)
        if case .resident(let body) = answer.body {
            entry.responseBodyBytes = UInt64(clamping: body.readableBytes)
        }
        let known = AnsweredRequest(
            bytes: arrival.bytes.ownCopy, hash: arrival.hash, isGist: arrival.isGist,
            method: head.method, uri: uri, standing: standing, entry: entry,
            answerHead: answerHead)
        if arrival.isGist {
            self.loop.alike.keep(known)
        } else {
            self.loop.known.keep(known)
            if let understood = arrival.understood { self.loop.understood.forget(understood) }
        }
    }

    /// Keeps how the request that came in the last read was understood, while its answer is awaited.
    func keepUnderstood() {
        guard let arrival = self.arrival, let request = arrival.request, arrival.understood == nil,
            !arrival.isGist, let exchange = self.exchange, exchange.number == arrival.number,
            let head = self.knowableHead(of: exchange), !head.fields.has(.cookie)
        else { return }
        self.loop.understood.keep(
            UnderstoodRequest(
                bytes: arrival.bytes.ownCopy, hash: arrival.hash, head: head, request: request))
    }

    /// The head of an exchange that was the whole of a read, where another like it means the same and
    /// may lie in memory: no login is in it.
    private func knowableHead(of exchange: OpenExchange) -> RequestHead? {
        guard self.inbound.readableBytes == 0, let head = exchange.head,
            head.bodyLength == .none, head.version == .http11, !Self.speaksToUs(head.fields),
            !head.fields.has(.authorization),
            case .absolute(let uri) = head.target, uri.userInfo == nil
        else { return nil }
        return head
    }

    /// Whether a field says how the request is to be treated here.
    private static func speaksToUs(_ fields: Fields) -> Bool {
        fields.lines.contains { line in
            switch line.known {
            case .larderCachePolicy, .larderSession, .expect, .upgrade, .maxForwards, .via:
                true
            default: false
            }
        }
    }
}

extension ByteBuffer {
    /// A copy of these bytes in storage that is as large as they are.
    fileprivate var ownCopy: ByteBuffer {
        var copy = ByteBuffer()
        copy.reserveCapacity(self.readableBytes)
        copy.writeImmutableBuffer(self)
        return copy
    }
}
