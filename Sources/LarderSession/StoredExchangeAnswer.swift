import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// The answer to a request made from a stored response.
enum StoredExchangeAnswer {
    /// - Returns: the answer, how many bytes of the stored body it announces to send, and which of a
    ///   body in memory they are, where they would be the same at another moment; nil where what is
    ///   stored is not all that is asked for.
    static func make(
        _ object: StoredObject, for request: Request, now: Timestamp, status: CacheStatus,
        isValidated: Bool, configuration: SessionConfiguration
    ) -> (answer: Answer, bodyBytes: UInt64, range: Range<Int>?)? {
        guard
            case .stored(let outcome) = AnswerPlan.make(
                request, from: object.head, bodyLength: object.bodyLength)
        else { return nil }
        let age = Freshness.of(object.head, at: now, configuration: configuration.policy).currentAge
        var head = StoredAnswer.head(
            for: object.head, to: request.method, outcome: outcome, bodyLength: object.bodyLength,
            age: age, now: now, isValidated: isValidated, configuration: configuration.policy)
        var status = status
        status.isFromMemory = object.body.resident != nil
        if case .parts(let ranges) = outcome {
            let several = self.several(ranges, object, head, status, configuration)
            return (several.answer, several.bodyBytes, nil)
        }
        let range: Range<UInt64>
        switch outcome {
        case .full: range = 0..<object.bodyLength
        case .partial(let part): range = part
        case .parts, .notModified, .preconditionFailed, .rangeNotSatisfiable: range = 0..<0
        }
        let sendsBody = request.method != .head && !range.isEmpty && !head.status.forbidsContent
        var bodyLength = BodyLength.known(range.length)
        if head.status.forbidsContent { bodyLength = .none }
        // Trailers have a place only behind content whose end is not told beforehand.
        if outcome == .full, sendsBody, !object.trailers.isEmpty { bodyLength = .unknown }
        self.sign(&head, status, outcome, bodyLength, configuration)
        let body = sendsBody ? self.body(object, range) : .none
        return (
            Answer(head: head, bodyLength: bodyLength, body: body, cacheStatus: status),
            sendsBody ? range.length : 0, self.lastingRange(of: body, range, outcome)
        )
    }

    /// Which bytes of a body in memory are sent, where neither they nor the head but for `Age` and
    /// the remaining freshness depend on the moment.
    private static func lastingRange(
        of body: Answer.Body, _ range: Range<UInt64>, _ outcome: ClientOutcome
    ) -> Range<Int>? {
        switch outcome {
        case .full, .partial, .notModified: break
        // These have a `Date` of their own.
        case .preconditionFailed, .rangeNotSatisfiable, .parts: return nil
        }
        switch body {
        case .none: return 0..<0
        case .source: return nil
        case .resident:
            guard let start = Int(exactly: range.lowerBound),
                let end = Int(exactly: range.upperBound)
            else { return nil }
            return start..<end
        }
    }

    /// Adds what an answer says of itself: to a client, what the cache did; to the program itself, the
    /// length that no framing will tell it.
    private static func sign(
        _ head: inout ResponseHead, _ status: CacheStatus, _ outcome: ClientOutcome,
        _ length: BodyLength, _ configuration: SessionConfiguration
    ) {
        guard configuration.role == .userAgent else {
            return status.append(to: &head.fields, named: configuration.cacheName)
        }
        // Of content that was decoded nobody knows how long it was.
        guard case .known(let bytes) = length, !head.fields.contains(FieldName(.contentEncoding))
        else { return }
        switch outcome {
        case .full, .partial: head.fields.append("Content-Length", String(bytes))
        case .parts, .notModified, .preconditionFailed, .rangeNotSatisfiable: break
        }
    }

    private static func body(_ object: StoredObject, _ range: Range<UInt64>) -> Answer.Body {
        // A body that lies in memory whole: of a partial one the offsets would be others.
        if object.trailers.isEmpty, object.head.extent == nil, let whole = object.body.resident,
            let part = whole.getSlice(
                at: whole.readerIndex + Int(clamping: range.lowerBound),
                length: Int(clamping: range.length))
        {
            return .resident(part)
        }
        return .source(object.body.reader(range: range))
    }

    // MARK: Several parts

    /// An answer of several parts (RFC 9110 §15.3.7.2), each read from the store when its turn has
    /// come.
    private static func several(
        _ ranges: [Range<UInt64>], _ object: StoredObject, _ head: ResponseHead,
        _ status: CacheStatus, _ configuration: SessionConfiguration
    ) -> (answer: Answer, bodyBytes: UInt64) {
        let length = object.head.completeLength(bodyLength: object.bodyLength)
        let framing = MultipartByteRanges(
            ranges: ranges, completeLength: length ?? object.bodyLength,
            contentType: object.head.fields.first(FieldName(.contentType)),
            boundary: self.boundary())
        var head = head
        head.fields.append("Content-Type", framing.mediaType)
        if configuration.role == .intermediary {
            status.append(to: &head.fields, named: configuration.cacheName)
        }
        var parts: [SplicedBody.Part] = []
        for (index, range) in ranges.enumerated() {
            parts.append(.bytes(ByteBuffer(bytes: framing.opening(ofPart: index))))
            parts.append(.stored(range))
        }
        parts.append(.bytes(ByteBuffer(bytes: framing.closing)))
        return (
            Answer(
                head: head, bodyLength: framing.length.map { .known($0) } ?? .unknown,
                body: .source(SplicedBody(parts, of: object.body)), cacheStatus: status),
            ranges.reduce(0) { $0 &+ $1.length }
        )
    }

    /// 192 random bits: content that holds them by chance is not to be expected in the life of
    /// anything, and nobody who makes content can know them.
    private static func boundary() -> String {
        var random = SystemRandomNumberGenerator()
        var text = ""
        for _ in 0..<3 {
            let digits = String(random.next(), radix: 16)
            text += String(repeating: "0", count: 16 - digits.count) + digits
        }
        return text
    }

    // MARK: Partly stored

    /// An answer from stored bytes and others that are on their way.
    ///
    /// - Parameters:
    ///   - reader: of the bytes that arrive.
    ///   - leads: they arrive for this client's own request, which so has validated what is stored:
    ///     only then may the fields go along that are kept for such a client (RFC 9111 §5.2.2.4).
    ///   - opener: asks for what is missing beyond them.
    static func make(
        _ spliced: Filling.Spliced, reader: FillingReader, leads: Bool,
        opener: @escaping SplicedBody.Opener, now: Timestamp, status: CacheStatus, age: Duration,
        configuration: SessionConfiguration
    ) -> (answer: Answer, bodyBytes: UInt64) {
        let object = spliced.object
        let answer = spliced.answer
        var head = StoredAnswer.head(
            for: (leads ? spliced.own : nil) ?? object.head,
            outcome: answer.isWhole ? .full : .partial(answer.range),
            bodyLength: answer.completeLength ?? object.bodyLength, age: age, now: now,
            isValidated: leads, configuration: configuration.policy)
        if configuration.role == .intermediary {
            status.append(to: &head.fields, named: configuration.cacheName)
        }
        let parts = SplicedBody.parts(answer.segments, arriving: reader)
        let stored = answer.segments.reduce(UInt64(0)) { sum, segment in
            if case .stored(let range) = segment { sum &+ range.length } else { sum }
        }
        return (
            Answer(
                head: head, bodyLength: .known(answer.range.length),
                body: .source(SplicedBody(parts, of: object.body, opener: opener)),
                cacheStatus: status, origin: spliced.origin),
            stored
        )
    }
}
