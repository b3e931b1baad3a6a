package import LarderControl
package import LarderHTTP
package import LarderPolicy
import LarderProxy
package import LarderSession

// What policy and session say of an answer, as records that a command can be sent and can print.

extension ExplainQuestion {
    /// The request that it is about.
    ///
    /// As a door hands it to a session: without fields of the connection.
    ///
    /// - Throws: `.invalid`, for a URL, method or field that is none.
    package func request() throws(ControlRefusal) -> Request {
        guard let uri = TargetURI(text: self.url) else {
            throw ControlRefusal(
                invalid: "\"\(self.url)\" is no URL; one begins with http://, https:// or ftp://")
        }
        guard Array(self.method.utf8)[...].isToken else {
            throw ControlRefusal(invalid: "\"\(self.method)\" is no method")
        }
        var fields = Fields()
        for field in self.fields {
            guard Array(field.name.utf8)[...].isToken else {
                throw ControlRefusal(invalid: "\"\(field.name)\" is no field name")
            }
            guard field.value.utf8.allSatisfy(ASCII.isFieldValue) else {
                throw ControlRefusal(
                    invalid: "the value of \(field.name) holds a control character")
            }
            fields.append(field.name, field.value)
        }
        let method = Method(rawValue: self.method)
        let bodyLength = try Self.bodyLength(fields, of: method)
        HopByHop.strip(&fields)
        fields.keep { _, line in
            line.known != .host && line.known != .contentLength && line.known != .expect
                && line.known != .larderCachePolicy && line.known != .larderSession
        }
        return Request(
            method: method, uri: uri, fields: fields, bodyLength: bodyLength)
    }

    /// The content that such a request would have: what its head announces.
    private static func bodyLength(
        _ fields: Fields, of method: Method
    ) throws(ControlRefusal) -> BodyLength {
        do throws(HeadError) {
            return try MessageFraming.requestBody(fields, .http11, of: method)
        } catch {
            throw ControlRefusal(invalid: error.detail)
        }
    }

    /// How it uses the cache, if it says so in `Larder-Cache-Policy`, as of a client that is trusted.
    ///
    /// - Throws: `.invalid`, for a word that is none.
    package func cachePolicy() throws(ControlRefusal) -> RequestCachePolicy? {
        let name = FieldName(.larderCachePolicy)
        var fields = Fields()
        for field in self.fields where FieldName(field.name) == name {
            fields.append(field.name, field.value)
        }
        switch CachePolicyField.read(fields) {
        case .absent: return nil
        case .policy(let policy): return policy
        case .refused(let detail): throw ControlRefusal(invalid: detail)
        }
    }
}

extension ExplanationRecord {
    /// - Parameter history: what the session remembers of the URI; nil where none could.
    package init(
        _ explanation: Explanation, of request: Request, session: String, bodyLengths: [UInt64],
        history: [RecentExchange]?
    ) {
        let key = CacheKey(method: .get, uri: request.uri).parts
        self.init(
            session: session, method: request.method.rawValue, url: request.uri.description,
            key: "\(key.method) \(key.uri)", verdict: Verdict(explanation.verdict),
            isRevalidated: explanation.verdict.revalidatesInBackground,
            forward: explanation.verdict.forward?.rawValue,
            reason: ReasonRecord(explanation.reason),
            beneath: explanation.beneath.map { ReasonRecord($0) },
            outcome: explanation.outcome?.words,
            requestRules: explanation.requestRules.map { RuleRecord($0) },
            variants: explanation.candidates.enumerated().map { index, candidate in
                VariantRecord(
                    candidate,
                    bodyBytes: bodyLengths.indices.contains(index) ? bodyLengths[index] : 0)
            },
            remedies: Self.remedies(of: explanation, history).prefix(Self.mostRemedies)
                .map { $0.shortened(to: 1024) },
            history: history.map { $0.map { RecentRecord($0) } })
    }

