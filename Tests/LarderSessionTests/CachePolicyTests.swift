import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderSession

extension Bench {
    /// Performs a GET of `path` under a request cache policy.
    fileprivate func get(
        _ path: String = "/", _ fields: Fields = Fields(), under policy: RequestCachePolicy?
    ) -> RecordingClient {
        let client = RecordingClient()
        let request = Request(
            method: .get,
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path),
            fields: fields)
        _ = self.session.perform(
            request, body: nil, options: ExchangeOptions(cachePolicy: policy), client: client)
        return client
    }
}

@Suite("A session follows request cache policies")
struct CachePolicyTests {
    @Test("reload-ignoring-local asks the origin and stores the answer in the old one's place")
    func reload() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "old")
        let reloaded = bench.get(under: .reloadIgnoringLocal)
        let asked = bench.upstream.fetches[1].request.fields
        #expect(!asked.contains(FieldName(.ifNoneMatch)))
        #expect(!asked.contains(FieldName(.cacheControl)))
        bench.upstream.fetches[1].answer(200, bench.fresh, "new")
        #expect(reloaded.wholeBody == "new")
        #expect(
            reloaded.cacheStatus
                == "larder; fwd=bypass; fwd-status=200; ttl=60; stored; detail=reload-ignoring-local"
        )
        #expect(bench.perform().client.wholeBody == "new")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("reload-ignoring-all tells the origin")
    func reloadAll() {
        let bench = Bench()
        _ = bench.get(under: .reloadIgnoringAll)
        let asked = bench.upstream.fetches[0].request.fields
        #expect(asked.string(FieldName(.cacheControl)) == "no-cache")
        #expect(asked.string(FieldName(.pragma)) == "no-cache")
        // What was stored answers those after it.
        bench.upstream.fetches[0].answer(200, bench.fresh, "new")
        #expect(bench.perform().client.cacheStatus == "larder; hit; ttl=60")
    }

    @Test("two that reload do not share one fetch")
    func alone() {
        let bench = Bench()
        _ = bench.get(under: .reloadIgnoringLocal)
        _ = bench.get(under: .reloadIgnoringLocal)
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("return-cache-else-load serves what is stale, and fetches what is not there")
    func elseLoad() {
        let bench = Bench()
        let miss = bench.get(under: .returnCacheElseLoad)
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=1, must-revalidate", "ETag": "\"a\""], "kept")
        #expect(miss.wholeBody == "kept")
        bench.clock.advance(.seconds(100))
        let stale = bench.get(under: .returnCacheElseLoad)
        #expect(stale.wholeBody == "kept")
        #expect(stale.cacheStatus == "larder; hit; ttl=-99; detail=return-cache-else-load")
        #expect(stale.field("Age") == "100")
        #expect(bench.upstream.fetches.count == 1)
        #expect(bench.session.counters().staleHits == 1)
    }

    @Test("return-cache-dont-load answers 504 for what is not there, and remembers it")
    func offline() {
        let bench = Bench()
        bench.perform("/here")
        bench.upstream.fetches[0].answer(200, bench.fresh, "kept")
        bench.clock.advance(.seconds(100))
        #expect(bench.get("/here", under: .returnCacheDontLoad).wholeBody == "kept")
        let first = bench.clock.now()
        let missing = bench.get("/gone?a=b", under: .returnCacheDontLoad)
        #expect(missing.failure?.status == .gatewayTimeout)
        #expect(missing.failure?.detail.contains("offline") == true)
        #expect(missing.failure?.cacheStatus.detail == "return-cache-dont-load")
        bench.clock.advance(.seconds(5))
        _ = bench.get("/gone?a=b", under: .returnCacheDontLoad)
        _ = bench.get("/other", under: .returnCacheDontLoad)
        #expect(bench.upstream.fetches.count == 1)
        let misses = bench.session.missedOffline(clears: true)
        #expect(
            misses.all == [
                .init(
                    method: "GET", uri: "http://origin.example/gone?a=b", count: 2, first: first,
                    last: bench.clock.now()),
                .init(
                    method: "GET", uri: "http://origin.example/other", count: 1,
                    first: bench.clock.now(), last: bench.clock.now()),
            ])
        #expect(misses.unlisted == 0)
        #expect(bench.session.missedOffline().all.isEmpty)
    }

    @Test("only-if-cached of a client is no offline miss")
    func onlyIfCached() {
        let bench = Bench()
        let client = bench.get("/", ["Cache-Control": "only-if-cached"], under: nil)
        #expect(client.failure?.cacheStatus.detail == "only-if-cached")
        #expect(bench.session.missedOffline().all.isEmpty)
    }

    @Test("reload-revalidating asks although what is stored is fresh, and takes no stand-in")
    func revalidating() {
        let bench = Bench()
        bench.perform()
        var fields = bench.fresh
        fields.set("Cache-Control", "max-age=60, stale-if-error=600")
        bench.upstream.fetches[0].answer(200, fields, "kept")
        let confirmed = bench.get(under: .reloadRevalidating)
        #expect(bench.upstream.fetches[1].request.fields.string("If-None-Match") == "\"a\"")
        bench.upstream.fetches[1].answer(304, bench.fresh)
        #expect(confirmed.wholeBody == "kept")
        let failed = bench.get(under: .reloadRevalidating)
        bench.upstream.fetches[2].fail()
        #expect(failed.failure?.status == .badGateway)
    }

    @Test("the session's own holds where the request says nothing, and may change while it runs")
    func ofSession() {
        let bench = Bench()
        bench.session.follow(PolicyConfiguration(), cachePolicy: .returnCacheDontLoad)
        #expect(bench.session.cachePolicy == .returnCacheDontLoad)
        #expect(bench.perform().client.failure?.status == .gatewayTimeout)
        _ = bench.get(under: .useProtocol)
        #expect(bench.upstream.fetches.count == 1)
        bench.session.follow(PolicyConfiguration(), cachePolicy: .useProtocol)
        bench.perform("/other")
        #expect(bench.upstream.fetches.count == 2)
    }
}

