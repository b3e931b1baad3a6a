/// What is to be explained: a request as a client would send it.
package struct ExplainQuestion: Codable, Sendable, Equatable {
    package var session: String
    package var method: String
    package var url: String
    package var fields: [ControlField]
    /// Who asks, where the session is split by principal.
    package var principal: String?

    package init(
        session: String, method: String = "GET", url: String, fields: [ControlField] = [],
        principal: String? = nil
    ) {
        self.principal = principal
        self.session = session
        self.method = method
        self.url = url
        self.fields = fields
    }
}

/// A field line.
package struct ControlField: Codable, Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// A rule that speaks in a request or a response.
package struct RuleRecord: Codable, Sendable, Equatable {
    /// `request`, `response` or `configuration`.
    package var speaker: String
    package var subject: String
    package var meaning: String
    /// A section of an RFC, or the name of a setting.
    package var source: String

    package init(speaker: String, subject: String, meaning: String, source: String) {
        self.speaker = speaker
        self.subject = subject
        self.meaning = meaning
        self.source = source
    }
}

/// A rule that decided.
package struct ReasonRecord: Codable, Sendable, Equatable {
    /// The token that stands in the log and in `Cache-Status`.
    package var reason: String
    package var source: String

    package init(reason: String, source: String) {
        self.reason = reason
        self.source = source
    }
}

/// The freshness of a response with its numbers (RFC 9111 §4.2), under the names of the RFC.
package struct FreshnessRecord: Codable, Sendable, Equatable {
    package var lifetimeMilliseconds: Int64
    /// What the lifetime was made from.
    package var lifetimeSource: String
    package var lifetimeRule: String
    /// `date_value`; nil where the response has no valid `Date`.
    package var dateMicroseconds: Int64?
    package var requestTimeMicroseconds: Int64
    package var responseTimeMicroseconds: Int64
    package var nowMicroseconds: Int64
    package var ageValueMilliseconds: Int64
    package var apparentAgeMilliseconds: Int64
    package var responseDelayMilliseconds: Int64
    package var correctedAgeValueMilliseconds: Int64
    package var correctedInitialAgeMilliseconds: Int64
    package var residentTimeMilliseconds: Int64
    package var currentAgeMilliseconds: Int64
    /// Negative when stale.
    package var remainingMilliseconds: Int64
    package var isFresh: Bool

    package init(
        lifetimeMilliseconds: Int64, lifetimeSource: String, lifetimeRule: String,
        dateMicroseconds: Int64?, requestTimeMicroseconds: Int64, responseTimeMicroseconds: Int64,
        nowMicroseconds: Int64, ageValueMilliseconds: Int64, apparentAgeMilliseconds: Int64,
        responseDelayMilliseconds: Int64, correctedAgeValueMilliseconds: Int64,
        correctedInitialAgeMilliseconds: Int64, residentTimeMilliseconds: Int64,
        currentAgeMilliseconds: Int64, remainingMilliseconds: Int64, isFresh: Bool
    ) {
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.lifetimeSource = lifetimeSource
        self.lifetimeRule = lifetimeRule
        self.dateMicroseconds = dateMicroseconds
        self.requestTimeMicroseconds = requestTimeMicroseconds
        self.responseTimeMicroseconds = responseTimeMicroseconds
        self.nowMicroseconds = nowMicroseconds
        self.ageValueMilliseconds = ageValueMilliseconds
        self.apparentAgeMilliseconds = apparentAgeMilliseconds
        self.responseDelayMilliseconds = responseDelayMilliseconds
        self.correctedAgeValueMilliseconds = correctedAgeValueMilliseconds
        self.correctedInitialAgeMilliseconds = correctedInitialAgeMilliseconds
        self.residentTimeMilliseconds = residentTimeMilliseconds
        self.currentAgeMilliseconds = currentAgeMilliseconds
        self.remainingMilliseconds = remainingMilliseconds
        self.isFresh = isFresh
    }
}

/// A stored response, held against a request.
package struct VariantRecord: Codable, Sendable, Equatable {
    /// One field that `Vary` names.
    package struct Varying: Codable, Sendable, Equatable {
        package var field: String
        /// `same`, `same-meaning`, `differs`, `missing`, `added` or `any`.
        package var result: String
        /// nil where there was none, or where it may be a secret.
        package var stored: String?
        package var presented: String?
        package var isHidden: Bool

        package init(
            field: String, result: String, stored: String?, presented: String?, isHidden: Bool
        ) {
            self.field = field
            self.result = result
            self.stored = stored
            self.presented = presented
            self.isHidden = isHidden
        }
    }

    package var status: Int
    package var isSelected: Bool
    package var isInvalidated: Bool
    package var bodyBytes: UInt64
    /// The ranges that are stored, first and last byte, where not all are.
    package var storedRanges: [String]?
    package var varying: [Varying]
    package var freshness: FreshnessRecord
    package var rules: [RuleRecord]
    package var validators: [String]
    /// What settings changed about it.
    package var overrides: [String]

    package init(
        status: Int, isSelected: Bool, isInvalidated: Bool, bodyBytes: UInt64,
        storedRanges: [String]?, varying: [Varying], freshness: FreshnessRecord,
        rules: [RuleRecord], validators: [String], overrides: [String]
    ) {
        self.status = status
        self.isSelected = isSelected
        self.isInvalidated = isInvalidated
        self.bodyBytes = bodyBytes
        self.storedRanges = storedRanges
        self.varying = varying
        self.freshness = freshness
        self.rules = rules
        self.validators = validators
        self.overrides = overrides
    }
}