    /// How many remedies are told, at most: each variant may have one, by a name that its origin chose.
    private static let mostRemedies = 64

    /// Where nothing is stored, why the last answer was not says more than that.
    private static func remedies(
        of explanation: Explanation, _ history: [RecentExchange]?
    ) -> [String] {
        let nothing = PolicyReason.nothingStored
        guard explanation.reason == nothing || explanation.beneath == nothing,
            let last = history?.first(where: { $0.method == .get }), let storage = last.storage
        else { return explanation.remedies }
        return [storage.remedy] + explanation.remedies
    }
}

extension ExplanationRecord {
    /// How many variants are told of, at most, and the one that is selected.
    private static let mostVariants = 64

    /// Leaves variants out until the rest fits into a line of the control protocol, the last first;
    /// the one that is selected stays.
    package mutating func fitLine() throws(ControlError) {
        var limit = Self.mostVariants
        self.keepVariants(limit)
        while limit > 0,
            try ControlCodec.line(ControlReply.explanation(self)).count > ControlCodec.longestLine
        {
            limit /= 2
            self.keepVariants(limit)
        }
    }

    private mutating func keepVariants(_ limit: Int) {
        let all = self.variants
        self.variants = all.enumerated().filter { $0.offset < limit || $0.element.isSelected }
            .map(\.element)
        let unlisted = (self.unlistedVariants ?? 0) + all.count - self.variants.count
        self.unlistedVariants = unlisted > 0 ? unlisted : nil
    }
}

extension ExplanationRecord.Verdict {
    fileprivate init(_ verdict: ReuseVerdict) {
        switch verdict {
        case .serve(_, _, nil, _): self = .hit
        case .serve: self = .staleHit
        case .validate: self = .validate
        case .fetch: self = .fetch
        case .refuse: self = .refuse
        }
    }
}

extension ReuseVerdict {
    fileprivate var revalidatesInBackground: Bool {
        if case .serve(_, _, _, let revalidates) = self { return revalidates }
        return false
    }
}

extension ClientOutcome {
    fileprivate var words: String {
        switch self {
        case .full: "full"
        case .notModified: "not-modified"
        case .preconditionFailed: "precondition-failed"
        case .partial(let range): "partial \(range.shown)"
        case .parts(let ranges): "parts " + ranges.map(\.shown).joined(separator: ", ")
        case .rangeNotSatisfiable: "range-not-satisfiable"
        }
    }
}

extension Range<UInt64> {
    /// First and last byte, as `Content-Range` has them.
    fileprivate var shown: String {
        self.isEmpty ? "nothing" : "\(self.lowerBound)-\(self.upperBound - 1)"
    }
}

extension ReasonRecord {
    package init(_ reason: PolicyReason) {
        self.init(reason: reason.rawValue, source: reason.section)
    }
}

extension ReasonRecord {
    package init(_ act: SessionAct) {
        self.init(reason: act.rawValue, source: act.section)
    }
}

extension RuleRecord {
    fileprivate init(_ rule: ExplainedRule) {
        self.init(
            speaker: rule.speaker.rawValue, subject: rule.subject.shortened, meaning: rule.meaning,
            source: rule.source)
    }
}

extension VariantRecord {
    fileprivate init(_ candidate: Explanation.Candidate, bodyBytes: UInt64) {
        self.init(
            status: Int(candidate.status.rawValue), isSelected: candidate.isSelected,
            isInvalidated: candidate.isInvalidated, bodyBytes: bodyBytes,
            storedRanges: candidate.extent?.ranges.map(\.shown),
            varying: candidate.varying.map {
                Varying(
                    field: $0.field.shortened, result: $0.result.rawValue,
                    stored: $0.stored?.shortened, presented: $0.presented?.shortened,
                    isHidden: $0.isHidden)
            },
            freshness: FreshnessRecord(candidate.freshness),
            rules: candidate.rules.map { RuleRecord($0) },
            validators: candidate.validators.map(\.shortened), overrides: candidate.overrides)
    }
}

