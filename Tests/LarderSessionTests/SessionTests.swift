import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

extension Session {
    /// Puts other rules of caching into force.
    func follow(_ policy: PolicyConfiguration, cachePolicy: RequestCachePolicy) {
        var newer = self.configuration
        newer.policy = policy
        newer.cachePolicy = cachePolicy
        self.follow(newer)
    }
}

/// A session with everything around it scripted, but for the memory store.
struct Bench {
    let upstream = ScriptedUpstream()
    let clock = StandingClock()
    let timers = ManualTimers()
    let session: Session

    init(
        store: (any ObjectStore)? = nil, window: ByteCount = .kibibytes(16),
        policy: PolicyConfiguration = PolicyConfiguration(),
        role: SessionConfiguration.Role = .intermediary,
        finishAfterClientLeft: ByteCount = .kibibytes(64)
    ) {
        var configuration = SessionConfiguration(
            policy: policy, window: window, finishAfterClientLeft: finishAfterClientLeft)
        configuration.role = role
        self.session = Session(
            configuration: configuration,
            store: store ?? MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))),
            upstream: self.upstream, clock: self.clock, timers: self.timers)
    }

    @discardableResult
    func perform(
        _ path: String = "/", method: Method = .get, _ fields: Fields = Fields(),
        client: RecordingClient = RecordingClient(), storing gate: (any StoringGate)? = nil
    ) -> (client: RecordingClient, exchange: any Exchange) {
        let request = Request(
            method: method,
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path),
            fields: fields)
        return (
            client,
            self.session.perform(
                request, body: nil, options: ExchangeOptions(storing: gate), client: client)
        )
    }

    /// The key of `/`.
    var key: CacheKey {
        CacheKey(
            method: .get, uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"))
    }

    var fresh: Fields {
        ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Date": HTTPDate.format(self.clock.now())]
    }
}

