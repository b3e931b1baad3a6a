import LarderCredentials
import LarderHTTP
import LarderSession
import NIOCore
import SeededNumbers
import Testing

@Suite("Whatever comes in whatever order, a chain keeps its promises")
struct ChainStormTests {
    private static let heads: [(UInt16, Fields)] = [
        (200, ["Cache-Control": "max-age=60", "Set-Cookie": "a=1"]), (200, ["Vary": "Cookie"]),
        (401, ["WWW-Authenticate": "Basic realm=\"r\""]),
        (401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""]),
        (401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=true"]),
        (401, ["WWW-Authenticate": "Digest realm=\"r, \"\"\""]), (302, ["Location": "/next"]),
        (307, ["Location": "https://b.example/"]), (303, ["Location": "http://origin.example/"]),
        (308, ["Location": "::"]), (500, [:]), (304, [:]),
    ]

    @Test(
        "one answer at most, one request under way, nothing left behind",
        arguments: UInt64(0)..<400)
    func storm(_ seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        let bench = ChainBench(
            jar: seed % 2 == 0 ? OneCookieJar() : nil, follows: seed % 3 != 0,
            store: ChainBench.holding(.basic, .digest))
        let hasBody = seed % 5 == 0
        let body = hasBody ? ScriptedBody("one", "two") : nil
        let (client, exchange) = bench.perform(method: hasBody ? .post : .get, body: body)
        var hasHead: Set<Int> = []
        var hasEnded: Set<Int> = []
        for _ in 0..<80 where hasEnded.count < bench.upstream.fetches.count {
            let current = bench.upstream.fetches.count - 1
            // Mostly of the last request, now and then of one that concerns nobody any more.
            let index =
                Int.random(in: 0..<8, using: &numbers) == 0
                ? Int.random(in: 0...current, using: &numbers) : current
            let fetch = bench.upstream.fetches[index]
            if hasEnded.contains(index) || fetch.isCancelled { hasEnded.insert(index); continue }
            switch Int.random(in: 0..<10, using: &numbers) {
            case 0: _ = client.read()
            case 1 where hasHead.contains(index): fetch.piece(bytes: 40_000)
            case 2:
                hasEnded.insert(index)
                fetch.fail()
            case 3 where Int.random(in: 0..<4, using: &numbers) == 0: exchange.cancel()
            case 4:
                fetch.body?.attach {}
                _ = fetch.body?.next()
            case 5: bench.timers.fireAll()
            case _ where hasHead.contains(index):
                hasEnded.insert(index)
                fetch.finish()
            default:
                hasHead.insert(index)
                let (status, fields) = Self.heads[
                    Int.random(in: Self.heads.indices, using: &numbers)]
                fetch.head(status, fields)
            }
            let open = bench.upstream.fetches.indices.filter {
                !hasEnded.contains($0) && !bench.upstream.fetches[$0].isCancelled
            }
            #expect(open.count <= 1)
        }
        exchange.cancel()
        if let last = bench.upstream.fetches.last, !last.isCancelled { last.fail() }
        #expect(client.calls <= 1)
        #expect(bench.upstream.fetches.count <= 21 * 5)
        #expect(bench.session.counters().openFetches == 0)
        #expect((body?.attached ?? 0) <= 1)
        for fetch in bench.upstream.fetches where fetch.request.uri.host != "origin.example" {
            #expect(!fetch.request.fields.contains("Authorization"))
        }
    }
}
