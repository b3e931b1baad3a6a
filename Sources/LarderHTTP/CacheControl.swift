/// The directives of `Cache-Control` in a request or a response (RFC 9111 §5.2).
///
/// All lines and members count together. Where a directive stands twice the more restrictive one
/// holds (§4.2.1). A malformed directive restricts but never grants: `max-age` with anything but
/// digits makes the response stale at once, while a malformed `max-stale` allows nothing. Both the
/// token and the quoted form of an argument are read, as §5.2 asks. Unknown directives are ignored.
package struct CacheControl: Sendable, Equatable {
    package var noStore = false
    /// `no-cache` without field names.
    package var noCache = false
    /// The fields that a qualified `no-cache="…"` names.
    package var noCacheFields: [FieldName] = []
    /// `private` without field names.
    package var isPrivate = false
    /// The fields that a qualified `private="…"` names.
    package var privateFields: [FieldName] = []
    package var isPublic = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var noTransform = false
    package var immutable = false
    package var onlyIfCached = false
    package var maxAge: Duration?
    package var sMaxage: Duration?
    /// Without an argument: `unlimited`.
    package var maxStale: Duration?
    package var minFresh: Duration?
    package var staleWhileRevalidate: Duration?
    package var staleIfError: Duration?
    /// `max-age` or `s-maxage` had an argument that is no number; it counts as zero.
    package var hasInvalidLifetime = false
    /// At least one field line of that name was there.
    package var isPresent = false

    /// What a `max-stale` without an argument accepts.
    package static let unlimited = Duration.seconds(DeltaSeconds.limit)

    /// No directives.
    package init() {}

    /// The directives in all lines of `name`.
    package init(_ fields: Fields, name: FieldName = FieldName(.cacheControl)) {
        // Lines that end inside quotes restrict what all others say, wherever they stand.
        var open: [FieldValue] = []
        for line in fields.lines where fields.matches(line, name) {
            self.isPresent = true
            let value = fields.value(of: line)
            var members = ListMembers(value)
            while let member = members.next() {
                guard let directive = Directive(member) else { continue }
                self.apply(directive)
            }
            if members.endedInQuotes { open.append(value) }
        }
        for value in open { self.restrict(byUnquoted: value) }
    }

    /// Applies what a line may mean whose last quote is one too many, wherever that is: what its
    /// commas separate, if it restricts.
    private mutating func restrict(byUnquoted line: FieldValue) {
        for part in line.split(separator: ASCII.comma) {
            guard let directive = Directive(part.trimmingOWS()),
                let name = Name(matching: directive.name)
            else { continue }
            switch name {
            case .noStore, .noCache, .isPrivate, .proxyRevalidate, .noTransform, .minFresh:
                self.apply(directive)
            // It also permits (§3.5).
            case .mustRevalidate: self.noCache = true
            case .maxAge: self.restrictLifetime(\.maxAge, directive.seconds)
            case .sMaxage: self.restrictLifetime(\.sMaxage, directive.seconds)
            case .isPublic, .mustUnderstand, .immutable, .onlyIfCached, .maxStale,
                .staleWhileRevalidate, .staleIfError:
                break
            }
        }
    }

    /// A lifetime where none is given permits, too: storing, for one.
    private mutating func restrictLifetime(
        _ limit: WritableKeyPath<Self, Duration?>, _ seconds: Duration?
    ) {
        if self[keyPath: limit] != nil {
            self.limitLifetime(limit, seconds)
        } else if seconds == .zero {
            self.noCache = true
        }
    }

    /// The directives of a request; `Pragma: no-cache` counts where there is no `Cache-Control`
    /// (RFC 9111 §5.4).
    package init(request fields: Fields) {
        // Most requests have neither, and are asked several times.
        guard Self.isGiven(inRequest: fields) else {
            self.init()
            return
        }
        self.init(fields)
        guard !self.isPresent else { return }
        self.noCache = fields.members(FieldName(.pragma)).contains { $0.spells("no-cache") }
    }

    /// Whether a request has any: most have none, which is told sooner than they are read.
    package static func isGiven(inRequest fields: Fields) -> Bool {
        for line in fields.lines where line.known == .cacheControl || line.known == .pragma {
            return true
        }
        return false
    }

    /// Names of directives that Larder acts on.
    package enum Name: String, Sendable, CaseIterable {
        case maxAge = "max-age"
        case noCache = "no-cache"
        case noStore = "no-store"
        case isPrivate = "private"
        case isPublic = "public"
        case sMaxage = "s-maxage"
        case mustRevalidate = "must-revalidate"
        case proxyRevalidate = "proxy-revalidate"
        case mustUnderstand = "must-understand"
        case noTransform = "no-transform"
        case immutable = "immutable"
        case onlyIfCached = "only-if-cached"
        case maxStale = "max-stale"
        case minFresh = "min-fresh"
        case staleWhileRevalidate = "stale-while-revalidate"
        case staleIfError = "stale-if-error"

        /// As bytes, which are compared without a string being made for each.
        private struct Letters: Sendable {
            let name: Name
            let bytes: [UInt8]
        }

        /// By their length: few names have one in common, so few are compared.
        private static let byLength: [[Letters]] = {
            let all = Self.allCases.map { Letters(name: $0, bytes: Array($0.rawValue.utf8)) }
            let longest = all.map(\.bytes.count).max() ?? 0
            return (0...longest).map { length in all.filter { $0.bytes.count == length } }
        }()

        /// The directive that these bytes name in any case.
        package init?(matching bytes: FieldValue) {
            let names = Self.byLength
            guard bytes.count < names.count else { return nil }
            let span = bytes.span
            for letters in names[bytes.count] where Self.spells(span, letters.bytes.span) {
                self = letters.name
                return
            }
            return nil
        }

        private static func spells(_ bytes: Span<UInt8>, _ lowercase: Span<UInt8>) -> Bool {
            for i in bytes.indices where ASCII.lowercased(bytes[i]) != lowercase[i] {
                return false
            }
            return true
        }
    }

    /// One list member, taken apart.
    package struct Directive: Sendable, Equatable {
        package enum Argument: Sendable, Equatable {
            case none
            /// Quotes removed, quoted pairs resolved.
            case value(FieldValue)
            /// Something follows the name that the grammar does not know.
            case malformed
        }

        package let name: FieldValue
        package let argument: Argument

        /// Nil where the member does not begin with a token.
        package init?(_ member: FieldValue) {
            let name = member.prefix(while: ASCII.isToken)
            guard !name.isEmpty else { return nil }
            self.name = name
            let rest = member[name.endIndex...]
            if rest.isEmpty {
                self.argument = .none
            } else if rest.first != ASCII.equals {
                self.argument = .malformed
            } else {
                let value = rest.dropFirst()
                if value.isToken {
                    self.argument = .value(value)
                } else if let content = value.unquoted {
                    self.argument = .value(content)
                } else {
                    self.argument = .malformed
                }
            }
        }

        /// The argument as `delta-seconds`.
        var seconds: Duration? {
            if case .value(let digits) = self.argument { return DeltaSeconds.parse(digits) }
            return nil
        }

        /// The argument as a list of field names; nil where it is none, or too long.
        var fieldNames: [FieldName]? {
            guard case .value(let list) = self.argument else { return nil }
            return CacheControl.fieldNames(list)
        }
    }

    /// More names than this in a `private` or `no-cache` forbid the whole: each is looked for among
    /// all fields, for every hit.
    private static let nameLimit = 64

    /// The field names in a list; nil where there is none, or too many, and where one is no token.
    static func fieldNames(_ list: FieldValue) -> [FieldName]? {
        var names: [FieldName] = []
        for member in ListMembers(list) {
            guard member.isToken, names.count < self.nameLimit else { return nil }
            names.append(FieldName(String(decoding: member, as: UTF8.self)))
        }
        return names.isEmpty ? nil : names
    }

    private mutating func apply(_ directive: Directive) {
        guard let name = Name(matching: directive.name) else { return }
        switch name {
        case .noStore: self.noStore = true
        case .mustRevalidate: self.mustRevalidate = true
        case .proxyRevalidate: self.proxyRevalidate = true
        case .mustUnderstand: self.mustUnderstand = self.mustUnderstand || directive.isBare
        case .noTransform: self.noTransform = true
        case .onlyIfCached: self.onlyIfCached = true
        case .isPublic: self.isPublic = self.isPublic || directive.isBare
        case .immutable: self.immutable = self.immutable || directive.isBare
        case .noCache: self.restrict(directive, whole: \.noCache, fields: \.noCacheFields)
        case .isPrivate: self.restrict(directive, whole: \.isPrivate, fields: \.privateFields)
        case .maxAge: self.limitLifetime(\.maxAge, directive.seconds)
        case .sMaxage: self.limitLifetime(\.sMaxage, directive.seconds)
        case .minFresh:
            let wanted = directive.seconds ?? Self.unlimited
            self.minFresh = max(self.minFresh ?? .zero, wanted)
        case .maxStale:
            self.allow(\.maxStale, directive.isBare ? Self.unlimited : directive.seconds)
        case .staleWhileRevalidate: self.allow(\.staleWhileRevalidate, directive.seconds)
        case .staleIfError: self.allow(\.staleIfError, directive.seconds)
        }
    }

    /// `no-cache` or `private`: names fields, or forbids the whole.
    private mutating func restrict(
        _ directive: Directive, whole: WritableKeyPath<Self, Bool>,
        fields: WritableKeyPath<Self, [FieldName]>
    ) {
        if let names = directive.fieldNames,
            self[keyPath: fields].count + names.count <= Self.nameLimit
        {
            self[keyPath: fields].append(contentsOf: names)
        } else {
            self[keyPath: whole] = true
        }
    }

    mutating func limitLifetime(
        _ limit: WritableKeyPath<Self, Duration?>, _ seconds: Duration?
    ) {
        if seconds == nil { self.hasInvalidLifetime = true }
        let new = seconds ?? .zero
        self[keyPath: limit] = min(self[keyPath: limit] ?? new, new)
    }

    private mutating func allow(
        _ window: WritableKeyPath<Self, Duration?>, _ seconds: Duration?
    ) {
        // Said twice, once unreadably: only what both allow is allowed.
        let new = seconds ?? .zero
        self[keyPath: window] = min(self[keyPath: window] ?? new, new)
    }
}

extension CacheControl.Directive {
    /// There is no argument.
    var isBare: Bool { self.argument == .none }
}
