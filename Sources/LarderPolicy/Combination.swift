package import LarderHTTP

/// Putting a new part together with what is stored (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
package enum Combination: Sendable, Equatable {
    /// Both are bytes of the same representation.
    case extends(index: Int)
    /// The part belongs to a representation of its own; what is stored of another is outdated.
    case begins
    /// A whole response is stored, and nothing tells whether the part is one of it: it is not worth
    /// losing the whole for.
    case unrelated

    /// What a part means for the stored responses that its request selects.
    ///
    /// - Parameters:
    ///   - bodyLengths: of the stored contents, in the order of `stored`.
    package static func of(
        _ part: PartialContent.Part, _ response: ResponseHead, to request: Request,
        with stored: [StoredHead], bodyLengths: [UInt64], configuration: PolicyConfiguration
    ) -> Combination {
        let selected = stored.indices.filter {
            stored[$0].status == .ok && stored[$0].method != .head
                && Variance.matches(stored[$0], request, configuration: configuration)
        }
        if let index = selected.first(where: { index in
            bodyLengths.indices.contains(index)
                && self.isSame(part, response, to: request, stored[index], bodyLengths[index])
        }) {
            return .extends(index: index)
        }
        let isAnonymous = !Validation.hasValidator(response.fields)
        return isAnonymous && selected.contains { stored[$0].extent == nil } ? .unrelated : .begins
    }

    private static func isSame(
        _ part: PartialContent.Part, _ response: ResponseHead, to request: Request,
        _ stored: StoredHead, _ bodyLength: UInt64
    ) -> Bool {
        guard let validator = StrongValidator(of: stored.fields),
            validator.matches(response.fields, answersIfRange: request.fields.has(.ifRange))
        else { return false }
        // The same validator with another length is an origin that contradicts itself.
        if let known = stored.completeLength(bodyLength: bodyLength) {
            return part.completeLength ?? known == known && part.range.upperBound <= known
        }
        return part.completeLength.map { stored.extent?.end ?? 0 <= $0 } ?? true
    }

    /// The stored head after a part of the same representation: the new response's fields take the
    /// place of the stored ones of their names, but for `Content-Range` (§3.4).
    package static func head(
        _ stored: StoredHead, combinedWith response: ResponseHead, for request: Request? = nil,
        requestTime: Timestamp, responseTime: Timestamp, configuration: PolicyConfiguration
    ) -> StoredHead {
        var response = response
        PartialContent.removeOwnDigests(from: &response.fields)
        return Validation.freshen(
            stored, with: response, for: request, requestTime: requestTime,
            responseTime: responseTime, configuration: configuration)
    }

    /// Whether two stored responses are of one representation, selected by the same requests, so that
    /// one of them will do; one at least is a part.
    package static func belongTogether(
        _ one: StoredHead, _ oneLength: UInt64, _ other: StoredHead, _ otherLength: UInt64
    ) -> Bool {
        guard one.extent != nil || other.extent != nil, !one.isInvalidated, !other.isInvalidated,
            one.status == .ok, other.status == .ok, self.haveOnePlace(one, other),
            RedirectionTrail.areOfSameResource(one, other),
            let validator = StrongValidator(of: one.fields), validator.matches(other.fields)
        else { return false }
        let lengths = [
            one.completeLength(bodyLength: oneLength),
            other.completeLength(bodyLength: otherLength),
        ].compactMap(\.self)
        guard let length = lengths.first else { return true }
        return lengths.allSatisfy { $0 == length }
            && [one, other].allSatisfy { $0.extent?.end ?? 0 <= length }
    }

    /// Which of two whole stored responses to the same requests is the one to keep, as each came when
    /// the other was not stored yet; nil: they are not of one place.
    ///
    /// The one that would be selected (RFC 9111 §4), whatever their validators; but not where one of
    /// them says something else than the other of how the request went.
    package static func newer(_ one: StoredHead, _ other: StoredHead) -> StoredHead? {
        guard one.extent == nil, other.extent == nil, !one.isInvalidated, !other.isInvalidated,
            one.status == other.status, self.haveOnePlace(one, other)
        else { return nil }
        return Variance.mostRecent(of: [one, other], indices: [0, 1]) == 0 ? one : other
    }

    /// Whether the same requests select both.
    private static func haveOnePlace(_ one: StoredHead, _ other: StoredHead) -> Bool {
        one.method == other.method && one.pathAndQuery == other.pathAndQuery
            && one.varyingFields == other.varyingFields
            && one.answersCredentials == other.answersCredentials
            && one.facts.varies == other.facts.varies
    }
}
