import Foundation
import LarderHTTP
import LarderSession
import Synchronization
import Testing

@testable import URLLoading

private let t0 = Timestamp(seconds: 1_900_000_000)

private func hop(
    _ text: String, document: String? = nil, isHandled: Bool = true,
    owner: (any AnyObject & Sendable)? = nil
) throws -> Hop {
    Hop(
        method: .get, uri: try #require(TargetURI(text: text)), client: [:],
        cookies: RequestCookies(isHandled: isHandled, mainDocumentHost: document, owner: owner))
}

extension HopCookies {
    fileprivate func sends(_ hop: Hop, own: String? = nil) -> String? {
        var fields: Fields = ["Accept": "*/*"]
        if let own { fields.append("Cookie", own) }
        self.addCookies(to: &fields, for: hop, at: t0)
        return fields.string("Cookie")
    }

    /// Takes lines, and gives those that the client sees.
    @discardableResult
    fileprivate func takes(_ lines: String..., from hop: Hop) -> Int {
        var head = ResponseHead(status: StatusCode(200))
        for line in lines { head.fields.append("Set-Cookie", line) }
        self.takeCookies(from: &head, for: hop, at: t0)
        return head.fields.values("Set-Cookie").count
    }
}

/// A program's own storage.
private final class OwnStorage: HTTPCookieStorage, @unchecked Sendable {
    let calls = Mutex<[String]>([])
    private func note(_ call: String) { self.calls.withLock { $0.append(call) } }

    override func cookies(for url: URL) -> [HTTPCookie]? {
        self.note("cookies \(url)")
        return super.cookies(for: url)
    }

    override func removeCookies(since date: Date) {
        self.note("remove")
        super.removeCookies(since: date)
    }

    override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        self.note("store \(cookies.map(\.name)) \(task.taskDescription ?? "")")
        super.storeCookies(cookies, for: task)
    }
}

/// A program's own storage that changes nothing.
final class IdleStorage: HTTPCookieStorage, @unchecked Sendable {}

@Suite("A session's view of a storage (§9.2)")
struct CookieHopTests {
    let storage = HTTPCookieStorage()

    @Test("takes what responses set, and shows it to them nevertheless")
    func taking() throws {
        let view = self.storage.hopCookies(accept: .always, sets: true)
        #expect(view.takes("a=1; Path=/", "b=2; Secure", from: try hop("https://a.example/x")) == 2)
        #expect(self.storage.names == ["a", "b"])
        #expect(view.sends(try hop("https://a.example/")) == "a=1; b=2")
        #expect(view.sends(try hop("http://a.example/")) == "a=1")
        #expect(view.sends(try hop("http://b.example/")) == nil)
        #expect(view.showsSetCookie)
    }

    @Test("replaces an explicit field where it has cookies and sets them")
    func explicit() throws {
        self.storage.setCookie(try made("n"))
        let setting = self.storage.hopCookies(accept: .always, sets: true)
        #expect(setting.sends(try hop("http://a.example/"), own: "x=y") == "n=v")
        #expect(setting.sends(try hop("http://b.example/"), own: "x=y") == "x=y")
        let other = self.storage.hopCookies(accept: .always, sets: false)
        #expect(other.sends(try hop("http://a.example/"), own: "x=y") == "x=y")
        #expect(other.sends(try hop("http://a.example/")) == nil)
        other.takes("m=1", from: try hop("http://a.example/"))
        #expect(self.storage.names == ["n", "m"])
    }

    @Test("leaves requests alone that handle no cookies")
    func unhandled() throws {
        self.storage.setCookie(try made("n"))
        let view = self.storage.hopCookies(accept: .always, sets: true)
        let hop = try hop("http://a.example/", isHandled: false)
        #expect(view.sends(hop) == nil)
        #expect(view.sends(hop, own: "x=y") == "x=y")
        #expect(view.takes("m=1", from: hop) == 1)
        #expect(self.storage.names == ["n"])
    }

    @Test(
        "goes by the session's policy, not by the storage's",
        arguments: [
            (.always, "b.example", true), (.never, nil, false),
            (.onlyFromMainDocumentDomain, nil, true),
            (.onlyFromMainDocumentDomain, "a.example", true),
            (.onlyFromMainDocumentDomain, "www.a.example", true),
            (.onlyFromMainDocumentDomain, "b.example", false),
            (.onlyFromMainDocumentDomain, "", false),
        ] as [(HTTPCookie.AcceptPolicy, String?, Bool)])
    func policies(_ policy: HTTPCookie.AcceptPolicy, _ document: String?, _ isTaken: Bool) throws {
        self.storage.cookieAcceptPolicy = .never
        let view = self.storage.hopCookies(accept: policy, sets: true)
        view.takes("n=1", from: try hop("http://a.example/", document: document))
        #expect(self.storage.names == (isTaken ? ["n"] : []))
    }

