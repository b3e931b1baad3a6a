/// The name of a property of a cookie, in the dictionaries from which cookies are made.
public struct HTTPCookiePropertyKey: RawRepresentable, Hashable, Sendable {
    /// The name as it stands in the dictionary.
    public let rawValue: String

    /// The property of that name, also one that nobody knows; cookies make nothing of those.
    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// The property of that name, also one that nobody knows; cookies make nothing of those.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }
}

extension HTTPCookiePropertyKey {
    /// The name: a string; needed.
    public static let name = HTTPCookiePropertyKey("Name")
    /// The value: a string; needed.
    public static let value = HTTPCookiePropertyKey("Value")
    /// The path: a string; needed.
    public static let path = HTTPCookiePropertyKey("Path")
    /// The domain: a string, with a dot before it where names below it are meant, too.
    ///
    /// It or `originURL` is needed.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// Where the cookie comes from: a `URL` or a string; its host stands in for a missing domain.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// `"0"`, which is the default, or `"1"`.
    public static let version = HTTPCookiePropertyKey("Version")
    /// `"TRUE"` where it is for secure connections alone.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// `"TRUE"` where scripts must not see it.
    public static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
    /// When it ends: a `Date`, or a string with a date in any of the forms that servers send.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// How many seconds it lives from now: a string or a number; counts before `expires`.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// `"TRUE"` where it ends with the session, whatever `expires` says.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// A text for people: a string.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// Where there is more to read for people: a `URL` or a string.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// Ports, with commas between: a string; of version 0 the first alone counts.
    public static let port = HTTPCookiePropertyKey("Port")
    /// Whether other sites' requests may bear it: an `HTTPCookieStringPolicy` or a string.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// Whether a script has set it; kept for programs, without effect.
    public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")
    /// When the cookie was made: a number of seconds since the reference date, or a `Date`.
    public static let created = HTTPCookiePropertyKey("Created")
}

/// To which requests a cookie is kept that says so (RFC 6265bis §5.6.7).
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    /// The word as it stands in `SameSite`, in lower case.
    public let rawValue: String

    /// The policy of that word; one that nobody knows counts as none.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// To those of its own site, and to the navigation of a whole document.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// To those of its own site.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
