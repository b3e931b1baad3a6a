import LarderHTTP

/// One thing in a request or a response that a rule of caching is about.
package struct ExplainedRule: Sendable, Equatable {
    /// Whose words they are.
    package enum Speaker: String, Sendable, Codable, CaseIterable {
        case request, response
        /// The settings of this cache.
        case configuration
    }

    package var speaker: Speaker
    /// What is there: `max-age=60`, `Authorization`.
    package var subject: String
    /// What it means here: one phrase.
    package var meaning: String
    /// Where the rule is written: a section of an RFC, or the name of a setting.
    package var source: String

    package init(_ speaker: Speaker, _ subject: String, _ meaning: String, _ source: String) {
        self.speaker = speaker
        self.subject = subject
        self.meaning = meaning
        self.source = source
    }
}

/// The rules that speak in a request (RFC 9111 §5.2.1, RFC 9110 §13).
enum RequestRules {
    /// - Parameter configuration: resolved for the request's URI.
    static func of(
        _ request: Request, _ policy: RequestCachePolicy = .useProtocol,
        configuration: PolicyConfiguration
    ) -> [ExplainedRule] {
        var rules: [ExplainedRule] = []
        if let rule = configuration.rule {
            rules.append(
                ExplainedRule(
                    .configuration, "cache rule \"\(rule.name)\"", "fits the URL",
                    rule.place.isEmpty ? PolicyReason.ruleMinimum.section : rule.place))
        }
        if policy != .useProtocol {
            rules.append(
                ExplainedRule(
                    .configuration, policy.rawValue, "is the request cache policy",
                    PolicyReason.returnCacheElseLoad.section))
        }
        func add(_ subject: String, _ meaning: String, _ source: String) {
            rules.append(ExplainedRule(.request, subject, meaning, source))
        }
        if request.method != .get, request.method != .head {
            add(request.method.rawValue, "is forwarded", PolicyReason.methodNotCacheable.section)
        }
        if request.bodyLength != .none {
            add("content", "may change the answer", PolicyReason.requestContent.section)
        }
        for name in [KnownField.ifMatch, .ifUnmodifiedSince] where request.fields.has(name) {
            add(name.title, "is for the origin to judge", PolicyReason.conditionForOrigin.section)
        }
        for name in [KnownField.ifNoneMatch, .ifModifiedSince] where request.fields.has(name) {
            add(name.title, "is judged against what is stored", "RFC 9111 §4.3.2")
        }
        if request.fields.has(.range) { add("Range", "asks for a part", "RFC 9110 §14.2") }
        if request.fields.has(.ifRange) { add("If-Range", "guards the range", "RFC 9110 §13.1.5") }
        if request.bearsCredentials {
            add(
                request.fields.has(.authorization) ? "Authorization" : "injected credential",
                "keeps the answer out of a shared cache, unless it allows storing",
                PolicyReason.requestAuthorization.section)
        }
        return rules + self.directives(request)
    }

    private static func directives(_ request: Request) -> [ExplainedRule] {
        let asked = CacheControl(request: request.fields)
        var rules: [ExplainedRule] = []
        func add(_ subject: String, _ meaning: String, _ source: String) {
            rules.append(ExplainedRule(.request, subject, meaning, source))
        }
        if asked.noStore {
            add("no-store", "neither uses nor stores", PolicyReason.requestNoStore.section)
        }
        if asked.noCache {
            let isPragma = !asked.isPresent
            add(
                isPragma ? "Pragma: no-cache" : "no-cache", "asks for validation",
                isPragma ? "RFC 9111 §5.4" : PolicyReason.requestNoCache.section)
        }
        let lifetimes: [(String, Duration?, String, String)] = [
            ("max-age", asked.maxAge, "wants nothing older", "RFC 9111 §5.2.1.1"),
            ("max-stale", asked.maxStale, "accepts what is stale by this", "RFC 9111 §5.2.1.2"),
            ("min-fresh", asked.minFresh, "wants it fresh this much longer", "RFC 9111 §5.2.1.3"),
            (
                "stale-if-error", asked.staleIfError, "accepts what is stale on errors",
                "RFC 5861 §4"
            ),
        ]
        for (name, value, meaning, source) in lifetimes {
            if let value { add("\(name)=\(value.inSeconds)", meaning, source) }
        }
        if asked.onlyIfCached {
            add("only-if-cached", "forbids asking the origin", PolicyReason.onlyIfCached.section)
        }
        return rules
    }
}

