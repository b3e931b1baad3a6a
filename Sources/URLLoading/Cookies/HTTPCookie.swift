public import Foundation
import LarderCookies
import LarderHTTP

/// A cookie: a name, a value, and to which requests it belongs.
///
/// It never changes. Two are equal where all their properties are, apart from the moment in which
/// they were made (Foundation's are equal to themselves alone). No description shows the value.
open class HTTPCookie: NSObject, @unchecked Sendable {
    // Invariant: set once.
    let facts: CookieFacts

    /// Makes a cookie of its properties; nil where one is missing that is needed, or makes no sense.
    ///
    /// Needed are name, value, path, and a domain or an origin's URL. Name and value must not hold
    /// control characters or semicolons, which would make other cookies, or other fields, of them.
    /// Properties of other names are left out.
    ///
    /// `Max-Age` counts before `Expires` in cookies of every version, and flags that say `FALSE` are
    /// not set: there it differs from Foundation.
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        guard let facts = CookieFacts(properties: properties, now: Date()) else { return nil }
        self.facts = facts
        super.init()
    }

    init(_ facts: CookieFacts) {
        self.facts = facts
        super.init()
    }

    /// The properties of which an equal cookie can be made; values are strings, but for dates, URLs
    /// and the number of `created`.
    open var properties: [HTTPCookiePropertyKey: Any]? { self.facts.properties }

    /// 0 for cookies as all servers send them; 1 where the properties said so (RFC 2965).
    open var version: Int { self.facts.version }

    /// What it is called; empty where a response gave a value alone, or properties say so.
    open var name: String { self.facts.name }

    /// Often a secret.
    open var value: String { self.facts.value }

    /// When it ends; nil for one that ends with the session.
    open var expiresDate: Date? { self.facts.expires }

    /// Whether it ends with the session: it has no date, or is to be discarded.
    ///
    /// One that was read of a line with `Discard=TRUE` says false, as Foundation's does, though without
    /// a date it ends with the session, too: only `Discard` alone is a flag.
    open var isSessionOnly: Bool { self.facts.expires == nil && !self.facts.deniesSession }

    /// The host that it is for; with a dot before it where names below it are meant, too.
    open var domain: String { self.facts.domain }

    /// The path below which it is sent.
    open var path: String { self.facts.path }

    /// Whether it is sent over secure connections alone.
    open var isSecure: Bool { self.facts.isSecure }

    /// Whether it is to be kept from scripts.
    open var isHTTPOnly: Bool { self.facts.isHTTPOnly }

    /// A text for people.
    open var comment: String? { self.facts.comment }

    /// Where there is more to read for people.
    open var commentURL: URL? { self.facts.commentURL }

    /// The ports that it was made for; kept for programs, without effect (RFC 6265bis §8.5).
    open var portList: [NSNumber]? { self.facts.ports?.map { NSNumber(value: $0) } }

    /// Which requests of other sites may bear it; nil where nothing is said, or all of them may.
    open var sameSitePolicy: HTTPCookieStringPolicy? {
        switch self.facts.sameSite {
        case .lax: .sameSiteLax
        case .strict: .sameSiteStrict
        case .none, .unspecified: nil
        }
    }

    // MARK: Fields

    /// The fields by which a request bears these cookies: `Cookie`, or none at all where there are no
    /// cookies.
    open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        self.field(with: cookies).map { ["Cookie": String(decoding: $0, as: UTF8.self)] } ?? [:]
    }

    /// The value of the field in octets, as the cookies were received; nil where there are none.
    static func field(with cookies: [HTTPCookie]) -> [UInt8]? {
        let pairs = cookies.map { cookie in
            // What a class of a program's own says counts.
            let (name, value) =
                type(of: cookie) == HTTPCookie.self
                ? cookie.facts.octets : (Array(cookie.name.utf8), Array(cookie.value.utf8))
            // RFC 6265bis §5.8.3: one without a name is its value alone.
            return name.isEmpty ? value : name + [ASCII.equals] + value
        }
        return pairs.isEmpty ? nil : Array(pairs.joined(separator: Array("; ".utf8)))
    }

    /// The cookies that a response sets, in order.
    ///
    /// They are read by the rules of RFC 6265bis §5.6: dates in any form, `Max-Age` before `Expires`,
    /// the directory of the URL where there is no path. Several lines in one value are taken apart at
    /// commas behind which a name and `=` follow. What a browser would refuse is left out: control
    /// characters, `Secure` from an insecure URL, public suffixes, broken promises of `__Host-` and
    /// `__Secure-`. So are cookies without a name, and the flags `Secure` and `HttpOnly` where they
    /// have a value, as Foundation has it. A domain that the URL's host does not belong to is given
    /// back all the same; `HTTPCookieStorage` refuses it when the cookie is set for that URL.
    ///
    /// - Parameter headerFields: `Set-Cookie` is found in whatever case.
    open class func cookies(
        withResponseHeaderFields headerFields: [String: String], for URL: URL
    ) -> [HTTPCookie] {
        HTTPCookie.read(headerFields, for: URL)
    }

    // MARK: As an object

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPCookie else { return false }
        return self === other || self.facts == other.facts
    }

    open override var hash: Int { self.facts.hashValue }

    open override func copy() -> Any { self }

    /// Name and place; never the value.
    open override var description: String {
        let ends = self.facts.expires.map { "\($0)" } ?? "nil"
        let ports = self.facts.ports?.map(String.init).joined(separator: ",") ?? "0"
        return "<\(type(of: self)) version:\(self.facts.version) name:\"\(self.facts.name)\" "
            + "expiresDate:\(ends) sessionOnly:\(self.isSessionOnly) "
            + "domain:\"\(self.facts.domain)\" path:\"\(self.facts.path)\" "
            + "isSecure:\(self.facts.isSecure) comment:\(self.facts.comment ?? "nil") "
            + "ports:{ \(ports) }>"
    }

    open override var debugDescription: String { self.description }
}

extension HTTPCookie: CustomReflectable {
    /// Without the value, which `dump` would show otherwise.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "name": self.facts.name, "domain": self.facts.domain, "path": self.facts.path,
            ])
    }
}

extension HTTPCookie {
    /// Whose cookies are taken.
    public enum AcceptPolicy: UInt, Sendable {
        /// Everybody's.
        case always = 0
        /// Nobody's; those that are there are sent nevertheless.
        case never = 1
        /// Only cookies of the site of a request's main document are accepted. A request that names
        /// none is its own.
        case onlyFromMainDocumentDomain = 2
    }
}
