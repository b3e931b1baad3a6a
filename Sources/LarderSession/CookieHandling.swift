package import LarderCookies

/// What a session does with cookies: its settings, which may change while it runs.
package struct CookieHandling: Sendable, Hashable {
    /// Whose cookies it takes.
    package var accept: CookieAcceptPolicy
    /// How its cookies join those that a client sends itself.
    package var merging: CookieField.Merging
    /// Clients see the `Set-Cookie` lines of origins, too.
    ///
    /// They do not otherwise, not even those that were refused: the cookies of such a session are its
    /// own business, and a client with a jar would go on with half of them.
    package var showsSetCookie: Bool
    package var limits: CookieLimits

    package init(
        accept: CookieAcceptPolicy = .onlyFromMainDocumentDomain,
        merging: CookieField.Merging = .clientFirst, showsSetCookie: Bool = false,
        limits: CookieLimits = CookieLimits()
    ) {
        self.accept = accept
        self.merging = merging
        self.showsSetCookie = showsSetCookie
        self.limits = limits
    }
}

/// What has happened to the cookies of a session since it began: a snapshot.
package struct CookieCounters: Sendable, Equatable, Codable {
    /// In the jar now.
    package var held = 0
    /// Taken from responses.
    package var stored: UInt64 = 0
    /// Not taken, by the rule that they broke.
    package var refused: [CookieRefusal: UInt64] = [:]
    /// Put into requests, each time.
    package var sent: UInt64 = 0
    /// Removed because there were too many.
    package var evicted: UInt64 = 0
    /// Attempts to keep changes that failed; they are repeated with the next change.
    package var storageFailures: UInt64 = 0
    /// Changes that are not in the storage yet.
    package var unkept = 0

    package init() {}

    package static func + (a: CookieCounters, b: CookieCounters) -> CookieCounters {
        var sum = a
        sum.held &+= b.held
        sum.stored &+= b.stored
        sum.refused.merge(b.refused) { $0 &+ $1 }
        sum.sent &+= b.sent
        sum.evicted &+= b.evicted
        sum.storageFailures &+= b.storageFailures
        sum.unkept &+= b.unkept
        return sum
    }
}

/// What a session's cookies have to say to a log.
package enum CookieEvent: Sendable, Equatable {
    /// This many cookies of one response were refused; with the host that set them.
    case refused(CookieRefusal, count: Int, host: String)
    /// What the storage held could not be read: the session's cookies are in memory alone until it
    /// ends, and the storage stays as it is. Once.
    case notRestored(CookieStorageError)
    /// Changes are not being kept; the session goes on in memory. Once, until it is over.
    case notKept(CookieStorageError)
    /// They are again, and nothing is missing.
    case keptAgain
}
