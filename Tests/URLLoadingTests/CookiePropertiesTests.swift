import Foundation
import Testing

@testable import URLLoading

private func made(_ properties: [HTTPCookiePropertyKey: Any]) -> HTTPCookie? {
    let defaults: [HTTPCookiePropertyKey: Any] = [
        .name: "n", .value: "v", .path: "/", .domain: "a.test",
    ]
    return HTTPCookie(properties: defaults.merging(properties) { $1 })
}

@Suite("A cookie made of properties (§9.1)")
struct CookiePropertiesTests {
    @Test("needs name, value, path, and a domain or an origin's URL")
    func needed() throws {
        let all: [HTTPCookiePropertyKey: Any] = [
            .name: "n", .value: "v", .path: "/p", .domain: "A.Test",
        ]
        let cookie = try #require(HTTPCookie(properties: all))
        #expect(cookie.name == "n" && cookie.value == "v" && cookie.path == "/p")
        #expect(cookie.domain == "a.test" && cookie.version == 0)
        for key in all.keys {
            var some = all
            some[key] = nil
            #expect(HTTPCookie(properties: some) == nil, "\(key)")
        }
        #expect(HTTPCookie(properties: [:]) == nil)
    }

    @Test("takes its domain from the origin's URL, be it a URL or a string")
    func origin() {
        var properties: [HTTPCookiePropertyKey: Any] = [.name: "n", .value: "v", .path: "/"]
        properties[.originURL] = URL(string: "https://Shop.test/x") as Any
        #expect(HTTPCookie(properties: properties)?.domain == "shop.test")
        properties[.originURL] = "https://shop.test:8443/x"
        #expect(HTTPCookie(properties: properties)?.domain == "shop.test")
        properties[.domain] = ".test.example"
        #expect(HTTPCookie(properties: properties)?.domain == ".test.example")
        properties[.domain] = nil
        properties[.originURL] = "nowhere"
        #expect(HTTPCookie(properties: properties) == nil)
    }

    @Test(
        "ends as Max-Age, then Expires, say",
        arguments: [
            ([.maximumAge: "100000"], 100_000), ([.maximumAge: 100_000], 100_000),
            ([.maximumAge: "100000", .version: "1"], 100_000),
            ([.maximumAge: "100000", .expires: Date(timeIntervalSinceNow: 7000)], 100_000),
            ([.maximumAge: "x", .expires: Date(timeIntervalSinceNow: 70_000)], 70_000),
            ([.maximumAge: "0"], 0), ([.maximumAge: "-50"], 0),
            ([.expires: Date(timeIntervalSinceNow: 70_000)], 70_000),
            ([.maximumAge: "99999999999999999999999"], Double(Int32.max)),
        ] as [([HTTPCookiePropertyKey: any Sendable], Double)])
    func ending(_ properties: [HTTPCookiePropertyKey: any Sendable], _ seconds: Double) throws {
        let cookie = try #require(made(properties))
        let rest = try #require(cookie.expiresDate).timeIntervalSinceNow
        // The dates were made with the arguments, perhaps a minute ago on a busy machine.
        #expect(abs(rest - seconds) < 10_000)
        #expect(!cookie.isSessionOnly)
    }

