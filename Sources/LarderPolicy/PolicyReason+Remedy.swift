extension PolicyReason {
    /// What would have to be otherwise for the answer to come from the cache, for people: a phrase
    /// that begins in lower case and ends without a full stop.
    ///
    /// For the reasons that let a stored response be used, what keeps it so. A table: no case may be
    /// left out, so that a new reason comes with its remedy.
    package var remedy: String {
        switch self {
        // What the client would have to do otherwise.
        case .methodNotCacheable: "a GET or HEAD: what other methods answer is not used again"
        case .requestContent: "the same request without content"
        case .nothingStored: "an answer to the same GET before, one that may be stored"
        case .noMatchingVariant:
            "the same values as before in the fields that Vary names, or an answer without that Vary"
        case .bytesMissing:
            "the missing bytes asked for before; under a strong ETag only those are fetched"
        case .conditionForOrigin: "a request without If-Match and If-Unmodified-Since"
        case .challengeStored:
            "a request without credentials: what is stored, a 401, is for those"
        case .onlyIfCached:
            "a stored response that may be used; without only-if-cached the origin would be asked"
        case .requestNoCache:
            "a request without Cache-Control: no-cache or Pragma: no-cache, as browsers send on reload"
        case .requestNoStore: "a request without Cache-Control: no-store"
        case .requestMaxAge: "a request without max-age, or with one above the age"
        case .requestMinFresh: "a request without min-fresh, or with one below what remains"

        // What the origin would have to say of how long its response lasts.
        case .lifetimeOver: "a longer max-age, or stale-while-revalidate=…, from the origin"
        case .sharedLifetimeOver:
            "a longer s-maxage from the origin; it forbids the use of a stale response, too"
        case .expired: "an Expires that lies ahead, or better Cache-Control: max-age=…"
        case .heuristicOver:
            "explicit freshness from the origin, Cache-Control: max-age=…, or larger settings "
                + "freshness.heuristic-fraction and freshness.heuristic-maximum"
        case .noLifetime:
            "explicit freshness from the origin, Cache-Control: max-age=…, or a Last-Modified for "
                + "the heuristic"
        case .invalidated: "no unsafe request or purge since it was stored; a validation mends it"
        case .responseNoCache: "a response without no-cache, which asks for validation at each use"
        case .mustRevalidate: "a longer lifetime from the origin, or none of its must-revalidate"
        case .proxyRevalidate: "a longer lifetime from the origin, or none of its proxy-revalidate"

        case .ruleLifetimeOver: "a longer time in the cache rule, or from the origin"
        case .negativeLifetimeOver: "a longer time in freshness.negative, or from the origin"

        // What the request cache policy says.
        case .reloadIgnoringLocal: "a request cache policy other than reload-ignoring-local"
        case .reloadIgnoringAll: "a request cache policy other than reload-ignoring-all"
        case .reloadRevalidating: "a request cache policy other than reload-revalidating"
        case .returnCacheElseLoad: "it is one by return-cache-else-load, if anything is stored"
        case .returnCacheDontLoad:
            "anything stored: return-cache-dont-load asks no origin, so fetch it once online"

        // What settings changed.
        case .ruleMinimum: "it is one by a cache rule, which raised the lifetime"
        case .ruleMaximum: "it is one until the lifetime that a cache rule lowered is over"
        case .ruleLifetime: "it is one by a cache rule, which gave a lifetime"
        case .ruleIgnored: "it is one by a cache rule, which set a directive aside"
        case .negativeLifetime: "it is one by freshness.negative, which keeps errors for a while"

        // What makes it a hit already.
        case .fresh: "it is one, until its lifetime is over"
        case .requestMaxStale:
            "it is one by the client's max-stale; a longer lifetime makes it fresh"
        case .staleWhileRevalidate: "it is one, until its stale-while-revalidate is over"
        case .staleIfError: "it is one, while the origin fails and stale-if-error lasts"
        case .graceWithoutAnswer:
            "it is one, while the origin is silent and freshness.stale-if-unreachable lasts"
        case .graceOnError: "it is one, while the origin fails and freshness.stale-if-error lasts"

        // What would let the response be stored, and so the next request be answered from it.
        case .interimResponse: "a final response: 1xx are only passed on"
        case .partialResponse:
            "a request without Range or If-Range, whose whole answer is stored, or an ETag that tells "
                + "what the part belongs to"
        case .multipartResponse: "a request for one range, or for the whole"
        case .notModifiedResponse:
            "a request without conditions of its own, whose whole answer is stored"
        case .answersCondition: "a request without the condition or range that failed"
        case .responseNoStore: "a response without Cache-Control: no-store"
        case .responsePrivate:
            "a response without Cache-Control: private, or a cache that is one person's"
        case .requestAuthorization:
            "public, s-maxage=… or must-revalidate in the response's Cache-Control, or a request "
                + "without Authorization"
        case .statusNotUnderstood: "a response without must-understand, or with a status known here"
        case .statusNeedsExplicit:
            "explicit freshness from the origin, Cache-Control: max-age=… or public: this status "
                + "has no heuristic"
        case .varyAny:
            "a Vary that names fields, in place of *: at most 32, and 16 KiB of the request"
        case .noFreshnessNoValidator:
            "freshness from the origin, Cache-Control: max-age=…, or, of a successful answer (2xx), a "
                + "validator: ETag or Last-Modified"
        case .failureNotFresh:
            "nothing: the next request may succeed; for failures to be kept, Cache-Control: max-age=… "
                + "from the origin, or the setting freshness.negative"
        case .contradictory:
            "a response that says each thing once, and a part only of what was asked for in part"
        case .ruleStoresNothing: "no cache rule that says to store nothing of it"
        case .keepsStored: "nothing: the stored response is kept in place of this failure"
        case .gateRefuses: "a successful response that is not too large for the program's cache"
        case .statusNeverStored:
            "another status: this one speaks of the client or its way here, not of the resource"
        case .seenOnce:
            "a second request before long, or a setting that stores at the first one"
        case .largeSeenOnce:
            "a second request before long, or a setting that stores large bodies at the first one"
        case .tooLarge:
            "a smaller body, or a larger cache.maximum-object and a cache.disk of twice that (without a "
                + "disk: cache.memory-object and cache.memory)"
        case .setsCookie: "a response without Set-Cookie, or a setting that stores those with one"

        // What lets it be stored: the next request may be one.
        case .explicitFreshness: "the next request is one, as long as the response says"
        case .responsePublic: "the next request is one, as the response is public"
        case .privateHere: "the next request is one, as this cache is one person's"
        case .statusCacheable:
            "the next request is one, if a lifetime or the heuristic makes the response fresh"
        case .postForGet: "the next GET of the same URI is one"
        }
    }
}
