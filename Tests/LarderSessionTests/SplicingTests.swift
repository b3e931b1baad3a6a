import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Only what is missing is fetched (RFC 9110 §14.2, §13.1.5)")
struct SplicingTests {
    let thousand = Representation(1000)

    @Test(
        "a gap is asked for with If-Range, and the answer is put together in order",
        arguments: [
            ([0..<400], "bytes=0-", 400..<1000), ([600..<1000], nil, 0..<600),
            ([0..<400, 700..<1000], nil, 400..<700), ([0..<400], "bytes=100-499", 400..<500),
            ([200..<400], "bytes=300-599", 400..<600), ([200..<400], "bytes=100-250", 100..<200),
            ([200..<1000], "bytes=-900", 100..<200),
        ] as [([Range<Int>], String?, Range<Int>)])
    func gap(_ stored: [Range<Int>], _ asked: String?, _ missing: Range<Int>) throws {
        let bench = Bench()
        for range in stored { bench.store(range, of: self.thousand) }
        let before = bench.asked
        let client = bench.ask(asked)
        #expect(client.calls == 0, "nothing is said before the origin has confirmed")
        let fetch = try #require(bench.upstream.fetches.last)
        #expect(bench.asked == before + 1)
        #expect(fetch.range == "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)")
        #expect(fetch.ifRange == "\"a\"")
        fetch.part(missing, of: self.thousand)
        let set = asked.flatMap { RangeSet.parse(Array($0.utf8)[...]) }
        let wanted = set?.resolve(length: 1000)?.first ?? 0..<1000
        #expect(client.status == (asked == nil ? 200 : 206))
        #expect(client.answer?.bodyLength == .known(wanted.upperBound - wanted.lowerBound))
        #expect(
            client.wholeBytes
                == Array(self.thousand.content[Int(wanted.lowerBound)..<Int(wanted.upperBound)]))
        #expect(client.answer?.cacheStatus.forward == .partial)
        #expect(client.answer?.cacheStatus.forwardStatus == .partialContent)
        #expect(client.answer?.cacheStatus.stored == true)
        // Now it is all there.
        #expect(bench.ask(asked).wholeBytes?.count == Int(wanted.upperBound - wanted.lowerBound))
        #expect(bench.asked == before + 1)
        #expect(bench.session.counters().gapFetches == 1)
    }

    @Test("gaps far from each other are asked for one after the other, as the reading gets there")
    func several() throws {
        let bench = Bench.large
        let size = 400_000
        let representation = Representation(size)
        bench.store(0..<100_000, of: representation)
        bench.store(150_000..<250_000, of: representation)
        bench.store(300_000..<size, of: representation)
        let client = bench.ask()
        #expect(bench.upstream.fetches[3].range == "bytes=100000-149999")
        bench.upstream.fetches[3].part(100_000..<150_000, of: representation)
        #expect(bench.asked == 4)
        let (first, last) = client.readBytes()
        #expect(first == Array(representation.content[..<250_000]))
        guard case .pending? = last else {
            Issue.record("the second gap should be waited for")
            return
        }
        #expect(bench.asked == 5)
        let second = bench.upstream.fetches[4]
        #expect(second.range == "bytes=250000-299999")
        #expect(second.ifRange == "\"a\"")
        // The origin gives less than was asked for, then the rest.
        second.part(250_000..<260_000, of: representation)
        #expect(client.wakes == 1)
        let (part, _) = client.readBytes()
        #expect(part == Array(representation.content[250_000..<260_000]))
        let third = bench.upstream.fetches[5]
        #expect(third.range == "bytes=260000-299999")
        third.part(260_000..<300_000, of: representation)
        let (rest, end) = client.readBytes()
        #expect(rest == Array(representation.content[260_000...]))
        guard case .end? = end else {
            Issue.record("the body should be whole")
            return
        }
        #expect(bench.ask().wholeBytes == representation.content)
        #expect(bench.asked == 6)
    }

    @Test("gaps close to each other are asked for as one")
    func close() {
        let bench = Bench()
        bench.store(100..<200, of: self.thousand)
        bench.store(300..<400, of: self.thousand)
        let client = bench.ask()
        #expect(bench.upstream.fetches[2].range == "bytes=0-999")
        bench.upstream.fetches[2].part(0..<1000, of: self.thousand)
        #expect(client.wholeBytes == self.thousand.content)
        #expect(bench.ask().wholeBytes == self.thousand.content)
        #expect(bench.asked == 3)
    }

    @Test("a changed representation is relayed whole, and takes the place of the part")
    func changed() {
        let bench = Bench()
        bench.store(0..<400, of: self.thousand)
        let client = bench.ask()
        let other = Representation(800, tag: "\"b\"", seed: 2)
        bench.upstream.fetches[1].whole(other)
        #expect(client.status == 200)
        #expect(client.field("ETag") == "\"b\"")
        #expect(client.wholeBytes == other.content)
        #expect(bench.ask("bytes=0-9").wholeBytes == Array(other.content[..<10]))
        #expect(bench.asked == 2)
    }

    @Test(
        "what does not fit the gap is not used: the client's own request is sent",
        arguments: [
            "206 of another", "206 elsewhere", "206 too long", "206 of another length", "416",
            "304",
        ])
    func unfit(_ answer: String) {
        let bench = Bench()
        bench.store(0..<400, of: self.thousand)
        let client = bench.ask("bytes=0-499")
        let fetch = bench.upstream.fetches[1]
        switch answer {
        case "206 of another":
            fetch.part(400..<500, of: Representation(1000, tag: "\"b\"", seed: 2))
        case "206 elsewhere": fetch.part(401..<500, of: self.thousand)
        case "206 too long": fetch.part(400..<501, of: self.thousand)
        case "206 of another length":
            fetch.part(400..<500, of: self.thousand, told: "bytes 400-499/999")
        case "416": fetch.answer(416, ["Content-Range": "bytes */1000"])
        default: fetch.answer(304, self.thousand.head())
        }
        #expect(client.calls == 0)
        #expect(bench.asked == 3)
        let again = bench.upstream.fetches[2]
        #expect(again.range == "bytes=0-499")
        #expect(again.ifRange == nil)
        again.part(0..<500, of: self.thousand)
        #expect(client.wholeBytes == Array(self.thousand.content[..<500]))
    }

    @Test(
        "a later gap that brings another representation cuts the answer off",
        arguments: [
            "200", "206 of another", "416", "failure", "404",
        ])
    func cut(_ answer: String) {
        let bench = Bench.large
        let representation = Representation(300_000)
        bench.store(0..<100, of: representation)
        bench.store(100_000..<200_000, of: representation)
        let client = bench.ask()
        bench.upstream.fetches[2].part(100..<100_000, of: representation)
        let (bytes, _) = client.readBytes()
        #expect(bytes == Array(representation.content[..<200_000]))
        let later = bench.upstream.fetches[3]
        #expect(later.range == "bytes=200000-299999")
        let other = Representation(300_000, tag: "\"b\"", seed: 2)
        switch answer {
        case "200": later.whole(other)
        case "206 of another": later.part(200_000..<300_000, of: other)
        case "416": later.answer(416, ["Content-Range": "bytes */200000"])
        case "404": later.answer(404, [:], "gone")
        default: later.fail(.connectionRefused)
        }
        let (rest, last) = client.readBytes()
        #expect(rest.isEmpty)
        guard case .failed? = last else {
            Issue.record("the answer should be cut off")
            return
        }
        #expect(client.calls == 1)
    }

    @Test(
        "more or fewer bytes than Content-Range says cut the answer off, and are not stored",
        arguments: [99, 101])
    func miscounted(_ sent: Int) {
        let bench = Bench()
        bench.store(0..<400, of: self.thousand)
        let client = bench.ask("bytes=0-499")
        let fetch = bench.upstream.fetches[1]
        fetch.head(
            206, self.thousand.head(("Content-Range", "bytes 400-499/1000")), length: .unknown)
        fetch.bytes(self.thousand.content[400..<400 + sent])
        fetch.finish()
        // The rest of a short one is asked for; this origin has none.
        if sent < 100 { bench.upstream.fetches[2].answer(503, [:]) }
        let (bytes, last) = client.readBytes()
        #expect(bytes == Array(self.thousand.content[..<(400 + min(sent, bytes.count - 400))]))
        guard case .failed? = last else {
            Issue.record("the answer should be cut off")
            return
        }
        let again = bench.ask("bytes=0-499")
        #expect(again.calls == 0, "the whole gap is not there")
    }

    @Test("a stale part is validated by the request for the gap, and fresh after it")
    func stale() {
        let bench = Bench()
        bench.store(0..<400, of: self.thousand)
        bench.clock.advance(.seconds(61))
        let client = bench.ask("bytes=0-499")
        #expect(bench.upstream.fetches[1].range == "bytes=400-499")
        #expect(bench.upstream.fetches[1].ifRange == "\"a\"")
        #expect(bench.upstream.fetches[1].request.fields.string("If-None-Match") == nil)
        bench.upstream.fetches[1].part(400..<500, of: self.thousand)
        #expect(client.field("Age") == "0")
        #expect(client.wholeBytes == Array(self.thousand.content[..<500]))
        #expect(bench.ask("bytes=0-9").cacheStatus == "larder; hit; ttl=60")
        #expect(bench.asked == 2)
    }

    @Test("without a strong validator nothing is put together")
    func weak() {
        let bench = Bench()
        let weak = Representation(1000, tag: "W/\"a\"")
        bench.store(0..<400, of: weak)
        let client = bench.ask()
        #expect(bench.upstream.fetches[1].range == nil)
        #expect(bench.upstream.fetches[1].ifRange == nil)
        bench.upstream.fetches[1].whole(weak)
        #expect(client.wholeBytes == weak.content)
        #expect(client.answer?.cacheStatus.forward == .partial)
    }

    @Test("a part of unknown whole is completed, and its length learned")
    func unknownLength() {
        let bench = Bench()
        _ = bench.ask("bytes=0-399")
        bench.upstream.fetches[0].part(0..<400, of: self.thousand, told: "bytes 0-399/*")
        let client = bench.ask()
        #expect(bench.upstream.fetches[1].range == "bytes=400-")
        bench.upstream.fetches[1].part(400..<1000, of: self.thousand)
        #expect(client.status == 200)
        #expect(client.answer?.bodyLength == .known(1000))
        #expect(client.wholeBytes == self.thousand.content)
        #expect(bench.ask().wholeBytes == self.thousand.content)
        #expect(bench.asked == 2)
    }

    @Test("a client that leaves while a gap arrives ends its fetch, and what came is kept")
    func leaves() {
        let bench = Bench.large
        let representation = Representation(1_000_000)
        bench.store(0..<1000, of: representation)
        let (client, exchange) = bench.perform("/")
        let fetch = bench.upstream.fetches[1]
        fetch.part(1000..<1_000_000, of: representation, sending: 10_000)
        #expect(client.calls == 1)
        exchange.cancel()
        #expect(fetch.isCancelled)
        #expect(bench.ask("bytes=0-10999").wholeBytes == Array(representation.content[..<11_000]))
        #expect(bench.asked == 2)
        #expect(bench.session.counters().openFetches == 0)
        #expect(bench.session.counters().partsKept == 1)
    }

    @Test("a client that leaves while a later gap is asked for ends that too")
    func leavesLater() {
        let bench = Bench.large
        let representation = Representation(300_000)
        bench.store(0..<100, of: representation)
        bench.store(100_000..<200_000, of: representation)
        let (client, exchange) = bench.perform("/")
        bench.upstream.fetches[2].part(100..<100_000, of: representation)
        _ = client.readBytes()
        let later = bench.upstream.fetches[3]
        exchange.cancel()
        later.part(200_000..<300_000, of: representation, sending: 10)
        #expect(later.isCancelled)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("back-pressure reaches the origin through the parts")
    func backPressure() {
        let bench = Bench.large
        let representation = Representation(1_000_000)
        bench.store(0..<1000, of: representation)
        let client = bench.ask()
        let fetch = bench.upstream.fetches[1]
        // Not stored: what the memory store takes it could give back to a reader that lags.
        fetch.head(
            206,
            [
                "Cache-Control": "no-store", "ETag": "\"a\"",
                "Content-Range": "bytes 1000-999999/1000000",
            ], length: .known(999_000))
        #expect(client.answer?.cacheStatus.stored == false)
        var sent = 1000
        var isPaused = false
        while !isPaused, sent < 900_000 {
            let piece = ByteBuffer(bytes: representation.content[sent..<sent + 10_000])
            sent += 10_000
            if case .pause = fetch.receiver.upstream(piece: piece) { isPaused = true }
        }
        #expect(isPaused)
        let (bytes, last) = client.readBytes()
        #expect(bytes == Array(representation.content[..<sent]))
        #expect(fetch.resumed == 1)
        guard case .pending? = last else {
            Issue.record("the rest should be waited for")
            return
        }
    }
}

