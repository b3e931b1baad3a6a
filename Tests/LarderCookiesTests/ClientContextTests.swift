import LarderCookies
import LarderHTTP
import Testing

@Suite("What a client says of its document (RFC 6265bis §5.2, Fetch Metadata)")
struct ClientContextTests {
    struct Case: Sendable {
        let client: Fields
        let method: LarderHTTP.Method
        let uri: String
        /// What the client asked for; "?" where that is not known.
        let first: String
        let site: SiteRelation
        let main: String?

        init(
            _ client: Fields, _ site: SiteRelation, main: String?,
            method: LarderHTTP.Method = .get, uri: String = "https://a.test/",
            first: String? = nil
        ) {
            self.client = client
            self.method = method
            self.uri = uri
            self.first = first ?? uri
            self.site = site
            self.main = main
        }
    }

    private static let image: Fields = [
        "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image",
    ]
    private static let ownImage: Fields = [
        "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image",
    ]
    private static let link: Fields = [
        "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
        "Referer": "https://b.test/",
    ]

    private static func check(_ c: Case) {
        let first = c.first == "?" ? nil : uri(c.first)
        let context = CookieContext(
            uri: uri(c.uri), method: c.method, client: c.client, first: first,
            suffixes: Suffixes())
        #expect(context.site == c.site)
        #expect(context.mainDocumentHost == c.main)
    }

    @Test(
        "one request",
        arguments: [
            Case([:], .sameSite, main: nil),
            // Fetch Metadata
            Case(["Sec-Fetch-Site": "none"], .sameSite, main: "a.test"),
            Case(["Sec-Fetch-Site": "same-site"], .sameSite, main: "a.test"),
            Case(["Sec-Fetch-Site": "Same-Origin"], .sameSite, main: "a.test"),
            Case(["Sec-Fetch-Site": "cross-site"], .embedded, main: ""),
            Case(["Sec-Fetch-Site": "a word of tomorrow"], .embedded, main: ""),
            Case(Self.image, .embedded, main: ""), Case(Self.link, .navigation, main: nil),
            Case(Self.link, .post, main: nil, method: .post),
            Case(
                ["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"], .navigation,
                main: nil),
            Case(
                [
                    "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                    "Sec-Fetch-Dest": "iframe", "Referer": "https://b.test/x",
                ], .embedded, main: "b.test"),
            Case(
                ["Sec-Fetch-Site": "cross-site", "Origin": "https://b.test"], .embedded,
                main: "b.test"),
            Case(
                ["Sec-Fetch-Site": "cross-site", "Referer": "https://w.a.test/"], .embedded,
                main: ""),
            Case(
                ["Sec-Fetch-Site": "same-origin", "Origin": "https://b.test"], .sameSite,
                main: "a.test"),
            // Origin
            Case(["Origin": "https://w.a.test"], .sameSite, main: "w.a.test"),
            Case(["Origin": "https://b.test:8443"], .embedded, main: "b.test"),
            Case(["Origin": "http://a.test"], .embedded, main: "a.test"),
            Case(["Origin": "null"], .embedded, main: ""),
            Case(["Origin": "x"], .embedded, main: ""),
            Case(
                ["Origin": "https://b.test", "Referer": "https://a.test/"],
                .crossSite(navigation: false, safeMethod: false), main: "b.test", method: .post),
            // Referer
            Case(["Referer": "https://a.test/x?y"], .sameSite, main: "a.test"),
            Case(["Referer": "https://b.test/x?y"], .navigation, main: "b.test"),
            Case(
                ["Referer": "https://b.test/"],
                .crossSite(navigation: false, safeMethod: false), main: "b.test", method: .post),
            Case(["Referer": "about:blank"], .sameSite, main: nil),
            Case(["Referer": "/x"], .sameSite, main: nil),
        ])
    func request(_ c: Case) { Self.check(c) }

    @Test(
        "a redirection that is followed",
        arguments: [
            // To the same site, also from http to https.
            Case([:], .sameSite, main: nil, uri: "https://w.a.test/", first: "http://a.test/"),
            // To another: as if a link had been followed.
            Case([:], .navigation, main: nil, uri: "https://b.test/", first: "https://a.test/"),
            Case(
                [:], .post, main: nil, method: .post, uri: "https://b.test/",
                first: "https://a.test/"),
            Case([:], .navigation, main: nil, uri: "https://b.test/", first: "?"),
            Case(
                Self.link, .navigation, main: nil, uri: "https://c.test/", first: "https://a.test/"),
            // An image stays part of its document.
            Case(
                Self.ownImage, .embedded, main: "a.test", uri: "https://b.test/",
                first: "https://a.test/"),
            Case(
                Self.ownImage, .sameSite, main: "a.test", uri: "https://w.a.test/",
                first: "https://a.test/"),
            Case(Self.ownImage, .embedded, main: "", uri: "https://b.test/", first: "?"),
            Case(Self.image, .embedded, main: "", uri: "https://b.test/", first: "https://a.test/"),
            // Back to where the document is.
            Case(
                ["Referer": "https://b.test/"], .sameSite, main: "b.test", uri: "https://b.test/",
                first: "https://a.test/"),
        ])
    func redirection(_ c: Case) { Self.check(c) }

    @Test("another document that is not known is of no site at all")
    func unknown() {
        var jar = jar(.onlyFromMainDocumentDomain)
        #expect(jar.take("a=b", context("https://a.test/", main: "")).refusal == .thirdParty)
        #expect(jar.take("a=b", context("https://localhost/", main: "")).refusal == .thirdParty)
        #expect(jar.take("a=b", context("https://127.0.0.1/", main: "")).refusal == .thirdParty)
    }
}
