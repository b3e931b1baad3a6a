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
    /// Takes the place of the jar's own policy; nil: that one.
    package var accept: CookieAcceptPolicy?
    /// Whether a cookie that says nothing of sites is taken for `Lax` (RFC 6265bis §5.6.7.1).
    ///
    /// That is for browsers, where scripts of other sites make requests.
    package var isLaxByDefault = true
    /// A redirection that was followed for the client led here from another site.
    ///
    /// The client takes the answer for that of what it asked for: what it would be shown by a
    /// navigation alone, such as the `Lax` cookies of this site would bring, is not its to read.
    package var isLed = false

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

    /// The context of a program's request, which names the document that it is for.
    ///
    /// - Parameters:
    ///   - mainDocumentHost: nil: the request is its own main document.
    ///   - suffixes: asked here, so that a jar need not.
    package init(
        uri: TargetURI, mainDocumentHost: String?, suffixes: any PublicSuffixes,
        accept: CookieAcceptPolicy? = nil
    ) {
        let answers = SuffixAnswers(
            for: [uri.host] + (mainDocumentHost.map { [$0] } ?? []), from: suffixes)
        let isOwnSite = mainDocumentHost.map { CookieDomain.isSameSite(uri.host, $0, answers) }
        self.init(
            uri: uri,
            site: isOwnSite ?? true
                ? .sameSite : .crossSite(navigation: false, safeMethod: false),
            mainDocumentHost: mainDocumentHost, suffixes: answers)
        self.accept = accept
        self.isLaxByDefault = false
    }

    /// What a cookie's word on sites means, as far as this request is concerned.
    func effective(_ sameSite: SameSite) -> SameSite {
        sameSite == .unspecified && !self.isLaxByDefault ? .none : sameSite
    }

    /// Whether the request may bear a cookie that says so of sites.
    package func permits(_ sameSite: SameSite) -> Bool {
        guard case .crossSite(let navigation, let safeMethod) = self.site else { return true }
        switch self.effective(sameSite) {
        case .none: return true
        case .strict: return false
        case .lax where self.isLed: return false
        case .lax, .unspecified: return self.isHTTP && navigation && safeMethod
        }
    }

    /// Cookies belong to HTTP; a file transfer has none.
    var hasCookies: Bool { self.uri.scheme != .ftp }
    /// Whether the connection is secure: https, and nothing else.
    var isSecure: Bool { self.uri.scheme == .https }
}
