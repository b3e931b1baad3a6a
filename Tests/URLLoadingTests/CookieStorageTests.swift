import Foundation
import LarderHTTP
import LarderState
import Synchronization
import Testing

@testable import URLLoading

func made(
    _ name: String, _ value: String = "v", domain: String = "a.example", path: String = "/",
    expires: Double? = nil, _ more: [HTTPCookiePropertyKey: Any] = [:]
) throws -> HTTPCookie {
    var properties: [HTTPCookiePropertyKey: Any] = [
        .name: name, .value: value, .domain: domain, .path: path,
    ]
    if let expires { properties[.expires] = Date(timeIntervalSinceNow: expires) }
    return try #require(HTTPCookie(properties: properties.merging(more) { $1 }))
}

func url(_ text: String) throws -> URL { try #require(URL(string: text) as URL?) }

extension HTTPCookieStorage {
    var names: [String] { (self.cookies ?? []).map(\.name) }

    func names(for text: String) throws -> [String] {
        (self.cookies(for: try url(text)) ?? []).map(\.name)
    }
}

@Suite("A storage of cookies (§9.2)")
struct CookieStorageTests {
    let storage = HTTPCookieStorage()

    @Test("replaces what has the same name, domain and path, and nothing else")
    func replacing() throws {
        let first = try made("n", "1")
        self.storage.setCookie(first)
        #expect(self.storage.cookies == [first])
        let second = try made("n", "2")
        self.storage.setCookie(second)
        #expect(self.storage.cookies == [second])
        for other in [
            try made("m"), try made("n", domain: "b.example"), try made("n", path: "/p"),
            try made("n", domain: ".a.example"),
        ] { self.storage.setCookie(other) }
        #expect(self.storage.cookies?.count == 5)
        self.storage.deleteCookie(try made("n", "whatever"))
        #expect(self.storage.cookies?.count == 4)
        #expect(!self.storage.names.isEmpty && self.storage.cookies?.contains(second) == false)
    }

    @Test(
        "holds what a program says None of, which without Secure says nothing (RFC 6265bis §5.7)",
        arguments: [(false, nil), (true, "none")] as [(Bool, String?)])
    func sameSiteNone(isSecure: Bool, kept: String?) throws {
        let cookie = try made(
            "n", "v", [.sameSitePolicy: "None", .secure: isSecure ? "TRUE" : "FALSE"])
        self.storage.setCookie(cookie)
        #expect(self.storage.cookies == [cookie])
        #expect(self.storage.cookies?.first?.properties?[.sameSitePolicy] as? String == kept)
        self.storage.setCookies([cookie], for: try url("https://a.example/"), mainDocumentURL: nil)
        #expect(self.storage.cookies == [cookie])
    }

    @Test("holds no cookie that has expired")
    func expired() throws {
        self.storage.setCookie(try made("n", expires: 100))
        self.storage.setCookie(try made("n", expires: -100))
        #expect(self.storage.cookies == [])
        self.storage.setCookie(try made("n", "v", [.maximumAge: "0"]))
        #expect(self.storage.cookies == [])
    }

    @Test("gives the objects back that were put there, with all their properties")
    func objects() throws {
        let cookie = try made(
            "n", expires: 50 * 365 * 86_400,
            [.version: "1", .comment: "c", .port: "80,81", .commentURL: "http://a.example/c"])
        self.storage.setCookie(cookie)
        let found = try #require(self.storage.cookies(for: url("http://a.example/"))?.first)
        #expect(found === cookie)
    }

    @Test(
        "matches domains",
        arguments: [
            ("https://swift.example", ["one", "all"]), ("https://CI.swift.EXAMPLE/x", ["all"]),
            ("https://bugs.swift.example", ["all", "bugs"]), ("http://superswift.example", []),
            ("http://example", []), ("http://[::1]/", ["six"]),
            ("http://127.0.0.1:8080/", ["four"]),
            ("http://localhost/", ["local"]), ("http://x.localhost/", []),
            ("http://0.127.0.0.1/", []),
        ] as [(String, [String])])
    func domains(_ text: String, _ names: [String]) throws {
        for (name, domain) in [
            ("one", "swift.example"), ("all", ".SWIFT.example"), ("bugs", "bugs.swift.example"),
            ("six", "::1"), ("four", ".127.0.0.1"), ("local", ".localhost"),
        ] { self.storage.setCookie(try made(name, domain: domain)) }
        #expect(self.storage.cookies?.count == 6)
        #expect(try Set(self.storage.names(for: text)) == Set(names))
    }

    @Test(
        "matches paths and puts longer ones first",
        arguments: [
            ("http://a.example", ["root"]), ("http://a.example/x", ["x", "root"]),
            ("http://a.example/x/y?q", ["xy", "x", "root"]), ("http://a.example/xy", ["root"]),
            ("http://a.example/x/", ["x", "root"]),
        ])
    func paths(_ text: String, _ names: [String]) throws {
        for (name, path) in [("root", "/"), ("x", "/x"), ("xy", "/x/y")] {
            self.storage.setCookie(try made(name, path: path))
        }
        #expect(try self.storage.names(for: text) == names)
    }

    @Test("keeps secure cookies from insecure URLs, and the older before the newer")
    func security() throws {
        self.storage.setCookie(try made("b", "v", [.secure: "TRUE"]))
        self.storage.setCookie(try made("a"))
        self.storage.setCookie(try made("b", "again", [.secure: "TRUE"]))
        #expect(try self.storage.names(for: "http://a.example/") == ["a"])
        #expect(try self.storage.names(for: "https://a.example/") == ["b", "a"])
        #expect(try self.storage.names(for: "wss://a.example/") == ["b", "a"])
        #expect(try self.storage.names(for: "ftp://a.example/") == [])
        #expect(self.storage.cookies(for: try url("file:///x")) == nil)
    }

    @Test(
        "takes no cookies that the URL may not set",
        arguments: [
            ("https://a.example/", ".a.example", true), ("https://a.example/", "a.example", true),
            ("https://b.a.example/", ".a.example", true),
            ("https://b.a.example/", "a.example", false),
            ("https://a.example/", ".b.a.example", false), ("https://a.example/", ".co.uk", false),
            ("https://x.co.uk/", ".co.uk", false), ("https://1.2.3.4/", "1.2.3.4", true),
            ("https://1.2.3.4/", ".2.3.4", false), ("file:///x", "a.example", false),
        ])
    func foreign(_ text: String, _ domain: String, _ isTaken: Bool) throws {
        let cookies = [try made("n", domain: domain)]
        self.storage.setCookies(cookies, for: try url(text), mainDocumentURL: nil)
        #expect(self.storage.cookies == (isTaken ? cookies : []))
    }

    @Test("takes what a response has set only as the rules of RFC 6265bis §5.7 allow")
    func sources() throws {
        let secure = try made("n", "secure", [.secure: "TRUE"])
        self.storage.setCookies([secure], for: try url("http://a.example"), mainDocumentURL: nil)
        #expect(self.storage.cookies == [])
        self.storage.setCookies([secure], for: try url("https://a.example"), mainDocumentURL: nil)
        self.storage.setCookies(
            [try made("n", "plain")], for: try url("http://a.example"), mainDocumentURL: nil)
        #expect(self.storage.cookies == [secure])
        self.storage.setCookies([try made("m")], for: nil, mainDocumentURL: nil)
        #expect(self.storage.cookies == [secure])
    }

    @Test(
        "goes by its accept policy",
        arguments: [
            (.always, "http://b.example/", true), (.always, nil, true), (.never, nil, false),
            (.onlyFromMainDocumentDomain, nil, true),
            (.onlyFromMainDocumentDomain, "http://a.example/", true),
            (.onlyFromMainDocumentDomain, "http://www.a.example/x", true),
            (.onlyFromMainDocumentDomain, "http://b.example/", false),
            (.onlyFromMainDocumentDomain, "file:///x", false),
        ] as [(HTTPCookie.AcceptPolicy, String?, Bool)])
    func policies(
        _ policy: HTTPCookie.AcceptPolicy, _ document: String?, _ isTaken: Bool
    ) throws {
        #expect(self.storage.cookieAcceptPolicy == .always)
        self.storage.cookieAcceptPolicy = policy
        self.storage.setCookies(
            [try made("n")], for: try url("http://a.example/"),
            mainDocumentURL: try document.map { try url($0) })
        #expect(self.storage.names == (isTaken ? ["n"] : []))
        self.storage.setCookie(try made("m"))
        #expect(self.storage.names.contains("m") == (policy != .never))
    }

    @Test("removes what was set since a moment")
    func since() throws {
        self.storage.setCookie(try made("n"))
        self.storage.removeCookies(since: Date(timeIntervalSinceNow: 120))
        #expect(self.storage.names == ["n"])
        self.storage.removeCookies(since: Date(timeIntervalSinceNow: -120))
        #expect(self.storage.names == [])
        self.storage.setCookie(try made("n"))
        self.storage.removeCookies(since: .distantPast)
        #expect(self.storage.names == [])
    }

    @Test("deletes and replaces cookies of an address, whose domain a response named (§9.1)")
    func addresses() throws {
        let origin = try url("http://127.0.0.1/")
        let lines = ["Set-Cookie": "sid=1; Domain=127.0.0.1"]
        self.storage.setCookies(
            HTTPCookie.cookies(withResponseHeaderFields: lines, for: origin), for: origin,
            mainDocumentURL: nil)
        let cookie = try #require(self.storage.cookies?.first)
        #expect(cookie.domain == "127.0.0.1")
        self.storage.setCookie(
            try #require(
                HTTPCookie(properties: [
                    .name: "sid", .value: "2", .domain: "127.0.0.1", .path: "/",
                ])))
        #expect(self.storage.cookies?.map(\.value) == ["2"])
        self.storage.deleteCookie(cookie)
        #expect(self.storage.cookies == [])
    }

    @Test("sorts by what is asked for")
    func sorting() throws {
        let cookies = [
            try made("A", path: "/1"), try made("B", path: "/2"), try made("C", path: "/2"),
        ]
        cookies.forEach(self.storage.setCookie)
        let sorted = self.storage.sortedCookies(using: [
            NSSortDescriptor(keyPath: \HTTPCookie.path, ascending: true),
            NSSortDescriptor(keyPath: \HTTPCookie.name, ascending: false),
        ])
        #expect(sorted == [cookies[0], cookies[2], cookies[1]])
        #expect(self.storage.sortedCookies(using: []).count == 3)
    }

    @Test("describes itself by the number of its cookies")
    func description() throws {
        self.storage.setCookie(try made("n", "s3cr3t"))
        #expect(self.storage.description == "Ephemeral<NSHTTPCookieStorage cookies count:1>")
        var dumped = ""
        dump(self.storage, to: &dumped)
        #expect(!dumped.contains("s3cr3t"))
    }

    @Test("says once that something has changed, and only then, without holding a lock")
    func notifications() throws {
        let heard = Mutex<[String]>([])
        let storage = self.storage
        let tokens = [
            Notification.Name.NSHTTPCookieManagerCookiesChanged,
            .NSHTTPCookieManagerAcceptPolicyChanged,
        ].map { name in
            NotificationCenter.default.addObserver(forName: name, object: storage, queue: nil) {
                _ in
                let count = storage.cookies?.count ?? -1
                heard.withLock {
                    $0.append("\(name == .NSHTTPCookieManagerCookiesChanged) \(count)")
                }
            }
        }
        defer { tokens.forEach(NotificationCenter.default.removeObserver) }
        func news(_ body: () throws -> Void) rethrows -> [String] {
            try body()
            return heard.withLock { heard in
                defer { heard = [] }
                return heard
            }
        }
        let dated = try made("n", "1", expires: 1000)
        #expect(news { storage.setCookie(dated) } == ["true 1"])
        #expect(news { storage.setCookie(dated) } == [])
        #expect(try news { storage.setCookie(try made("n", "2")) } == ["true 1"])
        #expect(
            try news {
                let both = [try made("x"), try made("y")]
                storage.setCookies(both, for: try url("http://a.example"), mainDocumentURL: nil)
            } == ["true 3"])
        #expect(try news { storage.setCookie(try made("n", expires: -1)) } == ["true 2"])
        #expect(try news { storage.deleteCookie(try made("z")) } == [])
        #expect(news { storage.removeCookies(since: .distantFuture) } == [])
        #expect(news { storage.removeCookies(since: .distantPast) } == ["true 0"])
        #expect(news { storage.cookieAcceptPolicy = .never } == ["false 0"])
        #expect(news { storage.cookieAcceptPolicy = .never } == [])
        #expect(try news { storage.setCookie(try made("n")) } == [])
    }

    @Test("is used by many threads at once")
    func threads() async throws {
        let storage = self.storage
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<10 {
                group.addTask {
                    for number in 0..<50 {
                        guard let cookie = try? made("\(task)-\(number)") else { continue }
                        storage.setCookie(cookie)
                        _ = storage.cookies
                        if number % 2 == 0 { storage.deleteCookie(cookie) }
                    }
                }
            }
        }
        #expect(storage.cookies?.count == 250)
    }

    @Test("stands beside others in memory")
    func isolation() throws {
        let other = HTTPCookieStorage.ephemeral()
        self.storage.setCookie(try made("n", expires: 1000))
        #expect(other.cookies == [])
    }

    @Test("is asked and told by tasks through the methods for URLs")
    func tasks() throws {
        let task = URLSessionTask()
        task.currentRequest = URLRequest(url: try url("http://a.example/x/y"))
        self.storage.storeCookies([try made("n"), try made("m", domain: "b.example")], for: task)
        #expect(self.storage.names == ["n"])
        let answers = Mutex<[[String]?]>([])
        self.storage.getCookiesFor(task) { found in
            answers.withLock { $0.append(found?.map(\.name)) }
        }
        #expect(answers.withLock { $0 } == [["n"]])
    }
}
