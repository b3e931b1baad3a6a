import LarderHTTP
import Testing

@testable import LarderSession

@Suite("Who waits for another client's fetch gets what one of its own would have brought")
struct WaitingTests {
    private let bench = Bench()

    /// Stores a response that belongs to a group and is stale by now.
    private func storeGroup(_ control: String) {
        self.bench.perform()
        self.bench.upstream.fetches[0].answer(
            200, ["Cache-Control": control, "ETag": "\"a\"", "Cache-Groups": "\"g\""], "old")
        self.bench.clock.advance(.seconds(10))
    }

    private func invalidateGroup() {
        self.bench.clock.advance(.seconds(1))
        self.bench.perform("/form", method: .post)
        self.bench.upstream.fetches.last?.answer(200, ["Cache-Group-Invalidation": "\"g\""])
        self.bench.clock.advance(.seconds(1))
    }

    @Test("not a 304 from before its group was invalidated (RFC 9875 §2.2.1)")
    func notModified() {
        self.storeGroup("max-age=1")
        let before = self.bench.perform().client
        self.invalidateGroup()
        let after = self.bench.perform().client
        #expect(self.bench.upstream.fetches.count == 3)
        self.bench.upstream.fetches[1].answer(304)
        #expect(before.wholeBody == "old")
        #expect(after.answer == nil && self.bench.upstream.fetches.count == 4)
        self.bench.upstream.fetches.last?.answer(200, self.bench.fresh, "new")
        #expect(after.wholeBody == "new")
    }

    @Test("nor that stale in place of a failure: neither does who asked before (RFC 5861 §4)")
    func standIn() {
        self.storeGroup("max-age=1, stale-if-error=600")
        let before = self.bench.perform().client
        self.invalidateGroup()
        let after = self.bench.perform().client
        self.bench.upstream.fetches[1].answer(503, Fields(), "down")
        #expect(before.status == 503)
        self.bench.upstream.fetches.last?.answer(503, Fields(), "down")
        #expect(after.status == 503)
    }

    @Test("nor missing bytes of a part (RFC 9875 §2.2.1)")
    func gap() {
        var thousand = Representation(1000)
        thousand.fields.append("Cache-Groups", "\"g\"")
        self.bench.store(0..<400, of: thousand)
        let before = self.bench.ask()
        let waiting = self.bench.ask()
        #expect(self.bench.asked == 2)
        self.invalidateGroup()
        self.bench.upstream.fetches[1].part(400..<1000, of: thousand)
        #expect(before.wholeBytes == thousand.content)
        #expect(waiting.answer == nil && self.bench.asked == 4)
    }

    /// Stores variants for `X-A: 1` and 2, which are stale by now.
    private func storeVariants(_ one: String, _ two: String) {
        for (value, control) in [("1", one), ("2", two)] {
            self.bench.perform("/", ["X-A": value])
            self.bench.upstream.fetches.last?.answer(
                200, ["Cache-Control": control, "Vary": "X-A"], value)
        }
        self.bench.clock.advance(.seconds(10))
    }

    @Test("a stored response stands in for its own request (RFC 9111 §4.2.4)")
    func standInOfItsOwn() {
        self.storeVariants("max-age=1", "max-age=1, stale-if-error=600")
        let none = self.bench.perform("/", ["X-A": "3"]).client
        let waiting = self.bench.perform("/", ["X-A": "2"]).client
        #expect(self.bench.upstream.fetches.count == 3)
        self.bench.upstream.fetches[2].fail(.connectionRefused)
        #expect(none.failure?.status == .badGateway)
        #expect(waiting.wholeBody == "2")
        #expect(
            waiting.cacheStatus
                == "larder; fwd=stale; ttl=-9; collapsed; detail=stale-if-error")
        #expect(
            waiting.field("Proxy-Status")?.contains("error=connection_refused") == true)
        #expect(waiting.answer?.origin == NextHop(address: "origin.example:80"))
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("the status of a failure is that of its own stored response (RFC 9111 §5.2.2.2)")
    func status() {
        self.storeVariants("max-age=1, must-revalidate", "max-age=1")
        let strict = self.bench.perform("/", ["X-A": "1"]).client
        let other = self.bench.perform("/", ["X-A": "2"]).client
        self.bench.upstream.fetches[2].fail(.connectionRefused)
        #expect(strict.failure?.status == .gatewayTimeout)
        #expect(other.failure?.status == .badGateway)
        #expect(other.failure?.cacheStatus.collapsed == true)
        let again = self.bench.perform("/", ["X-A": "2"]).client
        let strictToo = self.bench.perform("/", ["X-A": "1"]).client
        self.bench.upstream.fetches.last?.fail(.connectionRefused)
        #expect(again.failure?.status == .badGateway)
        #expect(strictToo.failure?.status == .gatewayTimeout)
    }
}