@Suite("A body that broke off is gone on with, or kept (RFC 9111 §3.3)")
struct ResumptionTests {
    let thousand = Representation(1000)

    @Test("the rest is asked for at once while a client reads")
    func resumed() {
        let bench = Bench()
        let client = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand, sending: 300)
        bench.upstream.fetches[0].fail(.httpResponseIncomplete)
        let rest = bench.upstream.fetches[1]
        #expect(rest.range == "bytes=300-999")
        #expect(rest.ifRange == "\"a\"")
        rest.part(300..<1000, of: self.thousand, sending: 100)
        rest.fail(.connectionTerminated)
        #expect(bench.upstream.fetches[2].range == "bytes=400-999")
        bench.upstream.fetches[2].part(400..<1000, of: self.thousand)
        #expect(client.calls == 1)
        #expect(client.wholeBytes == self.thousand.content)
        #expect(bench.ask().wholeBytes == self.thousand.content)
        #expect(bench.asked == 3)
        #expect(bench.session.counters().bodiesResumed == 2)
    }

    @Test(
        "what is not the rest of the same representation cuts the body off",
        arguments: [
            "200", "206 of another", "206 elsewhere", "404", "failure",
        ])
    func notResumed(_ answer: String) {
        let bench = Bench()
        let client = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand, sending: 300)
        bench.upstream.fetches[0].fail(.httpResponseIncomplete)
        let rest = bench.upstream.fetches[1]
        let other = Representation(1000, tag: "\"b\"", seed: 2)
        switch answer {
        case "200": rest.whole(other)
        case "206 of another": rest.part(300..<1000, of: other)
        case "206 elsewhere": rest.part(301..<1000, of: self.thousand)
        case "404": rest.answer(404)
        default: rest.fail(.connectionRefused)
        }
        let (bytes, last) = client.readBytes()
        #expect(bytes == Array(self.thousand.content[..<300]))
        guard case .failed? = last else {
            Issue.record("the body should be cut off")
            return
        }
        // What came is kept, and the next request asks for the rest only.
        let next = bench.ask()
        #expect(bench.upstream.fetches[2].range == "bytes=300-999")
        bench.upstream.fetches[2].part(300..<1000, of: self.thousand)
        #expect(next.wholeBytes == self.thousand.content)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("no more than two attempts are made for one body")
    func bounded() {
        let bench = Bench()
        let client = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand, sending: 300)
        bench.upstream.fetches[0].fail(.httpResponseIncomplete)
        bench.upstream.fetches[1].part(300..<1000, of: self.thousand, sending: 10)
        bench.upstream.fetches[1].fail(.httpResponseIncomplete)
        bench.upstream.fetches[2].part(310..<1000, of: self.thousand, sending: 10)
        bench.upstream.fetches[2].fail(.httpResponseIncomplete)
        #expect(bench.asked == 3)
        let (bytes, last) = client.readBytes()
        #expect(bytes == Array(self.thousand.content[..<320]))
        guard case .failed? = last else {
            Issue.record("the body should be cut off")
            return
        }
        #expect(bench.ask("bytes=0-319").wholeBytes == Array(self.thousand.content[..<320]))
    }

    @Test("of a body whose length nobody knew the beginning is kept, and its rest asked for")
    func unknownLength() {
        let bench = Bench()
        let client = bench.ask()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, self.thousand.head(), length: .unknown)
        fetch.bytes(self.thousand.content[..<300])
        fetch.fail(.httpResponseIncomplete)
        #expect(bench.asked == 1)
        #expect(client.readBytes().bytes.count == 300)
        let next = bench.ask()
        #expect(bench.upstream.fetches[1].range == "bytes=300-")
        bench.upstream.fetches[1].part(300..<1000, of: self.thousand)
        #expect(next.answer?.bodyLength == .known(1000))
        #expect(next.wholeBytes == self.thousand.content)
    }

    @Test("the beginning of what is stored whole does not take its place")
    func storedWhole() {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        // The origin ignores the condition, and breaks off for good.
        _ = bench.ask(nil, ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].whole(self.thousand, sending: 300)
        bench.upstream.fetches[1].fail(.httpResponseIncomplete)
        bench.upstream.fetches[2].fail(.connectionRefused)
        #expect(bench.ask().wholeBytes == self.thousand.content)
        #expect(bench.asked == 3)
    }

    @Test("when the last client leaves a large body, what came of it is kept")
    func deserted() {
        let bench = Bench.large
        let representation = Representation(1_000_000)
        let (_, exchange) = bench.perform("/")
        let fetch = bench.upstream.fetches[0]
        fetch.whole(representation, sending: 200_000)
        exchange.cancel()
        #expect(fetch.isCancelled)
        let client = bench.ask()
        #expect(bench.upstream.fetches[1].range == "bytes=200000-999999")
        bench.upstream.fetches[1].part(200_000..<1_000_000, of: representation)
        #expect(client.wholeBytes == representation.content)
    }

    @Test("nothing is kept or resumed without a strong validator", arguments: [nil, "W/\"a\""])
    func weak(_ tag: String?) {
        let bench = Bench()
        let client = bench.ask()
        bench.upstream.fetches[0].whole(Representation(1000, tag: tag), sending: 300)
        bench.upstream.fetches[0].fail(.httpResponseIncomplete)
        #expect(bench.asked == 1)
        #expect(client.readBytes().bytes.count == 300)
        _ = bench.ask("bytes=0-9")
        #expect(bench.upstream.fetches[1].range == "bytes=0-9")
    }
}
