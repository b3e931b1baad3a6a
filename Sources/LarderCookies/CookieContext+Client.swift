package import LarderHTTP

// A proxy does not see documents. It sees what a client says of them, and goes by the first of
// these that there is:
//
// 1. `Sec-Fetch-Site`, with `Sec-Fetch-Mode` and `Sec-Fetch-Dest` (browsers, to secure origins). A
//    navigation of the whole document is its own main document; of everything else the main
//    document is of the site that was asked, or, after `cross-site`, that of `Origin` or `Referer`.
// 2. `Origin`: the main document is of that origin; `null` is another one, not known.
// 3. `Referer`: the same. A link that was followed cannot be told from an image by it; so the accept
//    policy takes the worse for granted, `SameSite` the better where the method is safe.
// 4. Nothing, as programs other than browsers: each request is its own main document.

extension CookieContext {
    /// The context of a request, by what its client says of the document that it is for.
    ///
    /// - Parameters:
    ///   - client: the client's own fields.
    ///   - first: what the client asked for, where a redirection led here; `uri` itself otherwise;
    ///     nil where that is not known.
    ///   - suffixes: asked here, so that a jar need not.
    package init(
        uri: TargetURI, method: Method, client: Fields, first: TargetURI?,
        suffixes: any PublicSuffixes
    ) {
        let document = MainDocument(client, method: method, first: first, suffixes)
        let hosts = [uri.host, first?.host, document.host].compactMap { $0 }
        let suffixes = SuffixAnswers(for: hosts, from: suffixes)
        self.init(
            uri: uri,
            site: document.relation(
                to: uri, safeMethod: method.isSafe, first: first, suffixes: suffixes),
            mainDocumentHost: document.host, suffixes: suffixes)
        self.isLed =
            first.map { !CookieDomain.isSameSite(uri.host, $0.host, suffixes) } ?? true
    }
}

/// The main document of a request, as far as a client says.
private enum MainDocument {
    /// The request fetches it.
    case request(fromAnotherSite: Bool)
    /// It is there, of this origin. Perhaps the request navigates nevertheless.
    case origin(host: String, scheme: Scheme?, mayNavigate: Bool)
    /// It is of another site, which is not known.
    case unknown

    init(
        _ client: Fields, method: Method, first: TargetURI?, _ suffixes: any PublicSuffixes
    ) {
        if let site = client.first("Sec-Fetch-Site") {
            self.init(site, client, first, suffixes)
        } else if let origin = client.first("Origin") {
            self = Self(reference: origin, mayNavigate: false) ?? .unknown
        } else {
            self =
                client.first(FieldName(.referer)).flatMap {
                    Self(reference: $0, mayNavigate: method.isSafe)
                } ?? .request(fromAnotherSite: false)
        }
    }

    /// By the fields of Fetch Metadata.
    private init(
        _ site: FieldValue, _ client: Fields, _ first: TargetURI?, _ suffixes: any PublicSuffixes
    ) {
        let isOwn =
            site.spells("same-origin") || site.spells("same-site") || site.spells("none")
        let navigates = client.first("Sec-Fetch-Mode")?.spells("navigate") ?? false
        let isEmbedded = client.first("Sec-Fetch-Dest").map { !$0.spells("document") } ?? false
        if navigates, !isEmbedded {
            self = .request(fromAnotherSite: !isOwn)
        } else if isOwn {
            self =
                first.map { .origin(host: $0.host, scheme: nil, mayNavigate: false) } ?? .unknown
        } else {
            let reference = client.first("Origin") ?? client.first(FieldName(.referer)) ?? []
            self = Self(reference: reference, mayNavigate: false) ?? .unknown
            // The client says "cross-site", and knows better than two names that are alike.
            if case .origin(let host, _, _) = self, let first,
                CookieDomain.isSameSite(host, first.host, suffixes)
            {
                self = .unknown
            }
        }
    }

    /// By an origin or a URI; nil where it is none.
    private init?(reference: FieldValue, mayNavigate: Bool) {
        guard let uri = TargetURI(text: String(decoding: reference, as: UTF8.self)) else {
            return nil
        }
        self = .origin(host: uri.host, scheme: uri.scheme, mayNavigate: mayNavigate)
    }

    var host: String? {
        switch self {
        case .request: nil
        case .origin(let host, _, _): host
        case .unknown: ""
        }
    }

    /// How a request stands to the document (RFC 6265bis §5.2).
    ///
    /// Sites are compared with their schemes where the client names one. A redirection that the
    /// session follows to another site is a navigation from the first, which leaves `Strict` cookies
    /// at home; that from http to https on one site is none to another.
    func relation(
        to uri: TargetURI, safeMethod: Bool, first: TargetURI?, suffixes: any PublicSuffixes
    ) -> SiteRelation {
        switch self {
        case .request(let fromAnotherSite):
            let stays =
                first.map { CookieDomain.isSameSite(uri.host, $0.host, suffixes) } ?? false
            return fromAnotherSite || !stays
                ? .crossSite(navigation: true, safeMethod: safeMethod) : .sameSite
        case .origin(let host, let scheme, let mayNavigate):
            if scheme ?? uri.scheme == uri.scheme,
                CookieDomain.isSameSite(uri.host, host, suffixes)
            {
                return .sameSite
            }
            return .crossSite(navigation: mayNavigate, safeMethod: safeMethod)
        case .unknown:
            return .crossSite(navigation: false, safeMethod: safeMethod)
        }
    }
}
