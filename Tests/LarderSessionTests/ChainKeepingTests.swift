import LarderHTTP
import LarderSession
import Testing

@Suite("A client sees the answer that set cookies once they are kept")
struct ChainKeepingTests {
    private let jar = OneCookieJar()
    private let bench: ChainBench

    init() {
        self.bench = ChainBench(jar: self.jar)
        self.jar.keepSlowly()
    }

    @Test("the head waits for the storage, and the upstream with it")
    func waits() {
        let client = self.bench.perform().client
        let fetch = self.bench.upstream.fetches[0]
        #expect(fetch.head(200, ["Set-Cookie": "a=1"]) == .pause)
        #expect(client.status == nil && fetch.resumed == 0)
        // It is in force meanwhile.
        self.bench.perform("https://origin.example/2")
        #expect(self.bench.sent(1, "Cookie") == "a=1")
        self.jar.keep()
        #expect(client.status == 200 && fetch.resumed == 1)
        fetch.piece("one")
        fetch.finish()
        #expect(client.wholeBody == "one")
    }

    @Test("a response that has come whole waits whole, and is heard of at once")
    func whole() {
        let client = self.bench.perform().client
        self.bench.upstream.fetches[0].answer(200, ["Set-Cookie": "a=1"], "one")
        #expect(client.calls == 0)
        self.jar.keep()
        #expect(client.calls == 1 && client.wakes == 0)
        #expect(client.wholeBody == "one")
        self.bench.timers.fireAll()
        #expect(client.calls == 1)
        #expect(self.bench.session.openFetches().isEmpty)
    }

    @Test("a client that leaves before a whole response is kept hears nothing of it")
    func leftBeforeWhole() {
        let (client, exchange) = self.bench.perform()
        self.bench.upstream.fetches[0].answer(200, ["Set-Cookie": "a=1"], "one")
        exchange.cancel()
        self.jar.keep()
        self.bench.timers.fireAll()
        #expect(client.calls == 0)
        #expect(self.bench.session.openFetches().isEmpty)
    }

    @Test("a response without cookies waits for nobody")
    func others() {
        let client = self.bench.perform().client
        self.bench.upstream.fetches[0].answer(200, ["X": "y"], "one")
        #expect(client.wholeBody == "one")
    }

    @Test("a storage that takes too long keeps nobody waiting, and answers too late without harm")
    func patience() {
        let client = self.bench.perform().client
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, ["Set-Cookie": "a=1"])
        self.bench.timers.fireAll()
        #expect(client.status == 200 && fetch.resumed == 1)
        self.jar.keep()
        #expect(fetch.resumed == 1)
        fetch.piece("one")
        fetch.finish()
        #expect(client.wholeBody == "one")
    }

    @Test("a failure meanwhile is told at once, and the storage's answer comes too late")
    func failure() {
        let client = self.bench.perform().client
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, ["Set-Cookie": "a=1"])
        fetch.fail()
        #expect(client.failure != nil && client.status == nil)
        self.jar.keep()
        self.bench.timers.fireAll()
        #expect(client.status == nil && fetch.resumed == 0)
    }

    @Test("a client that leaves meanwhile hears nothing more")
    func cancel() {
        let (client, exchange) = self.bench.perform()
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, ["Set-Cookie": "a=1", "Cache-Control": "no-store"])
        exchange.cancel()
        self.jar.keep()
        self.bench.timers.fireAll()
        #expect(client.status == nil && client.failure == nil)
    }

    @Test("cookies of a redirection that the session follows count, too")
    func redirection() {
        let bench = ChainBench(jar: self.jar, follows: true)
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(302, ["Location": "/2", "Set-Cookie": "a=1"])
        #expect(bench.sent(1, "Cookie") == "a=1")
        #expect(bench.upstream.fetches[1].head(200, ["X": "y"]) == .pause)
        #expect(client.status == nil)
        self.jar.keep()
        #expect(client.status == 200)
    }
}
