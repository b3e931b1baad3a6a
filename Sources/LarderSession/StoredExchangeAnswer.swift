import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// The answer to a request made from a stored response.
enum StoredExchangeAnswer {
    /// - Returns: the answer, and how many body bytes it announces to send.
    static func make(
        _ object: StoredObject, for request: Request, now: Timestamp, status: CacheStatus,
        isValidated: Bool, configuration: SessionConfiguration
    ) -> (answer: Answer, bodyBytes: UInt64) {
        let outcome = ClientCondition.evaluate(
            request, against: object.head, bodyLength: object.bodyLength)
        let age = Freshness.of(object.head, at: now, configuration: configuration.policy).currentAge
        var head = StoredAnswer.head(
            for: object.head, outcome: outcome, bodyLength: object.bodyLength, age: age, now: now,
            isValidated: isValidated, configuration: configuration.policy)
        var status = status
        status.isFromMemory = object.body.resident != nil
        head.fields.append("Cache-Status", status.member(named: configuration.cacheName))
        let range: Range<UInt64>
        switch outcome {
        case .full: range = 0..<object.bodyLength
        case .partial(let part): range = part
        case .notModified, .preconditionFailed, .rangeNotSatisfiable: range = 0..<0
        }
        let length = range.upperBound - range.lowerBound
        let sendsBody = request.method != .head && length > 0 && !head.status.forbidsContent
        var bodyLength = BodyLength.known(length)
        if head.status.forbidsContent { bodyLength = .none }
        // Trailers have a place only behind content whose end is not told beforehand.
        if outcome == .full, sendsBody, !object.trailers.isEmpty { bodyLength = .unknown }
        return (
            Answer(
                head: head, bodyLength: bodyLength,
                body: sendsBody ? self.body(object, range) : .none, cacheStatus: status),
            sendsBody ? length : 0
        )
    }

    private static func body(_ object: StoredObject, _ range: Range<UInt64>) -> Answer.Body {
        if object.trailers.isEmpty, let whole = object.body.resident,
            let part = whole.getSlice(
                at: whole.readerIndex + Int(clamping: range.lowerBound),
                length: Int(clamping: range.upperBound - range.lowerBound))
        {
            return .resident(part)
        }
        return .source(object.body.reader(range: range))
    }
}
