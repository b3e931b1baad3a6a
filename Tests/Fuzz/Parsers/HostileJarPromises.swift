import LarderCookies
import LarderHTTP

/// Retrieval from a jar that was filled from a file of anybody's (RFC 6265bis §5.8.3).
///
/// The first line of the input is the URI of the request, the rest a cookie file.
enum HostileJarPromises {
    private static let now = Timestamp(seconds: 1_700_000_000)
    private static let limits = CookieLimits(perDomain: 4, total: 12)

    static func check(_ input: [UInt8]) throws(Violation) {
        let line = input.prefix { $0 != ASCII.lf }
        let text = String(decoding: line, as: UTF8.self)
        guard let uri = TargetURI(text: text) ?? TargetURI(text: "https://www.a.example/b/c")
        else { return }
        let file = NetscapeCookieFile.parse(Array(input.dropFirst(line.count + 1)), now: self.now)
        var byHand = CookieJar(limits: self.limits, suffixes: TopLevelSuffixes())
        for cookie in file.cookies { _ = byHand.set(cookie, at: self.now) }
        var restored = CookieJar(limits: self.limits, suffixes: TopLevelSuffixes())
        let changes = restored.restore(file.cookies, at: self.now)
        try hold(
            restored.count + changes.count >= Set(file.cookies.map(\.identity)).count,
            "cookies are lost without a word")
        for jar in [byHand, restored] {
            try hold(jar.count <= self.limits.total, "\(jar.count) cookies")
            try self.checkRetrieval(jar, uri)
        }
    }

    private static func checkRetrieval(_ jar: CookieJar, _ uri: TargetURI) throws(Violation) {
        let context = CookieContext(uri: uri)
        let cookies = jar.cookies(for: context, at: self.now)
        let paths = cookies.map(\.path.utf8.count)
        try hold(paths == paths.sorted(by: >), "short paths first: \(cookies)")
        for cookie in cookies {
            try hold(
                cookie.isHostOnly
                    ? cookie.domain == uri.host : CookieDomain.matches(uri.host, cookie.domain),
                "\(cookie) to \(uri.host)")
            try hold(CookiePath.matches(uri.path, cookie.path), "\(cookie) to \(uri.path)")
            try hold(!cookie.isSecure || uri.scheme == .https, "\(cookie) over \(uri.scheme)")
            try hold(!cookie.isExpired(at: self.now), "\(cookie) has expired")
        }
        for site in [
            SiteRelation.crossSite(navigation: true, safeMethod: true),
            .crossSite(navigation: false, safeMethod: true),
        ] {
            let crossing = jar.cookies(for: CookieContext(uri: uri, site: site), at: self.now)
            try hold(
                crossing.allSatisfy { $0.sameSite != .strict && cookies.contains($0) },
                "\(crossing) to another site")
        }
        for merging in CookieField.Merging.allCases {
            var sent: Fields = ["Cookie": "a=b", "Accept": "*/*"]
            CookieField.apply(cookies, to: &sent, by: merging)
            try checkSection(sent)
            try hold(sent.values("Cookie").count == 1, "\(sent.values("Cookie").count) lines")
        }
    }
}
