package import LarderHTTP

/// Whose cookies a jar accepts.
package enum CookieAcceptPolicy: String, Sendable, Codable, CaseIterable {
    case always
    case never
    case onlyFromMainDocumentDomain = "only-from-main-document-domain"
}

/// How a request relates to the site of the document it is for (RFC 6265bis §5.2).
package enum SiteRelation: Sendable, Hashable {
    case sameSite
    /// From another site. Navigation is that of a whole document; safe is the method.
    case crossSite(navigation: Bool, safeMethod: Bool)
}

/// The request that cookies are for, or whose response brought them.
package struct CookieContext: Sendable {
    package var uri: TargetURI
    package var site: SiteRelation
    /// The host of the main document; nil means that the request's own URI is it, an empty one that
    /// it is another, not known.
    package var mainDocumentHost: String?
    /// False for a "non-HTTP" API, which neither sees nor sets HttpOnly cookies (§5.8.2).
    package var isHTTP: Bool
    /// What the jar's list of suffixes says of the hosts here; nil to have the jar ask it.
    package var suffixes: SuffixAnswers?

    package init(
        uri: TargetURI, site: SiteRelation = .sameSite, mainDocumentHost: String? = nil,
        isHTTP: Bool = true, suffixes: SuffixAnswers? = nil
    ) {
        self.uri = uri
        self.site = site
        self.mainDocumentHost = mainDocumentHost
        self.isHTTP = isHTTP
        self.suffixes = suffixes
    }

    /// Cookies belong to HTTP; a file transfer has none.
    var hasCookies: Bool { self.uri.scheme != .ftp }
    /// Whether the connection is secure: https, and nothing else.
    var isSecure: Bool { self.uri.scheme == .https }
}
