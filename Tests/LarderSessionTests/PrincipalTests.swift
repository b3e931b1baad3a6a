import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import Synchronization
import Testing

/// Two principals of one session: a store and an origin in common, and nothing else.
private struct Principals {
    let upstream = ScriptedUpstream()
    let clock = StandingClock()
    let store: MemoryStore
    let alice: Session
    let bob: Session

    init(
        _ first: String = "user:alice", _ second: String = "user:bob",
        cachePolicy: RequestCachePolicy = .useProtocol
    ) {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(8)))
        let (upstream, clock) = (self.upstream, self.clock)
        func session(_ principal: String) -> Session {
            Session(
                configuration: SessionConfiguration(cachePolicy: cachePolicy), store: store,
                upstream: upstream, clock: clock, timers: ManualTimers(), partition: principal)
        }
        self.store = store
        self.alice = session(first)
        self.bob = session(second)
    }

    static func uri(_ path: String = "/") -> TargetURI {
        TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path)
    }

    @discardableResult
    func get(
        _ session: Session, _ path: String = "/", method: Method = .get, _ fields: Fields = Fields()
    ) -> RecordingClient {
        let client = RecordingClient()
        _ = session.perform(
            Request(method: method, uri: Self.uri(path), fields: fields), body: nil,
            options: ExchangeOptions(), client: client)
        return client
    }

    func fresh(_ more: Fields = Fields()) -> Fields {
        var fields: Fields = [
            "Cache-Control": "max-age=60", "Date": HTTPDate.format(self.clock.now()),
        ]
        for pair in more.pairs { fields.append(pair.name, pair.value) }
        return fields
    }
}

@Suite("The principals of a session")
struct PrincipalTests {
    @Test("are never served what another stored")
    func responses() {
        let both = Principals()
        both.get(both.alice)
        both.upstream.fetches[0].answer(200, both.fresh(), "hers")
        let his = both.get(both.bob)
        #expect(both.upstream.fetches.count == 2)
        both.upstream.fetches[1].answer(200, both.fresh(), "his")
        #expect(his.wholeBody == "his")
        #expect(both.get(both.alice).wholeBody == "hers")
        #expect(both.get(both.bob).wholeBody == "his")
        #expect(both.upstream.fetches.count == 2)
    }

    @Test("are kept apart also where one has a name that ends a key early")
    func names() {
        let both = Principals("user:a", "user:a GET http://origin.example/x")
        both.get(both.alice, "/x")
        both.upstream.fetches[0].answer(200, both.fresh(), "hers")
        both.get(both.bob, "/x")
        #expect(both.upstream.fetches.count == 2)
        #expect(both.bob.partition.contains(" ") == false)
    }

    @Test("never join each other's fetches")
    func fetches() {
        let both = Principals()
        let (hers, his) = (both.get(both.alice), both.get(both.bob))
        #expect(both.upstream.fetches.count == 2)
        both.upstream.fetches[0].answer(200, both.fresh(), "hers")
        both.upstream.fetches[1].answer(200, both.fresh(), "his")
        #expect(hers.wholeBody == "hers")
        #expect(his.wholeBody == "his")
    }

    @Test("have private caches: a response that is private is stored (RFC 9111 §5.2.2.7)")
    func privateResponses() {
        for principal in ["", "user:alice"] {
            let both = Principals(principal)
            both.get(both.alice)
            var fields = both.fresh()
            fields.set("Cache-Control", "private, max-age=60")
            both.upstream.fetches[0].answer(200, fields, "hers")
            both.get(both.alice)
            #expect(both.upstream.fetches.count == (principal.isEmpty ? 2 : 1))
        }
    }

    @Test("stay private when the rules are read anew")
    func follow() {
        let both = Principals()
        both.alice.follow(PolicyConfiguration(kind: .shared), cachePolicy: .useProtocol)
        #expect(both.alice.configuration.policy.kind == .private)
    }

    @Test("hear nothing of another's answers, exchanges or misses in explanations")
    func explanations() {
        let both = Principals(cachePolicy: .returnCacheDontLoad)
        both.get(both.alice, "/missed")
        #expect(both.alice.missedOffline().all.map(\.uri) == ["http://origin.example/missed"])
        #expect(both.bob.missedOffline().all.isEmpty)

        let loading = Principals()
        loading.get(loading.alice)
        loading.upstream.fetches[0].answer(200, loading.fresh(), "hers")
        let uri = Principals.uri()
        #expect(loading.alice.recentExchanges(for: uri, limit: 9).count == 1)
        #expect(loading.bob.recentExchanges(for: uri, limit: 9).isEmpty)
        #expect(Self.candidates(loading.alice) == 1)
        #expect(Self.candidates(loading.bob) == 0)
    }

    private static func candidates(_ session: Session) -> Int? {
        let found = Mutex<Int?>(nil)
        session.explain(Request(method: .get, uri: Principals.uri())) { explanation, _ in
            found.withLock { $0 = explanation.candidates.count }
        }
        return found.withLock { $0 }
    }

    @Test("invalidate their own entries alone (RFC 9111 §4.4, RFC 9875 §2.2)")
    func invalidation() {
        let both = Principals()
        for (index, session) in [both.alice, both.bob].enumerated() {
            both.get(session)
            both.upstream.fetches[index].answer(
                200, both.fresh(["Cache-Groups": "\"g\""]), "kept")
        }
        both.clock.advance(.seconds(1))
        both.get(both.alice, "/other", method: .post)
        both.upstream.fetches[2].answer(204, ["Cache-Group-Invalidation": "\"g\""])
        both.get(both.bob)
        #expect(both.upstream.fetches.count == 3)
        both.get(both.alice)
        #expect(both.upstream.fetches.count == 4)
        both.get(both.bob, method: .post)
        both.upstream.fetches[4].answer(204, Fields())
        both.get(both.bob)
        #expect(both.upstream.fetches.count == 6)
    }

    @Test("lose what is removed for all, also what is still on its way")
    func removal() {
        let both = Principals()
        both.get(both.alice)
        both.upstream.fetches[0].answer(200, both.fresh(), "hers")
        let his = both.get(both.bob)
        let removed = Mutex<Int?>(nil)
        let isMeant = { @Sendable (key: CacheKey) in key.isAbout(Principals.uri()) }
        both.alice.removeAll(in: .matching(isMeant)) { count in removed.withLock { $0 = count } }
        both.bob.forgetFetches(in: .matching(isMeant))
        #expect(removed.withLock { $0 } == 1)
        // Nobody joins the fetch from before, and what it brings is not stored.
        both.get(both.bob)
        #expect(both.upstream.fetches.count == 3)
        both.upstream.fetches[1].answer(200, both.fresh(), "old")
        #expect(his.wholeBody == "old")
        both.upstream.fetches[2].answer(200, both.fresh(), "new")
        #expect(both.get(both.bob).wholeBody == "new")
        both.get(both.alice)
        #expect(both.upstream.fetches.count == 4)
    }

    @Test("lose nothing when a key of another is removed")
    func ownRemoval() {
        let both = Principals()
        for (index, session) in [both.alice, both.bob].enumerated() {
            both.get(session)
            both.upstream.fetches[index].answer(200, both.fresh(), "kept")
        }
        both.alice.remove(
            CacheKey(method: .get, uri: Principals.uri(), partition: both.alice.partition))
        both.get(both.bob)
        #expect(both.upstream.fetches.count == 2)
        both.get(both.alice)
        #expect(both.upstream.fetches.count == 3)
    }
}
