import Foundation
import LarderCookies
import LarderHTTP

/// What a cookie of the API is: a value, with what the jar's model lacks.
struct CookieFacts: Sendable {
    let name: String
    let value: String
    /// What was received in the place of `name` and `value`, where that is no UTF-8.
    private let received: (name: [UInt8], value: [UInt8])?
    /// In lower case; with a dot before it where names below it are meant, too.
    var domain: String
    var path: String
    /// nil: with the session.
    var expires: Date?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = SameSite.unspecified
    var version = 0
    var comment: String?
    var commentURL: URL?
    var ports: [Int]?
    var originURL: URL?
    var isSetByScript = false
    /// Whether its line said `Discard` with a value, which is no flag: see `HTTPCookie.isSessionOnly`.
    var deniesSession = false
    var created: Date

    init(name: String, value: String, domain: String, path: String, created: Date) {
        self.name = name
        self.value = value
        self.received = nil
        self.domain = domain
        self.path = path
        self.created = created
    }

    /// Of a name and a value as they were received.
    init(octets: (name: [UInt8], value: [UInt8]), domain: String, path: String, created: Date) {
        self.name = String(decoding: octets.name, as: UTF8.self)
        self.value = String(decoding: octets.value, as: UTF8.self)
        let isText =
            octets.name.elementsEqual(self.name.utf8) && octets.value.elementsEqual(self.value.utf8)
        self.received = isText ? nil : octets
        self.domain = domain
        self.path = path
        self.created = created
    }

    /// Name and value as they are kept and sent.
    var octets: (name: [UInt8], value: [UInt8]) {
        self.received ?? (Array(self.name.utf8), Array(self.value.utf8))
    }

    /// Microseconds, which is what a jar and its storage keep of a date.
    private var ending: Timestamp? { self.expires.map(CookieMoment.timestamp) }

    /// What equal cookies have in common: not where they came from, nor when they were made.
    private var identity: [AnyHashable] {
        [
            self.name, self.value, self.domain, self.path, self.ending, self.isSecure,
            self.isHTTPOnly, self.sameSite, self.version, self.comment, self.commentURL, self.ports,
            self.received?.name, self.received?.value,
        ]
    }
}

extension CookieFacts: Hashable {
    static func == (a: CookieFacts, b: CookieFacts) -> Bool {
        a.name == b.name && a.domain == b.domain && a.path == b.path && a.value == b.value
            && a.identity == b.identity
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
        hasher.combine(self.domain)
        hasher.combine(self.path)
        hasher.combine(self.value)
    }
}

// MARK: The jar's cookies

extension CookieFacts {
    /// As a jar has it.
    ///
    /// A domain below which anyone may register, or that is an address, is one host for it, and a path
    /// without a slash is the whole host's.
    ///
    /// - Parameter creation: when it is put into the jar.
    func cookie(creation: Timestamp, suffixes: any PublicSuffixes) -> Cookie {
        let hasDot = self.domain.hasPrefix(".")
        let bare = hasDot ? String(self.domain.dropFirst()) : self.domain
        let name = CookieHost.name(bare)
        let isHostOnly =
            !hasDot || CookieDomain.isAddress(name) || CookieDomain.isPublicSuffix(name, suffixes)
        return Cookie(
            name: self.octets.name, value: self.octets.value, domain: name,
            isHostOnly: isHostOnly, path: self.path.utf8.first == 0x2F ? self.path : "/",
            isSecure: self.isSecure, isHTTPOnly: self.isHTTPOnly, sameSite: self.sameSite,
            creation: creation, expiry: self.ending)
    }

    /// A jar's cookie, which a response has set.
    init(_ cookie: Cookie) {
        let host = CookieHost.text(cookie.domain)
        self.init(
            octets: (cookie.name, cookie.value),
            domain: cookie.isHostOnly ? host : ".\(host)", path: cookie.path,
            created: CookieMoment.date(cookie.creation))
        self.expires = cookie.expiry.map(CookieMoment.date)
        self.isSecure = cookie.isSecure
        self.isHTTPOnly = cookie.isHTTPOnly
        self.sameSite = cookie.sameSite
    }

    /// Whether this is what the jar holds, and not what took its place.
    func describes(_ cookie: Cookie) -> Bool {
        self.octets.value == cookie.value && self.isSecure == cookie.isSecure
            && self.isHTTPOnly == cookie.isHTTPOnly && self.sameSite == cookie.sameSite
            && self.ending == cookie.expiry
    }
}

/// Host names between URLs and jars.
enum CookieHost {
    /// As a jar has it: in lower case, an IPv6 address in brackets and in its canonical form.
    static func name(_ host: String) -> String {
        guard host.utf8.contains(0x3A) else { return host.lowercased() }
        let bracketed = host.hasPrefix("[") ? host : "[\(host)]"
        return TargetURI(text: "http://\(bracketed)/")?.host ?? host.lowercased()
    }

    /// As `URL.host` has it: an IPv6 address without brackets.
    static func text(_ name: String) -> String {
        guard name.hasPrefix("["), name.hasSuffix("]") else { return name }
        return String(name.dropFirst().dropLast())
    }

    /// The URL as cookies look at it; nil where it has no host, or a scheme without cookies.
    static func target(_ url: URL) -> TargetURI? {
        guard let host = url.host, !host.isEmpty else { return nil }
        let scheme: Scheme
        switch url.scheme?.lowercased() {
        case "https", "wss": scheme = .https
        case "http", "ws": scheme = .http
        default: return nil
        }
        let path = url.path(percentEncoded: true)
        return TargetURI(
            scheme: scheme, host: self.name(host), port: url.port.flatMap { UInt16(exactly: $0) },
            pathAndQuery: path.hasPrefix("/") ? path : "/\(path)")
    }
}

/// Moments between Foundation and the engine.
enum CookieMoment {
    static var now: Timestamp { self.timestamp(Date()) }

    /// The microsecond that is nearest; saturates.
    static func timestamp(_ date: Date) -> Timestamp {
        let microseconds = (date.timeIntervalSince1970 * 1e6).rounded()
        if microseconds.isNaN { return Timestamp(microseconds: 0) }
        return Timestamp(
            microseconds: Int64(exactly: microseconds) ?? (microseconds < 0 ? .min : .max))
    }

    static func date(_ moment: Timestamp) -> Date {
        Date(timeIntervalSince1970: Double(moment.microseconds) / 1e6)
    }
}