    @Test("keeps cookies to their site where they say so, and the document is another's")
    func sites() throws {
        self.storage.setCookie(try made("any"))
        self.storage.setCookie(try made("lax", "v", [.sameSitePolicy: "lax"]))
        self.storage.setCookie(try made("strict", "v", [.sameSitePolicy: "strict"]))
        let view = self.storage.hopCookies(accept: .always, sets: true)
        #expect(view.sends(try hop("http://a.example/", document: "b.example")) == "any=v")
        #expect(
            view.sends(try hop("http://a.example/", document: "x.a.example"))
                == "any=v; lax=v; strict=v")
        #expect(view.sends(try hop("http://a.example/")) == "any=v; lax=v; strict=v")
    }

    @Test("is heard by observers, on a thread of theirs")
    func notifications() async throws {
        let storage = self.storage
        let view = storage.hopCookies(accept: .always, sets: true)
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let token = NotificationCenter.default.addObserver(
            forName: .NSHTTPCookieManagerCookiesChanged, object: storage, queue: nil
        ) { _ in continuation.yield(storage.cookies?.count ?? -1) }
        defer { NotificationCenter.default.removeObserver(token) }
        view.takes("a=1", "b=2", from: try hop("http://a.example/"))
        var heard = stream.makeAsyncIterator()
        #expect(await heard.next() == 2)
        // Nothing new, then something: the next call is about the second.
        view.takes("a=1", from: try hop("http://a.example/"))
        view.takes("c=3", from: try hop("http://a.example/"))
        #expect(await heard.next() == 3)
    }

    @Test("asks and tells a program's own storage, whose call ends before the response goes on")
    func overridden() async throws {
        let own = OwnStorage()
        let task = URLSessionTask()
        task.taskDescription = "seven"
        task.currentRequest = URLRequest(url: try url("http://a.example/x"))
        let view = own.hopCookies(accept: .always, sets: true)
        let hop = try hop("http://a.example/x", owner: task)
        view.takes("n=1; Path=/", from: hop)
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let waits = view.whenKept { continuation.finish() }
        if waits { for await _ in stream {} }
        #expect(view.sends(hop, own: "x=y") == "n=1")
        #expect(
            own.calls.withLock { $0 } == ["store [\"n\"] seven", "cookies http://a.example/x"])
    }

    /// A task for a document of this host.
    private static func task(_ document: String?) throws -> URLSessionTask {
        let task = URLSessionTask()
        var request = URLRequest(url: try url("http://a.example/"))
        request.mainDocumentURL = try document.map { try url("http://\($0)/") }
        task.currentRequest = request
        return task
    }

    @Test("keeps cookies to their site also where the storage is of a program's own class")
    func overriddenSites() throws {
        let own = IdleStorage()
        own.setCookie(try made("any"))
        own.setCookie(try made("lax", "v", [.sameSitePolicy: "lax"]))
        own.setCookie(try made("strict", "v", [.sameSitePolicy: "strict"]))
        let view = own.hopCookies(accept: .always, sets: true)
        for (document, sent) in [
            ("b.example", "any=v"), ("x.a.example", "any=v; lax=v; strict=v"),
            (nil, "any=v; lax=v; strict=v"),
        ] {
            for task in [try Self.task(document), nil] {
                let hop = try hop("http://a.example/", document: document, owner: task)
                #expect(view.sends(hop) == sent)
            }
        }
    }

    @Test("has a program's own storage go by the session's policy, too", arguments: [true, false])
    func overriddenStoring(hasTask: Bool) async throws {
        let own = IdleStorage()
        own.cookieAcceptPolicy = .never
        let view = own.hopCookies(accept: .always, sets: true)
        let task = hasTask ? try Self.task(nil) : nil
        view.takes("n=1", from: try hop("http://a.example/", owner: task))
        await withCheckedContinuation { kept in
            if !view.whenKept({ kept.resume() }) { kept.resume() }
        }
        #expect(own.names == ["n"])
        own.setCookies([try made("m")], for: try url("http://a.example/"), mainDocumentURL: nil)
        #expect(own.names == ["n"])
    }

    @Test("keeps octets that are no text, also by way of a program's own storage")
    func octets() async throws {
        let line = Array("n\u{e9}=".utf8.dropLast(2)) + [0xE9, 0x3D, 0xFF]
        var head = ResponseHead(status: StatusCode(200))
        head.fields.append("Set-Cookie", line + Array("; Path=/".utf8))
        for storage in [HTTPCookieStorage(), IdleStorage()] {
            let view = storage.hopCookies(accept: .always, sets: true)
            let hop = try hop("http://a.example/", owner: try Self.task(nil))
            var received = head
            view.takeCookies(from: &received, for: hop, at: t0)
            await withCheckedContinuation { kept in
                if !view.whenKept({ kept.resume() }) { kept.resume() }
            }
            let cookie = try #require(storage.cookies?.first)
            storage.deleteCookie(cookie)
            #expect(storage.names.isEmpty)
            storage.setCookie(cookie)
            var fields = Fields()
            view.addCookies(to: &fields, for: hop, at: t0)
            #expect(fields.first("Cookie").map { Array($0) } == line)
            #expect(storage.cookies?.first == cookie)
        }
    }

    @Test("has a program's own storage emptied by its own method, too")
    func emptied() throws {
        let own = OwnStorage()
        own.setCookie(try made("n"))
        own.removeAll()
        #expect(own.calls.withLock { $0 } == ["remove"])
    }

    @Test("lets no cookie of a third party into a program's own storage")
    func overriddenPolicy() async throws {
        let own = OwnStorage()
        let view = own.hopCookies(accept: .onlyFromMainDocumentDomain, sets: true)
        view.takes("n=1", from: try hop("http://a.example/", document: "b.example"))
        #expect(!view.whenKept {})
        #expect(own.calls.withLock { $0 } == [])
    }

    @Test("says what a request wants of cookies")
    func requests() throws {
        var request = URLRequest(url: try url("http://a.example/"))
        #expect(RequestCookies(request, task: nil).mainDocumentHost == nil)
        #expect(RequestCookies(request, task: nil).isHandled)
        request.httpShouldHandleCookies = false
        request.mainDocumentURL = try url("http://B.example/")
        #expect(!RequestCookies(request, task: nil).isHandled)
        #expect(RequestCookies(request, task: nil).mainDocumentHost == "b.example")
        request.mainDocumentURL = try url("file:///x")
        #expect(RequestCookies(request, task: nil).mainDocumentHost == "")
    }
}
