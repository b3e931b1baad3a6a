/// The rule that decided: one case a rule.
///
/// The raw value is a token. It stands in the access log, names a counter, and is the `detail` of
/// `Cache-Status` (RFC 9211 §2.8).
package enum PolicyReason: String, Sendable, Codable, CaseIterable {
    // MARK: Why a request is not answered from the cache

    /// Only GET and HEAD are answered from what is stored (RFC 9111 §4, RFC 9110 §9.2.3).
    case methodNotCacheable = "method-not-cacheable"
    /// A GET or HEAD with content has no meaning that a cache could know (RFC 9110 §9.3.1).
    case requestContent = "request-content"
    /// Nothing is stored under the key (RFC 9111 §4).
    case nothingStored = "nothing-stored"
    /// Something is stored, but for other values of the fields that `Vary` names (RFC 9111 §4.1).
    case noMatchingVariant = "no-matching-variant"
    /// Only a part of the response is stored, and not all that is asked for (RFC 9111 §3.3).
    case bytesMissing = "bytes-missing"
    /// `If-Match` and `If-Unmodified-Since` are for the origin to judge (RFC 9111 §4.3.2).
    case conditionForOrigin = "condition-for-origin"
    /// What is stored asks for credentials, which the request has (RFC 9110 §11.6.2).
    case challengeStored = "challenge-stored"
    /// The request says `only-if-cached`, and nothing stored may be used (RFC 9111 §5.2.1.7).
    case onlyIfCached = "only-if-cached"

    // MARK: Why a stored response is validated first

    /// It was invalidated by an unsafe request or a purge (RFC 9111 §4.4).
    case invalidated = "invalidated"
    /// The request says `no-cache` (RFC 9111 §5.2.1.4), or `Pragma: no-cache` alone (§5.4).
    case requestNoCache = "request-no-cache"
    /// The request says `no-store`: nothing of this exchange is stored, and what is stored is not
    /// used (RFC 9111 §5.2.1.5).
    case requestNoStore = "request-no-store"
    /// The stored response is older than the request's `max-age` (RFC 9111 §5.2.1.1).
    case requestMaxAge = "request-max-age"
    /// The stored response will not stay fresh as long as `min-fresh` asks (RFC 9111 §5.2.1.3).
    case requestMinFresh = "request-min-fresh"
    /// The response says `no-cache` (RFC 9111 §5.2.2.4).
    case responseNoCache = "response-no-cache"
    /// Its `s-maxage` or `max-age` is over (RFC 9111 §4.2).
    case lifetimeOver = "lifetime-over"
    /// Its `Expires` has passed, or never was a date (RFC 9111 §5.3).
    case expired = "expired"
    /// Its heuristic lifetime is over (RFC 9111 §4.2.2).
    case heuristicOver = "heuristic-over"
    /// It has no lifetime, only a validator (RFC 9111 §4.2).
    case noLifetime = "no-lifetime"
    /// The lifetime that a cache rule gave is over (settings).
    case ruleLifetimeOver = "rule-lifetime-over"
    /// The lifetime that negative caching gave is over (settings).
    case negativeLifetimeOver = "negative-lifetime-over"
    /// It is stale, and `must-revalidate` forbids its use (RFC 9111 §5.2.2.2).
    case mustRevalidate = "must-revalidate"
    /// It is stale, and `proxy-revalidate` forbids its use in a shared cache (RFC 9111 §5.2.2.8).
    case proxyRevalidate = "proxy-revalidate"
    /// It is stale, and `s-maxage` forbids its use in a shared cache (RFC 9111 §5.2.2.10).
    case sharedLifetimeOver = "s-maxage-over"

    // MARK: Why a fresh response is used

    /// It is fresh, and nothing asks for more (RFC 9111 §4.2).
    case fresh = "fresh"

    // MARK: Why a stale response is used

    /// The request's `max-stale` accepts it (RFC 9111 §5.2.1.2).
    case requestMaxStale = "request-max-stale"
    /// Within its `stale-while-revalidate` (RFC 5861 §3).
    case staleWhileRevalidate = "stale-while-revalidate"
    /// The origin failed, within `stale-if-error` (RFC 5861 §4).
    case staleIfError = "stale-if-error"
    /// The origin failed, within the grace that the settings give (RFC 9111 §4.2.4).
    case graceOnError = "grace-on-error"
    /// The origin gave no answer, within the grace that the settings give for that
    /// (RFC 9111 §4.2.4: "disconnected").
    case graceWithoutAnswer = "grace-without-answer"

    // MARK: What settings changed

    /// A cache rule raised the freshness lifetime (settings).
    case ruleMinimum = "rule-minimum"
    /// A cache rule lowered the freshness lifetime (settings).
    case ruleMaximum = "rule-maximum"
    /// A cache rule gave a freshness lifetime where there was none (settings).
    case ruleLifetime = "rule-lifetime"
    /// A cache rule set a directive or field aside (settings).
    case ruleIgnored = "rule-ignored"
    /// An error that gave no freshness lifetime got one (settings).
    case negativeLifetime = "negative-lifetime"

    // MARK: What the request cache policy says

    /// What is stored is not read (request cache policy).
    case reloadIgnoringLocal = "reload-ignoring-local"
    /// What is stored is not read, here nor further on (request cache policy).
    case reloadIgnoringAll = "reload-ignoring-all"
    /// What is stored is used, however old (request cache policy).
    case returnCacheElseLoad = "return-cache-else-load"
    /// What is stored is used, however old, and nothing else is (request cache policy).
    case returnCacheDontLoad = "return-cache-dont-load"
    /// What is stored is used once the origin has confirmed it (request cache policy).
    case reloadRevalidating = "reload-revalidating"

    // MARK: Why a response is not stored

    /// A cache rule says that nothing of it is stored, nor used (settings).
    case ruleStoresNothing = "rule-stores-nothing"
    /// A failure that only negative caching would store leaves a stored response in its place
    /// (settings).
    case keepsStored = "keeps-stored"
    /// Whoever asked lets nothing like it be stored: no failure, and nothing so large.
    case gateRefuses = "not-wanted"
    /// Nothing is stored that was asked for only once (settings).
    case seenOnce = "seen-once"
    /// Nothing so large is stored that was asked for only once (settings).
    case largeSeenOnce = "large-seen-once"
    /// Nothing so large is stored (settings).
    case tooLarge = "too-large"

    /// Interim responses are relayed only (RFC 9111 §3: "the response status code is final").
    case interimResponse = "interim-response"
    /// A 206 that is of no use here: it may lack fields of the whole, or nobody can tell whether it
    /// belongs to the whole that is stored (RFC 9111 §3.3, §3.4).
    case partialResponse = "partial-response"
    /// A 206 with several parts (RFC 9110 §15.3.7.2).
    case multipartResponse = "multipart-byteranges"
    /// A 304 to the client's own condition belongs to nothing stored here (RFC 9111 §4.3.4).
    case notModifiedResponse = "not-modified-response"
    /// A 412 or 416 answers the request's condition or range, which the key does not hold
    /// (RFC 9110 §15.5.13, §15.5.17).
    case answersCondition = "answers-condition"
    /// The response says `no-store` (RFC 9111 §5.2.2.5).
    case responseNoStore = "response-no-store"
    /// The response says `private`, and this cache is shared (RFC 9111 §5.2.2.7).
    case responsePrivate = "response-private"
    /// The request bore credentials, and the response does not allow storing (RFC 9111 §3.5).
    case requestAuthorization = "request-authorization"
    /// It says `must-understand`, and the status is not one of those understood
    /// (RFC 9111 §5.2.2.3).
    case statusNotUnderstood = "status-not-understood"
    /// Its status is not heuristically cacheable, and nothing explicit allows storing
    /// (RFC 9111 §3).
    case statusNeedsExplicit = "status-needs-explicit-freshness"
    /// `Vary: *` matches no later request (RFC 9111 §4.1).
    case varyAny = "vary-any"
    /// It could never be used: neither freshness nor a validator (RFC 9111 §4.2.2, §4.3.1), which counts
    /// for what is successful alone.
    case noFreshnessNoValidator = "no-freshness-no-validator"
    /// A failure that is stale as it comes: nothing could be made of it later, and it would take the
    /// place of what may stand in for it (RFC 9111 §4.2.4).
    case failureNotFresh = "failure-not-fresh"
    /// It contradicts itself: two values where there can be one, or a range in a whole response
    /// (RFC 9110 §5.3, §14.4).
    case contradictory = "contradictory"
    /// Its status says something about the client, a connection or the network, not about the
    /// resource: 428, 429, 431 and 511 "MUST NOT be stored by a cache" (RFC 6585 §3 to §6).
    case statusNeverStored = "status-never-stored"
    /// It sets a cookie, and the settings keep such responses out (RFC 9111 §7.3).
    case setsCookie = "sets-cookie"

    // MARK: Why a response may be stored

    /// It says itself for how long it is fresh (RFC 9111 §3, §4.2.1).
    case explicitFreshness = "explicit-freshness"
    /// It says `public` (RFC 9111 §5.2.2.9).
    case responsePublic = "response-public"
    /// It says `private`, and this cache is (RFC 9111 §5.2.2.7).
    case privateHere = "private-here"
    /// Its status is heuristically cacheable (RFC 9110 §15.1).
    case statusCacheable = "status-cacheable"
    /// It answers a POST as it would a later GET (RFC 9110 §9.3.3).
    case postForGet = "post-for-get"
}

