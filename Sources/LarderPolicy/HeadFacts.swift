import LarderHTTP

/// What the fields of a stored response say about its reuse, read from their text.
///
/// A function of the fields and the time of receipt alone: no setting has a part in it, so that it
/// holds whatever the configuration is, and however often it changes.
final class HeadFacts: Sendable {
    /// `Expires` (RFC 9111 §5.3).
    enum Expiry: Sendable, Equatable {
        case absent
        /// One line at least is no date, which means "already expired".
        case past
        /// The earliest of all lines: conflicts go to the more restrictive (§4.2.1).
        case at(Timestamp)
    }

    /// The directives of `Cache-Control`, none set aside.
    let directives: ResponseDirectives
    /// nil where there is no `Date`, or none that is a date.
    let date: Timestamp?
    let lastModified: Timestamp?
    let expiry: Expiry
    /// `age_value` (§4.2.3).
    let ageValue: Duration
    /// The members of `Vary`.
    let varies: [Variance.Member]
    /// The groups that it belongs to (RFC 9875 §2).
    let groups: [String]
    let noVarySearch: NoVarySearch
    let setsCookies: Bool

    /// - Parameter directives: those of the fields, where they are known; else they are read.
    init(
        of fields: Fields, receivedAt received: Timestamp, directives: ResponseDirectives? = nil
    ) {
        self.directives = directives ?? ResponseDirectives(fields)
        self.date = fields.date(.date, now: received)
        self.lastModified = fields.date(.lastModified, now: received)
        self.expiry = Self.expiry(fields, now: received)
        self.ageValue = Freshness.ageValue(fields)
        self.varies = Variance.varies(fields)
        self.groups = CacheGroups.groups(in: fields)
        self.noVarySearch = NoVarySearch(fields)
        self.setsCookies = fields.has(.setCookie)
    }

    private static func expiry(_ fields: Fields, now: Timestamp) -> Expiry {
        var earliest: Timestamp?
        for line in fields.lines where line.known == .expires {
            guard let expires = HTTPDate.parse(fields.value(of: line), now: now) else {
                return .past
            }
            earliest = min(earliest ?? expires, expires)
        }
        return earliest.map { .at($0) } ?? .absent
    }
}

extension HeadFacts: Equatable {
    /// Facts follow from what they were read from: heads that are equal without them are equal.
    static func == (a: HeadFacts, b: HeadFacts) -> Bool { true }
}
