import LarderControl
import LarderCookies
import LarderDaemon
import LarderHTTP

/// Cookies for people.
enum CookieText {
    /// What stands for a value that is hidden: it does not tell how long the value is.
    static let hidden = "••••"

    static func table(_ cookies: [CookieRecord], now: Int64, width: Int?) -> [String] {
        var table = Table(
            [
                .init(title: "NAME"), .init(title: "VALUE", isElastic: true),
                .init(title: "DOMAIN"), .init(title: "PATH"), .init(title: "EXPIRES"),
                .init(title: "FLAGS"),
            ], width: width)
        var lines: [String] = []
        for cookie in cookies {
            lines += table.add([
                Self.name(cookie), Self.value(cookie), Printable.text(Self.domain(cookie)),
                Printable.text(cookie.path), Self.expiry(cookie, now), Self.flags(cookie),
            ])
        }
        return lines + table.finish()
    }

    static func page(_ cookie: CookieRecord, now: Int64) -> [String] {
        let facts: [FactPage.Fact] = [
            ("name", Self.name(cookie)),
            ("value", "\(Self.value(cookie)) (\(cookie.valueBytes) bytes)"),
            ("domain", Self.domain(cookie) + (cookie.isHostOnly ? " alone" : " and below")),
            ("path", cookie.path),
            ("expires", Self.expiryInFull(cookie, now)),
            ("flags", Self.flags(cookie)),
            ("created", Human.date(microseconds: cookie.createdMicroseconds)),
            ("last used", Human.date(microseconds: cookie.lastUsedMicroseconds)),
        ]
        return FactPage.lines(facts.filter { !$0.value.isEmpty })
    }

    /// An object on one line, as `CookieJSON` has it; without the value where it is hidden.
    static func json(_ cookie: CookieRecord, now: Int64) -> String {
        var shown = cookie
        shown.value = cookie.value ?? ControlSecret([])
        guard let whole = Cookie(shown, at: Timestamp(microseconds: now)) else { return "{}" }
        return CookieJSON.line(
            of: whole, valueBytes: cookie.valueBytes, isHidden: cookie.value == nil)
    }

    private static func name(_ cookie: CookieRecord) -> String {
        let name = Printable.text(String(decoding: cookie.name, as: UTF8.self))
        return name.isEmpty ? "(no name)" : name
    }

    private static func value(_ cookie: CookieRecord) -> String {
        guard let value = cookie.value else { return Self.hidden }
        return Printable.text(String(decoding: value.revealed, as: UTF8.self))
    }

    /// With a dot before it where it holds for the names below, too.
    private static func domain(_ cookie: CookieRecord) -> String {
        cookie.isHostOnly ? cookie.domain : ".\(cookie.domain)"
    }

    private static func expiry(_ cookie: CookieRecord, _ now: Int64) -> String {
        guard let expiry = cookie.expiryMicroseconds else { return "session" }
        let (left, overflow) = expiry.subtractingReportingOverflow(now)
        return "in \(Human.time(milliseconds: (overflow ? .max : left) / 1000))"
    }

    private static func expiryInFull(_ cookie: CookieRecord, _ now: Int64) -> String {
        guard let expiry = cookie.expiryMicroseconds else { return "with the session" }
        return "\(Human.date(microseconds: expiry)) (\(Self.expiry(cookie, now)))"
    }

    private static func flags(_ cookie: CookieRecord) -> String {
        var flags: [String] = []
        if cookie.isSecure { flags.append("Secure") }
        if cookie.isHTTPOnly { flags.append("HttpOnly") }
        if cookie.sameSite != SameSite.unspecified.rawValue {
            flags.append("SameSite=\(cookie.sameSite.prefix(1).uppercased())")
            flags[flags.count - 1] += cookie.sameSite.dropFirst()
        }
        return flags.joined(separator: " ")
    }

    /// Why a jar does not take a cookie, for people.
    static func reason(_ token: String) -> String {
        if token == CookieVerdict.expired.refusal { return "its date lies in the past" }
        guard let refusal = CookieRefusal(rawValue: token) else { return token }
        return switch refusal {
        case .controlCharacter: "a control character is in its name or value (RFC 6265bis §5.6)"
        case .tooLarge: "name and value are longer than 4096 bytes together (RFC 6265bis §5.6)"
        case .empty: "it has neither name nor value (RFC 6265bis §5.7)"
        case .scheme: "the scheme has no cookies"
        case .policyNever: "the session accepts none"
        case .thirdParty: "it is not of the main document's domain"
        case .malformedDomain: "the domain is no host's name in ASCII"
        case .publicSuffix: "anyone may register names below its domain (RFC 6265bis §5.7)"
        case .foreignDomain: "its domain is another's (RFC 6265bis §5.7)"
        case .insecureSource, .overlaysSecure: "a secure cookie needs https (RFC 6265bis §5.7)"
        case .httpOnly: "an HttpOnly cookie is not for scripts (RFC 6265bis §5.7)"
        case .crossSite: "it is bound to its site (RFC 6265bis §5.7)"
        case .sameSiteNoneInsecure: "SameSite=None needs Secure (RFC 6265bis §5.7)"
        case .securePrefix: "a name that begins with __Secure- needs Secure (RFC 6265bis §5.4.1)"
        case .hostPrefix:
            "a name that begins with __Host- needs Secure, the path / and no names below "
                + "(RFC 6265bis §5.4.2)"
        case .namelessPrefix: "its value would be read as a name with a prefix (RFC 6265bis §5.7)"
        case .malformedPath: "the path does not begin with a slash"
        case .separator:
            "a semicolon in its name or value, or an equals sign in its name, would make it another "
                + "(RFC 6265bis §5.6)"
        }
    }
}
