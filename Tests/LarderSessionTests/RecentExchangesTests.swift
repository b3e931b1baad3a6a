import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization
import Testing

@testable import LarderSession

@Suite("What a session remembers of its exchanges")
struct RecentExchangesTests {
    private static let target = TargetURI(
        scheme: .http, host: "origin.example", pathAndQuery: "/")

    @Test("a miss, a hit, a validation and a POST, the last one first, each with its reason")
    func remembers() throws {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(7))
        bench.perform()
        bench.clock.advance(.seconds(60))
        bench.perform()
        bench.upstream.fetches[1].answer(304, bench.fresh)
        bench.perform(method: .post)
        bench.upstream.fetches[2].answer(200, ["Cache-Control": "no-store"], "done")
        bench.perform("/other")
        bench.upstream.fetches[3].answer(200, ["Cache-Control": "no-store"], "private")

        let all = bench.session.recentExchanges(for: Self.target, limit: 10)
        #expect(all.map(\.method.rawValue) == ["POST", "GET", "GET", "GET"])
        #expect(
            all.map(\.reason) == [.methodNotCacheable, .lifetimeOver, .fresh, .nothingStored])
        #expect(all.map(\.storage) == [.methodNotCacheable, nil, nil, nil])
        #expect(all.map(\.isHit) == [false, false, true, false])
        #expect(all.map(\.isStored) == [false, false, false, true])
        #expect(all.map(\.forward) == [.method, .stale, nil, .uriMiss])
        #expect(all.map(\.forwardStatus) == [.ok, .notModified, nil, .ok])
        #expect(all.map(\.age) == [nil, 0, 7, nil])
        #expect(all.map(\.ttl) == [nil, 60, 53, 60])
        #expect(all.map(\.bytes) == [4, 5, 5, 5])
        #expect(bench.session.recentExchanges(for: Self.target, limit: 2).count == 2)
        var other = Self.target
        other.pathAndQuery = "/other"
        let stored = bench.session.recentExchanges(for: other, limit: 10).map(\.storage)
        #expect(stored == [.responseNoStore])
    }

    @Test("a failure, with its error type")
    func failure() throws {
        let bench = Bench()
        let client = bench.perform().client
        bench.upstream.fetches[0].fail(.connectionRefused)
        let only = try #require(
            bench.session.recentExchanges(for: Self.target, limit: 10).first)
        #expect(only.status == .badGateway)
        #expect(only.error == .connectionRefused)
        #expect(only.forward == .uriMiss)
        #expect(client.failure?.nextHop == "origin.example")
        #expect(client.failure?.cacheStatus.detail == "nothing-stored")
    }

    @Test("neither fields of the request nor user information")
    func secrets() throws {
        let bench = Bench()
        let client = RecordingClient()
        let uri = TargetURI(
            scheme: .ftp, userInfo: "user:hidden", host: "origin.example", pathAndQuery: "/f")
        let fields: Fields = ["Authorization": "Basic hidden", "Cookie": "id=hidden"]
        _ = bench.session.perform(
            Request(uri: uri, fields: fields), body: nil, options: ExchangeOptions(),
            client: client)
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        let all = bench.session.recentExchanges(for: uri, limit: 10)
        #expect(all.count == 1)
        #expect(!String(describing: all).contains("hidden"))
        let key = try #require(all.first).key.bytes
        #expect(!String(decoding: key, as: UTF8.self).contains("hidden"))
    }

    @Test(
        "a validation in the background, with what came of it (RFC 5861 §3)",
        arguments: [
            (304, nil), (200, nil), (nil, .connectionRefused),
        ] as [(UInt16?, ProxyErrorType?)])
    func background(_ status: UInt16?, _ error: ProxyErrorType?) throws {
        let bench = Bench()
        let fields: Fields = [
            "Cache-Control": "max-age=1, stale-while-revalidate=100", "ETag": "\"a\"",
        ]
        bench.perform()
        bench.upstream.fetches[0].answer(200, fields, "hello")
        bench.clock.advance(.seconds(10))
        bench.perform()
        if let status {
            bench.upstream.fetches[1].answer(status, fields)
        } else {
            bench.upstream.fetches[1].fail(.connectionRefused)
        }
        let all = bench.session.recentExchanges(for: Self.target, limit: 10)
        #expect(all.map(\.isBackground) == [true, false, false])
        let last = try #require(all.first)
        #expect(last.forwardStatus == status.map { StatusCode($0) })
        #expect(last.error == error)
        #expect(last.reason == .staleWhileRevalidate)
        #expect(last.isStored == (status == 200))
    }

    @Test("the last ones only, as many as it was told", arguments: [0, 1, 8, 20])
    func bounded(_ capacity: Int) {
        let recent = RecentExchanges(capacity: capacity)
        for second in 0..<100 {
            recent.note(
                RecentExchange(
                    time: Timestamp(seconds: Int64(second)), method: .get,
                    key: CacheKey(method: .get, uri: Self.target), status: .ok,
                    cacheStatus: CacheStatus(hit: true), reason: .fresh))
        }
        let kept = recent.last(1000) { _ in true }.map(\.time.seconds)
        // Rounded up to a multiple of eight.
        let expected = capacity == 0 ? 0 : (capacity + 7) / 8 * 8
        #expect(kept == (0..<100).reversed().prefix(expected).map { Int64($0) })
    }

    @Test("how often each rule decided")
    func counters() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        for _ in 0..<3 { bench.perform() }
        bench.perform("/a")
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "private"], "mine")
        let reasons = bench.session.counters().reasons
        #expect(reasons[.fresh] == 3)
        #expect(reasons[.nothingStored] == 2)
        #expect(reasons[.responsePrivate] == 1)
        let twice = bench.session.counters() + bench.session.counters()
        #expect(twice.reasons[.fresh] == 6)
    }

    @Test("nothing of an explanation counts as a use, and it says what would happen")
    func explaining() throws {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        let told = Mutex<Explanation?>(nil)
        bench.session.explain(Request(uri: Self.target)) { explanation, _ in
            told.withLock { $0 = explanation }
        }
        let explanation = try #require(told.withLock { $0 })
        #expect(explanation.reason == .fresh)
        #expect(explanation.isHit)
        #expect(bench.session.counters().requests == 1)
        #expect(bench.upstream.fetches.count == 1)
        #expect(bench.session.recentExchanges(for: Self.target, limit: 10).count == 1)
    }

    @Test("the key stands in Cache-Status where the configuration says so (RFC 9211 §2.7)")
    func shownKey() {
        let upstream = ScriptedUpstream()
        let session = Session(
            configuration: SessionConfiguration(showsCacheKey: true),
            store: MemoryStore(MemoryConfiguration(capacity: .mebibytes(1))), upstream: upstream,
            clock: StandingClock(), timers: ManualTimers())
        let client = RecordingClient()
        _ = session.perform(
            Request(uri: Self.target), body: nil, options: ExchangeOptions(), client: client)
        upstream.fetches[0].answer(200, ["Cache-Control": "no-store"], "x")
        #expect(
            client.cacheStatus
                == "larder; fwd=uri-miss; fwd-status=200; key=\"GET http://origin.example/\";"
                + " detail=response-no-store")
    }

    @Test("members of other caches stay, and ours comes last (RFC 9211 §2)")
    func others() {
        let bench = Bench()
        let first = bench.perform().client
        var fields = bench.fresh
        fields.append("Cache-Status", "OriginCache; hit; ttl=1100")
        bench.upstream.fetches[0].answer(200, fields, "hello")
        #expect(first.cacheStatus?.hasPrefix("OriginCache; hit; ttl=1100, larder; fwd=") == true)
        let second = bench.perform().client
        #expect(second.cacheStatus == "OriginCache; hit; ttl=1100, larder; hit; ttl=60")
    }
}
