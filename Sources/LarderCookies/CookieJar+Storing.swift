package import LarderHTTP

extension CookieJar {
    /// Takes the cookies that a response sets: each `Set-Cookie` line by itself, in order.
    ///
    /// - Returns: one outcome a line; evictions from the whole jar stand in the last one that stored.
    package mutating func store(
        _ fields: Fields, for context: CookieContext, at now: Timestamp
    ) -> [CookieOutcome] {
        self.store(SetCookie.lines(of: fields), for: context, at: now)
    }

    /// Takes cookies from `Set-Cookie` lines that were read already.
    ///
    /// Costs what the lines cost and one look at the whole jar, however many lines there are.
    package mutating func store(
        _ lines: [Result<SetCookie, CookieRefusal>], for context: CookieContext, at now: Timestamp
    ) -> [CookieOutcome] {
        let suffixes: any PublicSuffixes = context.suffixes ?? self.suffixes
        // The same for each line, and a list of suffixes is asked for it.
        if let refusal = self.policyRefusal(context, suffixes) {
            return lines.map { line in
                if case .failure(let own) = line { .refused(own) } else { .refused(refusal) }
            }
        }
        let secure = SecureNames(in: self, against: context, suffixes, at: now)
        var outcomes: [CookieOutcome] = []
        outcomes.reserveCapacity(lines.count)
        for (index, line) in lines.enumerated() {
            switch line {
            case .success(let setCookie):
                // A microsecond later each: cookies of one response are sent in the order of its
                // lines, also after they were in a storage, which keeps no order.
                let moment = now + .microseconds(Int64(clamping: index))
                outcomes.append(
                    self.take(setCookie, for: context, suffixes, secure, created: moment, at: now))
            case .failure(let refusal):
                outcomes.append(.refused(refusal))
            }
        }
        return self.shrunk(after: outcomes, at: now)
    }

    /// Removes what is too much in the whole jar, and says so in the last outcome that stored.
    private mutating func shrunk(
        after outcomes: [CookieOutcome], at now: Timestamp
    ) -> [CookieOutcome] {
        let evicted = self.shrink(at: now)
        guard !evicted.isEmpty, let last = outcomes.lastIndex(where: \.isStored) else {
            return outcomes
        }
        var outcomes = outcomes
        outcomes[last] = CookieOutcome(refusal: nil, changes: outcomes[last].changes + evicted)
        return outcomes
    }

    /// Takes one cookie from a response.
    package mutating func store(
        _ setCookie: SetCookie, for context: CookieContext, at now: Timestamp
    ) -> CookieOutcome {
        self.store([.success(setCookie)], for: context, at: now).first
            ?? CookieOutcome(refusal: nil, changes: [])
    }

    /// RFC 6265bis §5.7, but for the limit of the whole jar.
    private mutating func take(
        _ setCookie: SetCookie, for context: CookieContext, _ suffixes: any PublicSuffixes,
        _ secure: SecureNames, created: Timestamp, at now: Timestamp
    ) -> CookieOutcome {
        do throws(CookieRefusal) {
            var cookie = try self.cookie(setCookie, for: context, suffixes, at: now)
            cookie.creation = created
            try self.checkSource(of: cookie, context, beside: secure)
            if cookie.name.spellsPrefix("__Host-"), setCookie.path == .absent {
                throw .hostPrefix
            }
            if let refusal = CookieRules.broken(by: cookie, suffixes) { throw refusal }
            let old = self[cookie.identity]
            if let old, old.isHTTPOnly, !context.isHTTP, !old.isExpired(at: now) {
                throw .httpOnly
            }
            return self.put(cookie, replacing: old, at: now)
        } catch {
            return .refused(error)
        }
    }

    /// Puts a cookie in as it is, for a person, checking only what holds for any cookie whatever its
    /// source.
    package mutating func set(_ cookie: Cookie, at now: Timestamp) -> CookieOutcome {
        self.set([cookie], at: now).first ?? CookieOutcome(refusal: nil, changes: [])
    }

