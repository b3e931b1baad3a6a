import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Testing

@Suite("A session's cookies travel with its requests (RFC 6265bis §5.7, §5.8)")
struct ChainCookieTests {
    @Test("what a response sets the next request bears, and the client does not see")
    func jar() {
        let jar = OneCookieJar()
        let bench = ChainBench(jar: jar)
        let client = bench.perform().client
        #expect(bench.sent(0, "Cookie") == nil)
        bench.upstream.fetches[0].answer(200, ["Set-Cookie": "a=1"])
        #expect(client.field("Set-Cookie") == nil)
        bench.perform("https://origin.example/2", ["Cookie": "own=2"])
        #expect(bench.sent(1, "Cookie") == "own=2; a=1")
    }

    @Test("what set cookies is not stored where a setting says so, though the jar took them")
    func notStored() {
        for lines: Fields in [["Set-Cookie": "a=1"], ["X": "y"]] {
            let bench = ChainBench(
                jar: OneCookieJar(), policy: PolicyConfiguration(storesSetCookie: false))
            for _ in 0..<2 {
                bench.perform()
                let fetch = bench.upstream.fetches.last
                var fields: Fields = ["Cache-Control": "max-age=60"]
                for line in lines.lines { fields.append(line, of: lines) }
                fetch?.answer(200, fields, "one")
            }
            #expect(bench.upstream.fetches.count == (lines.contains("Set-Cookie") ? 2 : 1))
        }
    }

    @Test("the same holds for what a redirection led to that set cookies")
    func notStoredBehind() {
        let bench = ChainBench(
            jar: OneCookieJar(), policy: PolicyConfiguration(storesSetCookie: false),
            follows: true)
        for round in 0..<2 {
            let client = bench.perform().client
            bench.upstream.fetches.last?.answer(
                302,
                [
                    "Location": "/2", "Set-Cookie": "a=1", "Cache-Control": "max-age=60",
                ])
            bench.upstream.fetches.last?.answer(200, ["Cache-Control": "max-age=60"], "one")
            #expect(client.wholeBody == "one")
            #expect(bench.upstream.fetches.count == 2 * (round + 1))
        }
    }

    @Test("the client sees no Set-Cookie of an interim response either")
    func interim() {
        let bench = ChainBench(jar: OneCookieJar())
        let client = bench.perform().client
        bench.upstream.fetches[0].informational(["Set-Cookie": "a=1", "Link": "</x>"])
        #expect(client.informational.map(\.fields) == [["Link": "</x>"]])
    }

    @Test("those of a 401 and of a redirection are taken before the next request")
    func everyResponse() {
        let jar = OneCookieJar()
        let bench = ChainBench(jar: jar, follows: true, store: ChainBench.holding(.basic))
        let client = bench.perform("https://origin.example/", ["Cookie": "own=0"]).client
        bench.upstream.fetches[0].answer(
            401, ["WWW-Authenticate": "Basic realm=\"r\"", "Set-Cookie": "a=1"])
        #expect(bench.sent(1, "Cookie") == "own=0; a=1")
        bench.upstream.fetches[1].answer(
            302, ["Location": "https://b.example/", "Set-Cookie": "a=2"])
        #expect(bench.sent(2, "Cookie") == nil)
        bench.upstream.fetches[2].answer(200, ["Set-Cookie": "b=1"])
        #expect(client.status == 200)
        #expect(client.field("Set-Cookie") == nil)
        #expect(
            jar.responses == [
                "0 origin.example origin.example 401", "0 origin.example origin.example 302",
                "1 origin.example b.example 200",
            ])
        bench.perform("https://origin.example/2")
        #expect(bench.sent(3, "Cookie") == "a=2")
    }

    @Test("Vary: Cookie is judged by digests: equal for equal cookies, else not")
    func varying() {
        let jar = OneCookieJar()
        let bench = ChainBench(jar: jar)
        let kept: Fields = ["Cache-Control": "max-age=60", "Vary": "Cookie"]
        jar.put("a=1", for: "origin.example")
        bench.perform()
        bench.upstream.fetches[0].answer(200, kept, "one")
        #expect(bench.perform().client.wholeBody == "one")
        jar.put("a=2", for: "origin.example")
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
        #expect(bench.sent(1, "Cookie") == "a=2")
    }

    @Test("without a key what varies by a cookie answers nobody, rather than show it")
    func keyless() {
        let jar = OneCookieJar()
        jar.put("a=1", for: "origin.example")
        let bench = ChainBench(jar: jar, isDigesting: false)
        for index in 0..<2 {
            bench.perform()
            #expect(bench.sent(index, "Cookie") == "a=1")
            bench.upstream.fetches[index].answer(
                200, ["Cache-Control": "max-age=60", "Vary": "Cookie"], "one")
        }
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test(
        "additional fields are added where the request has none of them, and never forbidden ones")
    func additional() {
        let bench = ChainBench(
            fields: [
                "X-Build": "1", "User-Agent": "session", "Authorization": "Basic x",
                "Connection": "X-Build", "Host": "evil.example", "Proxy-Authorization": "Basic x",
                "WWW-Authenticate": "Basic", "Content-Length": "9", "Transfer-Encoding": "x",
            ])
        bench.perform("https://origin.example/", ["user-agent": "client"])
        #expect(
            bench.upstream.fetches[0].request.fields
                == ["User-Agent": "client", "X-Build": "1"])
        #expect(bench.upstream.fetches[0].request.uri.host == "origin.example")
    }

    @Test("a session that adds nothing hands the request on as it is")
    func idle() {
        let bench = ChainBench()
        bench.perform("https://origin.example/", ["Cookie": "own=1", "Authorization": "Basic x"])
        #expect(bench.sent(0, "Cookie") == "own=1")
        #expect(bench.sent(0, "Authorization") == "Basic x")
        #expect(bench.session.counters().acts.isEmpty)
    }
}

