/// An entity tag (RFC 9110 §8.8.3): an opaque validator, weak or strong.
package struct EntityTag: Sendable, Hashable {
    package let isWeak: Bool
    /// What stands between the quotes, byte for byte. A backslash in it is a backslash.
    package let opaque: FieldValue

    package init(weak: Bool = false, _ opaque: String) {
        self.isWeak = weak
        self.opaque = Array(opaque.utf8)[...]
    }

    /// The tag that takes up the whole value; nil for anything that the grammar does not know, such
    /// as a tag without quotes or with a lower-case `w/`.
    package init?(parsing value: FieldValue) {
        guard let (tag, rest) = Self.scan(value), rest.isEmpty else { return nil }
        self = tag
    }

    private init(isWeak: Bool, opaque: FieldValue) {
        self.isWeak = isWeak
        self.opaque = opaque
    }

    /// The tag of a field section: its one valid `ETag` line.
    ///
    /// Two lines that differ name no tag.
    package init?(of fields: Fields) {
        var tag: EntityTag?
        for line in fields.lines where line.known == .etag {
            guard let next = EntityTag(parsing: fields.value(of: line)) else { return nil }
            if let tag, tag != next { return nil }
            tag = next
        }
        guard let tag else { return nil }
        self = tag
    }

    /// Takes a tag off the front.
    fileprivate static func scan(_ value: FieldValue) -> (EntityTag, rest: FieldValue)? {
        var rest = value
        let isWeak = rest.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/")])
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.first == ASCII.quote else { return nil }
        rest = rest.dropFirst()
        guard let end = rest.firstIndex(of: ASCII.quote) else { return nil }
        let opaque = rest[rest.startIndex..<end]
        // etagc: no white space, no control characters (§8.8.3).
        guard opaque.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        return (EntityTag(isWeak: isWeak, opaque: opaque), rest[(end + 1)...])
    }

    /// Both are strong and the same (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !self.isWeak && !other.isWeak && self.opaque == other.opaque
    }

    /// They are the same but perhaps for weakness (§8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool {
        self.opaque == other.opaque
    }

    /// The tag as the field holds it.
    package var bytes: [UInt8] {
        (self.isWeak ? [UInt8(ascii: "W"), UInt8(ascii: "/")] : [])
            + [ASCII.quote] + self.opaque + [ASCII.quote]
    }
}

/// What `If-None-Match` and `If-Match` hold (RFC 9110 §13.1): any, or a list of tags.
package enum EntityTagCondition: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// The condition in all lines of `name`; nil where there is no line.
    ///
    /// Members that are no entity tag match nothing and are left out; `*` counts only alone.
    package init?(_ fields: Fields, name: FieldName) {
        var found = false
        var tags: [EntityTag] = []
        var stars = 0
        for line in fields.lines where fields.matches(line, name) {
            found = true
            var rest = fields.value(of: line)
            while let member = Self.nextMember(&rest) {
                switch member {
                case .tag(let tag): tags.append(tag)
                case .star: stars += 1
                case .junk: break
                }
            }
        }
        guard found else { return nil }
        self = stars == 1 && tags.isEmpty ? .any : .tags(tags)
    }

    private enum Member { case tag(EntityTag), star, junk }

    /// Takes a member off the front. A list of tags has its own rule for quotes: there is no quoted
    /// pair, and a comma may stand inside (RFC 9110 §8.8.3).
    private static func nextMember(_ rest: inout FieldValue) -> Member? {
        rest = rest.drop { ASCII.isOWS($0) || $0 == ASCII.comma }
        guard let first = rest.first else { return nil }
        if let (tag, after) = EntityTag.scan(rest) {
            rest = after.drop(while: ASCII.isOWS)
            if rest.isEmpty || rest.first == ASCII.comma { return .tag(tag) }
        } else if first == UInt8(ascii: "*") {
            rest = rest.dropFirst().drop(while: ASCII.isOWS)
            if rest.isEmpty || rest.first == ASCII.comma { return .star }
        }
        rest = rest.drop { $0 != ASCII.comma }
        return .junk
    }

    /// Whether the tag of a current representation is among them, by weak comparison: what
    /// `If-None-Match` asks (RFC 9110 §13.1.2). `*` matches every representation, tagged or not.
    package func matchesWeakly(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tag.map { tag in tags.contains { $0.matchesWeakly(tag) } } ?? false
        }
    }

    /// Whether the tag is among them, by strong comparison: what `If-Match` asks (§13.1.1).
    package func matchesStrongly(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags):
            tag.map { tag in tags.contains { $0.matchesStrongly(tag) } } ?? false
        }
    }
}
