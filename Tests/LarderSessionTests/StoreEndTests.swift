import LarderHTTP
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("What a store has taken outlives the store's part in it")
struct StoreEndTests {
    private let disk = SlowDisk()

    private func bench(memory: MemoryConfiguration) -> Bench {
        Bench(store: TieredStore(memory: MemoryStore(memory), disk: self.disk))
    }

    @Test("nothing of a fetch is kept once it and its sink have ended")
    func release() {
        let bench = self.bench(memory: MemoryConfiguration(capacity: .mebibytes(8)))
        weak var receiver: (any UpstreamReceiver)?
        do {
            let client = bench.perform().client
            let fetch = bench.upstream.fetches[0]
            receiver = fetch.receiver
            fetch.answer(200, bench.fresh, "hello")
            self.disk.sinks[0].becomesVisible()
            #expect(client.wholeBody == "hello")
        }
        bench.upstream.forget()
        #expect(receiver == nil)
    }

    @Test("a client that lags reads to the end what the lower tier has finished storing")
    func lagsBehindVisible() {
        let bench = self.bench(memory: .none)
        let slow = bench.perform().client
        let fetch = self.fill(bench)
        fetch.finish()
        self.disk.sinks[0].becomesVisible()
        #expect(slow.wholeBody?.count == 100_000)
    }

    @Test("a client that lags reads on when the lower tier gives the response up")
    func lagsBehindAbandoned() {
        let bench = self.bench(memory: .none)
        let slow = bench.perform().client
        let fetch = self.fill(bench)
        self.disk.sinks[0].end(.abandoned(.noSpace))
        fetch.finish()
        #expect(slow.wholeBody?.count == 100_000)
    }

    @Test("a client that lags reads on when the body has outgrown memory")
    func lagsBehindOutgrown() {
        let memory = MemoryConfiguration(
            capacity: .mebibytes(1), maximumObject: .kibibytes(40))
        let bench = Bench(store: MemoryStore(memory))
        let slow = bench.perform().client
        let quick = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        for _ in 0..<5 {
            #expect(fetch.piece(bytes: 10_000) == .more)
            _ = quick.read()
        }
        #expect(slow.read().text.count == 50_000)
        fetch.finish()
        #expect(slow.wholeBody == "")
    }

    /// Lets 100,000 bytes come in, which the disk takes and a quick client reads.
    private func fill(_ bench: Bench) -> ScriptedUpstream.Fetch {
        let quick = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        for _ in 0..<10 {
            fetch.piece(bytes: 10_000)
            self.disk.sinks[0].takes(10_000)
            #expect(quick.read().text.count == 10_000)
        }
        return fetch
    }

    @Test("a fetch nobody waits for ends when its response is not stored after all")
    func givenUpAlone() {
        let bench = Bench(store: self.disk)
        let (_, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        fetch.piece("01234")
        exchange.cancel()
        #expect(!fetch.isCancelled)
        self.disk.sinks[0].end(.abandoned(.noSpace))
        #expect(fetch.isCancelled)
        #expect(bench.session.counters().openFetches == 0)
    }
}