@Suite("Back-pressure, failures and cancels anywhere in a chain")
struct ChainFlowTests {
    private static let challenge: Fields = ["WWW-Authenticate": "Basic realm=\"r\""]

    @Test("a huge 401 is broken off, and the answer goes out at once")
    func huge() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].head(401, Self.challenge, length: .known(1 << 40))
        #expect(bench.upstream.fetches[0].isCancelled)
        #expect(bench.upstream.fetches.count == 2)

        let growing = ChainBench(store: ChainBench.holding(.basic))
        let client = growing.perform().client
        growing.upstream.fetches[0].head(401, Self.challenge)
        #expect(growing.upstream.fetches.count == 1)
        for _ in 0..<20 where growing.upstream.fetches.count == 1 {
            growing.upstream.fetches[0].piece(bytes: 8192)
        }
        #expect(growing.upstream.fetches[0].isCancelled)
        #expect(growing.upstream.fetches.count == 2)
        // What is still under way of it concerns nobody.
        growing.upstream.fetches[0].piece(bytes: 8192)
        growing.upstream.fetches[0].fail()
        growing.upstream.fetches[1].answer(200, [:], "yes")
        #expect(client.wholeBody == "yes")
    }

    @Test("a 401 that breaks off is answered all the same")
    func broken() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform().client
        bench.upstream.fetches[0].head(401, Self.challenge, length: .known(9))
        bench.upstream.fetches[0].fail()
        bench.upstream.fetches[1].answer(200, [:], "yes")
        #expect(client.wholeBody == "yes")
    }

    @Test("a failure at any request of a chain is the client's", arguments: 0..<3)
    func failures(_ stage: Int) {
        let bench = ChainBench(follows: true, store: ChainBench.holding(.basic))
        let client = bench.perform().client
        if stage > 0 { bench.upstream.fetches[0].answer(401, Self.challenge) }
        if stage > 1 { bench.upstream.fetches[1].answer(302, ["Location": "/x"]) }
        bench.upstream.fetches[stage].fail(.connectionRefused)
        #expect(client.failure?.error == .connectionRefused)
        #expect(client.calls == 1)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("a client that leaves at any time ends what is under way", arguments: 0..<6)
    func cancels(_ stage: Int) {
        let bench = ChainBench(follows: true, store: ChainBench.holding(.basic))
        let (client, exchange) = bench.perform(method: .post, body: ScriptedBody("a"))
        let fetches = { bench.upstream.fetches }
        if stage >= 1 { fetches()[0].head(401, Self.challenge) }
        if stage >= 2 { fetches()[0].finish() }
        if stage >= 3 { fetches()[1].head(307, ["Location": "/x"]) }
        if stage >= 4 { fetches()[1].finish() }
        if stage >= 5 { fetches()[2].head(200) }
        let count = fetches().count
        exchange.cancel()
        #expect(fetches().last?.isCancelled == true)
        _ = fetches().last?.receiver.upstream(piece: ByteBuffer(string: "late"))
        fetches().last?.receiver.upstream(finished: Fields())
        #expect(fetches().count == count)
        #expect(client.calls == (stage >= 5 ? 1 : 0))
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("the reader's pace is the origin's, in the last request of a chain")
    func pauses() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(401, Self.challenge, "no")
        let fetch = bench.upstream.fetches[1]
        fetch.head(200, ["Cache-Control": "no-store"])
        var demand = UpstreamDemand.more
        for _ in 0..<64 {
            guard case .more = demand else { break }
            demand = fetch.piece(bytes: 4096)
        }
        guard case .pause = demand else {
            Issue.record("never paused")
            return
        }
        #expect(fetch.resumed == 0)
        _ = client.read()
        #expect(fetch.resumed == 1)
        #expect(bench.upstream.fetches[0].resumed == 0)
    }

    @Test("answers that come before `fetch` returns are as good as later ones")
    func synchronous() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.upstream.onFetch { fetch in
            bench.upstream.onFetch { $0.answer(200, [:], "yes") }
            fetch.answer(401, Self.challenge, "no")
        }
        let client = bench.perform().client
        #expect(client.wholeBody == "yes")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("interim responses are relayed from every request")
    func informational() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform().client
        let hints = ResponseHead(status: StatusCode(103))
        bench.upstream.fetches[0].receiver.upstream(informational: hints)
        bench.upstream.fetches[0].answer(401, Self.challenge)
        bench.upstream.fetches[1].receiver.upstream(informational: hints)
        #expect(client.informational.count == 2)
        bench.upstream.fetches[0].receiver.upstream(informational: hints)
        #expect(client.informational.count == 2)
    }

    @Test("content that is little goes twice; what cannot be had again has its 401 passed on")
    func content() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let client = bench.perform(method: .post, body: ScriptedBody("one ", "two")).client
        let first = bench.upstream.fetches[0]
        first.body?.attach {}
        #expect(first.body?.text().text == "one two")
        first.answer(401, Self.challenge)
        let second = bench.upstream.fetches[1]
        second.body?.attach {}
        #expect(second.body?.text().text == "one two")
        second.answer(200, [:], "yes")
        #expect(client.wholeBody == "yes")

        let large = ChainBench(store: ChainBench.holding(.basic))
        let piece = ByteBuffer(repeating: 0x61, count: 100_000)
        let body = ScriptedBody([.piece(piece)])
        let other = large.perform(method: .put, body: body).client
        large.upstream.fetches[0].body?.attach {}
        _ = large.upstream.fetches[0].body?.next()
        large.upstream.fetches[0].answer(401, Self.challenge, "no")
        #expect(other.status == 401)
        #expect(other.field("WWW-Authenticate") != nil)
        #expect(large.upstream.fetches.count == 1)
        #expect(large.session.counters().acts[.contentNotRepeatable] == 1)
    }

    @Test("content that nobody has asked for yet is not begun: the answer bears it")
    func unbegun() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        let body = ScriptedBody([.piece(ByteBuffer(repeating: 0x61, count: 100_000))])
        bench.perform(method: .put, body: body)
        bench.upstream.fetches[0].body?.attach {}
        bench.upstream.fetches[0].answer(401, Self.challenge)
        bench.upstream.fetches[0].body?.cancel()
        #expect(bench.upstream.fetches.count == 2)
        #expect(!body.isCancelled)
        #expect(body.asked == 0)
    }

    @Test("auth-int covers content that is known, and is passed over where it is not")
    func integrity() {
        let challenge: Fields = [
            "WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\""
        ]
        let known = ChainBench(store: ChainBench.holding(.digest))
        known.perform(method: .post, body: ScriptedBody("content"))
        known.upstream.fetches[0].body?.attach {}
        _ = known.upstream.fetches[0].body?.text()
        known.upstream.fetches[0].answer(401, challenge)
        #expect(known.sent(1, "Authorization")?.contains("qop=auth-int") == true)
        let unknown = ChainBench(store: ChainBench.holding(.digest))
        let client = unknown.perform(method: .post, body: ScriptedBody("content")).client
        unknown.upstream.fetches[0].answer(401, challenge)
        #expect(client.status == 401)
        #expect(unknown.upstream.fetches.count == 1)
    }

    @Test("the cache's own validation goes through a challenge (RFC 9111 §4.3)")
    func validation() {
        let bench = ChainBench(store: ChainBench.holding(.basic))
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=1", "ETag": "\"a\""], "kept")
        bench.clock.advance(.seconds(5))
        let client = bench.perform().client
        #expect(bench.sent(1, "If-None-Match") == "\"a\"")
        bench.upstream.fetches[1].answer(401, Self.challenge)
        #expect(bench.sent(2, "If-None-Match") == "\"a\"")
        bench.upstream.fetches[2].answer(304, ["ETag": "\"a\"", "Cache-Control": "max-age=9"])
        #expect(client.wholeBody == "kept")
    }
}
