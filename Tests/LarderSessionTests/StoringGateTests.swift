import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization
import Testing

/// A gate that keeps what it is offered.
final class ScriptedGate: StoringGate {
    let largestBody: UInt64?
    let decides: Bool
    private let offered = Mutex<[HeldStoring]>([])

    init(largestBody: UInt64? = 1_000, decides: Bool = true) {
        self.largestBody = largestBody
        self.decides = decides
    }

    var offers: [HeldStoring] { self.offered.withLock { $0 } }

    func storing(offers held: HeldStoring) { self.offered.withLock { $0.append(held) } }

    func forget() { self.offered.withLock { $0 = [] } }
}

@Suite("A door has a say in what is stored")
struct StoringGateTests {
    private let bench = Bench(policy: PolicyConfiguration(kind: .private))

    private var stored: [StoredObject] {
        self.bench.session.store.lookupResident(self.bench.key) ?? []
    }

    private func read(_ held: HeldStoring) -> String? {
        let text = Mutex<String?>(nil)
        held.read { pieces in
            text.withLock { $0 = pieces?.map { String(buffer: $0) }.joined() }
        }
        return text.withLock { $0 }
    }

    @Test("once the body is whole; the client has it by then")
    func commits() throws {
        let gate = ScriptedGate()
        let client = self.bench.perform(storing: gate).client
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, self.bench.fresh)
        let held = try #require(gate.offers.first)
        #expect(self.read(held) == nil)
        fetch.piece("hel")
        fetch.piece("lo")
        fetch.finish()
        #expect(client.wholeBody == "hello")
        #expect(self.stored.isEmpty)
        #expect(held.isPossible)
        #expect(self.read(held) == "hello")
        held.decide(commits: true)
        #expect(self.stored.count == 1)
        held.decide(commits: false)
        #expect(self.stored.count == 1)
        #expect(self.bench.perform().client.cacheStatus?.contains("; hit") == true)
    }

    @Test("and what it decides before the end holds at the end")
    func early() throws {
        for commits in [true, false] {
            let bench = Bench()
            let gate = ScriptedGate()
            _ = bench.perform(storing: gate)
            bench.upstream.fetches[0].head(200, bench.fresh)
            try #require(gate.offers.first).decide(commits: commits)
            #expect(bench.session.store.lookupResident(bench.key)?.isEmpty == true)
            bench.upstream.fetches[0].piece("hello")
            bench.upstream.fetches[0].finish()
            #expect(bench.session.store.lookupResident(bench.key)?.isEmpty == !commits)
        }
    }

    @Test("what nobody decides about is not stored")
    func dropped() {
        let gate = ScriptedGate()
        _ = self.bench.perform(storing: gate)
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "hello")
        gate.forget()
        #expect(self.stored.isEmpty)
        #expect(self.bench.session.counters().storesAbandoned == 1)
    }

    @Test(
        "and is not asked where nothing would be stored anyway",
        arguments: [
            (200, ["Cache-Control": "no-store"]), (404, ["Cache-Control": "max-age=60"]),
            (500, ["Cache-Control": "max-age=60"]), (301, ["Cache-Control": "max-age=60"]),
            (
                206,
                ["Cache-Control": "max-age=60", "Content-Range": "bytes 0-4/9", "ETag": "\"a\""]
            ),
        ] as [(UInt16, Fields)])
    func notAsked(_ status: UInt16, _ fields: Fields) {
        let gate = ScriptedGate()
        let client = self.bench.perform("/", ["Range": "bytes=0-4"], storing: gate).client
        self.bench.upstream.fetches[0].answer(status, fields, "hello")
        #expect(gate.offers.isEmpty)
        #expect(client.wholeBody == "hello")
        #expect(self.stored.isEmpty)
    }

    @Test("nothing longer than it allows is stored, announced or not")
    func limit() {
        for isAnnounced in [true, false] {
            let bench = Bench()
            for (size, isStored) in [(1_000, true), (1_001, false)] {
                let gate = ScriptedGate(decides: false)
                let client = bench.perform("/\(size)", storing: gate).client
                let fetch = bench.upstream.fetches[bench.upstream.fetches.count - 1]
                fetch.head(200, bench.fresh, length: isAnnounced ? .known(UInt64(size)) : .unknown)
                for _ in 0..<size / 500 { fetch.piece(bytes: 500) }
                if size % 500 > 0 { fetch.piece(bytes: size % 500) }
                fetch.finish()
                #expect(client.wholeBody?.utf8.count == size)
                let again = bench.perform("/\(size)").client
                #expect((again.cacheStatus?.contains("; hit") == true) == isStored)
                #expect(gate.offers.isEmpty)
            }
        }
    }

    @Test("what outgrows the limit is not collected further, and cannot be decided about")
    func outgrown() throws {
        let gate = ScriptedGate()
        _ = self.bench.perform(storing: gate)
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, self.bench.fresh)
        fetch.piece(bytes: 600)
        let held = try #require(gate.offers.first)
        #expect(held.isPossible)
        fetch.piece(bytes: 600)
        #expect(!held.isPossible)
        held.decide(commits: true)
        fetch.finish()
        #expect(self.stored.isEmpty)
        #expect(self.read(held) == nil)
    }

    @Test("a gate that is closed lets nothing in, not even an empty body")
    func closed() {
        _ = self.bench.perform(storing: ScriptedGate(largestBody: nil, decides: false))
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "")
        #expect(self.stored.isEmpty)
    }

    @Test("what was removed since the request was sent stays so, whatever is decided")
    func removedMeanwhile() throws {
        let gate = ScriptedGate()
        _ = self.bench.perform(storing: gate)
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "hello")
        self.bench.session.store.removeAll(where: { _ in true }) { _ in }
        try #require(gate.offers.first).decide(commits: true)
        #expect(self.stored.isEmpty)
    }

    @Test("a body that breaks off is nothing to decide about")
    func brokenOff() throws {
        let gate = ScriptedGate()
        _ = self.bench.perform(storing: gate)
        let fetch = self.bench.upstream.fetches[0]
        fetch.head(200, ["Cache-Control": "max-age=60"], length: .known(10))
        fetch.piece("hello")
        let whole = Mutex<Bool?>(nil)
        let held = try #require(gate.offers.first)
        held.whenWhole { isWhole in whole.withLock { $0 = isWhole } }
        fetch.fail()
        #expect(whole.withLock { $0 } == false)
        held.decide(commits: true)
        #expect(self.stored.isEmpty)
    }
}
