import LarderHTTP
import LarderPolicy
import Testing

@testable import LarderSession

@Suite("A validation in the background makes nobody wait, and is not lost (RFC 5861 §3)")
struct BackgroundValidationTests {
    private let bench = Bench()

    private static let served: Fields = [
        "Cache-Control": "max-age=1, stale-while-revalidate=600", "ETag": "\"a\"",
    ]

    /// Stores what is served stale by now, for a request with `X-A: 1`.
    private func store(_ extra: Fields = Fields()) {
        var fields = Self.served
        fields.append(contentsOf: extra)
        self.bench.perform("/", ["X-A": "1"])
        self.bench.upstream.fetches[0].answer(200, fields, "old")
        self.bench.clock.advance(.seconds(10))
    }

    private func isServed(_ fields: Fields = ["X-A": "1"]) -> Bool {
        self.bench.perform("/", fields).client.wholeBody == "old"
    }

    @Test(
        "an answer that is not stored is asked for again after the pause, not before",
        arguments: [302, 429, 500] as [UInt16])
    func notStored(_ status: UInt16) {
        self.store()
        #expect(self.isServed())
        self.bench.upstream.fetches.last?.answer(status, ["Cache-Control": "no-store"], "no")
        #expect(self.isServed())
        #expect(self.bench.upstream.fetches.count == 2)
        self.bench.clock.advance(.seconds(6))
        #expect(self.isServed())
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("a pause is over where the clock was set back behind its beginning")
    func setBack() {
        self.store(["Age": "10"])
        #expect(self.isServed())
        self.bench.upstream.fetches.last?.answer(500, ["Cache-Control": "no-store"], "no")
        self.bench.clock.advance(.seconds(-3_600))
        #expect(self.isServed())
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("another variant that cannot be shared holds up no validation")
    func sibling() {
        self.store(["Vary": "X-A"])
        self.bench.perform("/", ["X-A": "2"])
        self.bench.upstream.fetches[1].answer(200, ["Cache-Control": "no-store"], "mine")
        #expect(self.isServed())
        #expect(self.bench.upstream.fetches.count == 3)
        // And the other one waits for nobody still.
        self.bench.perform("/", ["X-A": "2"])
        self.bench.perform("/", ["X-A": "2"])
        #expect(self.bench.upstream.fetches.count == 5)
        self.bench.upstream.fetches.last {
            $0.request.fields.string("X-A") == "1"
        }?.answer(304, ["Cache-Control": "max-age=60"])
        let hit = self.bench.perform("/", ["X-A": "1"]).client
        #expect(hit.cacheStatus == "larder; hit; ttl=60")
    }

    @Test("what is denied to one client is validated for the next")
    func denied() {
        self.store()
        #expect(self.isServed())
        let fetch = self.bench.upstream.fetches.last
        fetch?.receiver.upstream(
            failed: UpstreamFailure(.httpRequestDenied, party: .client, detail: "scripted"))
        #expect(self.isServed())
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("the client's demands on caches go no further, unless they select what is stored")
    func demands() {
        self.store()
        let asked: Fields = ["X-A": "1", "Cache-Control": "only-if-cached", "Pragma": "x"]
        #expect(self.isServed(asked))
        let request = self.bench.upstream.fetches.last?.request
        #expect(request?.fields.string("Cache-Control") == nil)
        #expect(request?.fields.string("Pragma") == nil)
        #expect(request?.fields.string("X-A") == "1")
    }

    @Test("a demand by which the stored response varies goes along")
    func selectingDemand() {
        let asked: Fields = ["Cache-Control": "max-stale=1000, x=1"]
        self.bench.perform("/", asked)
        var fields = Self.served
        fields.append("Vary", "Cache-Control")
        self.bench.upstream.fetches[0].answer(200, fields, "old")
        self.bench.clock.advance(.seconds(10))
        #expect(self.isServed(asked))
        #expect(
            self.bench.upstream.fetches.dropFirst().allSatisfy {
                $0.request.fields.string("Cache-Control") == "max-stale=1000, x=1"
            })
    }
}
