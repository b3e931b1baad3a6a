extension CacheControl {
    /// The directives of a targeted field such as `CDN-Cache-Control` (RFC 9213 §2.1), a dictionary
    /// of structured fields.
    ///
    /// nil where there is no such line, where it cannot be parsed, and where it is empty: then it is
    /// as if it were not there. Parameters are ignored. A directive that grants is left out where its
    /// value has the wrong type ("MUST NOT accept other values"), a lifetime is zero then; one that
    /// restricts holds without its value: `private` with a number keeps the whole response out.
    package init?(targeted fields: Fields, name: FieldName) {
        guard let dictionary = StructuredField.dictionary(in: fields, name: name),
            !dictionary.isEmpty
        else { return nil }
        self.init()
        self.isPresent = true
        for member in dictionary {
            guard let directive = Name(matching: Array(member.key.utf8)[...]) else { continue }
            self.apply(directive, member.value)
        }
    }

    private mutating func apply(_ name: Name, _ value: StructuredField.Member) {
        let isOff = value == .item(.boolean(false))
        let isOn = value == .item(.boolean(true))
        switch name {
        case .noStore: self.noStore = !isOff
        case .mustRevalidate: self.mustRevalidate = !isOff
        case .proxyRevalidate: self.proxyRevalidate = !isOff
        case .noTransform: self.noTransform = !isOff
        case .mustUnderstand: self.mustUnderstand = isOn
        case .immutable: self.immutable = isOn
        case .isPublic: self.isPublic = isOn
        case .noCache:
            if let names = Self.fieldNames(value) {
                self.noCacheFields = names
            } else {
                self.noCache = !isOff
            }
        case .isPrivate:
            if let names = Self.fieldNames(value) {
                self.privateFields = names
            } else {
                self.isPrivate = !isOff
            }
        // Invalid ones count as none at all (RFC 9111 §4.2.1): a heuristic may not stand in their place.
        case .maxAge: self.limitLifetime(\.maxAge, Self.seconds(value))
        case .sMaxage: self.limitLifetime(\.sMaxage, Self.seconds(value))
        case .staleWhileRevalidate: self.staleWhileRevalidate = Self.seconds(value)
        case .staleIfError: self.staleIfError = Self.seconds(value)
        case .onlyIfCached, .maxStale, .minFresh: break  // Directives of requests.
        }
    }

    private static func seconds(_ value: StructuredField.Member) -> Duration? {
        guard case .item(.integer(let seconds)) = value else { return nil }
        return .seconds(min(max(0, seconds), DeltaSeconds.limit))
    }

    /// The names that a string lists, or the one that a token is; nil where it is neither.
    private static func fieldNames(_ value: StructuredField.Member) -> [FieldName]? {
        let text: String
        switch value {
        case .item(.string(let list)): text = list
        case .item(.token(let name)): text = name
        default: return nil
        }
        return self.fieldNames(Array(text.utf8)[...])
    }
}
