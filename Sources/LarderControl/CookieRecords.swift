import FoundationEssentials

/// A cookie of a session's jar, on its way to or from a command.
package struct CookieRecord: Codable, Sendable, Equatable {
    /// Octets, in base64 on their way: servers put other things there than UTF-8.
    private var nameOctets: Data
    /// nil where it stays hidden.
    package var value: ControlSecret?
    /// How long the value is, hidden or not.
    package var valueBytes: Int
    /// In lower case, without a leading dot.
    package var domain: String
    /// It is for `domain` itself and for no name below it.
    package var isHostOnly: Bool
    package var path: String
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    /// `unspecified`, `none`, `lax` or `strict`.
    package var sameSite: String
    package var createdMicroseconds: Int64
    package var lastUsedMicroseconds: Int64
    /// nil for one that ends with the session.
    package var expiryMicroseconds: Int64?

    package init(
        name: [UInt8], value: ControlSecret?, valueBytes: Int, domain: String, isHostOnly: Bool,
        path: String, isSecure: Bool, isHTTPOnly: Bool, sameSite: String,
        createdMicroseconds: Int64, lastUsedMicroseconds: Int64, expiryMicroseconds: Int64?
    ) {
        self.nameOctets = Data(name)
        self.value = value
        self.valueBytes = valueBytes
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.createdMicroseconds = createdMicroseconds
        self.lastUsedMicroseconds = lastUsedMicroseconds
        self.expiryMicroseconds = expiryMicroseconds
    }

    package var name: [UInt8] { Array(self.nameOctets) }
}

/// Which cookies are meant: those that fit everything that is said; all where nothing is.
package struct CookieFilter: Codable, Sendable, Equatable {
    private var nameOctets: Data?
    /// Takes cookies of this domain and the names below it, in whatever case, with or without a
    /// leading dot.
    package var domain: String?
    /// Takes cookies of exactly this path.
    package var path: String?

    package init(name: [UInt8]? = nil, domain: String? = nil, path: String? = nil) {
        self.nameOctets = name.map { Data($0) }
        self.domain = domain
        self.path = path
    }

    package var name: [UInt8]? { self.nameOctets.map { Array($0) } }
}

/// What is to be done with the cookies of a session.
package enum CookieCommand: Codable, Sendable, Equatable {
    /// `.cookies`, as many lines as it takes; values only where `reveals`.
    case list(CookieFilter, reveals: Bool)
    /// Puts them in, each judged by itself: `.cookieVerdicts`, one for each.
    ///
    /// A line of the socket bounds how many go at once: see `CookieBatch`.
    case put([CookieRecord])
    /// `.removed`.
    case remove(CookieFilter)
}

/// What became of a cookie that was to be put into a jar.
package struct CookieVerdict: Codable, Sendable, Equatable {
    /// The token of the rule that kept it out; nil where it is in the jar now.
    package var refusal: String?

    package init(refusal: String? = nil) {
        self.refusal = refusal
    }

    /// Its date lies in the past: the jar has let go of what it replaces, and keeps nothing.
    package static let expired = CookieVerdict(refusal: "expired")
}

/// Cookies cut into pieces that fit a line of the socket each.
package enum CookieBatch {
    /// Room for the longest cookie that a jar may hold, and for the JSON around it.
    private static let enough = ControlCodec.longestLine / 4
    private static let bytesEach = 400

    package static func cut(_ cookies: [CookieRecord]) -> [[CookieRecord]] {
        var batches: [[CookieRecord]] = []
        var batch: [CookieRecord] = []
        var bytes = 0
        for cookie in cookies {
            let size = Self.estimate(cookie)
            if !batch.isEmpty, bytes + size > Self.enough {
                batches.append(batch)
                (batch, bytes) = ([], 0)
            }
            batch.append(cookie)
            bytes += size
        }
        return batch.isEmpty ? batches : batches + [batch]
    }

    /// Whether it fits a line at all; one that does not is larger than any jar takes.
    package static func fits(_ cookie: CookieRecord) -> Bool {
        Self.estimate(cookie) <= Self.enough * 3
    }

    /// At most what JSON makes of it: base64 of octets, and six bytes for the worst of a text.
    private static func estimate(_ cookie: CookieRecord) -> Int {
        let octets = cookie.name.count + (cookie.value?.count ?? 0)
        let texts = cookie.domain.utf8.count + cookie.path.utf8.count + cookie.sameSite.utf8.count
        return Self.bytesEach + 2 * octets + 6 * texts
    }
}
