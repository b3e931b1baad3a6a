package import LarderHTTP

/// What tells one representation from every other, byte for byte (RFC 9110 §8.8.1): the condition
/// under which bytes of two responses may be put together.
package struct StrongValidator: Sendable, Hashable {
    private enum Kind: Sendable, Hashable {
        case tag(EntityTag)
        /// A `Last-Modified` that §8.8.2.2 makes strong, as it stands in the field.
        case modified(FieldValue)
    }

    private let kind: Kind
    /// `Content-Encoding`: origins give all codings of a file its one date, and some its one tag,
    /// against §8.8.1.
    private let codings: [FieldValue]

    /// The strong validator of a response; nil where it has none.
    ///
    /// A response that has an entity tag, if only a weak one, is never told by its date: `If-Range`
    /// must not be sent with a date then (§13.1.5).
    package init?(of fields: Fields) {
        self.codings = fields.values(FieldName(.contentEncoding))
        if fields.has(.etag) {
            guard let tag = EntityTag(of: fields), !tag.isWeak else { return nil }
            self.kind = .tag(tag)
            return
        }
        guard !fields.disagrees(on: .lastModified), ModificationTime.isStrong(fields),
            let modified = fields.first(FieldName(.lastModified))
        else { return nil }
        self.kind = .modified(modified)
    }

    /// Whether another response speaks of the same representation.
    ///
    /// - Parameter answersIfRange: its request had `If-Range`, to which a 206 need not repeat what
    ///   the client has (§15.3.7): its coding may be left out.
    package func matches(_ fields: Fields, answersIfRange: Bool = true) -> Bool {
        let codings = fields.values(FieldName(.contentEncoding))
        guard codings == self.codings || (answersIfRange && codings.isEmpty) else { return false }
        switch self.kind {
        case .tag(let tag): return EntityTag(of: fields)?.matchesStrongly(tag) ?? false
        case .modified(let modified):
            return !fields.has(.etag) && !fields.disagrees(on: .lastModified)
                && fields.first(FieldName(.lastModified)) == modified
        }
    }

    /// The value of `If-Range` that asks for this representation only (§13.1.5).
    package var ifRange: [UInt8] {
        switch self.kind {
        case .tag(let tag): tag.bytes
        case .modified(let modified): Array(modified)
        }
    }
}
