import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Concurrent requests for one response share one fetch")
struct CollapsingTests {
    @Test("all that wait for the head get the response, and the body as it comes in")
    func collapse() {
        let bench = Bench()
        let clients = (0..<3).map { _ in bench.perform().client }
        #expect(bench.upstream.fetches.count == 1)
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(10))
        fetch.piece("01234")
        for client in clients { #expect(client.read().text == "01234") }
        fetch.piece("56789")
        fetch.finish()
        for client in clients {
            #expect(client.wakes == 1)
            #expect(client.wholeBody == "56789")
        }
        let missed = "larder; fwd=uri-miss; fwd-status=200; ttl=60; stored"
        #expect(clients[0].cacheStatus == "\(missed); detail=nothing-stored")
        #expect(clients[1].cacheStatus == "\(missed); collapsed; detail=nothing-stored")
        let counters = bench.session.counters()
        #expect(counters.collapsed == 2)
        #expect(counters.forwarded == 1, "those that shared an answer were none of the origin's")
    }

    @Test("who waits too long for another's head asks the origin, one for all who do")
    func impatient() {
        let bench = Bench()
        let slow = bench.perform().client
        let others = (0..<2).map { _ in bench.perform().client }
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 2)
        let late = bench.perform().client
        #expect(bench.upstream.fetches.count == 2, "it waits for the newer one")
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[2].answer(200, bench.fresh, "third")
        #expect(late.wholeBody == "third")
        // Who has waited once waits for the second as long as it takes.
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 3)
        bench.upstream.fetches[1].answer(200, bench.fresh, "second")
        for other in others { #expect(other.wholeBody == "second") }
        bench.upstream.fetches[0].answer(200, bench.fresh, "first")
        #expect(slow.wholeBody == "first")
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("who has waited long enough gets what has come into the store meanwhile")
    func impatientButServed() {
        let bench = Bench()
        bench.perform()
        let other = bench.perform().client
        bench.perform("/", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].answer(200, bench.fresh, "newer")
        bench.timers.fireAll()
        #expect(other.wholeBody == "newer")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("who waits for a head that has come, or has gone, does not")
    func patient() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.perform().client }
        bench.upstream.fetches[0].head(200, bench.fresh, length: .known(2))
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 1)
        #expect(bench.perform().client.read().text.isEmpty)
        bench.upstream.fetches[0].piece("ok")
        bench.upstream.fetches[0].finish()
        for client in clients { #expect(client.wholeBody == "ok") }
        let first = bench.perform("/b")
        let second = bench.perform("/b")
        second.exchange.cancel()
        bench.timers.fireAll()
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].answer(200, bench.fresh, "b")
        #expect(first.client.wholeBody == "b")
    }

    @Test("a client that comes while the body streams reads it from the beginning")
    func late() {
        let bench = Bench()
        bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(10))
        fetch.piece("01234")
        let late = bench.perform().client
        #expect(late.read().text == "01234")
        fetch.piece("56789")
        fetch.finish()
        #expect(late.wholeBody == "56789")
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test(
        "a response that is not to be shared goes to the one that asked; the others ask themselves")
    func unshared() {
        let bench = Bench()
        let first = bench.perform().client
        let second = bench.perform().client
        #expect(bench.upstream.fetches.count == 1)
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "no-store"], "mine")
        #expect(first.wholeBody == "mine")
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].answer(200, ["Cache-Control": "no-store"], "yours")
        #expect(second.wholeBody == "yours")
        // And for a while nobody waits in vain.
        bench.perform()
        bench.perform()
        #expect(bench.upstream.fetches.count == 4)
    }

    @Test("a response that varies is shared only with requests that it matches (§4.1)")
    func vary() {
        let bench = Bench()
        let english = bench.perform("/", ["Accept-Language": "en"]).client
        let german = bench.perform("/", ["Accept-Language": "de"]).client
        var fields = bench.fresh
        fields.append("Vary", "Accept-Language")
        bench.upstream.fetches[0].answer(200, fields, "hello")
        #expect(english.wholeBody == "hello")
        #expect(german.answer == nil)
        bench.upstream.fetches[1].answer(200, fields, "hallo")
        #expect(german.wholeBody == "hallo")
        #expect(bench.perform("/", ["Accept-Language": "en"]).client.wholeBody == "hello")
        #expect(bench.perform("/", ["Accept-Language": "de"]).client.wholeBody == "hallo")
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("a failure is everybody's, and the next request tries again")
    func failure() {
        let bench = Bench()
        let clients = (0..<3).map { _ in bench.perform().client }
        bench.upstream.fetches[0].fail(.connectionRefused)
        for client in clients { #expect(client.failure?.status == .badGateway) }
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("one validation serves all that wait (§4.3)")
    func validation() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        let clients = (0..<3).map { _ in bench.perform().client }
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].answer(304, bench.fresh)
        for client in clients { #expect(client.wholeBody == "hello") }
        // Each counts once: those that waited got nothing of the origin's, either.
        let counters = bench.session.counters()
        #expect(counters.requests == 4 && counters.forwarded == 1)
        #expect(counters.validated == 3 && counters.collapsed == 0)
    }

    @Test(
        "one whose response is to be validated for each request serves nobody else (§5.2.2.4)",
        arguments: ["no-cache", "max-age=0, must-revalidate", "s-maxage=0", "public, max-age=0"])
    func validationOfEach(_ control: String) {
        let bench = Bench()
        let fields: Fields = ["Cache-Control": control, "ETag": "\"a\""]
        bench.perform()
        bench.upstream.fetches[0].answer(200, fields, "hello")
        bench.clock.advance(.seconds(61))
        let clients = (0..<2).map { _ in bench.perform().client }
        bench.upstream.fetches[1].answer(304, fields)
        #expect(clients[0].wholeBody == "hello")
        #expect(clients[1].answer == nil && bench.upstream.fetches.count == 3)
        #expect(bench.upstream.fetches.last?.request.fields.string("If-None-Match") == "\"a\"")
        bench.upstream.fetches.last?.answer(401, Fields(), "who are you?")
        #expect(clients[1].status == 401)
    }

    @Test("conditional and no-cache requests, and those for several ranges, do not join")
    func notJoining() {
        let bench = Bench()
        bench.perform()
        bench.perform("/", ["Range": "bytes=0-1, 4-5"])
        bench.perform("/", ["If-None-Match": "\"z\""])
        bench.perform("/", ["Cache-Control": "no-cache"])
        #expect(bench.upstream.fetches.count == 4)
    }
}

@Suite("A filling bounds memory and survives its clients")
struct FillingTests {
    // The second of these reaches the window and does not pass it.
    @Test(
        "the slowest reader holds the origin back when nobody else keeps its bytes",
        arguments: [10_000, 8192])
    func backPressure(bytes: Int) {
        let bench = Bench(window: .kibibytes(16))
        let client = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, ["Cache-Control": "no-store"])
        #expect(fetch.piece(bytes: bytes) == .more)
        #expect(fetch.piece(bytes: bytes) == .pause)
        #expect(fetch.resumed == 0)
        #expect(client.read().text.count == 2 * bytes)
        #expect(fetch.resumed == 1)
    }

    @Test("a reader that lags reads back from the store, and does not hold the origin back")
    func readBack() {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16))
        let slow = bench.perform().client
        let quick = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        for _ in 0..<10 {
            fetch.piece(bytes: 10_000)
            disk.sinks[0].takes(10_000)
            #expect(quick.read().text.count == 10_000)
        }
        #expect(fetch.piece(bytes: 1000) == .more)
        fetch.finish()
        disk.sinks[0].takes(1000)
        #expect(disk.sinks[0].isCommitted)
        #expect(slow.wholeBody?.count == 101_000)
        #expect(quick.wholeBody?.count == 1000)
    }

    @Test("a client may join late while the store can give back the beginning")
    func lateJoinFromStore() {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16))
        let first = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        for _ in 0..<5 {
            fetch.piece(bytes: 10_000)
            disk.sinks[0].takes(10_000)
            _ = first.read()
        }
        let late = bench.perform().client
        #expect(bench.upstream.fetches.count == 1)
        #expect(late.read().text.count == 50_000)
    }

    @Test("a store without progress is given up after its patience; one that moves is waited for")
    func patience() {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16))
        let client = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        for _ in 0..<2 { fetch.piece(bytes: 8000) }
        #expect(client.read().text.count == 16_000)
        #expect(fetch.piece(bytes: 8000) == .pause)
        #expect(client.read().text.count == 8000)
        disk.sinks[0].takes(1000)
        bench.timers.fireAll()
        #expect(!disk.sinks[0].isAbandoned)
        #expect(fetch.resumed == 0)
        bench.timers.fireAll()
        #expect(disk.sinks[0].isAbandoned)
        #expect(fetch.resumed == 1)
        #expect(bench.session.counters().storesTooSlow == 1)
        fetch.finish()
        #expect(client.wholeBody == "")
    }

    @Test("patience is also measured when the last reader catches up only after the pause")
    func patienceLater() {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16))
        let client = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        fetch.piece(bytes: 8000)
        #expect(fetch.piece(bytes: 16_000) == .pause)
        bench.timers.fireAll()
        #expect(!disk.sinks[0].isAbandoned)
        #expect(client.read().text.count == 24_000)
        bench.timers.fireAll()
        #expect(disk.sinks[0].isAbandoned)
        #expect(fetch.resumed == 1)
    }

    @Test("a store that alone keeps the origin waiting is told so, once a pause")
    func hurriesStore() {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .mebibytes(1))
        let client = bench.ask("bytes=0-999999")
        let fetch = bench.upstream.fetches[0]
        fetch.head(
            206, Representation(0).head(("Content-Range", "bytes 0-999999/1000000")),
            length: .known(1_000_000))
        for round in 1...3 {
            // All that is held of a part.
            for _ in 0..<3 { #expect(fetch.piece(bytes: 65_536) == .more) }
            #expect(disk.sinks[0].hurries == round - 1)
            #expect(fetch.piece(bytes: 65_536) == .pause)
            #expect(disk.sinks[0].hurries == round)
            #expect(client.readBytes().bytes.count == 262_144)
            disk.sinks[0].takes(65_536)
            #expect(fetch.resumed == round - 1)
            disk.sinks[0].takes(196_608)
            #expect(fetch.resumed == round)
            #expect(disk.sinks[0].hurries == round, "it is at it")
        }
    }

    @Test("the fetch goes on when the last client leaves, if little is left, and is stored")
    func finishesAlone() {
        let bench = Bench()
        let (client, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(10))
        fetch.piece("01234")
        _ = client.read()
        exchange.cancel()
        #expect(!fetch.isCancelled)
        fetch.piece("56789")
        fetch.finish()
        #expect(bench.perform().client.wholeBody == "0123456789")
        #expect(bench.upstream.fetches.count == 1)
    }

    @Test("the fetch ends when the last client leaves and much is left")
    func endsAlone() {
        let bench = Bench()
        let (_, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(1_000_000))
        fetch.piece("01234")
        exchange.cancel()
        #expect(fetch.isCancelled)
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("a body of unknown length ends when it went on too long without a client")
    func endsAloneWithoutLength() {
        let bench = Bench()
        let (_, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        exchange.cancel()
        #expect(!fetch.isCancelled)
        for _ in 0..<9 { fetch.piece(bytes: 8192) }
        #expect(fetch.isCancelled)
    }

    @Test("before its head the fetch of what may be stored goes on alone, and no other")
    func endsAloneBeforeHead() {
        let bench = Bench()
        for (fields, goesOn) in [
            (Fields(), true), (["Cache-Control": "max-age=0"], true),
            (["Cache-Control": "no-store"], false),
        ] as [(Fields, Bool)] {
            let (_, exchange) = bench.perform("/\(goesOn)\(fields.count)", fields)
            exchange.cancel()
            #expect(bench.upstream.fetches.last?.isCancelled == !goesOn, "\(fields)")
        }
        let none = Bench(finishAfterClientLeft: ByteCount(0))
        none.perform().exchange.cancel()
        #expect(none.upstream.fetches[0].isCancelled)
    }

    @Test("it ends for another that waits for its connection, unless a client or its head has come")
    func endsForAnother() {
        let bench = Bench()
        let first = bench.perform()
        let fetch = bench.upstream.fetches[0]
        #expect(!fetch.mayEnd && !fetch.receiver.endsForAnother(), "its client waits")
        first.exchange.cancel()
        #expect(fetch.mayEnd)
        let second = bench.perform()
        #expect(!fetch.receiver.endsForAnother() && !fetch.isCancelled, "another client waits")
        second.exchange.cancel()
        #expect(fetch.receiver.endsForAnother() && fetch.isCancelled)
        #expect(!fetch.receiver.endsForAnother(), "it has ended")
        let third = bench.perform()
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[1].head(200, bench.fresh, length: .known(1))
        third.exchange.cancel()
        #expect(!bench.upstream.fetches[1].receiver.endsForAnother(), "its head has come")
        bench.upstream.fetches[1].piece("1")
        bench.upstream.fetches[1].finish()
        #expect(bench.perform().client.wholeBody == "1")
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("nor those who send nothing more, and may have gone: they hear why, unless one has come")
    func endsForAnotherDoubted() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.perform() }
        let fetch = bench.upstream.fetches[0]
        clients[0].exchange.clientMayHaveGone()
        #expect(!fetch.mayEnd && !fetch.receiver.endsForAnother(), "the other is there")
        clients[1].exchange.clientMayHaveGone()
        #expect(fetch.mayEnd)
        let third = bench.perform()
        #expect(!fetch.receiver.endsForAnother() && !fetch.isCancelled)
        third.exchange.cancel()
        #expect(fetch.receiver.endsForAnother() && fetch.isCancelled)
        for (client, _) in clients { #expect(client.failure?.status == .serviceUnavailable) }
        let (posting, exchange) = bench.perform(method: .post)
        exchange.clientMayHaveGone()
        #expect(bench.upstream.fetches.last?.mayEnd == false && posting.failure == nil)
        #expect(bench.perform().client.failure == nil && bench.upstream.fetches.count == 3)
        #expect(bench.session.counters().openFetches == 2)
    }

    @Test("what is not stored ends with its client, in every state")
    func cancelled() {
        let bench = Bench()
        let (_, waiting) = bench.perform(method: .post)
        waiting.cancel()
        #expect(bench.upstream.fetches[0].isCancelled)
        let (client, streaming) = bench.perform()
        bench.upstream.fetches[1].head(200, ["Cache-Control": "no-store"])
        bench.upstream.fetches[1].piece("x")
        streaming.cancel()
        #expect(bench.upstream.fetches[1].isCancelled)
        streaming.cancel()
        #expect(client.calls == 1)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("a waiting client that leaves does not take the others' fetch with it")
    func oneLeaves() {
        let bench = Bench()
        let (_, first) = bench.perform()
        let second = bench.perform().client
        first.cancel()
        #expect(!bench.upstream.fetches[0].isCancelled)
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        #expect(second.wholeBody == "hello")
    }
}