@Suite("A session answers from its store (RFC 9111 §4)")
struct SessionTests {
    @Test("a second request is a hit with its age, and the origin hears nothing")
    func hit() {
        let bench = Bench()
        let first = bench.perform().client
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        #expect(
            first.cacheStatus
                == "larder; fwd=uri-miss; fwd-status=200; ttl=60; stored; detail=nothing-stored")
        #expect(first.wholeBody == "hello")
        bench.clock.advance(.seconds(7))
        let second = bench.perform().client
        #expect(second.cacheStatus == "larder; hit; ttl=53")
        #expect(second.field("Age") == "7")
        #expect(second.wholeBody == "hello")
        #expect(bench.upstream.fetches.count == 1)
        #expect(bench.session.counters().hits == 1)
    }

    @Test("a HEAD hears no digest of the content that only a GET gets (RFC 9530 §2)")
    func headDigest() {
        let bench = Bench()
        bench.perform()
        var fields = bench.fresh
        fields.append("Content-Digest", "sha-256=:c:")
        fields.append("Repr-Digest", "sha-256=:r:")
        bench.upstream.fetches[0].answer(200, fields, "hello")
        for (method, told) in [(Method.head, nil), (.get, "sha-256=:c:")] {
            let client = bench.perform(method: method).client
            #expect(client.cacheStatus == "larder; hit; ttl=60")
            #expect(client.field("Content-Digest") == told)
            #expect(client.field("Repr-Digest") == "sha-256=:r:")
        }
    }

    @Test(
        "a 426 says which protocols its origin demands, to each who asks (RFC 9110 §15.5.22)",
        arguments: [(426, "foo/1"), (400, nil)] as [(UInt16, String?)])
    func demands(_ status: UInt16, _ told: String?) {
        let bench = Bench()
        var fields = bench.fresh
        fields.append("Upgrade", "foo/1")
        fields.append("Connection", "Upgrade")
        let clients = (0..<2).map { _ in bench.perform().client }
        bench.upstream.fetches[0].answer(status, fields, "no")
        #expect(bench.upstream.fetches.count == (status == 426 ? 2 : 1))
        for fetch in bench.upstream.fetches.dropFirst() { fetch.answer(status, fields, "no") }
        for client in clients {
            #expect(client.status == status)
            #expect(client.field("Upgrade") == told)
            #expect(client.field("Connection") == nil)
        }
    }

    @Test("a stale response is validated, and its body comes from the store (§4.3)")
    func validation() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        let second = bench.perform().client
        let fetch = bench.upstream.fetches[1]
        #expect(fetch.request.fields.string("If-None-Match") == "\"a\"")
        fetch.answer(304, bench.fresh)
        #expect(second.status == 200)
        #expect(second.wholeBody == "hello")
        #expect(
            second.cacheStatus
                == "larder; fwd=stale; fwd-status=304; ttl=60; detail=lifetime-over")
        let third = bench.perform().client
        #expect(third.cacheStatus == "larder; hit; ttl=60")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("a 304 that selects nothing leads to one more request, without conditions (§4.3.4)")
    func unselected() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        let second = bench.perform().client
        bench.upstream.fetches[1].answer(304, ["ETag": "\"other\""])
        let repeated = bench.upstream.fetches[2]
        #expect(repeated.request.fields.string("If-None-Match") == nil)
        repeated.answer(200, bench.fresh, "new")
        #expect(second.wholeBody == "new")
        #expect(second.calls == 1)
    }

    @Test("HEAD is answered from a stored GET, without content (RFC 9110 §9.3.2)")
    func headFromGet() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        let head = bench.perform(method: .head).client
        #expect(head.answer?.bodyLength == .known(5))
        #expect(head.wholeBody == "")
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("HEAD forwarded announces the length that a GET would get (RFC 9110 §8.6)")
    func headForwarded() {
        let bench = Bench()
        let head = bench.perform(method: .head).client
        bench.upstream.fetches[0].head(200, ["Content-Length": "12"], length: .none)
        bench.upstream.fetches[0].finish()
        #expect(head.answer?.bodyLength == .known(12))
        #expect(head.wholeBody == "")
    }

    @Test("a range is cut from what is stored (RFC 9110 §14.2)")
    func range() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "0123456789")
        let part = bench.perform("/", ["Range": "bytes=2-4"]).client
        #expect(part.status == 206)
        #expect(part.field("Content-Range") == "bytes 2-4/10")
        #expect(part.wholeBody == "234")
    }

    @Test("an unsafe method removes what is stored for its target (§4.4)")
    func invalidation() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.perform(method: .post)
        bench.upstream.fetches[1].answer(200)
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("only-if-cached without a stored response is 504 (§5.2.1.7)")
    func onlyIfCached() {
        let bench = Bench()
        let client = bench.perform("/", ["Cache-Control": "only-if-cached"]).client
        #expect(client.failure?.status == .gatewayTimeout)
        #expect(bench.upstream.fetches.isEmpty)
    }

    @Test("a stale response stands in when the origin fails, where that is allowed (RFC 5861 §4)")
    func staleIfError() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=1, stale-if-error=100", "ETag": "\"a\""], "old")
        bench.clock.advance(.seconds(10))
        let refused = bench.perform().client
        bench.upstream.fetches[1].fail(.connectionRefused)
        #expect(refused.wholeBody == "old")
        #expect(refused.cacheStatus?.contains("fwd=stale") == true)
        #expect(
            refused.field("Proxy-Status")
                == "larder; error=connection_refused; next-hop=\"origin.example\"; "
                + "details=\"scripted\"")
        #expect(refused.answer?.origin == NextHop(address: "origin.example:80"))
        let broken = bench.perform().client
        bench.upstream.fetches[2].answer(503)
        #expect(broken.wholeBody == "old")
        #expect(broken.status == 200)
        #expect(
            broken.field("Proxy-Status")
                == "larder; next-hop=\"origin.example\"; received-status=503")
        let behind = bench.perform().client
        var facts = UpstreamConnectionFacts(remoteAddress: "parent.example:3128")
        facts.isParent = true
        bench.upstream.fetches[3].receiver.upstream(
            whole: WholeResponse(
                head: ResponseHead(status: .serviceUnavailable), bodyLength: .known(0),
                connection: facts, body: ByteBuffer()))
        #expect(
            behind.field("Proxy-Status")
                == "larder; next-hop=\"parent.example:3128\"; received-status=503")
        bench.clock.advance(.seconds(200))
        let late = bench.perform().client
        bench.upstream.fetches[4].fail(.connectionRefused)
        #expect(late.failure?.status == .badGateway)
    }

    @Test("stale-while-revalidate answers at once and validates once (RFC 5861 §3)")
    func staleWhileRevalidate() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=1, stale-while-revalidate=100", "ETag": "\"a\""], "old")
        bench.clock.advance(.seconds(10))
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.perform().client.wholeBody == "old")
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].answer(200, bench.fresh, "new")
        #expect(bench.perform().client.wholeBody == "new")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("1xx responses are relayed to the client that asked (RFC 9110 §15.2)")
    func informational() {
        let bench = Bench()
        let client = bench.perform().client
        bench.upstream.fetches[0].receiver.upstream(
            informational: ResponseHead(status: StatusCode(103), fields: ["Link": "</a>"]))
        bench.upstream.fetches[0].answer(200, bench.fresh, "x")
        #expect(client.informational.map(\.status.rawValue) == [103])
    }

    @Test("a truncated body is cut off and not stored (RFC 9112 §8)")
    func truncated() {
        let bench = Bench()
        let client = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        // Without a strong validator: with one the rest would be asked for.
        fetch.head(200, ["Cache-Control": "max-age=60"], length: .known(10))
        fetch.piece("01234")
        fetch.fail(.httpResponseIncomplete)
        let (text, last) = client.read()
        #expect(text == "01234")
        guard case .failed(.upstream)? = last else {
            Issue.record("the body ended as if whole")
            return
        }
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("methods other than GET and HEAD go forward as they are")
    func otherMethods() {
        let bench = Bench()
        let client = bench.perform(method: Method(rawValue: "BREW")).client
        bench.upstream.fetches[0].answer(299, [:], "tea")
        #expect(client.status == 299)
        #expect(client.wholeBody == "tea")
        #expect(client.answer?.cacheStatus.forward == .method)
    }
}
