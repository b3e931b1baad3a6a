package import LarderHTTP

/// Whether a response may be used although it is stale (RFC 9111 §4.2.4).
enum StaleUse {
    /// The directive that forbids any stale use, whoever asks; nil where none does.
    static func forbidden(
        _ control: CacheControl, _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        if control.noCache { return .responseNoCache }
        if control.mustRevalidate { return .mustRevalidate }
        if configuration.kind == .shared {
            if control.proxyRevalidate { return .proxyRevalidate }
            if control.sMaxage != nil { return .sharedLifetimeOver }
        }
        return nil
    }

    /// The client asked for something younger or surer than a response that is stale by so much.
    ///
    /// - Parameter isDisconnected: there is no answer to be had, and the cache uses what is stale then.
    ///   `max-age` and `min-fresh` refuse nothing: what "the client prefers" (§5.2.1.1, §5.2.1.3) is not
    ///   to be had, and package managers send `max-age=0` with every request for an index.
    static func refused(
        by request: CacheControl, staleness: Duration, isDisconnected: Bool = false
    ) -> Bool {
        if request.noCache || request.noStore { return true }
        // §5.2.1.2: it is "willing to accept a response that has exceeded its freshness lifetime by
        // no more than the specified number of seconds", whoever else would allow more.
        if let maxStale = request.maxStale, maxStale < staleness { return true }
        if isDisconnected { return false }
        if request.minFresh != nil { return true }
        // §5.2.1.1: "Unless the max-stale request directive is also present, the client does not wish
        // to receive a stale response."
        return request.maxAge != nil && request.maxStale == nil
    }
}

/// Whether a stored response stands in for an origin that failed (RFC 9111 §4.2.4, RFC 5861 §4).
package enum StaleOnError {
    /// The rule that lets a stale response be used now that the origin has failed; nil where it must
    /// not be.
    ///
    /// To be asked when no answer came at all, and when the answer `isFailure`.
    ///
    /// - Parameter hasAnswered: the origin did answer, with a failure.
    package static func permits(
        _ head: StoredHead, request: Request, hasAnswered: Bool = true, now: Timestamp,
        configuration: PolicyConfiguration,
        policy: RequestCachePolicy = .useProtocol
    ) -> PolicyReason? {
        // It wants nothing that the origin has not confirmed.
        guard policy != .reloadRevalidating else { return nil }
        // An old failure is no better than a new one.
        guard !head.status.isServerError else { return nil }
        let directives = ResponseDirectives.of(head, configuration: configuration)
        var asked = CacheControl(request: request.fields)
        asked.ignoreReload(configuration)
        let freshness = Freshness.of(head, directives, at: now, configuration: configuration)
        let isDisconnected = !hasAnswered && configuration.graceWithoutAnswer > .zero
        guard !head.isInvalidated,
            Storability.withdrawn(head, directives.control, configuration) == nil,
            head.method == .get || request.method == head.method,
            StaleUse.forbidden(directives.control, configuration) == nil,
            !directives.control.demandsValidation(of: head.fields),
            !StaleUse.refused(
                by: asked, staleness: freshness.staleness, isDisconnected: isDisconnected)
        else { return nil }
        if let window = self.declaredWindow(directives.control, asked),
            freshness.staleness <= window
        {
            return .staleIfError
        }
        if configuration.grace > .zero,
            freshness.staleness <= configuration.grace
        {
            return .graceOnError
        }
        if isDisconnected, freshness.staleness <= configuration.graceWithoutAnswer {
            return .graceWithoutAnswer
        }
        return nil
    }

    /// The directive for which a request that cannot be validated is answered with an error, 504 where
    /// no other status says more (RFC 9111 §5.2.2.2, and by reference §5.2.2.8 and §5.2.2.10); nil
    /// where none demands it.
    package static func demandsError(
        _ head: StoredHead, configuration: PolicyConfiguration
    ) -> PolicyReason? {
        let control = ResponseDirectives.of(head, configuration: configuration).control
        switch StaleUse.forbidden(control, configuration) {
        case .mustRevalidate?: return .mustRevalidate
        case .proxyRevalidate?: return .proxyRevalidate
        case .sharedLifetimeOver?: return .sharedLifetimeOver
        // `no-cache` comes first there, and may have company.
        case .responseNoCache? where control.mustRevalidate: return .mustRevalidate
        default: return nil
        }
    }

    /// Whether an answer counts as a failure of the origin (RFC 5861 §4: 500, 502, 503, 504).
    package static func isFailure(_ status: StatusCode) -> Bool {
        switch status.rawValue {
        case 500, 502, 503, 504: true
        default: false
        }
    }

    /// The longest staleness that anything allows.
    static func window(
        _ response: CacheControl, _ request: CacheControl, _ configuration: PolicyConfiguration
    ) -> Duration {
        max(self.declaredWindow(response, request) ?? .zero, configuration.grace)
    }

    /// `stale-if-error` of the response or the request, the longer of the two.
    private static func declaredWindow(
        _ response: CacheControl, _ request: CacheControl
    ) -> Duration? {
        guard let a = response.staleIfError else { return request.staleIfError }
        return request.staleIfError.map { max(a, $0) } ?? a
    }
}
