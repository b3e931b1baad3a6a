package import LarderHTTP

extension CookieJar {
    /// Takes the cookies that a response sets: each `Set-Cookie` line by itself, in order.
    ///
    /// - Returns: one outcome a line.
    package mutating func store(
        _ fields: Fields, for context: CookieContext, at now: Timestamp
    ) -> [CookieOutcome] {
        fields.values(FieldName(.setCookie)).map { line in
            do throws(CookieRefusal) {
                return self.store(try SetCookie(parsing: line), for: context, at: now)
            } catch {
                return .refused(error)
            }
        }
    }

    /// Takes one cookie from a response (RFC 6265bis §5.7).
    package mutating func store(
        _ setCookie: SetCookie, for context: CookieContext, at now: Timestamp
    ) -> CookieOutcome {
        do throws(CookieRefusal) {
            try self.checkPolicy(context)
            let cookie = try self.cookie(setCookie, for: context, at: now)
            try self.checkSource(of: cookie, context, at: now)
            if cookie.name.spellsPrefix("__Host-"), setCookie.path == .absent {
                throw .hostPrefix
            }
            if let refusal = CookieRules.broken(by: cookie, self.suffixes) { throw refusal }
            let old = self[cookie.identity]
            if let old, old.isHTTPOnly, !context.isHTTP, !old.isExpired(at: now) {
                throw .httpOnly
            }
            return self.put(cookie, replacing: old, at: now)
        } catch {
            return .refused(error)
        }
    }

    /// Puts a cookie in as it is, for a person or from a file, checking only what holds for any
    /// cookie whatever its source.
    package mutating func set(_ cookie: Cookie, at now: Timestamp) -> CookieOutcome {
        if let refusal = CookieRules.broken(by: cookie, self.suffixes) {
            return .refused(refusal)
        }
        var cookie = cookie
        cookie.expiry = cookie.expiry.map { min($0, now + self.limits.lifetime) }
        return self.put(cookie, replacing: self[cookie.identity], at: now)
    }

    private func checkPolicy(_ context: CookieContext) throws(CookieRefusal) {
        guard context.hasCookies else { throw .scheme }
        switch self.acceptPolicy {
        case .always:
            return
        case .never:
            throw .policyNever
        case .onlyFromMainDocumentDomain:
            let host = context.uri.host
            let main = context.mainDocumentHost ?? host
            guard CookieDomain.isSameSite(host, main, self.suffixes) else { throw .thirdParty }
        }
    }

    /// The cookie that a line asks for.
    private func cookie(
        _ line: SetCookie, for context: CookieContext, at now: Timestamp
    ) throws(CookieRefusal) -> Cookie {
        let host = context.uri.host
        let domain = try self.domain(line.domain ?? "", host)
        let path =
            switch line.path {
            case .explicit(let path): path
            case .absent, .defaulted: CookiePath.default(context.uri.path)
            }
        return Cookie(
            name: line.name, value: line.value, domain: domain ?? host,
            isHostOnly: domain == nil, path: path, isSecure: line.isSecure,
            isHTTPOnly: line.isHTTPOnly, sameSite: line.sameSite, creation: now,
            expiry: self.expiry(line, at: now))
    }

    /// The domain that the attribute gives; nil where the cookie is for the host alone.
    private func domain(
        _ attribute: String, _ host: String
    ) throws(CookieRefusal) -> String? {
        guard attribute.utf8.allSatisfy({ $0 < 0x80 }) else { throw .malformedDomain }
        if attribute.isEmpty { return nil }
        if CookieDomain.isPublicSuffix(attribute, self.suffixes) {
            guard attribute == host else { throw .publicSuffix }
            return nil
        }
        guard CookieDomain.matches(host, attribute) else { throw .foreignDomain }
        return attribute
    }

    /// `Max-Age` before `Expires`, both within the limit of §5.5; nil for a session's cookie.
    private func expiry(_ line: SetCookie, at now: Timestamp) -> Timestamp? {
        if let age = line.maxAge {
            return age <= .zero ? now : now + min(age, self.limits.lifetime)
        }
        return line.expires.map { min($0, now + self.limits.lifetime) }
    }

    /// The steps of §5.7 that look at where the cookie comes from.
    private func checkSource(
        of cookie: Cookie, _ context: CookieContext, at now: Timestamp
    ) throws(CookieRefusal) {
        if !context.isSecure {
            if cookie.isSecure { throw .insecureSource }
            if self.overlaysSecure(cookie, at: now) { throw .overlaysSecure }
        }
        if cookie.isHTTPOnly, !context.isHTTP { throw .httpOnly }
        if cookie.sameSite != .none, case .crossSite(let navigation, _) = context.site,
            !navigation
        {
            throw .crossSite
        }
    }

    /// Whether a cookie that is not secure would hide one that is: same name, domains one within
    /// the other, and its path within that of the secure one.
    private func overlaysSecure(_ cookie: Cookie, at now: Timestamp) -> Bool {
        self.domains.contains { domain, cookies in
            guard
                CookieDomain.matches(cookie.domain, domain)
                    || CookieDomain.matches(domain, cookie.domain)
            else { return false }
            return cookies.contains {
                $0.isSecure && $0.name == cookie.name && !$0.isExpired(at: now)
                    && CookiePath.matches(cookie.path[...], $0.path)
            }
        }
    }

    private mutating func put(
        _ cookie: Cookie, replacing old: Cookie?, at now: Timestamp
    ) -> CookieOutcome {
        guard !cookie.isExpired(at: now) else {
            // Stored and expired at once: only what it replaces goes.
            let changes = old.map { self.remove($0.identity) } ?? []
            return CookieOutcome(refusal: nil, changes: changes)
        }
        var cookie = cookie
        if let old, !old.isExpired(at: now) { cookie.creation = old.creation }
        self.insert(cookie)
        return CookieOutcome(
            refusal: nil, changes: [.stored(cookie)] + self.evict(at: now, from: cookie.domain))
    }

    /// Puts a cookie in the place of the one with its identity, or at the end.
    mutating func insert(_ cookie: Cookie) {
        let identity = cookie.identity
        if let index = self.domains[cookie.domain]?.firstIndex(where: { $0.identity == identity }) {
            self.domains[cookie.domain]?[index] = cookie
        } else {
            self.domains[cookie.domain, default: []].append(cookie)
            self.count += 1
        }
    }
}
