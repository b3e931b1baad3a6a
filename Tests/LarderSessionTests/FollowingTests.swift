import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

@Suite("A session follows redirections where it is told to (RFC 9110 §15.4)")
struct FollowingTests {
    @Test("the answer of the target is stored under the URL that was asked for")
    func stored() {
        let bench = ChainBench(follows: true)
        let client = bench.perform("https://origin.example/stable").client
        bench.upstream.fetches[0].answer(
            302, ["Location": "https://cdn.example/x?signature=1", "Cache-Control": "no-cache"],
            "moved")
        #expect(
            bench.upstream.fetches[1].request.uri.description
                == "https://cdn.example/x?signature=1")
        bench.upstream.fetches[1].answer(
            200, ["Cache-Control": "max-age=1", "ETag": "\"e\""], "content")
        #expect(client.status == 200)
        #expect(client.wholeBody == "content")
        #expect(bench.perform("https://origin.example/stable").client.wholeBody == "content")
        #expect(bench.upstream.fetches.count == 2)
        #expect(bench.session.counters().acts == [.redirectFollowed: 1])
        // Its validator is the target's, and asks the target.
        bench.clock.advance(.seconds(9))
        let again = bench.perform("https://origin.example/stable").client
        #expect(bench.sent(2, "If-None-Match") == "\"e\"")
        bench.upstream.fetches[2].answer(302, ["Location": "https://cdn.example/x?signature=2"])
        #expect(bench.sent(3, "If-None-Match") == "\"e\"")
        bench.upstream.fetches[3].answer(304, ["ETag": "\"e\""])
        #expect(again.wholeBody == "content")
    }

    @Test("what a redirection forbids of itself holds for what it led to")
    func forbidden() {
        for directive in ["no-store", "private"] {
            let bench = ChainBench(follows: true)
            let client = bench.perform().client
            bench.upstream.fetches[0].answer(
                302, ["Location": "/x", "Cache-Control": directive])
            bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "x")
            #expect(client.field("Cache-Control") == "max-age=60, \(directive)")
            #expect(client.cacheStatus?.contains("stored") == false)
        }
    }

    @Test(
        "and nothing that the target says of itself wins over it (RFC 9111 §5.2.2.3, RFC 9213)",
        arguments: [
            ["Cache-Control": "must-understand, max-age=60"],
            ["Cache-Control": "no-store, must-understand, max-age=60"],
            ["Cache-Control": "max-age=60", "Larder-Cache-Control": "max-age=60"],
        ] as [Fields])
    func overruled(_ fields: Fields) {
        for directive in ["no-store", "private"] {
            let bench = ChainBench(follows: true)
            let client = bench.perform().client
            bench.upstream.fetches[0].answer(302, ["Location": "/x", "Cache-Control": directive])
            bench.upstream.fetches[1].answer(200, fields, "x")
            #expect(client.field("Cache-Control")?.contains(directive) == true)
            #expect(client.field("Larder-Cache-Control") == nil)
            #expect(client.cacheStatus?.contains("stored") == false)
        }
    }

    @Test("the time for the whole resource is one for all requests (timeoutIntervalForResource)")
    func elapsed() {
        let bench = ChainBench(follows: true)
        bench.perform()
        #expect(bench.upstream.fetches[0].request.elapsed == .zero)
        bench.clock.advance(.seconds(5))
        bench.upstream.fetches[0].answer(302, ["Location": "/x"])
        #expect(bench.upstream.fetches[1].request.elapsed == .seconds(5))
        bench.clock.advance(.seconds(-9))
        bench.upstream.fetches[1].answer(302, ["Location": "/y"])
        #expect(bench.upstream.fetches[2].request.elapsed == .zero)
    }

    @Test("a failure names the host that redirections led to")
    func nextHop() {
        let bench = ChainBench(follows: true)
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "https://b.example/"])
        bench.upstream.fetches[1].fail(.dnsError)
        #expect(client.failure?.nextHop == "b.example")
    }

    @Test("an answer that a credential led to stays one, wherever it came from (RFC 9111 §3.5)")
    func authorized() {
        let bench = ChainBench(follows: true, store: ChainBench.holding(.basic))
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        bench.upstream.fetches[1].answer(302, ["Location": "https://cdn.example/signed"])
        #expect(bench.sent(2, "Authorization") == nil)
        bench.upstream.fetches[2].answer(200, ["Cache-Control": "max-age=60"], "x")
        #expect(client.cacheStatus?.contains("detail=request-authorization") == true)
    }

    @Test("another origin gets none of the client's secrets, nor do the next ones")
    func stripped() {
        let bench = ChainBench(follows: true)
        let own: Fields = [
            "Authorization": "Basic own", "Cookie": "own=1", "Accept": "x/y",
            "Referer": "https://a/",
        ]
        bench.perform("https://origin.example/", own)
        bench.upstream.fetches[0].answer(302, ["Location": "/same"])
        #expect(bench.sent(1, "Authorization") == "Basic own")
        #expect(bench.sent(1, "Cookie") == "own=1")
        for (index, next) in [
            (1, "https://origin.example:8443/"), (2, "https://origin.example/back"),
            (3, "http://origin.example/"),
        ] {
            bench.upstream.fetches[index].answer(307, ["Location": next])
            #expect(bench.sent(index + 1, "Authorization") == nil, "\(next)")
            #expect(bench.sent(index + 1, "Cookie") == nil, "\(next)")
            #expect(bench.sent(index + 1, "Accept") == "x/y")
        }
        #expect(bench.sent(3, "Referer") == "https://a/")
        #expect(bench.sent(4, "Referer") == nil)
    }

    @Test("from https to http no credential goes, though the space be known")
    func downgraded() {
        let store = ChainBench.holding(.basic, scheme: .http, host: "plain.example")
        let bench = ChainBench(follows: true, store: store)
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "http://plain.example/"])
        bench.upstream.fetches[1].answer(401, ["WWW-Authenticate": "Basic realm=\"r\""], "no")
        #expect(client.status == 401)
        #expect(bench.upstream.fetches.count == 2)
        // Its challenge is not the client's: the client would answer it as the first origin's.
        #expect(client.field("WWW-Authenticate") == nil)
    }

    @Test("content goes again where the method stays, and is dropped with its fields where not")
    func content() {
        for (status, method, text) in [(307, Method.post, "content"), (303, .get, nil)]
            as [(UInt16, Method, String?)]
        {
            let bench = ChainBench(follows: true)
            bench.perform(
                "https://origin.example/", method: .post,
                ["Content-Type": "text/plain", "Accept": "x/y"], body: ScriptedBody("content"))
            bench.upstream.fetches[0].body?.attach {}
            _ = bench.upstream.fetches[0].body?.text()
            bench.upstream.fetches[0].answer(status, ["Location": "/next"])
            let next = bench.upstream.fetches[1]
            next.body?.attach {}
            #expect(next.request.method == method)
            #expect(next.body?.text().text == text)
            #expect(next.request.fields.contains("Content-Type") == (text != nil))
            #expect((next.request.bodyLength == .none) == (text == nil))
            #expect(next.request.fields.contains("Accept"))
        }
    }

    @Test("a target that the client may not have, or nobody asked for it: the 3xx is passed on")
    func permitted() {
        let bench = ChainBench(follows: true)
        let judges: [(@Sendable (Method, TargetURI) -> Bool)?] = [
            nil, { $1.host != "169.254.169.254" },
        ]
        for permits in judges {
            let client = bench.perform(permits: permits).client
            bench.upstream.fetches.last?.answer(
                302, ["Location": "http://169.254.169.254/latest"], "moved")
            #expect(client.status == 302)
            #expect(client.field("Location") == "http://169.254.169.254/latest")
            #expect(client.wholeBody == "moved")
        }
        #expect(bench.upstream.fetches.count == 2)
        #expect(bench.session.counters().acts[.redirectNotPermitted] == 2)
    }

    @Test("a redirection that one client may not follow is not stored for those who may")
    func refused() {
        let bench = ChainBench(follows: true)
        let outside = bench.perform(permits: { _, uri in uri.host != "inner.example" }).client
        bench.upstream.fetches[0].answer(
            301, ["Location": "http://inner.example/", "Cache-Control": "max-age=60"])
        #expect(outside.status == 301)
        let inside = bench.perform().client
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches.last?.answer(301, ["Location": "http://inner.example/"])
        bench.upstream.fetches.last?.answer(200, [:], "inner")
        #expect(inside.wholeBody == "inner")
    }

    @Test("what is stored is kept from whoever may not be led where it came from")
    func keptFrom() {
        let bench = ChainBench(follows: true)
        let inside = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "http://inner.example/"])
        // Nor may it be joined on its way.
        let waiting = bench.perform(permits: { _, uri in uri.host != "inner.example" }).client
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "inner")
        #expect(inside.wholeBody == "inner")
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].answer(302, ["Location": "http://inner.example/"], "moved")
        #expect(waiting.status == 302)
        #expect(waiting.wholeBody == "moved")
        let outside = bench.perform(permits: { _, uri in uri.host != "inner.example" }).client
        #expect(bench.upstream.fetches.count == 4)
        bench.upstream.fetches[3].answer(302, ["Location": "http://inner.example/"], "moved")
        #expect(outside.wholeBody == "moved")
        #expect(bench.perform().client.wholeBody == "inner")
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("a validator is good for the resource that it came from (RFC 9110 §8.8.1)")
    func otherResource() {
        let bench = ChainBench(follows: true)
        let modified = "Tue, 01 Jan 1980 00:00:00 GMT"
        bench.perform()
        bench.upstream.fetches[0].answer(302, ["Location": "/v1.tgz"])
        bench.upstream.fetches[1].answer(
            200, ["Last-Modified": modified, "Cache-Control": "max-age=0"], "one")
        let client = bench.perform().client
        #expect(bench.sent(2, "If-Modified-Since") == modified)
        bench.upstream.fetches[2].answer(302, ["Location": "/v2.tgz"])
        bench.upstream.fetches[3].answer(304, ["Last-Modified": modified])
        #expect(bench.upstream.fetches.count == 5)
        #expect(bench.sent(4, "If-Modified-Since") == nil)
        bench.upstream.fetches[4].answer(302, ["Location": "/v2.tgz"])
        bench.upstream.fetches[5].answer(
            200, ["Last-Modified": modified, "Cache-Control": "max-age=0"], "two")
        #expect(client.wholeBody == "two")
        // Of the same one it is believed.
        let again = bench.perform().client
        bench.upstream.fetches[6].answer(302, ["Location": "/v2.tgz"])
        bench.upstream.fetches[7].answer(304, ["Last-Modified": modified])
        #expect(again.wholeBody == "two")
    }

    @Test(
        "one that sets cookies is the client's where no jar takes them (RFC 6265bis §5.6)",
        arguments: [(.post, 303), (.get, 302), (.get, 301), (.post, 307)] as [(Method, UInt16)])
    func setsCookie(_ method: Method, _ status: UInt16) {
        for jar in [nil, OneCookieJar()] {
            let bench = ChainBench(jar: jar, follows: true)
            let client = bench.perform("https://origin.example/login", method: method).client
            bench.upstream.fetches[0].answer(
                status, ["Location": "/home", "Set-Cookie": "sid=alice"])
            guard jar == nil else {
                #expect(bench.sent(1, "Cookie") == "sid=alice")
                continue
            }
            #expect(client.status == status)
            #expect(client.field("Location") == "/home")
            #expect(client.field("Set-Cookie") == "sid=alice")
            #expect(bench.upstream.fetches.count == 1)
            #expect(bench.session.counters().acts == [.redirectSetsCookie: 1])
        }
    }

    @Test("a cookie of another origin is not the client's, and keeps nothing from being followed")
    func foreignCookie() {
        for isStored in [true, false] {
            let policy = PolicyConfiguration(storesSetCookie: isStored)
            let bench = ChainBench(policy: policy, follows: true)
            let client = bench.perform().client
            bench.upstream.fetches[0].answer(302, ["Location": "https://b.example/"])
            bench.upstream.fetches[1].answer(302, ["Location": "/x", "Set-Cookie": "b=1"])
            bench.upstream.fetches[2].answer(200, ["Cache-Control": "max-age=60"], "x")
            #expect(client.wholeBody == "x")
            #expect(client.field("Set-Cookie") == nil)
            #expect(client.cacheStatus?.contains("stored;") == isStored)
        }
    }

    @Test(
        "one that is passed on behind a change of method leads on by that (RFC 9110 §15.4.4)",
        arguments: [(.put, 307, 303), (.post, 302, 303), (.get, 307, 307), (.get, 302, 302)]
            as [(Method, UInt16, UInt16)])
    func changedMethod(_ method: Method, _ status: UInt16, _ told: UInt16) {
        let bench = ChainBench(follows: true)
        let client = bench.perform(method: method).client
        bench.upstream.fetches[0].answer(303, ["Location": "/a"])
        #expect(bench.upstream.fetches[1].request.method == .get)
        bench.upstream.fetches[1].answer(status, ["Location": "b", "Set-Cookie": "sid=alice"])
        #expect(client.status == told)
        #expect(client.field("Location") == "https://origin.example/b")
        #expect(client.field("Set-Cookie") == "sid=alice")
    }

    @Test(
        "what it says of storing is read as of any response (RFC 9213 §2.2, cache rules)",
        arguments: [
            (["CDN-Cache-Control": "no-store", "Cache-Control": "max-age=60"], false),
            (["CDN-Cache-Control": "private", "Cache-Control": "max-age=60"], false),
            (["CDN-Cache-Control": "max-age=60", "Cache-Control": "no-store"], true),
            (["Odd": "no-store"], false), (["Cache-Control": "no-store"], false), ([:], true),
        ] as [(Fields, Bool)])
    func governed(_ fields: Fields, _ isStored: Bool) {
        let policy = PolicyConfiguration(targetedFields: ["CDN-Cache-Control", "Odd"])
        let bench = ChainBench(policy: policy, follows: true)
        let client = bench.perform().client
        var redirection = fields
        redirection.append("Location", "/x")
        bench.upstream.fetches[0].answer(302, redirection)
        bench.upstream.fetches[1].answer(
            200, ["Cache-Control": "max-age=60", "Odd": "max-age=60"], "x")
        #expect(client.cacheStatus?.contains("stored;") == isStored)
    }

    @Test("nor does it forbid what a cache rule ignores of it")
    func ruled() {
        var policy = PolicyConfiguration()
        policy.rules = [CacheRule(name: "r", paths: [Wildcard("/free")], ignored: [.noStore])]
        for (path, isStored) in [("/free", true), ("/other", false)] {
            let bench = ChainBench(policy: policy, follows: true)
            let client = bench.perform("https://origin.example\(path)").client
            bench.upstream.fetches[0].answer(302, ["Location": "/x", "Cache-Control": "no-store"])
            bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "x")
            #expect(client.cacheStatus?.contains("stored;") == isStored)
        }
    }

    @Test("a session that is not told to leaves them to the client")
    func off() {
        let bench = ChainBench(jar: OneCookieJar())
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "/x"])
        #expect(client.status == 302)
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("more than twenty in a row are a loop: 502 and proxy_loop_detected (RFC 9209 §2.3.30)")
    func loop() {
        let bench = ChainBench(follows: true)
        let client = bench.perform().client
        for _ in 0..<30 where client.calls == 0 {
            bench.upstream.fetches.last?.answer(302, ["Location": "/"])
        }
        #expect(bench.upstream.fetches.count == 21)
        #expect(client.failure?.status == .badGateway)
        #expect(client.failure?.error == .proxyLoopDetected)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("what another origin says of itself is not told as the first one's")
    func adapted() {
        let bench = ChainBench(follows: true)
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "https://b.example/d/x"])
        bench.upstream.fetches[1].answer(
            201,
            [
                "Set-Cookie": "b=1", "Strict-Transport-Security": "max-age=1", "Location": "y",
                "Content-Location": "../z", "No-Vary-Search": "params", "Alt-Svc": "clear",
                "X-Other": "stays",
            ])
        #expect(client.field("Set-Cookie") == nil)
        #expect(client.field("Strict-Transport-Security") == nil)
        #expect(client.field("No-Vary-Search") == nil)
        #expect(client.field("Alt-Svc") == nil)
        #expect(client.field("Location") == "https://b.example/d/y")
        #expect(client.field("Content-Location") == "https://b.example/z")
        #expect(client.field("X-Other") == "stays")
    }

    @Test("what a redirection varies by, its target's answer varies by too (RFC 9111 §4.1)")
    func redirectionVaries() {
        let bench = ChainBench(follows: true)
        bench.perform("https://origin.example/", ["Accept": "text/plain"])
        bench.upstream.fetches[0].answer(302, ["Location": "/text", "Vary": "Accept"])
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "max-age=60"], "text")
        let same = bench.perform("https://origin.example/", ["Accept": "text/plain"]).client
        #expect(same.wholeBody == "text")
        bench.perform("https://origin.example/", ["Accept": "image/png"])
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("what varies by a cookie of the target is not used again for the first one's sake")
    func varying() {
        let bench = ChainBench(jar: OneCookieJar(), follows: true)
        for index in [0, 2] {
            bench.perform()
            bench.upstream.fetches[index].answer(302, ["Location": "https://b.example/"])
            bench.upstream.fetches[index + 1].answer(
                200, ["Cache-Control": "max-age=60", "Vary": "Cookie"], "x")
        }
        #expect(bench.upstream.fetches.count == 4)
    }
}

