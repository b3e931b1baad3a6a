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
        if cookie.name.contains(UInt8(ascii: "=")) || cookie.name.contains(UInt8(ascii: ";"))
            || cookie.value.contains(UInt8(ascii: ";"))
        {
            return .separator
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

    /// A host as a `TargetURI` has it: letters in lower case, digits, `-._~`, or an IPv6 address in
    /// brackets; no dot at its beginning.
    static func isDomain(_ domain: String) -> Bool {
        let bytes = domain.utf8
        guard let first = bytes.first, first != UInt8(ascii: ".") else { return false }
        if first == UInt8(ascii: "[") {
            return bytes.last == UInt8(ascii: "]") && bytes.count > 2
                && bytes.dropFirst().dropLast().allSatisfy {
                    ASCII.hexDigit($0) != nil && ASCII.lowercased($0) == $0 || $0 == ASCII.colon
                        || $0 == UInt8(ascii: ".")
                }
        }
        return bytes.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                true
            default:
                false
            }
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