extension PolicyReason {
    /// Whether it is why the store does not take a response that may be stored.
    package var isStores: Bool {
        switch self {
        case .seenOnce, .largeSeenOnce, .tooLarge: true
        default: false
        }
    }

    /// Its place among `allCases`.
    ///
    /// Without a search: a dictionary would hash the token each time. What an enumeration without
    /// values is in memory counts its cases; a test holds the two against each other.
    package var place: Int { unsafe Int(unsafeBitCast(self, to: UInt8.self)) }

    /// Where the rule is written, for people: `RFC 9111 §5.2.2.5`, `setting cache-rules`.
    package var section: String {
        switch self {
        case .methodNotCacheable, .nothingStored: "RFC 9111 §4"
        case .requestContent: "RFC 9110 §9.3.1"
        case .noMatchingVariant, .varyAny: "RFC 9111 §4.1"
        case .conditionForOrigin: "RFC 9111 §4.3.2"
        case .challengeStored: "RFC 9110 §11.6.2"
        case .onlyIfCached: "RFC 9111 §5.2.1.7"
        case .invalidated: "RFC 9111 §4.4"
        case .requestNoCache: "RFC 9111 §5.2.1.4"
        case .requestNoStore: "RFC 9111 §5.2.1.5"
        case .requestMaxAge: "RFC 9111 §5.2.1.1"
        case .requestMinFresh: "RFC 9111 §5.2.1.3"
        case .responseNoCache: "RFC 9111 §5.2.2.4"
        case .fresh, .lifetimeOver, .noLifetime: "RFC 9111 §4.2"
        case .expired: "RFC 9111 §5.3"
        case .heuristicOver: "RFC 9111 §4.2.2"
        case .mustRevalidate: "RFC 9111 §5.2.2.2"
        case .proxyRevalidate: "RFC 9111 §5.2.2.8"
        case .sharedLifetimeOver: "RFC 9111 §5.2.2.10"
        case .requestMaxStale: "RFC 9111 §5.2.1.2"
        case .staleWhileRevalidate: "RFC 5861 §3"
        case .staleIfError: "RFC 5861 §4"
        case .graceOnError, .graceWithoutAnswer: "RFC 9111 §4.2.4"
        case .interimResponse, .statusNeedsExplicit: "RFC 9111 §3"
        case .bytesMissing, .partialResponse: "RFC 9111 §3.3"
        case .multipartResponse: "RFC 9110 §15.3.7.2"
        case .notModifiedResponse: "RFC 9111 §4.3.4"
        case .answersCondition: "RFC 9110 §15.5.13, §15.5.17"
        case .responseNoStore: "RFC 9111 §5.2.2.5"
        case .responsePrivate: "RFC 9111 §5.2.2.7"
        case .requestAuthorization: "RFC 9111 §3.5"
        case .statusNotUnderstood: "RFC 9111 §5.2.2.3"
        case .noFreshnessNoValidator: "RFC 9111 §4.2.2"
        case .failureNotFresh: "RFC 9111 §4.2.4"
        case .contradictory: "RFC 9110 §5.3"
        case .setsCookie: "RFC 9111 §7.3"
        case .statusNeverStored: "RFC 6585 §3"
        case .explicitFreshness: "RFC 9111 §3"
        case .responsePublic: "RFC 9111 §5.2.2.9"
        case .privateHere: "RFC 9111 §5.2.2.7"
        case .statusCacheable: "RFC 9110 §15.1"
        case .postForGet: "RFC 9110 §9.3.3"
        case .ruleLifetimeOver, .ruleMinimum, .ruleMaximum, .ruleLifetime, .ruleIgnored,
            .ruleStoresNothing:
            "setting cache-rules"
        case .negativeLifetimeOver, .negativeLifetime, .keepsStored: "setting freshness.negative"
        case .gateRefuses: "RFC 9111 §3"
        case .seenOnce: "setting cache.admission.once-seen"
        case .largeSeenOnce: "setting cache.admission.large-from"
        case .tooLarge: "setting cache.maximum-object"
        case .reloadIgnoringLocal, .reloadIgnoringAll, .returnCacheElseLoad,
            .returnCacheDontLoad, .reloadRevalidating:
            "setting cache-policy"
        }
    }
}
