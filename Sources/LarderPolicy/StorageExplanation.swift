package import LarderHTTP

/// Whether a response may be stored, for how long it would be fresh, and why.
///
/// The verdict is that of `Storability.judge`, asked with the same arguments.
package struct StorageExplanation: Sendable, Equatable {
    package var verdict: StorageVerdict
    /// The rule that forbids storing, or the one that allows it.
    package var reason: PolicyReason
    package var requestRules: [ExplainedRule]
    package var responseRules: [ExplainedRule]
    package var validators: [String]
    /// What cache rules and other settings changed about it, in lines for people.
    package var overrides: [String]
    /// As of a response that has just come and is stored.
    package var freshness: FreshnessArithmetic
    /// How the same request would be answered right after it was stored; nil where it is not stored.
    package var reuse: PolicyReason?
    /// What would have made it a hit, in phrases.
    package var remedies: [String]

    /// Judges a response that has just come.
    package init(
        request: Request, response: ResponseHead, bodyLength: BodyLength, now: Timestamp,
        configuration: PolicyConfiguration
    ) {
        let verdict = Storability.judge(
            request: request, response: response, bodyLength: bodyLength, now: now,
            configuration: configuration)
        let head = StoredHead(
            storing: response, to: request, requestTime: now, responseTime: now,
            configuration: configuration)
        self.verdict = verdict
        self.reason =
            verdict.refusal
            ?? Storability.grounds(
                request: request, response: response, configuration: configuration)
        self.requestRules = RequestRules.of(request, configuration: configuration)
        self.responseRules = ResponseRules.of(
            response.fields, ResponseDirectives(response.fields, configuration: configuration),
            configuration: configuration)
        self.validators = Validation.validators(of: response.fields, response.status)
        self.overrides = configuration.ruleEffects(on: head, request: request).map(\.description)
        self.freshness = FreshnessArithmetic.of(head, at: now, configuration: configuration)
        if let reason = verdict.refusal {
            self.reuse = nil
            self.remedies = [reason.remedy]
        } else {
            var again = request
            if again.method == .post { again.method = .get }
            let reuse = Reuse.decide(
                request: again, candidates: [head], now: now, configuration: configuration
            ).reason
            self.reuse = reuse
            self.remedies = [reuse.remedy]
        }
    }
}

extension StorageVerdict {
    /// Why the response is not stored; nil where it is.
    package var refusal: PolicyReason? {
        switch self {
        case .storable: nil
        case .notStorable(let reason): reason
        }
    }
}
