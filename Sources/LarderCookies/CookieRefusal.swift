/// Why a cookie is not stored: one case a rule.
///
/// The raw value is a token, for log and counters.
package enum CookieRefusal: String, Error, Sendable, Codable, CaseIterable {
    /// Name or line holds a control character other than a tab (RFC 6265bis §5.6).
    case controlCharacter = "control-character"
    /// Name and value together are longer than 4096 octets (§5.6).
    case tooLarge = "too-large"
    /// Neither name nor value (§5.7).
    case empty
    /// The URI's scheme has no cookies.
    case scheme
    /// The accept policy is `never`.
    case policyNever = "policy-never"
    /// The accept policy wants the main document's domain, and this is another.
    case thirdParty = "third-party"
    /// `Domain` holds something other than ASCII (§5.7).
    case malformedDomain = "malformed-domain"
    /// `Domain` is a public suffix, and not the host itself (§5.7).
    case publicSuffix = "public-suffix"
    /// The host that sent the cookie is not within `Domain` (§5.7).
    case foreignDomain = "foreign-domain"
    /// `Secure` from a source that is not secure (§5.7).
    case insecureSource = "insecure-source"
    /// It would lie over a secure cookie, and its source is not secure (§5.7: "leave secure
    /// cookies alone").
    case overlaysSecure = "overlays-secure"
    /// A script may neither set nor replace an HttpOnly cookie (§5.7).
    case httpOnly = "http-only"
    /// A cookie bound to its site came with a cross-site request (§5.7).
    case crossSite = "cross-site"
    /// `SameSite=None` without `Secure` (§5.7).
    case sameSiteNoneInsecure = "same-site-none-insecure"
    /// The name promises `__Secure-`, and the cookie is not (§5.4.1).
    case securePrefix = "secure-prefix"
    /// The name promises `__Host-`, and the cookie is not (§5.4.2).
    case hostPrefix = "host-prefix"
    /// The value of a nameless cookie would be read as a prefixed name (§5.7).
    case namelessPrefix = "nameless-prefix"
    /// The path does not begin with a slash; only a person's cookie can have such a one.
    case malformedPath = "malformed-path"
    /// `;` in name or value, or `=` in the name: where it is sent it would be read as another cookie, or
    /// as two (§5.6). Only a person's cookie can have them.
    case separator
}
