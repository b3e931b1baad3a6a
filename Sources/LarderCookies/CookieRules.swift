import LarderHTTP

/// What holds for every cookie, whoever sets it (RFC 6265bis §5.6, §5.7).
package enum CookieRules {
    /// The rule that the cookie breaks.
    package static func broken(
        by cookie: Cookie, _ suffixes: any PublicSuffixes
    ) -> CookieRefusal? {
        if cookie.name.isEmpty, cookie.value.isEmpty { return .empty }
        if (cookie.name + cookie.value).contains(where: SetCookie.isForbidden) {
            return .controlCharacter
        }
        if cookie.name.count + cookie.value.count > SetCookie.pairLimit.clamped {
            return .tooLarge
        }
        guard cookie.path.utf8.first == UInt8(ascii: "/") else { return .malformedPath }
        guard self.isDomain(cookie.domain) else { return .malformedDomain }
        if !cookie.isHostOnly, CookieDomain.isPublicSuffix(cookie.domain, suffixes) {
            return .publicSuffix
        }
        if cookie.sameSite == .none, !cookie.isSecure { return .sameSiteNoneInsecure }
        return self.prefixBroken(by: cookie)
    }

    /// Visible ASCII in lower case, without what separates in a field or a URI.
    private static func isDomain(_ domain: String) -> Bool {
        !domain.isEmpty
            && domain.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && ASCII.lowercased($0) == $0 && $0 != UInt8(ascii: "/")
                    && $0 != ASCII.semicolon && $0 != ASCII.comma
            }
    }

    /// What a name's beginning promises (§5.4), in whatever case: servers compare loosely.
    private static func prefixBroken(by cookie: Cookie) -> CookieRefusal? {
        if cookie.name.spellsPrefix("__Secure-"), !cookie.isSecure { return .securePrefix }
        if cookie.name.spellsPrefix("__Host-") {
            guard cookie.isSecure, cookie.isHostOnly, cookie.path == "/" else {
                return .hostPrefix
            }
        }
        if cookie.name.isEmpty,
            cookie.value.spellsPrefix("__Secure-") || cookie.value.spellsPrefix("__Host-")
        {
            return .namelessPrefix
        }
        return nil
    }
}

extension [UInt8] {
    /// Whether the bytes begin with this ASCII text, case set aside.
    func spellsPrefix(_ prefix: String) -> Bool {
        self.count >= prefix.utf8.count
            && zip(self, prefix.utf8).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}