/// The rules that speak in a response (RFC 9111 §5.2.2, RFC 5861, RFC 9213).
enum ResponseRules {
    /// - Parameter directives: those of the fields, as the configuration has them read.
    static func of(
        _ fields: Fields, _ directives: ResponseDirectives, configuration: PolicyConfiguration
    ) -> [ExplainedRule] {
        var rules: [ExplainedRule] = []
        if let field = directives.targetedField {
            rules.append(
                ExplainedRule(
                    .response, field.lowercased, "takes the place of Cache-Control and Expires",
                    "RFC 9213 §2.2"))
        }
        rules += self.flags(directives.control, configuration)
        rules += self.lifetimes(directives.control, configuration)
        if fields.has(.expires) {
            let isOverruled =
                directives.targetedField != nil || directives.control.maxAge != nil
                || (configuration.kind == .shared && directives.control.sMaxage != nil)
            rules.append(
                ExplainedRule(
                    .response, "Expires",
                    isOverruled ? "is overruled" : "gives the lifetime", "RFC 9111 §5.3"))
        }
        if fields.has(.vary) {
            let names = fields.string(FieldName(.vary)) ?? ""
            rules.append(
                ExplainedRule(
                    .response, "Vary: \(names)", "tells which requests it answers",
                    "RFC 9111 §4.1"))
        }
        if fields.has(.setCookie), !configuration.storesSetCookie {
            rules.append(
                ExplainedRule(
                    .response, "Set-Cookie", "is kept out by a setting",
                    PolicyReason.setsCookie.section))
        }
        return rules
    }

    private static func flags(
        _ control: CacheControl, _ configuration: PolicyConfiguration
    ) -> [ExplainedRule] {
        let isShared = configuration.kind == .shared
        let all: [(Bool, String, String, String)] = [
            (control.noStore, "no-store", "forbids storing", "RFC 9111 §5.2.2.5"),
            (
                control.isPrivate, "private",
                isShared ? "forbids storing in a shared cache" : "is no matter in a private cache",
                "RFC 9111 §5.2.2.7"
            ),
            (control.isPublic, "public", "allows storing", "RFC 9111 §5.2.2.9"),
            (control.noCache, "no-cache", "asks for validation at each use", "RFC 9111 §5.2.2.4"),
            (
                control.mustRevalidate, "must-revalidate", "forbids use once stale",
                "RFC 9111 §5.2.2.2"
            ),
            (
                control.proxyRevalidate, "proxy-revalidate",
                isShared ? "forbids use once stale" : "is no matter in a private cache",
                "RFC 9111 §5.2.2.8"
            ),
            (
                control.mustUnderstand, "must-understand", "wants the status understood",
                "RFC 9111 §5.2.2.3"
            ),
            (control.immutable, "immutable", "does not change while fresh", "RFC 8246 §2"),
            (
                !control.noCacheFields.isEmpty, "no-cache=\"…\"",
                "keeps these fields back until validated", "RFC 9111 §5.2.2.4"
            ),
            (
                !control.privateFields.isEmpty, "private=\"…\"",
                isShared ? "keeps these fields out" : "is no matter in a private cache",
                "RFC 9111 §5.2.2.7"
            ),
            (
                control.hasInvalidLifetime, "an invalid lifetime", "counts as none at all",
                "RFC 9111 §4.2.1"
            ),
        ]
        return all.filter(\.0).map { ExplainedRule(.response, $0.1, $0.2, $0.3) }
    }

    private static func lifetimes(
        _ control: CacheControl, _ configuration: PolicyConfiguration
    ) -> [ExplainedRule] {
        let isShared = configuration.kind == .shared
        let isOverruled = isShared && control.sMaxage != nil
        let all: [(String, Duration?, String, String)] = [
            (
                "s-maxage", control.sMaxage,
                isShared
                    ? "gives the lifetime, and forbids use once stale"
                    : "is no matter in a private cache", "RFC 9111 §5.2.2.10"
            ),
            (
                "max-age", control.maxAge,
                isOverruled ? "is overruled by s-maxage" : "gives the lifetime",
                "RFC 9111 §5.2.2.1"
            ),
            (
                "stale-while-revalidate", control.staleWhileRevalidate,
                "allows use for this long once stale, validating behind it", "RFC 5861 §3"
            ),
            (
                "stale-if-error", control.staleIfError,
                "allows use for this long once stale, if the origin fails", "RFC 5861 §4"
            ),
        ]
        return all.compactMap { name, value, meaning, source in
            value.map {
                ExplainedRule(.response, "\(name)=\($0.inSeconds)", meaning, source)
            }
        }
    }
}

extension KnownField {
    /// The name as people write it: `If-None-Match`.
    var title: String {
        self.lowercased.split(separator: "-").map { word in
            word.prefix(1).uppercased() + word.dropFirst()
        }.joined(separator: "-")
    }
}
