package import LarderHTTP

/// Why a request is answered as it is, at one moment.
///
/// The verdict is that of `Reuse.decide`, asked with the same arguments, and every number comes from
/// the functions that it asks, so that the two cannot differ. Made for people who ask: deciding on a
/// request makes none of it.
package struct Explanation: Sendable, Equatable {
    /// A stored response, held against the request.
    package struct Candidate: Sendable, Equatable {
        package var status: StatusCode
        package var isSelected: Bool
        package var isInvalidated: Bool
        /// Which bytes are stored, where not all are.
        package var extent: StoredExtent?
        package var varying: [VaryComparison]
        package var freshness: FreshnessArithmetic
        package var rules: [ExplainedRule]
        /// `ETag` and `Last-Modified`, as they stand.
        package var validators: [String]
        /// What cache rules and other settings changed about it, in lines for people.
        package var overrides: [String]
    }

    package var verdict: ReuseVerdict
    /// The rule that decided.
    package var reason: PolicyReason
    /// What would have decided, had the request not said `only-if-cached`.
    package var beneath: PolicyReason?
    package var requestRules: [ExplainedRule]
    package var candidates: [Candidate]
    /// What the client would get of the selected response: `ClientCondition`'s word.
    package var outcome: ClientOutcome?
    /// What would have made it a hit, in phrases, the first one the most to the point.
    package var remedies: [String]

    /// Explains the answer to a request.
    ///
    /// - Parameters:
    ///   - candidates: all that is stored under the request's key.
    ///   - bodyLengths: the lengths of their contents, in the same order.
    ///   - configuration: resolved for the request's URI.
    package init(
        request: Request, candidates: [StoredHead], bodyLengths: [UInt64], now: Timestamp,
        configuration: PolicyConfiguration, policy: RequestCachePolicy = .useProtocol
    ) {
        let verdict = Reuse.decide(
            request: request, candidates: candidates, now: now, configuration: configuration,
            policy: policy)
        self.verdict = verdict
        self.reason = verdict.reason
        var selected = verdict.index
        if case .refuse = verdict {
            let beneath = Reuse.decide(
                request: request.withoutOnlyIfCached, candidates: candidates, now: now,
                configuration: configuration)
            self.beneath = beneath.reason
            selected = beneath.index
        }
        self.requestRules = RequestRules.of(request, policy, configuration: configuration)
        self.candidates = candidates.indices.map { index in
            Candidate(
                candidates[index], isSelected: index == selected, request: request, now: now,
                configuration: configuration)
        }
        if let index = selected, candidates.indices.contains(index),
            bodyLengths.indices.contains(index)
        {
            self.outcome = ClientCondition.evaluate(
                request, against: candidates[index], bodyLength: bodyLengths[index])
        }
        self.remedies = []
        self.remedies = self.findRemedies()
    }

    /// Whether the request would be answered without asking the origin.
    package var isHit: Bool {
        if case .serve = self.verdict { return true }
        return false
    }

    private func findRemedies() -> [String] {
        var remedies: [String] = []
        if self.reason == .noMatchingVariant {
            for candidate in self.candidates {
                let remedy = candidate.varying.first { !$0.isMatch }?.remedy
                if let remedy, !remedies.contains(remedy) { remedies.append(remedy) }
            }
        }
        if self.reason == .responseNoCache || self.reason == .noLifetime {
            let hasValidator = self.candidates.contains {
                $0.isSelected && !$0.validators.isEmpty
            }
            if hasValidator {
                remedies.append(
                    "\(self.reason.remedy); until then its validator spares the content")
                return remedies
            }
        }
        remedies.append(self.reason.remedy)
        if let beneath = self.beneath { remedies.append(beneath.remedy) }
        return remedies
    }
}

extension Explanation.Candidate {
    fileprivate init(
        _ head: StoredHead, isSelected: Bool, request: Request, now: Timestamp,
        configuration: PolicyConfiguration
    ) {
        self.status = head.status
        self.isSelected = isSelected
        self.isInvalidated = head.isInvalidated
        self.extent = head.extent
        self.varying = Variance.comparisons(head, request, configuration: configuration)
        self.freshness = FreshnessArithmetic.of(head, at: now, configuration: configuration)
        self.rules = ResponseRules.of(
            head.fields, ResponseDirectives(head.fields, configuration: configuration),
            configuration: configuration)
        self.validators = Validation.validators(of: head.fields, head.status)
        self.overrides = configuration.ruleEffects(on: head, request: request).map(\.description)
    }
}

extension VaryComparison {
    /// What would have made this member match.
    var remedy: String {
        switch self.result {
        case .same, .sameMeaning: "\(self.field) is as before"
        case .differs:
            "the same \(self.field) as before: the stored response varies by it, and they differ"
        case .missing:
            "\(self.field) as before: the stored response varies by it, and it is missing"
        case .added:
            "no \(self.field), as before: the stored response varies by it, and there was none"
        case .any: "a response whose Vary is not *"
        }
    }
}

extension ReuseVerdict {
    /// The rule that decided.
    package var reason: PolicyReason {
        switch self {
        case .serve(_, _, let stale, _): stale ?? .fresh
        case .validate(_, _, let reason), .fetch(_, let reason), .refuse(let reason): reason
        }
    }

    /// The stored response that it is about.
    package var index: Int? {
        switch self {
        case .serve(let index, _, _, _), .validate(let index, _, _): index
        case .fetch, .refuse: nil
        }
    }

    /// Why the request goes forward; nil where it does not.
    package var forward: CacheStatus.Forward? {
        switch self {
        case .validate(_, let forward, _), .fetch(let forward, _): forward
        case .serve, .refuse: nil
        }
    }
}

extension Validation {
    /// The validators that an origin can be asked with as they stand, for people.
    static func validators(of fields: Fields, _ status: StatusCode) -> [String] {
        guard self.isConfirmable(status) else { return [] }
        var validators: [String] = []
        if EntityTag(of: fields) != nil, let tag = fields.string(FieldName(.etag)) {
            validators.append("ETag: \(tag)")
        }
        if fields.date(.lastModified, now: Timestamp(seconds: 0)) != nil,
            let modified = fields.string(FieldName(.lastModified))
        {
            validators.append("Last-Modified: \(modified)")
        }
        return validators
    }
}

extension Request {
    /// The request without that directive, the others as they were.
    fileprivate var withoutOnlyIfCached: Request {
        let name = FieldName(.cacheControl)
        let kept = self.fields.members(name).filter { member in
            CacheControl.Directive(member).map { !$0.name.spells("only-if-cached") } ?? true
        }
        var request = self
        request.fields.remove(name)
        // Also where nothing is left of it: an empty field still says that Pragma does not count.
        request.fields.append("Cache-Control", Array(kept.joined(separator: [ASCII.comma])))
        return request
    }
}
