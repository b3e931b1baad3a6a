import LarderHTTP

/// What an administrator says about the responses of certain hosts and paths, over their heads.
///
/// Rules stand in an order, and the first that fits a URI speaks for it alone. What a rule leaves
/// open is decided as if there were none.
package struct CacheRule: Sendable, Equatable {
    /// What a rule may set aside: directives, and fields.
    package struct Ignored: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// `no-store` of the response; that of a request is never set aside.
        package static let noStore = Ignored(rawValue: 1 << 0)
        /// `private` without field names: those that it names are kept out all the same.
        package static let isPrivate = Ignored(rawValue: 1 << 1)
        /// `no-cache` of the response without field names.
        package static let noCache = Ignored(rawValue: 1 << 2)
        /// `must-revalidate` and `proxy-revalidate`.
        package static let mustRevalidate = Ignored(rawValue: 1 << 3)
        package static let maxAge = Ignored(rawValue: 1 << 4)
        package static let sMaxage = Ignored(rawValue: 1 << 5)
        package static let expires = Ignored(rawValue: 1 << 6)
        package static let vary = Ignored(rawValue: 1 << 7)
        /// `no-cache`, `max-age` and `min-fresh` of the request, and `Pragma: no-cache`: what a
        /// browser's reload sends.
        package static let reload = Ignored(rawValue: 1 << 8)
        /// Responses that set cookies are stored, without the fields that set them.
        package static let setCookie = Ignored(rawValue: 1 << 9)
        /// Answers to requests with credentials are stored for everybody (against RFC 9111 §3.5).
        package static let authorization = Ignored(rawValue: 1 << 10)
    }

    /// For people: how the rule is called.
    package var name: String
    /// Where it is written, `larder.yaml:12`; empty where that is unknown.
    package var place: String
    /// Empty: every host.
    package var hosts: [HostPattern]
    /// Over the path without its query; empty: every path.
    package var paths: [Wildcard]
    /// Freshness lifetimes are raised to this.
    ///
    /// Only those of lasting answers: an error or a temporary redirection that was pinned would be
    /// wrong for as long.
    package var minimum: Duration?
    /// Freshness lifetimes are lowered to this.
    package var maximum: Duration?
    /// The freshness lifetime of lasting answers that give none, in place of the heuristic.
    package var lifetime: Duration?
    package var ignored: Ignored
    /// Freshness lifetimes of errors that give none; those of the session where none fits.
    package var negative: [NegativeLifetime]
    /// In place of the session's grace.
    package var staleIfErrorGrace: Duration?
    /// Store nothing of it, and use nothing that was stored.
    package var forbidsStoring: Bool

    package init(
        name: String, place: String = "", hosts: [HostPattern] = [], paths: [Wildcard] = [],
        minimum: Duration? = nil, maximum: Duration? = nil, lifetime: Duration? = nil,
        ignored: Ignored = [], negative: [NegativeLifetime] = [],
        staleIfErrorGrace: Duration? = nil, forbidsStoring: Bool = false
    ) {
        self.name = name
        self.place = place
        self.hosts = hosts
        self.paths = paths
        self.minimum = minimum
        self.maximum = maximum
        self.lifetime = lifetime
        self.ignored = ignored
        self.negative = negative
        self.staleIfErrorGrace = staleIfErrorGrace
        self.forbidsStoring = forbidsStoring
    }

    func matches(_ subject: RuleSubject) -> Bool {
        (self.hosts.isEmpty || self.hosts.contains { $0.matches(subject) })
            && (self.paths.isEmpty || self.paths.contains { $0.matches(subject.path) })
    }
}

/// How long an error is fresh that does not say so itself: negative caching.
package struct NegativeLifetime: Sendable, Hashable {
    /// From 400 to 599.
    package let statuses: ClosedRange<UInt16>
    package let lifetime: Duration

    package init(_ statuses: ClosedRange<UInt16>, _ lifetime: Duration) {
        self.statuses = statuses.clamped(to: 400...599)
        self.lifetime = lifetime
    }

    /// Whether it speaks of a status: of one that is about the request only where it names that very one.
    func speaks(of status: StatusCode) -> Bool {
        guard self.statuses.contains(status.rawValue) else { return false }
        return self.statuses.count == 1 || !status.isAboutRequest
    }
}

extension StatusCode {
    /// An error that says what was wrong with the request as it came, and not with its target.
    ///
    /// Fields, length and timing of a request are no part of the key under which its answer lies: whoever
    /// sends one that is refused would have it refused to all others who ask for the same.
    var isAboutRequest: Bool {
        switch self.rawValue {
        case 400, 406, 408, 411, 413, 414, 415, 417, 421, 422, 425, 426: true
        default: false
        }
    }

    /// An answer about the resource itself that may be expected to last: no error, and no
    /// redirection that calls itself temporary.
    var isLasting: Bool {
        switch self.rawValue {
        case 200, 203, 204, 206, 300, 301, 308: true
        default: false
        }
    }
}