@Suite("Credentials that outlive the process")
struct CredentialSavingTests {
    private static let space = ProtectionSpace(
        party: .server(.https), host: "h", port: 443, realm: "r", method: .basic)

    private static func credential(_ user: String) -> Credential {
        Credential(user: user, password: Secret("p"), persistence: .permanent)
    }

    @Test("changes reach the storage in their order, and come back from it")
    func order() async {
        let storage = ScriptedStorage()
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher())
        for user in ["a", "b", "c"] {
            await credentials.update { $0.set(Self.credential(user), for: Self.space) }
        }
        await credentials.update { $0.remove(user: "b", for: Self.space) }
        let next = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher())
        await next.load()
        #expect(Set(next.store.credentials(for: Self.space).keys) == ["a", "c"])
        #expect(next.store.defaultCredential(for: Self.space)?.user == "a")
    }

    @Test("many at once lose none, and the storage sees one batch at a time")
    func concurrent() async {
        let storage = ScriptedStorage()
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher())
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<50 {
                group.addTask {
                    await credentials.update {
                        $0.set(Self.credential("u\(index)"), for: Self.space)
                    }
                }
            }
        }
        #expect(storage.stored == 50)
        #expect(!storage.overlapped)
    }

    @Test("a storage that fails is reported once; the session goes on, and catches up")
    func failing() async {
        let storage = ScriptedStorage()
        storage.fails(true)
        let reports = ScriptedStorage()
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher(),
            report: { _ in reports.count() })
        for user in ["a", "b"] {
            await credentials.update { $0.set(Self.credential(user), for: Self.space) }
        }
        #expect(reports.counted == 1)
        #expect(credentials.store.credentials(for: Self.space).count == 2)
        storage.fails(false)
        await credentials.update { $0.set(Self.credential("c"), for: Self.space) }
        #expect(storage.stored == 3)
    }

    @Test("whoever stores or removes one hears that the storage did not take it")
    func told() async {
        let storage = ScriptedStorage()
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher())
        let stored = await credentials.update { $0.set(Self.credential("a"), for: Self.space) }
        #expect(stored == nil)
        storage.fails(true)
        let removed = await credentials.update { $0.remove(user: "a", for: Self.space) }
        #expect(removed == CredentialStorageError(.full, "scripted"))
        // There is nothing more to remove, and it is as little kept.
        #expect(await credentials.update { $0.remove(user: "a", for: Self.space) } == removed)
        storage.fails(false)
        #expect(await credentials.update { _ in [] } == nil)
        let next = SessionCredentials(
            CredentialStore(keepsPermanent: true), storage: storage, hasher: PlainHasher())
        await next.load()
        #expect(next.store.credentials(for: Self.space).isEmpty)
    }
}
