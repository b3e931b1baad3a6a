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
        var exchange = self.remembered(
            answer.head.status, answer.cacheStatus, at: now, because: reason, storage: storage)
        let age = answer.head.fields.first(FieldName(.age))
        exchange.age = age.flatMap { DeltaSeconds.parse($0) }?.inSeconds
        if case .known(let length) = answer.bodyLength { exchange.bytes = length }
        self.session.recent.note(exchange)
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
        // What stands before the host of an ftp URI may be a password.
        let key =
            self.request.uri.userInfo == nil
            ? self.key
            : CacheKey(
                method: self.request.method, uri: self.request.uri.withoutUserInfo,
                partition: self.session.partition)
        return RecentExchange(
            time: now, method: self.request.method, key: key, status: status,
            cacheStatus: cacheStatus, reason: reason, storage: storage)
    }
}
