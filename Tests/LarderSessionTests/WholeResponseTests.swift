import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("A response that comes as a whole is passed on as a whole")
struct WholeResponseTests {
    private func isResident(_ client: RecordingClient) -> Bool {
        if case .resident? = client.answer?.body { true } else { false }
    }

    @Test("its client hears once, with all of the content", arguments: ["no-store", "max-age=60"])
    func once(control: String) {
        let bench = Bench()
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(200, ["Cache-Control": control], "hello")
        #expect(client.calls == 1)
        #expect(client.wakes == 0)
        #expect(self.isResident(client))
        #expect(client.wholeBody == "hello")
        #expect(client.answer?.bodyLength == .known(5))
        #expect(bench.session.counters().bytesFromOrigins == 5)
        #expect(bench.session.openFetches().isEmpty)
    }

    @Test(
        "piece by piece and at once it is the same answer",
        arguments: [
            ("no-store", UInt16(200)), ("max-age=60", 200), ("max-age=60", 404), ("private", 200),
            ("no-cache", 500),
        ])
    func same(control: String, status: UInt16) {
        let heads = [true, false].map { isWhole in
            let bench = Bench()
            let client = bench.perform().client
            let fields: Fields = [
                "Cache-Control": control, "ETag": "\"a\"", "Connection": "keep-alive, X-Own",
                "X-Own": "1", "Warning": "199 - old", "Content-Length": "5",
            ]
            if isWhole {
                bench.upstream.fetches[0].answer(status, fields, "hello")
            } else {
                bench.upstream.fetches[0].answerInPieces(status, fields, "hello")
            }
            #expect(self.isResident(client) == isWhole)
            #expect(client.wholeBody == "hello")
            #expect(client.field("X-Own") == nil)
            let again = bench.perform().client
            #expect((again.answer != nil) == (control == "max-age=60"))
            return client.answer?.head
        }
        #expect(heads[0] == heads[1])
    }

    @Test("it is in the store before its client hears of it")
    func stored() {
        let bench = Bench()
        let client = bench.perform().client
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        #expect(client.wholeBody == "hello")
        #expect(bench.session.counters().stored == 1)
        let second = bench.perform().client
        #expect(second.cacheStatus == "larder; hit; ttl=60")
        #expect(second.wholeBody == "hello")
    }

    @Test("all that wait for it get it where it may be shared; else each asks for itself")
    func collapsed() {
        let bench = Bench()
        let clients = (0..<3).map { _ in bench.perform().client }
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        for client in clients {
            #expect(self.isResident(client))
            #expect(client.wholeBody == "hello")
        }
        #expect(bench.session.counters().collapsed == 2)
        #expect(bench.upstream.fetches.count == 1)
        let others = (0..<2).map { _ in bench.perform("/other").client }
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "no-store"], "mine")
        #expect(others[0].wholeBody == "mine")
        #expect(others[1].answer == nil)
        bench.upstream.fetches[2].answer(200, ["Cache-Control": "no-store"], "yours")
        #expect(others[1].wholeBody == "yours")
    }

    @Test("a client that has left is not told, and what came is stored nevertheless")
    func left() {
        let bench = Bench()
        let (client, exchange) = bench.perform()
        exchange.cancel()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        #expect(client.calls == 0)
        #expect(bench.perform().client.wholeBody == "hello")
    }

    @Test(
        "one without content has none",
        arguments: [
            (Method.head, UInt16(200)), (.get, 204), (.get, 200),
        ])
    func empty(method: Method, status: UInt16) {
        let bench = Bench()
        let client = bench.perform(method: method).client
        bench.upstream.fetches[0].answer(status, ["Cache-Control": "no-store"])
        #expect(client.status == status)
        if case .none? = client.answer?.body {} else { Issue.record("there is a body") }
    }

    @Test("a 304 that comes as a whole validates what is stored (RFC 9111 §4.3.4)")
    func validation() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        let client = bench.perform().client
        bench.upstream.fetches[1].answer(304, bench.fresh)
        #expect(client.status == 200)
        #expect(client.wholeBody == "hello")
        #expect(bench.session.counters().validated == 1)
    }
}