@Suite("A session follows cache rules")
struct CacheRuleSessionTests {
    private func rules(_ rules: CacheRule...) -> PolicyConfiguration {
        var configuration = PolicyConfiguration()
        configuration.rules = rules
        return configuration
    }

    @Test("a rule makes a hit, says so, and holds for its path alone")
    func minimum() {
        let bench = Bench()
        bench.session.follow(
            self.rules(
                CacheRule(name: "pinned", paths: [Wildcard("/a/*")], minimum: .seconds(600))),
            cachePolicy: .useProtocol)
        for path in ["/a/1", "/b/1"] {
            let client = bench.perform(path).client
            bench.upstream.fetches.last?.answer(
                200, ["Cache-Control": "max-age=0", "ETag": "\"a\""], "x")
            let rest =
                path == "/a/1"
                ? "ttl=600; stored; detail=rule-minimum" : "ttl=0; stored; detail=nothing-stored"
            #expect(client.cacheStatus == "larder; fwd=uri-miss; fwd-status=200; \(rest)")
        }
        #expect(
            bench.perform("/a/1").client.cacheStatus == "larder; hit; ttl=600; detail=rule-minimum")
        bench.perform("/b/1")
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("an error is kept for its negative lifetime")
    func negative() {
        let bench = Bench()
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(404...404, .seconds(30))]
        bench.session.follow(configuration, cachePolicy: .useProtocol)
        bench.perform()
        bench.upstream.fetches[0].answer(404, Fields(), "gone")
        let hit = bench.perform().client
        #expect(hit.status == 404)
        #expect(hit.cacheStatus == "larder; hit; ttl=30; detail=negative-lifetime")
        bench.clock.advance(.seconds(30))
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("a failure that only settings would keep leaves what is stored in its place")
    func keepsStored() {
        let bench = Bench()
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(500...599, .seconds(30))]
        bench.session.follow(configuration, cachePolicy: .useProtocol)
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "good")
        bench.clock.advance(.seconds(61))
        let failed = bench.perform().client
        bench.upstream.fetches[1].answer(503, Fields(), "bad")
        #expect(failed.status == 503)
        #expect(failed.cacheStatus == "larder; fwd=stale; fwd-status=503; detail=keeps-stored")
        let again = bench.perform().client
        bench.upstream.fetches[2].answer(304, bench.fresh)
        #expect(again.wholeBody == "good")
    }

    /// A bench whose settings keep failures for two seconds.
    private static func keepingFailures() -> Bench {
        var configuration = PolicyConfiguration()
        configuration.negative = [NegativeLifetime(500...599, .seconds(2))]
        return Bench(policy: configuration)
    }

    @Test("a failure that settings keep takes the place of one that they kept")
    func failureAgain() {
        let bench = Self.keepingFailures()
        for round in 1...3 {
            bench.perform()
            bench.upstream.fetches.last?.answer(503, Fields(), "bad")
            #expect(bench.perform().client.answer?.cacheStatus.hit == true)
            #expect(bench.upstream.fetches.count == round)
            bench.clock.advance(.seconds(3))
        }
    }

    @Test("a failure that settings keep leaves the variants of others alone, and is kept")
    func failureBesideVariant() {
        let bench = Self.keepingFailures()
        var fields = bench.fresh
        fields.append("Vary", "X-A")
        bench.perform("/", ["X-A": "1"])
        bench.upstream.fetches[0].answer(200, fields, "good")
        bench.perform("/", ["X-A": "2"])
        bench.upstream.fetches.last?.answer(503, ["Vary": "X-A"], "bad")
        #expect(bench.perform("/", ["X-A": "2"]).client.status == 503)
        #expect(bench.perform("/", ["X-A": "1"]).client.wholeBody == "good")
        #expect(bench.upstream.fetches.count == 2)
        bench.clock.advance(.seconds(61))
        // What is good is not given up for it.
        bench.perform("/", ["X-A": "1"])
        bench.upstream.fetches.last?.answer(503, Fields(), "bad")
        let again = bench.perform("/", ["X-A": "1"]).client
        bench.upstream.fetches.last?.answer(304, fields)
        #expect(again.wholeBody == "good")
    }

    @Test("what a rule forbids to store is neither stored nor used")
    func never() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "x")
        bench.session.follow(
            self.rules(CacheRule(name: "r", forbidsStoring: true)), cachePolicy: .useProtocol)
        let client = bench.perform().client
        bench.upstream.fetches[1].answer(200, bench.fresh, "y")
        #expect(
            client.cacheStatus
                == "larder; fwd=bypass; fwd-status=200; detail=rule-stores-nothing")
        #expect(client.wholeBody == "y")
    }
}

