package import LarderHTTP

/// Where the redirections led that were followed for a response; it is kept with the response.
///
/// Whoever may not be led there may not have the response either, and a validator speaks of the one
/// resource that it came from (RFC 9110 §8.8.1).
package struct RedirectionTrail: Sendable, Equatable {
    private static let mark = "led to"

    /// What each redirection led to, in order; none where the text that was kept cannot be read.
    package let targets: [TargetURI]

    /// nil where nothing was followed.
    package init?(_ targets: [TargetURI]?) {
        guard let targets, !targets.isEmpty else { return nil }
        self.targets = targets
    }

    /// The trail of a stored response; nil where it has none.
    package init?(of head: StoredHead) {
        guard let bytes = head.attachment?.bytes else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        // What else a program keeps with its own responses is not looked at.
        guard let mark = lines.first, mark == Self.mark else { return nil }
        let targets = lines.dropFirst().map { TargetURI(text: String($0)) }
        self.targets = targets.allSatisfy { $0 != nil } ? targets.compactMap(\.self) : []
    }

    /// As it is kept.
    package var attachment: StoredAttachment {
        let lines = [Self.mark] + self.targets.map(\.description)
        return StoredAttachment(bytes: Array(lines.joined(separator: "\n").utf8))
    }

    /// Whether a client may be led along it; nobody may along one that cannot be read.
    package func isPermitted(_ permits: (TargetURI) -> Bool) -> Bool {
        !self.targets.isEmpty && self.targets.allSatisfy(permits)
    }

    /// Whether what a response says holds for a stored one, as far as it depends on which resource they
    /// come from.
    ///
    /// A query may be no more than a signature that is made anew each time, so two that differ in it
    /// alone are the same where a strong entity tag says so, too.
    ///
    /// - Parameter ledTo: where redirections led this time; nil: nobody follows any.
    package static func isOfSameResource(
        _ stored: StoredHead, _ response: ResponseHead, ledTo: [TargetURI]?
    ) -> Bool {
        guard let ledTo else { return true }
        return self.isOfSameResource(stored, response.fields, ledTo)
    }

    /// The same for two stored responses.
    package static func areOfSameResource(_ one: StoredHead, _ other: StoredHead) -> Bool {
        self.isOfSameResource(one, other.fields, RedirectionTrail(of: other)?.targets ?? [])
    }

    private static func isOfSameResource(
        _ stored: StoredHead, _ fields: Fields, _ ledTo: [TargetURI]
    ) -> Bool {
        switch self.compare(RedirectionTrail(of: stored)?.targets ?? [], ledTo) {
        case .same: return true
        case .other: return false
        case .otherQuery:
            guard let tag = stored.fields.first(FieldName(.etag)), tag.first != UInt8(ascii: "W")
            else { return false }
            return fields.first(FieldName(.etag)).map { $0 == tag } ?? true
        }
    }

    /// Whether a body that broke off is gone on with where it came from.
    ///
    /// - Parameters: where redirections led then and now; nil: nobody follows any.
    package static func continues(_ earlier: [TargetURI]?, _ later: [TargetURI]?) -> Bool {
        // Only strong validators are gone on with.
        self.compare(earlier ?? [], later ?? []) != .other
    }

    private enum Comparison { case same, otherQuery, other }

    /// The resources that answered: those that the last redirections led to.
    private static func compare(_ a: [TargetURI], _ b: [TargetURI]) -> Comparison {
        guard let a = a.last, let b = b.last else { return a.isEmpty == b.isEmpty ? .same : .other }
        if a == b { return .same }
        let isOfSamePath =
            a.hasSameOrigin(as: b)
            && a.pathAndQuery.prefix { $0 != "?" } == b.pathAndQuery.prefix { $0 != "?" }
        return isOfSamePath ? .otherQuery : .other
    }
}
