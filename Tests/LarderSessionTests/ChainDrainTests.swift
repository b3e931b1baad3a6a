import LarderCredentials
import LarderHTTP
import LarderSession
import Testing

@Suite(
    "What is left of a response that leads on keeps the next request waiting for a second at most")
struct ChainDrainTests {
    private static let redirection: (UInt16, Fields) = (302, ["Location": "/next"])
    private static let challenge: (UInt16, Fields) = (
        401, ["WWW-Authenticate": "Basic realm=\"r\""]
    )

    private static func bench() -> ChainBench {
        ChainBench(follows: true, store: ChainBench.holding(.basic))
    }

    @Test(
        "what does not come, or trickles, is given up with its connection",
        arguments: [Self.redirection, Self.challenge], [BodyLength.known(10), .unknown, .none])
    func late(_ head: (UInt16, Fields), _ length: BodyLength) {
        let bench = Self.bench()
        let client = bench.perform().client
        let first = bench.upstream.fetches[0]
        #expect(first.head(head.0, head.1, length: length) == .more)
        if length != .none { #expect(first.piece("abc") == .more) }
        #expect(bench.upstream.fetches.count == 1 && !first.isCancelled)
        bench.timers.fireAll()
        #expect(first.isCancelled)
        #expect(bench.upstream.fetches.count == 2)
        guard bench.upstream.fetches.count == 2 else { return }
        // What was on its way then counts for nothing.
        first.receiver.upstream(finished: Fields())
        first.fail()
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].answer(200, ["X": "y"], "one")
        #expect(client.wholeBody == "one")
        #expect(bench.session.openFetches().isEmpty)
    }

    @Test("its time is one for all that comes")
    func onlyOnce() {
        let bench = Self.bench()
        bench.perform()
        let first = bench.upstream.fetches[0]
        first.head(302, ["Location": "/next"], length: .known(10))
        let timers = bench.timers.count
        for _ in 0..<3 { first.piece("a") }
        #expect(bench.timers.count == timers)
    }

    @Test("what comes in time leaves the connection as it is", arguments: [true, false])
    func inTime(isWhole: Bool) {
        let bench = Self.bench()
        let client = bench.perform().client
        let first = bench.upstream.fetches[0]
        if isWhole {
            first.answer(302, ["Location": "/next"], "moved")
        } else {
            first.answerInPieces(302, ["Location": "/next"], "moved")
        }
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 2 && !first.isCancelled)
        bench.upstream.fetches[1].answer(200, ["X": "y"], "one")
        #expect(client.wholeBody == "one")
    }

    @Test("a client that leaves meanwhile has nothing sent")
    func left() {
        let bench = Self.bench()
        // Of a GET the fetch would go on for the store's sake.
        let (_, exchange) = bench.perform(method: .post)
        bench.upstream.fetches[0].head(302, ["Location": "/next"], length: .known(10))
        exchange.cancel()
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 1)
        #expect(bench.session.openFetches().isEmpty)
    }

    @Test("the answer that is the client's has all the time of its origin")
    func relayed() {
        let bench = Self.bench()
        let client = bench.perform().client
        let first = bench.upstream.fetches[0]
        first.head(200, ["X": "y"], length: .known(3))
        bench.timers.fireAll()
        #expect(!first.isCancelled)
        first.piece("one")
        first.finish()
        #expect(client.wholeBody == "one")
    }
}
