package import LarderHTTP

/// The directives that govern a response, and the field they came from.
///
/// A targeted field takes the place of `Cache-Control` and of `Expires` (RFC 9213 §2.2).
package final class ResponseDirectives: Sendable {
    package let control: CacheControl
    /// The targeted field that governs; nil where `Cache-Control` does.
    package let targetedField: FieldName?
    /// `Expires` counts where there is no `max-age`.
    let readsExpires: Bool

    private init(_ control: CacheControl, of targetedField: FieldName?, readsExpires: Bool) {
        self.control = control
        self.targetedField = targetedField
        self.readsExpires = readsExpires
    }

    /// What `Cache-Control` says, whatever the configuration.
    convenience init(_ fields: Fields) {
        self.init(CacheControl(fields), of: nil, readsExpires: true)
    }

    package convenience init(_ fields: Fields, configuration: PolicyConfiguration) {
        let ignored = configuration.ignored
        for name in configuration.targetedFields {
            if let control = CacheControl(targeted: fields, name: name) {
                self.init(control.ignoring(ignored), of: name, readsExpires: false)
                return
            }
        }
        guard !ignored.isEmpty else {
            self.init(CacheControl(fields), of: nil, readsExpires: true)
            return
        }
        self.init(
            CacheControl(fields).ignoring(ignored), of: nil,
            readsExpires: !ignored.contains(.expires))
    }

    /// Whether they are what `Cache-Control` alone says among those lines of a section that are kept,
    /// where they were read from the whole.
    func hold(for kept: Fields, of section: Fields, _ configuration: PolicyConfiguration) -> Bool {
        self.targetedField == nil && configuration.ignored.isEmpty
            && kept.lines.count { $0.known == .cacheControl }
                == section.lines.count { $0.known == .cacheControl }
    }

    /// The directives of a stored response: read from its fields only where the configuration
    /// looks at other fields, or sets some aside.
    package static func of(
        _ head: StoredHead, configuration: PolicyConfiguration
    ) -> ResponseDirectives {
        guard configuration.targetedFields.isEmpty, configuration.ignored.isEmpty else {
            return ResponseDirectives(head.fields, configuration: configuration)
        }
        return head.facts.directives
    }
}

extension CacheControl {
    /// The directives without those that a cache rule sets aside.
    func ignoring(_ ignored: CacheRule.Ignored) -> CacheControl {
        guard !ignored.isEmpty else { return self }
        var rest = self
        if ignored.contains(.noStore) { rest.noStore = false }
        if ignored.contains(.isPrivate) { rest.isPrivate = false }
        if ignored.contains(.noCache) { rest.noCache = false }
        if ignored.contains(.mustRevalidate) {
            rest.mustRevalidate = false
            rest.proxyRevalidate = false
        }
        if ignored.contains(.maxAge) { rest.maxAge = nil }
        if ignored.contains(.sMaxage) { rest.sMaxage = nil }
        return rest
    }

    /// Sets aside what a reload sends, where a cache rule does.
    package mutating func ignoreReload(_ configuration: PolicyConfiguration) {
        guard configuration.ignored.contains(.reload) else { return }
        self.noCache = false
        self.maxAge = nil
        self.minFresh = nil
    }
}

/// What the status code alone says about caching.
extension StatusCode {
    /// Heuristic freshness is allowed without explicit permission (RFC 9110 §15.1).
    package var isHeuristicallyCacheable: Bool {
        switch self.rawValue {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// A status whose requirements for caching are implemented here: the final ones of RFC 9110 §15,
    /// but for 304, which is not stored.
    package var isUnderstood: Bool {
        switch self.rawValue {
        case 200...206, 300...303, 305, 307, 308, 400...411, 413...415, 417, 421, 422, 426,
            500...505:
            true
        default: false
        }
    }
}

extension Fields {
    /// The moment in the one field of this name; nil where it is missing or no date.
    ///
    /// - Parameter now: settles the century of a two-digit year.
    func date(_ name: KnownField, now: Timestamp) -> Timestamp? {
        for line in self.lines where line.known == name {
            return HTTPDate.parse(self.value(of: line), now: now)
        }
        return nil
    }

    /// Whether there are two lines of the same name, one of these, with different values.
    func disagree(onAnyOf names: KnownFieldSet) -> Bool {
        var (seen, asked): (KnownFieldSet, KnownFieldSet) = ([], [])
        for line in self.lines where names.contains(line.known) {
            // Once for each name, however often it comes.
            if seen.contains(line.known), !asked.contains(line.known) {
                if self.disagrees(on: line.known) { return true }
                asked.insert(line.known)
            }
            seen.insert(line.known)
        }
        return false
    }

    /// Whether there are two lines of this name with different values.
    func disagrees(on name: KnownField) -> Bool {
        var first: FieldValue?
        for line in self.lines where line.known == name {
            let value = self.value(of: line)
            if let first, !first.elementsEqual(value) { return true }
            first = value
        }
        return false
    }
}
