import LarderHTTP
import LarderPolicy
import LarderStore
import Testing

@testable import LarderSession

@Suite("A removal while a request looks into the store")
struct RemovedMeanwhileTests {
    private let store = LateStore()
    private let bench: Bench

    init() {
        self.bench = Bench(store: self.store)
        self.store.hurries()
    }

    private static func key(_ path: String) -> CacheKey {
        CacheKey(
            method: .get,
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path))
    }

    /// Has a key be removed while lookups are under way: of the next one, or of all.
    private func remove(_ path: String, always: Bool = false) {
        self.store.whenLookedUp { [store = self.store, session = self.bench.session] in
            if !always { store.whenLookedUp(nil) }
            session.remove(Self.key(path))
        }
    }

    /// Stores what is stale by now.
    private func storeStale(_ fields: Fields = [:]) {
        var all: Fields = ["Cache-Control": "max-age=1", "ETag": "\"old\""]
        all.append(contentsOf: fields)
        self.bench.perform()
        self.bench.upstream.fetches[0].answer(200, all, "old")
        self.bench.clock.advance(.seconds(10))
    }

    @Test("of another key keeps nobody from joining")
    func otherKey() {
        self.remove("/other")
        let first = self.bench.perform().client
        self.remove("/other")
        let second = self.bench.perform().client
        #expect(self.bench.upstream.fetches.count == 1)
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "hello")
        #expect(first.wholeBody == "hello")
        #expect(second.wholeBody == "hello")
        #expect(self.bench.session.counters().collapsed == 1)
        // Each is counted once, however often it has looked.
        #expect(self.bench.session.counters().reasons[.nothingStored] == 2)
    }

    @Test("of another key keeps nobody from joining the fetch of a gap")
    func otherKeyOfGap() {
        let thousand = Representation(1000)
        self.bench.store(0..<400, of: thousand)
        self.remove("/other")
        let first = self.bench.ask()
        self.remove("/other")
        let second = self.bench.ask()
        #expect(self.bench.asked == 2)
        self.bench.upstream.fetches[1].part(400..<1000, of: thousand)
        #expect(first.wholeBytes == thousand.content)
        #expect(second.wholeBytes == thousand.content)
    }

    @Test("of the key itself: what was found is neither validated nor joined")
    func sameKey() {
        self.storeStale()
        self.remove("/")
        let first = self.bench.perform().client
        let second = self.bench.perform().client
        #expect(self.bench.upstream.fetches.count == 2)
        #expect(!self.bench.upstream.fetches[1].request.fields.contains(FieldName("If-None-Match")))
        self.bench.upstream.fetches[1].answer(200, self.bench.fresh, "new")
        #expect(first.wholeBody == "new")
        #expect(second.wholeBody == "new")
    }

    @Test("of the key itself: a fetch from before is not joined")
    func fetchFromBefore() {
        let before = self.bench.perform().client
        self.remove("/")
        let after = self.bench.perform().client
        #expect(self.bench.upstream.fetches.count == 2)
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "old")
        self.bench.upstream.fetches[1].answer(200, self.bench.fresh, "new")
        #expect(before.wholeBody == "old")
        #expect(after.wholeBody == "new")
    }

    @Test("of what a request goes on to validate that has waited: its content is not stored again")
    func otherVariant() {
        let fields = { (tag: String) -> Fields in
            ["Cache-Control": "max-age=60", "ETag": "\"\(tag)\"", "Vary": "Foo"]
        }
        self.bench.perform("/", ["Foo": "1"])
        self.bench.upstream.fetches[0].answer(200, fields("a"), "old")
        self.bench.perform("/", ["Foo": "2"])
        let waiting = self.bench.perform("/", ["Foo": "3"]).client
        #expect(self.bench.upstream.fetches.count == 2)
        self.bench.session.remove(Self.key("/"))
        self.bench.upstream.fetches[1].answer(200, fields("b"), "two")
        #expect(self.bench.upstream.fetches.count == 3)
        self.bench.upstream.fetches[2].answer(304, fields("a"))
        #expect(waiting.wholeBody == "old", "it asked before")
        for (value, count) in [("3", 4), ("1", 5)] {
            self.bench.perform("/", ["Foo": value])
            #expect(self.bench.upstream.fetches.count == count, "no hit")
            self.bench.upstream.fetches.last?.answer(200, fields(value), "new")
        }
    }

    @Test("again and again: the request asks alone in the end")
    func always() {
        self.storeStale()
        let before = self.store.lookups
        self.remove("/other", always: true)
        let first = self.bench.perform().client
        #expect(self.bench.upstream.fetches.count == 2)
        #expect(self.store.lookups - before < 100)
        self.bench.perform()
        #expect(self.bench.upstream.fetches.count == 3)
        self.bench.upstream.fetches[1].answer(304, ["ETag": "\"old\""])
        #expect(first.wholeBody == "old")
    }

    @Test("and whose client leaves meanwhile asks nobody")
    func left() {
        self.store.holdLookups()
        let (client, exchange) = self.bench.perform()
        self.bench.session.remove(Self.key("/other"))
        exchange.cancel()
        self.store.answerLookups()
        #expect(self.bench.upstream.fetches.isEmpty)
        #expect(client.calls == 0)
        #expect(self.bench.session.counters().cancelled == 1)
    }

    @Test("of another key: what was served stale is validated all the same (RFC 5861 §3)")
    func background() {
        self.storeStale(["Cache-Control": "stale-while-revalidate=100"])
        self.remove("/other")
        #expect(self.bench.perform().client.wholeBody == "old")
        #expect(self.bench.upstream.fetches.count == 2)
        #expect(
            self.bench.upstream.fetches.last?.request.fields.string("If-None-Match") == "\"old\"")
        #expect(self.bench.session.counters().backgroundFetches == 1)
    }

    @Test("of the key itself: what was served stale and is gone is not brought back (RFC 5861 §3)")
    func backgroundOfGone() {
        self.storeStale(["Cache-Control": "stale-while-revalidate=100"])
        self.remove("/")
        #expect(self.bench.perform().client.wholeBody == "old")
        #expect(self.bench.upstream.fetches.count == 1)
    }
}
