import LarderHTTP
import LarderPolicy

/// What a session remembers of its exchanges.
extension ClientExchange {
    /// Notes an answer that is about to be given.
    ///
    /// - Parameters:
    ///   - reason: the rule that decided on the use of what is stored.
    ///   - storage: the rule that kept the origin's response out of the store.
    func note(
        _ answer: Answer, at now: Timestamp, because reason: PolicyReason?, storage: PolicyReason?
    ) {
        guard !self.session.recent.isOff else { return }
        self.session.recent.note(
            self.remembered(answer, at: now, because: reason, storage: storage))
    }

    /// What is remembered of an answer, or would be.
    ///
    /// - Parameter error: the proxy error type of the failure for which a stored response stands in.
    func remembered(
        _ answer: Answer, at now: Timestamp, because reason: PolicyReason?, storage: PolicyReason?,
        error: ProxyErrorType? = nil
    ) -> RecentExchange {
        var exchange = self.remembered(
            answer.head.status, answer.cacheStatus, at: now, because: reason, storage: storage)
        if answer.head.fields.has(.age) {
            let age = answer.head.fields.first(FieldName(.age))
            exchange.age = age.flatMap { DeltaSeconds.parse($0) }?.inSeconds
        }
        exchange.error = error
        if case .known(let length) = answer.bodyLength { exchange.bytes = length }
        return exchange
    }

    /// Notes that there is no answer.
    func note(_ failure: ExchangeFailure, at now: Timestamp, because reason: PolicyReason?) {
        guard !self.session.recent.isOff else { return }
        var exchange = self.remembered(
            failure.status, failure.cacheStatus, at: now, because: reason, storage: nil)
        exchange.error = failure.error
        self.session.recent.note(exchange)
    }

    private func remembered(
        _ status: StatusCode, _ cacheStatus: CacheStatus, at now: Timestamp,
        because reason: PolicyReason?, storage: PolicyReason?
    ) -> RecentExchange {
        var exchange = RecentExchange(
            time: now, method: self.request.method,
            key: RecentExchange.key(self.key, of: self.request, self.session.partition),
            status: status, cacheStatus: cacheStatus, reason: reason, storage: storage)
        exchange.acts = self.acts
        return exchange
    }

    /// What the session did for this exchange so far.
    var acts: [SessionAct] { self.request.acts }
}

extension Request {
    /// What was noted of the session's own doings for it.
    fileprivate var acts: [SessionAct] {
        self.sealed?.noted.compactMap { SessionAct(rawValue: $0) } ?? []
    }
}

extension Fetch {
    /// Notes what came of a fetch that was made behind the back of a client.
    func noteInBackground(_ outcome: Filling.Outcome) {
        guard !self.session.recent.isOff else { return }
        var status = CacheStatus(forward: .stale)
        var error: ProxyErrorType?
        var storage: PolicyReason?
        let answered: StatusCode
        switch outcome {
        case .response(let response):
            answered = response.head.status
            status.stored = response.isStored
            storage = response.whyNotStored
        case .spliced(let spliced):
            answered = spliced.status
            status.stored = spliced.isStored
        case .stored(let stored):
            answered = stored.status ?? .badGateway
            error = stored.failure?.error
        case .failed(let failure):
            answered = failure.status
            error = failure.error
        }
        status.forwardStatus = error == nil ? answered : nil
        let request = self.order.request
        var exchange = RecentExchange(
            time: self.session.clock.now(), method: request.method,
            key: RecentExchange.key(self.order.key, of: request, self.session.partition),
            status: answered, cacheStatus: status, reason: .staleWhileRevalidate,
            storage: storage)
        exchange.error = error
        exchange.acts = request.acts
        exchange.isBackground = true
        self.session.recent.note(exchange)
    }
}

extension RecentExchange {
    /// The key that may be remembered: what stands before the host of an ftp URI may be a password.
    fileprivate static func key(
        _ key: CacheKey, of request: Request, _ partition: String
    ) -> CacheKey {
        guard request.uri.userInfo != nil else { return key }
        return CacheKey(
            method: request.method, uri: request.uri.withoutUserInfo, partition: partition)
    }
}
