package import LarderHTTP

/// Whether a response may be stored.
package enum StorageVerdict: Sendable, Equatable {
    case storable
    case notStorable(PolicyReason)
}

/// Whether a response may be stored (RFC 9111 §3).
package enum Storability {
    /// Judges a response whose head has just come.
    ///
    /// A response that may be stored but could never be used again is not storable either: it would
    /// only take room.
    ///
    /// - Parameter directives: those of the response, where they were read.
    package static func judge(
        request: Request, response: ResponseHead, bodyLength: BodyLength, now: Timestamp,
        configuration: PolicyConfiguration, directives: ResponseDirectives? = nil
    ) -> StorageVerdict {
        guard configuration.rule?.forbidsStoring != true else {
            return .notStorable(.ruleStoresNothing)
        }
        let directives =
            directives ?? ResponseDirectives(response.fields, configuration: configuration)
        let reason =
            self.forbiddenByRequest(request, response, directives, configuration)
            ?? self.forbiddenByStatus(response, directives.control)
            ?? self.forbiddenByPart(request, response, bodyLength, configuration)
            ?? self.forbiddenByDirectives(request, response, directives, configuration)
            ?? self.contradiction(response, bodyLength)
            ?? self.hidden(response, directives, configuration)
            ?? self.uselessness(request, response, directives, now, configuration)
        return reason.map { .notStorable($0) } ?? .storable
    }

    /// The key under which a storable response is stored: that of a GET, also for a POST whose
    /// answer is stored for later GETs.
    package static func key(for request: Request, partition: String = "") -> CacheKey {
        CacheKey(
            method: request.method == .post ? .get : request.method, uri: request.uri,
            partition: partition)
    }

    // MARK: The rules

    private static func forbiddenByRequest(
        _ request: Request, _ response: ResponseHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        switch request.method {
        case .get:
            // RFC 9110 §9.3.1: content in a GET has no defined semantics; its answer may depend on it.
            if request.bodyLength != .none { return .requestContent }
        case .post where configuration.storesPost:
            // A GET would not be answered with what was made, accepted or emptied: only with content that
            // represents the resource (RFC 9110 §8.7).
            guard response.status == .ok || response.status.rawValue == 203,
                self.hasExplicitFreshness(response, directives, configuration),
                self.isOfTarget(response, request)
            else { return .methodNotCacheable }
        default:
            // A HEAD has no body to store; it can only freshen what a GET stored (§4.3.5).
            return .methodNotCacheable
        }
        guard CacheControl.isGiven(inRequest: request.fields) else { return nil }
        return CacheControl(request: request.fields).noStore ? .requestNoStore : nil
    }

    /// RFC 9110 §9.3.3: "a Content-Location header field that has the same value as the POST's target
    /// URI".
    private static func isOfTarget(_ response: ResponseHead, _ request: Request) -> Bool {
        guard let location = response.fields.first(FieldName(.contentLocation)) else {
            return false
        }
        return request.uri.resolving(location) == request.uri
    }

    private static func forbiddenByStatus(
        _ response: ResponseHead, _ control: CacheControl
    ) -> PolicyReason? {
        switch response.status.rawValue {
        case ..<200: return .interimResponse
        case 304: return .notModifiedResponse
        case 412, 416: return .answersCondition
        // 407 is about the way to a proxy, and its challenge goes no further (RFC 9110 §15.5.8). 408 and
        // 421 are about one connection, whatever they say of their lifetime: the same request may be
        // made on another, and succeed (§15.5.9, §15.5.20).
        case 407, 408, 421, 428, 429, 431, 511: return .statusNeverStored
        // What it demands is a connection's, and not stored (§3.1, RFC 9110 §15.5.22).
        case 426 where response.fields.has(.upgrade): return .statusNeverStored
        default: break
        }
        return control.mustUnderstand && !response.status.isUnderstood ? .statusNotUnderstood : nil
    }

    /// A 206 is stored where it is one part that says which (§3.3).
    private static func forbiddenByPart(
        _ request: Request, _ response: ResponseHead, _ bodyLength: BodyLength,
        _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        // Coded content among what is decoded: nobody could tell them apart afterwards.
        if configuration.storesDecoded, !request.transfer.decodesContent,
            response.fields.has(.contentEncoding)
        {
            return .partialResponse
        }
        guard response.status == .partialContent else { return nil }
        guard configuration.storesParts else { return .partialResponse }
        // The answer to a POST is stored for later GETs, of which it would have to be a part.
        guard request.method == .get else { return .partialResponse }
        switch PartialContent.read(response, bodyLength: bodyLength, to: request) {
        case .part: return nil
        case .notStorable(let reason): return reason
        }
    }

    private static func forbiddenByDirectives(
        _ request: Request, _ response: ResponseHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        // That the status is understood has been seen to.
        let reason = self.forbidden(
            response.fields, directives.control, answersCredentials: request.bearsCredentials,
            setsCookies: response.setsCookies, configuration)
        if let reason { return reason }
        guard self.isCacheable(response, directives, configuration) else {
            return .statusNeedsExplicit
        }
        return nil
    }

    /// Why a response must not be stored, whatever else it says; of one that is stored already, why
    /// it must not be used: it was stored by other settings than today's.
    ///
    /// A response that sets cookies is kept out by the setting; and where it may be stored only
    /// because a rule sets aside what forbids it, unless the rule says what is to become of cookies.
    private static func forbidden(
        _ fields: Fields, _ control: CacheControl, answersCredentials: Bool, setsCookies: Bool,
        _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        if control.forbidsStoring { return .responseNoStore }
        if configuration.kind == .shared {
            if control.isPrivate { return .responsePrivate }
            if answersCredentials, !control.allowsSharingWithCredentials,
                !configuration.ignored.contains(.authorization)
            {
                return .requestAuthorization
            }
        }
        guard setsCookies, !configuration.ignored.contains(.setCookie),
            self.keepsCookiesOut(fields, configuration)
        else { return nil }
        return .setsCookie
    }

    /// Why a stored response must not be used at all by the settings of today; nil where it may be.
    static func withdrawn(
        _ head: StoredHead, _ control: CacheControl, _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        self.forbidden(
            head.fields, control, answersCredentials: head.answersCredentials,
            setsCookies: head.facts.setsCookies, configuration)
    }

    /// Whether cookies must not be stored beside these fields.
    static func keepsCookiesOut(_ fields: Fields, _ configuration: PolicyConfiguration) -> Bool {
        guard configuration.storesSetCookie else { return true }
        guard !configuration.ignored.isDisjoint(with: [.noStore, .isPrivate]) else { return false }
        let told = ResponseDirectives(fields, configuration: configuration.unresolved).control
        return told.noStore || told.isPrivate
    }

    /// The last requirement of §3: something says that the response is for caches.
    private static func isCacheable(
        _ response: ResponseHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> Bool {
        let control = directives.control
        if control.isPublic || response.status.isHeuristicallyCacheable { return true }
        if control.maxAge != nil { return true }
        if directives.readsExpires, response.fields.has(.expires) { return true }
        if configuration.givesLifetime(to: response.status) { return true }
        switch configuration.kind {
        case .shared: return control.sMaxage != nil
        case .private: return control.isPrivate || !control.privateFields.isEmpty
        }
    }

    /// A whole response that says which part of itself it is, a length that is another one, or two
    /// different values of what can have one.
    ///
    /// `Content-Range` has no meaning in a 200 (RFC 9110 §14.4), so one that is no range is kept like
    /// any unknown field; one that is, comes from an origin that meant 206.
    private static func contradiction(
        _ response: ResponseHead, _ bodyLength: BodyLength
    ) -> PolicyReason? {
        let fields = response.fields
        if response.status == .ok, let range = fields.first(FieldName(.contentRange)),
            ContentRange(parsing: range) != nil
        {
            return .contradictory
        }
        do {
            let announced = try MessageFraming.contentLength(of: fields)
            if let announced, case .known(let length) = bodyLength, announced != length {
                return .contradictory
            }
        } catch {
            return .contradictory
        }
        return fields.disagree(onAnyOf: self.singular) ? .contradictory : nil
    }

    /// What can have one value only, and is believed by it.
    private static let singular: KnownFieldSet = [
        .etag, .lastModified, .contentLocation, .contentType, .date, .location,
    ]

    /// `Connection` or `private="…"` names a field without which the response would be stored as
    /// something else: "Cache-Control is never appropriate as a connection option"
    /// (RFC 9110 §7.6.1).
    private static func hidden(
        _ response: ResponseHead, _ directives: ResponseDirectives,
        _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        let fields = response.fields
        let withheld = configuration.kind == .shared ? directives.control.privateFields : []
        let names = HopByHop.namedFields(fields).names + withheld
        if names.isEmpty { return nil }
        let hides =
            self.hide(names, of: fields) || names.contains { $0 == directives.targetedField }
        return hides ? .contradictory : nil
    }

    /// Whether a response without the fields of these names would be taken for something else.
    static func hide(_ names: [FieldName], of fields: Fields) -> Bool {
        names.contains { self.isGoverning($0.known) && fields.has($0.known) }
    }

    /// Whether a response cannot be understood without its field of this name.
    static func isGoverning(_ name: KnownField) -> Bool { self.governing.contains(name) }

    private static let governing: [KnownField] = [
        .cacheControl, .cdnCacheControl, .expires, .date, .age, .vary, .etag, .lastModified,
        .contentEncoding, .contentType, .contentRange, .noVarySearch, .cacheGroups,
    ]

    /// Why the response, once stored, could never answer a request.
    private static func uselessness(
        _ request: Request, _ response: ResponseHead, _ directives: ResponseDirectives,
        _ now: Timestamp, _ configuration: PolicyConfiguration
    ) -> PolicyReason? {
        if !configuration.ignored.contains(.vary), Variance.variesByAny(response, to: request) {
            return .varyAny
        }
        lazy var freshness = Freshness.of(
            StoredHead(
                storing: response, to: request, requestTime: now, responseTime: now,
                configuration: configuration),
            at: now, configuration: configuration)
        if response.status.isServerError, !freshness.isFresh { return .failureNotFresh }
        if Validation.isConfirmable(response.status), request.uri.scheme != .ftp,
            configuration.storesUnusable || Validation.hasValidator(response.fields)
        {
            return nil
        }
        guard !directives.control.demandsValidation(of: response.fields) else {
            return .noFreshnessNoValidator
        }
        if freshness.isFresh { return nil }
        guard StaleUse.forbidden(directives.control, configuration) == nil,
            freshness.source != .none
        else { return .noFreshnessNoValidator }
        // It was fresh once, and came too late: `max-stale` may still ask for it (§5.2.1.2).
        if freshness.lifetime > .zero { return nil }
        let mayServeStale = StaleOnError.window(directives.control, CacheControl(), configuration)
        let window = max(directives.control.staleWhileRevalidate ?? .zero, mayServeStale)
        return window > freshness.staleness ? nil : .noFreshnessNoValidator
    }
}

extension CacheControl {
    /// RFC 9111 §5.2.2.3: a cache that understands the status SHOULD ignore the no-store beside
    /// `must-understand`.
    var forbidsStoring: Bool { self.noStore && !self.mustUnderstand }

    /// Whether nothing of the response may be used before the origin has confirmed it
    /// (RFC 9111 §5.2.2.4).
    ///
    /// That holds for all of it where `no-cache="…"` names a field that it cannot be understood
    /// without: to send the rest would be to send something else.
    func demandsValidation(of fields: Fields) -> Bool {
        self.noCache || Storability.hide(self.noCacheFields, of: fields)
    }

    /// RFC 9111 §3.5: what lets a shared cache store the answer to a request with credentials.
    var allowsSharingWithCredentials: Bool {
        self.mustRevalidate || self.isPublic || self.sMaxage != nil
    }
}
