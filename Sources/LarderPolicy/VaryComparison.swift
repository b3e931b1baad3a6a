package import LarderHTTP

/// One member of a stored response's `Vary`, held against a request (RFC 9111 §4.1).
package struct VaryComparison: Sendable, Equatable {
    package enum Result: String, Sendable, Codable, CaseIterable {
        case same
        /// Written otherwise, but meaning the same.
        case sameMeaning = "same-meaning"
        case differs
        /// The request that led to the stored response had the field, and this one has not.
        case missing
        /// This request has the field, and that one had not.
        case added
        /// The member is `*`, or no field name: nothing matches it.
        case any
    }

    /// The field as `Vary` names it, in lower case; `*` for a member that is no field name.
    package let field: String
    package let result: Result
    /// What the first request had; nil where it had nothing, or where the value may be a secret.
    package let stored: String?
    /// What this request has; nil likewise.
    package let presented: String?
    /// Whether the values are kept back because they may be secrets.
    package let isHidden: Bool

    package var isMatch: Bool { self.result == .same || self.result == .sameMeaning }
}

extension Variance {
    /// Every member of `Vary`, compared by the rule that `matches` asks.
    package static func comparisons(
        _ head: StoredHead, _ request: Request, configuration: PolicyConfiguration
    ) -> [VaryComparison] {
        self.varies(head.fields).map { member in
            guard case .field(let name) = member else {
                return VaryComparison(
                    field: "*", result: .any, stored: nil, presented: nil, isHidden: false)
            }
            let isMatch = self.matches(
                member, head, request, semantic: configuration.semanticVary)
            let isHidden = !name.isHarmless
            let stored = head.varyingFields.string(name)
            let presented = request.fields.string(name)
            return VaryComparison(
                field: name.lowercased,
                result: self.result(isMatch: isMatch, stored: stored, presented: presented),
                stored: isHidden ? nil : stored, presented: isHidden ? nil : presented,
                isHidden: isHidden)
        }
    }

    private static func result(
        isMatch: Bool, stored: String?, presented: String?
    ) -> VaryComparison.Result {
        if isMatch { return stored == presented ? .same : .sameMeaning }
        guard stored != nil else { return .added }
        return presented == nil ? .missing : .differs
    }
}

extension FieldName {
    /// Whether a value of this field may be shown: it is about representations, and nobody's secret.
    ///
    /// A list of what is harmless, not of what is secret: an unknown field may hold a token.
    package var isHarmless: Bool {
        switch self.known {
        case .accept, .acceptCharset, .acceptEncoding, .acceptLanguage, .cacheControl, .host,
            .ifModifiedSince, .ifNoneMatch, .ifRange, .pragma, .range, .te, .userAgent:
            true
        default:
            self.lowercased == "origin" || self.lowercased.hasPrefix("sec-fetch-")
                || self.lowercased.hasPrefix("sec-ch-") || self.lowercased == "dnt"
        }
    }
}
