import LarderHTTP

/// The secure cookies that a response over an insecure connection must leave alone (RFC 6265bis
/// §5.7).
///
/// Gathered once a response: as it cannot set secure cookies, their number only falls meanwhile.
struct SecureNames {
    /// Where a cookie of that name is for.
    private struct Place {
        let domain: String
        let path: String
    }

    private var places: [[UInt8]: [Place]] = [:]

    /// Empty where the connection is secure, which may replace any.
    init(
        in jar: CookieJar, against context: CookieContext, _ suffixes: any PublicSuffixes,
        at now: Timestamp
    ) {
        guard !context.isSecure, context.hasCookies else { return }
        // What the response may set lies at its host or above; so does all that it could hide, or
        // below one of these.
        let reach = CookieDomain.registrable(context.uri.host, suffixes)
        for (domain, cookies) in jar.domains {
            guard
                CookieDomain.matches(domain, reach) || CookieDomain.matches(reach, domain)
            else { continue }
            for cookie in cookies where cookie.isSecure && !cookie.isExpired(at: now) {
                self.places[cookie.name, default: []]
                    .append(Place(domain: domain, path: cookie.path))
            }
        }
    }

    /// Whether the cookie would hide a secure one: same name, domains one within the other, and its
    /// path within that of the secure one.
    func areOverlaid(by cookie: Cookie) -> Bool {
        guard let places = self.places[cookie.name] else { return false }
        return places.contains {
            (CookieDomain.matches(cookie.domain, $0.domain)
                || CookieDomain.matches($0.domain, cookie.domain))
                && CookiePath.matches(cookie.path[...], $0.path)
        }
    }
}
