import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("What a client has got the last byte of is found by its next request")
struct StoringTests {
    private let store = LateStore()
    private let bench: Bench
    private let thousand = Representation(1000)

    init() {
        self.bench = Bench(store: self.store)
    }

    private func isHit(_ client: RecordingClient) -> Bool {
        client.cacheStatus?.contains("; hit") == true
    }

    @Test(
        "a request that joins no fetch waits for the store",
        arguments: [
            (["Range": "bytes=10-19"], 206), (["If-None-Match": "\"a\""], 304),
            (["Cache-Control": "only-if-cached", "Range": "bytes=10-19"], 206),
        ] as [(Fields, UInt16)])
    func waits(_ fields: Fields, _ status: UInt16) {
        let first = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        #expect(first.wholeBytes == self.thousand.content)
        let second = self.bench.perform("/", fields).client
        #expect(second.calls == 0)
        self.store.settle()
        #expect(second.status == status)
        #expect(self.isHit(second))
        #expect(second.calls == 1)
        #expect(self.bench.asked == 1)
        #expect(self.bench.session.counters().hits == 1)
    }

    @Test("the last byte may come before the end is told")
    func beforeTheEnd() {
        _ = self.bench.ask()
        let fetch = self.bench.upstream.fetches[0]
        fetch.whole(self.thousand, sending: 999)
        let early = self.bench.ask("bytes=0-9")
        #expect(early.wholeBytes == Array(self.thousand.content[..<10]))
        fetch.bytes(self.thousand.content[999...])
        let late = self.bench.ask("bytes=0-9")
        fetch.finish()
        self.store.settle()
        #expect(self.isHit(late))
        #expect(late.wholeBytes == Array(self.thousand.content[..<10]))
        #expect(self.bench.asked == 1)
    }

    @Test(
        "what is stored between the look into the store and that at the fetches is found",
        arguments: [
            nil, "bytes=10-19",
        ])
    func inBetween(_ range: String?) {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        self.store.holdLookups()
        let second = self.bench.ask(range)
        self.store.settle()
        self.store.answerLookups()
        #expect(self.isHit(second))
        #expect(self.bench.asked == 1)
    }

    @Test("a fetch under way is joined rather than its storing waited for")
    func joins() {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        let second = self.bench.ask()
        #expect(second.wholeBytes == self.thousand.content)
        #expect(self.bench.asked == 1)
    }

    @Test("a part that is being stored is made use of: only the rest is asked for")
    func part() {
        _ = self.bench.ask("bytes=0-499")
        self.bench.upstream.fetches[0].part(0..<500, of: self.thousand)
        let whole = self.bench.ask()
        let wider = self.bench.ask("bytes=400-599")
        #expect(self.bench.asked == 1)
        self.store.hurries()
        #expect(self.bench.upstream.fetches[1].range == "bytes=500-999")
        #expect(self.bench.upstream.fetches[2].range == "bytes=500-599")
        self.bench.upstream.fetches[1].part(500..<1000, of: self.thousand)
        self.bench.upstream.fetches[2].part(500..<600, of: self.thousand)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(wider.wholeBytes == Array(self.thousand.content[400..<600]))
    }

    @Test("what is added to a part is waited for like the part itself")
    func addition() {
        self.store.hurries()
        self.bench.store(0..<500, of: self.thousand)
        self.store.holds()
        _ = self.bench.ask("bytes=400-599")
        self.bench.upstream.fetches[1].part(500..<600, of: self.thousand)
        #expect(self.isHit(self.bench.ask("bytes=0-9")))
        let client = self.bench.ask("bytes=550-559")
        #expect(client.calls == 0)
        self.store.settle()
        #expect(self.isHit(client))
        #expect(self.bench.asked == 2)
    }

    @Test("a body that breaks off is waited for as the part that is kept of it")
    func kept() {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand, sending: 500)
        self.bench.upstream.fetches[0].fail(.connectionRefused)
        let client = self.bench.ask("bytes=0-9")
        #expect(client.calls == 0)
        self.store.settle()
        #expect(self.isHit(client))
    }

    @Test("a store that shows nothing in the end, or not in time, leads to the origin")
    func patience() {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        let patient = self.bench.ask(nil, ["If-None-Match": "\"z\""])
        let range = self.bench.ask("bytes=0-9")
        #expect(self.bench.asked == 1)
        self.bench.timers.fireAll()
        #expect(self.bench.asked == 2)
        _ = self.bench.ask("bytes=20-29", ["If-Range": "\"a\""])
        #expect(self.bench.asked == 3)
        self.bench.upstream.fetches[1].whole(self.thousand)
        #expect(patient.wholeBytes == self.thousand.content)
        #expect(patient.calls == 1)
        // What has come is still at hand.
        #expect(range.wholeBytes == Array(self.thousand.content[..<10]))
    }

    @Test("what was removed meanwhile is asked for again")
    func removed() {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        let client = self.bench.ask("bytes=0-9")
        self.bench.session.remove(self.bench.key)
        self.store.settle()
        #expect(client.calls == 0)
        #expect(self.bench.upstream.fetches[1].range == "bytes=0-9")
    }

    @Test("a client that leaves while it waits asks for nothing")
    func leaves() {
        _ = self.bench.ask()
        self.bench.upstream.fetches[0].whole(self.thousand)
        let (client, exchange) = self.bench.perform("/", ["Range": "bytes=0-9"])
        exchange.cancel()
        self.store.settle()
        #expect(client.calls == 0)
        #expect(self.bench.asked == 1)
        #expect(self.bench.session.counters().openExchanges == 1)
    }

    @Test("nobody waits for another variant or another resource")
    func others() {
        var varying = self.thousand
        varying.fields.append("Vary", "Accept")
        _ = self.bench.ask(nil, ["Accept": "a"])
        self.bench.upstream.fetches[0].whole(varying)
        _ = self.bench.ask("bytes=0-9", ["Accept": "b"])
        #expect(self.bench.asked == 2)
        _ = self.bench.perform("/other", ["Range": "bytes=0-9"])
        #expect(self.bench.asked == 3)
    }

    @Test("nor for what keeps the origin waiting, whose end may be far away")
    func heldUp() {
        let bench = Bench(store: SlowDisk())
        let large = Representation(16_384)
        _ = bench.ask()
        bench.upstream.fetches[0].whole(large, sending: 16_384)
        let range = bench.ask("bytes=0-9")
        #expect(range.wholeBytes == Array(large.content[..<10]), "it is at hand")
        _ = bench.ask(nil, ["If-None-Match": "\"z\""])
        #expect(bench.asked == 2)
    }

    @Test("what memory shows already is not waited for")
    func shown() {
        let disk = SlowDisk()
        let bench = Bench(
            store: TieredStore(
                memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))), disk: disk))
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        #expect(self.isHit(bench.ask("bytes=0-9")))
        let checked = bench.ask("bytes=0-9", ["Cache-Control": "no-cache"])
        #expect(bench.asked == 2)
        #expect(checked.calls == 0)
    }
}