    @Test(
        "reads dates in any form",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", "6 nov 1994 8:49:37",
        ])
    func dates(_ text: String) {
        #expect(made([.expires: text])?.expiresDate == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test("ends with the session where it has no date, or is to be discarded")
    func session() {
        #expect(made([:])?.isSessionOnly == true)
        #expect(made([.expires: "no date"])?.isSessionOnly == true)
        let discarded = made([.expires: Date(timeIntervalSinceNow: 100), .discard: "TRUE"])
        #expect(discarded?.isSessionOnly == true)
        #expect(discarded?.expiresDate == nil)
        #expect(made([.maximumAge: "9", .discard: "FALSE"])?.isSessionOnly == false)
    }

    @Test("of version 1 ends with the session where it says neither Discard nor Max-Age")
    func versionOne() {
        let tomorrow = Date(timeIntervalSinceNow: 90_000)
        #expect(made([.version: "1", .expires: tomorrow])?.isSessionOnly == true)
        #expect(made([.version: "0", .expires: tomorrow])?.isSessionOnly == false)
        #expect(made([.version: "1", .maximumAge: "90000"])?.isSessionOnly == false)
        let kept = made([.version: "1", .expires: tomorrow, .discard: "FALSE"])
        #expect(kept?.isSessionOnly == false)
        let again = kept?.properties.flatMap { HTTPCookie(properties: $0) }
        #expect(again?.isSessionOnly == false && again?.version == 1)
    }

    @Test("takes flags that are not FALSE")
    func flags() {
        #expect(made([.secure: "TRUE"])?.isSecure == true)
        #expect(made([.secure: "YES"])?.isSecure == true)
        #expect(made([.secure: true])?.isSecure == true)
        #expect(made([.secure: "FALSE"])?.isSecure == false)
        #expect(made([.secure: ""])?.isSecure == false)
        #expect(made([.httpOnly: "TRUE"])?.isHTTPOnly == true)
        #expect(made([:])?.isHTTPOnly == false)
    }

    @Test("knows one port in version 0, and a list in version 1")
    func ports() {
        #expect(made([.port: "443,8443"])?.portList == [443])
        #expect(made([.port: "443, 8443", .version: "1"])?.portList == [443, 8443])
        #expect(made([.port: "none"])?.portList == nil)
        #expect(made([:])?.portList == nil)
    }

    @Test("knows the policies of sites")
    func sites() {
        let lax = made([.sameSitePolicy: HTTPCookieStringPolicy.sameSiteLax])
        #expect(lax?.sameSitePolicy == .sameSiteLax)
        #expect(made([.sameSitePolicy: "Strict"])?.sameSitePolicy == .sameSiteStrict)
        #expect(made([.sameSitePolicy: "none"])?.sameSitePolicy == nil)
        #expect(made([:])?.sameSitePolicy == nil)
    }

    @Test(
        "is none where name or value would be read as something else",
        arguments: [
            ("a;b", "v"), ("a=b", "v"), ("n", "v;x"), ("n", "v\r\nX: y"), ("n\u{0}", "v"), ("", ""),
        ])
    func breaking(_ name: String, _ value: String) {
        #expect(made([.name: name, .value: value]) == nil)
    }

    @Test("gives properties of which an equal cookie can be made")
    func roundTrip() throws {
        let first = try #require(
            made([
                .domain: ".a.test", .expires: Date(timeIntervalSince1970: 4_000_000_000.25),
                .secure: "TRUE", .httpOnly: "TRUE", .comment: "why", .version: "1",
                .commentURL: "http://a.test/why", .port: "80,81", .sameSitePolicy: "lax",
            ]))
        let properties = try #require(first.properties)
        let again = try #require(HTTPCookie(properties: properties))
        #expect(again == first)
        #expect(again.hash == first.hash)
        #expect(again.comment == "why" && again.version == 1 && again.portList == [80, 81])
        #expect(again.properties?[.created] as? Double == first.properties?[.created] as? Double)
        #expect(Set([first, again]).count == 1)
    }

    @Test(
        "differs in each property",
        arguments: [
            [.name: "m"], [.value: "w"], [.path: "/q"], [.domain: ".a.test"], [.secure: "TRUE"],
            [.httpOnly: "TRUE"], [.maximumAge: "100"], [.version: "1"], [.comment: "c"],
            [.port: "80"], [.sameSitePolicy: "lax"],
        ] as [[HTTPCookiePropertyKey: any Sendable]])
    func difference(_ properties: [HTTPCookiePropertyKey: any Sendable]) throws {
        let (plain, other) = (try #require(made([:])), try #require(made(properties)))
        #expect(plain != other)
    }

    @Test("shows its value in no description")
    func description() throws {
        let cookie = try #require(made([.value: "s3cr3t"]))
        var dumped = ""
        dump(cookie, to: &dumped)
        for text in [cookie.description, cookie.debugDescription, "\(cookie)", dumped] {
            #expect(!text.contains("s3cr3t"))
            #expect(text.contains("a.test"))
        }
    }

    @Test("takes substrings")
    func substrings() {
        let cookie = made([.name: "names".dropLast(), .value: "values".dropLast(), .domain: "."])
        #expect(cookie?.name == "name" && cookie?.value == "value")
    }

    @Test("makes the field of a request")
    func field() throws {
        #expect(HTTPCookie.requestHeaderFields(with: []).isEmpty)
        let cookies = [try #require(made([:])), try #require(made([.name: "m", .value: "w=1"]))]
        #expect(HTTPCookie.requestHeaderFields(with: cookies) == ["Cookie": "n=v; m=w=1"])
    }
}