@Suite("The memory of offline misses is bounded")
struct OfflineMissesTests {
    private func request(_ path: String, _ method: Method = .get) -> Request {
        Request(
            method: method, uri: TargetURI(scheme: .http, host: "a.example", pathAndQuery: path))
    }

    @Test("in entries and in bytes; what is known is counted on, what is not is only counted")
    func bounds() {
        var misses = OfflineMisses(maximumEntries: 2, maximumBytes: 60)
        let now = Timestamp(seconds: 100)
        misses.note(self.request("/1"), at: now)
        misses.note(self.request("/" + String(repeating: "x", count: 60)), at: now)
        misses.note(self.request("/2"), at: now)
        misses.note(self.request("/3"), at: now)
        misses.note(self.request("/1"), at: now + .seconds(9))
        #expect(misses.all.map(\.uri) == ["http://a.example/1", "http://a.example/2"])
        #expect(misses.all.map(\.count) == [2, 1])
        #expect(misses.all[0].last == now + .seconds(9))
        #expect(misses.unlisted == 2)
        misses.clear()
        #expect(misses.all.isEmpty)
        #expect(misses.unlisted == 0)
        misses.note(self.request("/3"), at: now)
        #expect(misses.all.count == 1)
    }

    @Test("a password in an ftp URI is not remembered")
    func password() {
        var misses = OfflineMisses()
        misses.note(
            Request(
                method: .get,
                uri: TargetURI(
                    scheme: .ftp, userInfo: "me:secret", host: "a.example", pathAndQuery: "/f")),
            at: Timestamp(seconds: 1))
        #expect(misses.all.map(\.uri) == ["ftp://a.example/f"])
    }
}