extension FreshnessRecord {
    fileprivate init(_ arithmetic: FreshnessArithmetic) {
        let age = arithmetic.age
        self.init(
            lifetimeMilliseconds: arithmetic.freshness.lifetime.inMilliseconds,
            lifetimeSource: arithmetic.lifetimeSource, lifetimeRule: arithmetic.lifetimeSection,
            dateMicroseconds: age.dateValue?.microseconds,
            requestTimeMicroseconds: arithmetic.requestTime.microseconds,
            responseTimeMicroseconds: arithmetic.responseTime.microseconds,
            nowMicroseconds: arithmetic.now.microseconds,
            ageValueMilliseconds: age.ageValue.inMilliseconds,
            apparentAgeMilliseconds: age.apparentAge.inMilliseconds,
            responseDelayMilliseconds: age.responseDelay.inMilliseconds,
            correctedAgeValueMilliseconds: age.correctedAgeValue.inMilliseconds,
            correctedInitialAgeMilliseconds: age.correctedInitialAge.inMilliseconds,
            residentTimeMilliseconds: age.residentTime.inMilliseconds,
            currentAgeMilliseconds: age.currentAge.inMilliseconds,
            remainingMilliseconds: arithmetic.freshness.remaining.inMilliseconds,
            isFresh: arithmetic.freshness.isFresh)
    }
}

extension RecentRecord {
    fileprivate init(_ exchange: RecentExchange) {
        self.init(
            timeMicroseconds: exchange.time.microseconds, method: exchange.method.rawValue,
            status: Int(exchange.status.rawValue), isHit: exchange.isHit)
        self.isFromMemory = exchange.isFromMemory
        self.isStored = exchange.isStored
        self.isCollapsed = exchange.isCollapsed
        self.forward = exchange.forward?.rawValue
        self.forwardStatus = exchange.forwardStatus.map { Int($0.rawValue) }
        self.reason = exchange.reason.map { ReasonRecord($0) }
        self.storage = exchange.storage.map { ReasonRecord($0) }
        self.ttlSeconds = exchange.ttl
        self.ageSeconds = exchange.age
        self.bytes = exchange.bytes
        self.error = exchange.error?.rawValue
        if !exchange.acts.isEmpty { self.acts = exchange.acts.map { ReasonRecord($0) } }
        self.isBackground = exchange.isBackground ? true : nil
    }
}

extension StorageRecord {
    /// - Parameter isNamed: the request's URI is known; else it is not shown.
    package init(
        _ explanation: StorageExplanation, of response: ResponseHead, to request: Request,
        isNamed: Bool = true
    ) {
        self.init(
            method: request.method.rawValue, url: isNamed ? request.uri.description : "",
            status: Int(response.status.rawValue), isStorable: explanation.verdict.refusal == nil,
            reason: ReasonRecord(explanation.reason),
            reuse: explanation.reuse.map { ReasonRecord($0) },
            requestRules: explanation.requestRules.map { RuleRecord($0) },
            responseRules: explanation.responseRules.map { RuleRecord($0) },
            validators: explanation.validators, overrides: explanation.overrides,
            freshness: FreshnessRecord(explanation.freshness), remedies: explanation.remedies)
    }
}

extension String {
    /// What an origin or a client wrote, for people: of a long text the first 256 bytes.
    ///
    /// There may be a head's worth of it in each of thousands of variants.
    fileprivate var shortened: String { self.shortened(to: 256) }

    fileprivate func shortened(to limit: Int) -> String {
        guard self.utf8.count > limit else { return self }
        var text = ""
        var count = 0
        for scalar in self.unicodeScalars {
            count += UTF8.width(scalar)
            guard count <= limit else { break }
            text.unicodeScalars.append(scalar)
        }
        return text + "…"
    }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 { self.inMicroseconds / 1000 }
}
