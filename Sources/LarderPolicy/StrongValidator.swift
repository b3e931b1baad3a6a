package import LarderHTTP

/// What tells one representation from every other, byte for byte (RFC 9110 §8.8.1): the condition
/// under which bytes of two responses may be put together.
package enum StrongValidator: Sendable, Hashable {
    case tag(EntityTag)
    /// A `Last-Modified` that §8.8.2.2 makes strong, as it stands in the field.
    case modified(FieldValue)

    /// The strong validator of a response; nil where it has none.
    ///
    /// A response that has an entity tag, if only a weak one, is never told by its date: `If-Range`
    /// must not be sent with a date then (§13.1.5).
    package init?(of fields: Fields) {
        if fields.has(.etag) {
            guard let tag = EntityTag(of: fields), !tag.isWeak else { return nil }
            self = .tag(tag)
            return
        }
        guard !fields.disagrees(on: .lastModified), ModificationTime.isStrong(fields),
            let modified = fields.first(FieldName(.lastModified))
        else { return nil }
        self = .modified(modified)
    }

    /// Whether another response speaks of the same representation.
    package func matches(_ fields: Fields) -> Bool {
        switch self {
        case .tag(let tag): EntityTag(of: fields)?.matchesStrongly(tag) ?? false
        case .modified(let modified):
            !fields.has(.etag) && !fields.disagrees(on: .lastModified)
                && fields.first(FieldName(.lastModified)) == modified
        }
    }

    /// The value of `If-Range` that asks for this representation only (§13.1.5).
    package var ifRange: [UInt8] {
        switch self {
        case .tag(let tag): tag.bytes
        case .modified(let modified): Array(modified)
        }
    }
}