    /// Puts all cookies of a file in as they are, with one look at the whole jar.
    ///
    /// - Parameter keepingExpiry: what a program asks for is not held to the limit of §5.5.
    /// - Returns: one outcome a cookie; evictions from the whole jar stand in the last one that
    ///   stored.
    package mutating func set(
        _ cookies: [Cookie], keepingExpiry: Bool = false, at now: Timestamp
    ) -> [CookieOutcome] {
        var outcomes: [CookieOutcome] = []
        outcomes.reserveCapacity(cookies.count)
        for cookie in cookies {
            if let refusal = CookieRules.broken(by: cookie, self.suffixes) {
                outcomes.append(.refused(refusal))
                continue
            }
            let cookie = keepingExpiry ? cookie : self.limited(cookie, at: now)
            outcomes.append(self.put(cookie, replacing: self[cookie.identity], at: now))
        }
        return self.shrunk(after: outcomes, at: now)
    }

    /// Takes cookies that a program has read from a response by itself: each as if a line had set it.
    ///
    /// - Returns: one outcome a cookie; evictions from the whole jar stand in the last one that
    ///   stored.
    package mutating func store(
        _ cookies: [Cookie], for context: CookieContext, at now: Timestamp
    ) -> [CookieOutcome] {
        let suffixes: any PublicSuffixes = context.suffixes ?? self.suffixes
        if let refusal = self.policyRefusal(context, suffixes) {
            return cookies.map { _ in .refused(refusal) }
        }
        let secure = SecureNames(in: self, against: context, suffixes, at: now)
        let outcomes = cookies.enumerated().map { index, offered in
            do throws(CookieRefusal) {
                let host = context.uri.host
                guard
                    offered.isHostOnly
                        ? offered.domain == host : CookieDomain.matches(host, offered.domain)
                else { throw .foreignDomain }
                try self.checkSource(of: offered, context, beside: secure)
                if let refusal = CookieRules.broken(by: offered, self.suffixes) { throw refusal }
                // Whoever reads responses by itself has set the date, too.
                var cookie = offered
                cookie.creation = now + .microseconds(Int64(clamping: index))
                return self.put(cookie, replacing: self[cookie.identity], at: now)
            } catch {
                return .refused(error)
            }
        }
        return self.shrunk(after: outcomes, at: now)
    }

    private func limited(_ cookie: Cookie, at now: Timestamp) -> Cookie {
        var cookie = cookie
        cookie.expiry = cookie.expiry.map { min($0, now + self.limits.lifetime) }
        return cookie
    }

    /// Why no cookie is taken from such a response.
    private func policyRefusal(
        _ context: CookieContext, _ suffixes: any PublicSuffixes
    ) -> CookieRefusal? {
        guard context.hasCookies else { return .scheme }
        switch context.accept ?? self.acceptPolicy {
        case .always:
            return nil
        case .never:
            return .policyNever
        case .onlyFromMainDocumentDomain:
            let host = context.uri.host
            let main = context.mainDocumentHost ?? host
            return CookieDomain.isSameSite(host, main, suffixes) ? nil : .thirdParty
        }
    }

    /// The cookie that a line asks for.
    private func cookie(
        _ line: SetCookie, for context: CookieContext, _ suffixes: any PublicSuffixes,
        at now: Timestamp
    ) throws(CookieRefusal) -> Cookie {
        let host = context.uri.host
        let domain = try self.domain(line.domain ?? "", host, suffixes)
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
        _ attribute: String, _ host: String, _ suffixes: any PublicSuffixes
    ) throws(CookieRefusal) -> String? {
        guard attribute.utf8.allSatisfy({ $0 < 0x80 }) else { throw .malformedDomain }
        if attribute.isEmpty { return nil }
        if CookieDomain.isPublicSuffix(attribute, suffixes) {
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
        of cookie: Cookie, _ context: CookieContext, beside secure: SecureNames
    ) throws(CookieRefusal) {
        if !context.isSecure, cookie.isSecure { throw .insecureSource }
        if secure.areOverlaid(by: cookie) { throw .overlaysSecure }
        if cookie.isHTTPOnly, !context.isHTTP { throw .httpOnly }
        if context.effective(cookie.sameSite) != .none,
            case .crossSite(let navigation, _) = context.site, !navigation
        {
            throw .crossSite
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
            refusal: nil, changes: [.stored(cookie)] + self.shrink(cookie.domain, at: now),
            isRepetition: old.map { cookie.isSame(as: $0) } ?? false)
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
