package import LarderHTTP

/// How a request is answered, given what is stored.
///
/// Indices are those of the candidates that were asked about.
package enum ReuseVerdict: Sendable, Equatable {
    /// Answer with this stored response, `stale` naming the rule that allows it where it is not fresh.
    case serve(
        index: Int, freshness: Freshness, stale: PolicyReason?, revalidateInBackground: Bool)
    /// Ask the origin whether this stored response still holds, then answer.
    case validate(index: Int, forward: CacheStatus.Forward, because: PolicyReason)
    /// Ask the origin as if nothing were stored.
    case fetch(forward: CacheStatus.Forward, because: PolicyReason)
    /// Answer 504 without asking the origin (RFC 9111 §5.2.1.7).
    case refuse(because: PolicyReason)
}

extension ReuseVerdict {
    /// Whether another stored response could have led to a better one.
    package var mayGainByMore: Bool {
        switch self {
        case .serve: false
        case .validate, .refuse: true
        case .fetch(let forward, _): forward == .uriMiss || forward == .varyMiss
        }
    }
}

/// Whether a stored response may answer a request (RFC 9111 §4).
package enum Reuse {
    /// Decides on one request.
    ///
    /// - Parameters:
    ///   - candidates: all that is stored under the request's key.
    ///   - configuration: resolved for the request's URI.
    package static func decide(
        request: Request, candidates: [StoredHead], now: Timestamp,
        configuration: PolicyConfiguration, policy: RequestCachePolicy = .useProtocol
    ) -> ReuseVerdict {
        var asked = CacheControl(request: request.fields)
        asked.ignoreReload(configuration)
        let verdict = self.verdict(
            under: policy, request, asked, candidates, now, configuration)
        guard asked.onlyIfCached else { return verdict }
        switch verdict {
        case .serve, .refuse: return verdict
        case .validate, .fetch: return .refuse(because: .onlyIfCached)
        }
    }

    /// Whether a stored response may answer whoever asks now without asking the origin first, as far as
    /// the response decides about it.
    ///
    /// What the origin has just said of it to one client it has then said to all (RFC 9111 §4.3.4); but
    /// not where the response is to be validated for each request: the origin may refuse the next one.
    package static func isReusable(
        _ head: StoredHead, now: Timestamp, configuration: PolicyConfiguration
    ) -> Bool {
        if case .serve = self.judge(head, 0, CacheControl(), now, configuration) { return true }
        return false
    }

    /// Whether a stored response is to be validated for each request, as long as its head stays what it is.
    package static func isValidatedForEach(
        _ head: StoredHead, configuration: PolicyConfiguration
    ) -> Bool {
        ResponseDirectives.of(head, configuration: configuration).control
            .demandsValidation(of: head.fields)
    }

    static func verdict(
        _ request: Request, _ asked: CacheControl, _ candidates: [StoredHead], _ now: Timestamp,
        _ configuration: PolicyConfiguration
    ) -> ReuseVerdict {
        if let (forward, reason) = self.outside(request, asked) {
            return .fetch(forward: forward, because: reason)
        }
        if candidates.isEmpty { return .fetch(forward: .uriMiss, because: .nothingStored) }
        // A HEAD has no content. A part is stored as one of a 200, never as a 206.
        let usable = candidates.indices.lazy.filter {
            candidates[$0].status != .partialContent && candidates[$0].method != .head
                && !self.lacksOwnBytes(candidates[$0], for: request, configuration)
        }
        guard !usable.isEmpty else {
            return .fetch(forward: .uriMiss, because: .nothingStored)
        }
        guard
            let index = Variance.selected(
                by: request, among: candidates, indices: usable, configuration: configuration)
        else {
            return .fetch(forward: .varyMiss, because: .noMatchingVariant)
        }
        // It would keep out whoever brings what it asks for, as long as it is fresh.
        if candidates[index].status == .unauthorized, request.bearsCredentials {
            return .fetch(forward: .request, because: .challengeStored)
        }
        let verdict = self.judge(candidates[index], index, asked, now, configuration)
        return self.covered(verdict, request, candidates[index], index)
    }

    /// Whether a range is asked for of a representation whose bytes were decoded.
    private static func lacksOwnBytes(
        _ head: StoredHead, for request: Request, _ configuration: PolicyConfiguration
    ) -> Bool {
        configuration.storesDecoded && request.fields.has(.range)
            && head.fields.has(.contentEncoding)
    }

    /// A partial response serves and is validated only for what it has; what it lacks has to be
    /// asked for, and the answer validates it at the same time.
    private static func covered(
        _ verdict: ReuseVerdict, _ request: Request, _ head: StoredHead, _ index: Int
    ) -> ReuseVerdict {
        // What must not be used at all is not completed either.
        if case .fetch = verdict { return verdict }
        guard head.extent != nil else { return verdict }
        switch AnswerPlan.make(request, from: head, bodyLength: 0) {
        case .stored: return verdict
        case .splice: return .validate(index: index, forward: .partial, because: .bytesMissing)
        case .uncovered: return .fetch(forward: .partial, because: .bytesMissing)
        }
    }

    /// Why a request is not one that a cache answers at all.
    private static func outside(
        _ request: Request, _ asked: CacheControl
    ) -> (CacheStatus.Forward, PolicyReason)? {
        guard request.method == .get || request.method == .head else {
            return (.method, .methodNotCacheable)
        }
        if request.bodyLength != .none { return (.bypass, .requestContent) }
        for line in request.fields.lines
        where line.known == .ifMatch || line.known == .ifUnmodifiedSince {
            return (.request, .conditionForOrigin)
        }
        // It says nothing against what is stored already (RFC 9111 §5.2.1.5); but the answer to a
        // request that goes forward must not be, so it goes for itself.
        return asked.noStore && !asked.onlyIfCached ? (.request, .requestNoStore) : nil
    }

    private static func judge(
        _ head: StoredHead, _ index: Int, _ asked: CacheControl, _ now: Timestamp,
        _ configuration: PolicyConfiguration
    ) -> ReuseVerdict {
        let directives = ResponseDirectives.of(head, configuration: configuration)
        // Stored while a rule set it aside, or while the cache was a private one.
        if let reason = Storability.withdrawn(head, directives.control, configuration) {
            return .fetch(forward: .miss, because: reason)
        }
        let freshness = Freshness.of(head, directives, at: now, configuration: configuration)
        if head.isInvalidated {
            return .validate(index: index, forward: .stale, because: .invalidated)
        }
        let isSettled = directives.control.immutable && freshness.isFresh
        if let reason = self.unsatisfied(asked, freshness, isSettled: isSettled) {
            return .validate(index: index, forward: .request, because: reason)
        }
        if directives.control.demandsValidation(of: head.fields) {
            return .validate(index: index, forward: .stale, because: .responseNoCache)
        }
        if freshness.isFresh {
            return .serve(
                index: index, freshness: freshness, stale: nil, revalidateInBackground: false)
        }
        return self.judgeStale(index, directives.control, asked, freshness, configuration)
    }

    /// The request directive that this response does not meet.
    ///
    /// - Parameter isSettled: it is fresh and `immutable`: then it cannot have changed, and a reload
    ///   (`max-age=0`) validates nothing. `no-cache` still does (RFC 8246 §2.1).
    private static func unsatisfied(
        _ asked: CacheControl, _ freshness: Freshness, isSettled: Bool
    ) -> PolicyReason? {
        if asked.noCache { return .requestNoCache }
        // Zero means "now": what came this very second is still too old.
        if let maxAge = asked.maxAge, !isSettled,
            freshness.currentAge > maxAge || maxAge == .zero
        {
            return .requestMaxAge
        }
        if let minFresh = asked.minFresh, freshness.remaining < minFresh {
            return .requestMinFresh
        }
        return nil
    }

    private static func judgeStale(
        _ index: Int, _ control: CacheControl, _ asked: CacheControl, _ freshness: Freshness,
        _ configuration: PolicyConfiguration
    ) -> ReuseVerdict {
        if let reason = StaleUse.forbidden(control, configuration) {
            return .validate(index: index, forward: .stale, because: reason)
        }
        if let maxStale = asked.maxStale, freshness.staleness <= maxStale {
            return .serve(
                index: index, freshness: freshness, stale: .requestMaxStale,
                revalidateInBackground: false)
        }
        if configuration.honoursStaleWhileRevalidate,
            !StaleUse.refused(by: asked, staleness: freshness.staleness),
            let window = control.staleWhileRevalidate, freshness.staleness <= window
        {
            return .serve(
                index: index, freshness: freshness, stale: .staleWhileRevalidate,
                revalidateInBackground: true)
        }
        return .validate(index: index, forward: .stale, because: freshness.source.whyStale)
    }
}

extension LifetimeSource {
    /// The reason for which a response with such a lifetime is stale.
    var whyStale: PolicyReason {
        switch self {
        case .sMaxage, .maxAge: .lifetimeOver
        case .expires: .expired
        case .heuristic: .heuristicOver
        case .ruleMinimum, .ruleMaximum, .ruleLifetime: .ruleLifetimeOver
        case .negative: .negativeLifetimeOver
        case .none: .noLifetime
        }
    }
}
