package import LarderHTTP

extension CookieJar {
    /// The cookies for a request, in the order in which they are sent: longer paths first, of equal
    /// ones the older first (RFC 6265bis §5.8.3).
    package func cookies(for context: CookieContext, at now: Timestamp) -> [Cookie] {
        guard context.hasCookies else { return [] }
        let path = context.uri.path
        let found = CookieDomain.candidates(context.uri.host).flatMap { domain in
            (self.domains[domain] ?? []).filter {
                ($0.isHostOnly ? domain == context.uri.host : true)
                    && !$0.isExpired(at: now) && CookiePath.matches(path, $0.path)
                    && Self.permits($0, context)
            }
        }
        // The sort is stable: cookies of one response keep the order of their lines.
        return found.sorted {
            let (a, b) = ($0.path.utf8.count, $1.path.utf8.count)
            return a == b ? $0.creation < $1.creation : a > b
        }
    }

    /// The cookies for a request, which is about to be sent with them: they count as used now.
    package mutating func takeCookies(
        for context: CookieContext, at now: Timestamp
    ) -> [Cookie] {
        let cookies = self.cookies(for: context, at: now)
        let identities = Set(cookies.map(\.identity))
        for domain in Set(cookies.map(\.domain)) {
            guard let indices = self.domains[domain]?.indices else { continue }
            for index in indices {
                guard let identity = self.domains[domain]?[index].identity,
                    identities.contains(identity)
                else { continue }
                self.domains[domain]?[index].lastAccess = now
            }
        }
        return cookies
    }

    /// What the cookie's flags say about such a request.
    private static func permits(_ cookie: Cookie, _ context: CookieContext) -> Bool {
        if cookie.isSecure, !context.isSecure { return false }
        if cookie.isHTTPOnly, !context.isHTTP { return false }
        return context.permits(cookie.sameSite)
    }
}