/// An exchange that was answered, as the session remembers it.
package struct RecentRecord: Codable, Sendable, Equatable {
    package var timeMicroseconds: Int64
    package var method: String
    package var status: Int
    package var isHit: Bool
    package var isFromMemory: Bool
    package var isStored: Bool
    package var isCollapsed: Bool
    package var forward: String?
    package var forwardStatus: Int?
    package var reason: ReasonRecord?
    /// Why the origin's response was not stored.
    package var storage: ReasonRecord?
    package var ttlSeconds: Int64?
    package var ageSeconds: Int64?
    package var bytes: UInt64?
    package var error: String?
    /// What the session did by itself on the way to the answer; nil from a proxy of an older release.
    package var acts: [ReasonRecord]?
    /// Made by the session itself, after a client had been served a stale response.
    package var isBackground: Bool?

    package init(timeMicroseconds: Int64, method: String, status: Int, isHit: Bool) {
        self.timeMicroseconds = timeMicroseconds
        self.method = method
        self.status = status
        self.isHit = isHit
        self.isFromMemory = false
        self.isStored = false
        self.isCollapsed = false
    }
}

/// Why a request would be answered as it would, and how the last ones were.
package struct ExplanationRecord: Codable, Sendable, Equatable {
    package enum Verdict: String, Codable, Sendable, CaseIterable {
        case hit
        /// From the cache, although it is stale.
        case staleHit = "stale-hit"
        case validate, fetch, refuse
    }

    package var session: String
    package var method: String
    /// Without user information.
    package var url: String
    /// Method and URI under which the answer is looked up.
    package var key: String
    package var verdict: Verdict
    package var isRevalidated: Bool
    /// Why it would go forward (RFC 9211 §2.2).
    package var forward: String?
    package var reason: ReasonRecord
    /// What would have decided without `only-if-cached`.
    package var beneath: ReasonRecord?
    /// What the client would get: `full`, `not-modified`, `partial 0-99`, `range-not-satisfiable`.
    package var outcome: String?
    package var requestRules: [RuleRecord]
    package var variants: [VariantRecord]
    /// How many further ones are stored, where there are too many to tell of all.
    package var unlistedVariants: Int?
    package var remedies: [String]
    /// nil: no proxy runs that could remember; the last one first.
    package var history: [RecentRecord]?
    /// What the session would do by itself about a request that goes to its origin; nil: nothing, or no
    /// proxy runs that could tell.
    package var acts: [ReasonRecord]?

    package init(
        session: String, method: String, url: String, key: String, verdict: Verdict,
        isRevalidated: Bool, forward: String?, reason: ReasonRecord, beneath: ReasonRecord?,
        outcome: String?, requestRules: [RuleRecord], variants: [VariantRecord],
        remedies: [String], history: [RecentRecord]?
    ) {
        self.session = session
        self.method = method
        self.url = url
        self.key = key
        self.verdict = verdict
        self.isRevalidated = isRevalidated
        self.forward = forward
        self.reason = reason
        self.beneath = beneath
        self.outcome = outcome
        self.requestRules = requestRules
        self.variants = variants
        self.remedies = remedies
        self.history = history
    }
}

/// Whether a response may be stored, for how long it is fresh, and why.
package struct StorageRecord: Codable, Sendable, Equatable {
    package var method: String
    package var url: String
    package var status: Int
    package var isStorable: Bool
    /// What allows or forbids the storing.
    package var reason: ReasonRecord?
    /// How the same request would be answered right after.
    package var reuse: ReasonRecord?
    package var requestRules: [RuleRecord]
    package var responseRules: [RuleRecord]
    package var validators: [String]
    package var overrides: [String]
    package var freshness: FreshnessRecord
    package var remedies: [String]

    package init(
        method: String, url: String, status: Int, isStorable: Bool, reason: ReasonRecord?,
        reuse: ReasonRecord?, requestRules: [RuleRecord], responseRules: [RuleRecord],
        validators: [String], overrides: [String], freshness: FreshnessRecord, remedies: [String]
    ) {
        self.method = method
        self.url = url
        self.status = status
        self.isStorable = isStorable
        self.reason = reason
        self.reuse = reuse
        self.requestRules = requestRules
        self.responseRules = responseRules
        self.validators = validators
        self.overrides = overrides
        self.freshness = freshness
        self.remedies = remedies
    }
}
