extension CacheControl {
    /// The directives of a targeted field such as `CDN-Cache-Control` (RFC 9213 §2.1), a dictionary
    /// of structured fields.
    ///
    /// nil where there is no such line, where it cannot be parsed, and where it is empty: then it is
    /// as if it were not there. A directive whose value has the wrong type is left out, parameters
    /// are ignored.
    package init?(targeted fields: Fields, name: FieldName) {
        guard let dictionary = StructuredField.dictionary(in: fields, name: name),
            !dictionary.isEmpty
        else { return nil }
        self.init()
        self.isPresent = true
        for member in dictionary {
            guard case .item(let item) = member.value,
                let directive = Name(matching: Array(member.key.utf8)[...])
            else { continue }
            self.apply(directive, item)
        }
    }

    private mutating func apply(_ name: Name, _ item: StructuredField.BareItem) {
        switch (name, item) {
        case (.noStore, .boolean(let on)): self.noStore = on
        case (.mustRevalidate, .boolean(let on)): self.mustRevalidate = on
        case (.proxyRevalidate, .boolean(let on)): self.proxyRevalidate = on
        case (.mustUnderstand, .boolean(let on)): self.mustUnderstand = on
        case (.noTransform, .boolean(let on)): self.noTransform = on
        case (.immutable, .boolean(let on)): self.immutable = on
        case (.isPublic, .boolean(let on)): self.isPublic = on
        case (.noCache, .boolean(let on)): self.noCache = on
        case (.isPrivate, .boolean(let on)): self.isPrivate = on
        case (.noCache, .string(let list)): self.noCacheFields = Self.fieldNames(list)
        case (.isPrivate, .string(let list)): self.privateFields = Self.fieldNames(list)
        case (.maxAge, .integer(let seconds)): self.maxAge = Self.bounded(seconds)
        case (.sMaxage, .integer(let seconds)): self.sMaxage = Self.bounded(seconds)
        case (.staleWhileRevalidate, .integer(let seconds)):
            self.staleWhileRevalidate = Self.bounded(seconds)
        case (.staleIfError, .integer(let seconds)): self.staleIfError = Self.bounded(seconds)
        default: break  // A wrong type, or a directive of requests.
        }
    }

    private static func bounded(_ seconds: Int64) -> Duration {
        .seconds(min(max(0, seconds), DeltaSeconds.limit))
    }

    private static func fieldNames(_ list: String) -> [FieldName] {
        ListMembers(Array(list.utf8)[...]).filter { $0.isToken }
            .map { FieldName(String(decoding: $0, as: UTF8.self)) }
    }
}
