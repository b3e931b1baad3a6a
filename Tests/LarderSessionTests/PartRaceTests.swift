import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Parts that come at the same time make one stored response (RFC 9111 §3.4)")
struct PartRaceTests {
    private let store = LateStore()
    private let bench: Bench
    private let thousand = Representation(1000)

    init() {
        self.bench = Bench(store: self.store)
    }

    private var objects: [StoredObject] { self.store.objects(self.bench.key) }

    private func ask(_ ranges: [Range<Int>]) -> [RecordingClient] {
        ranges.map { self.bench.ask("bytes=\($0.lowerBound)-\($0.upperBound - 1)") }
    }

    @Test(
        "asked for by several clients with nothing stored",
        arguments: [
            [0..<500, 500..<1000], [500..<1000, 0..<600],
            [0..<250, 250..<500, 500..<750, 750..<1000],
            [0..<1000, 100..<200],
        ])
    func several(_ ranges: [Range<Int>]) {
        self.store.hurries()
        let clients = self.ask(ranges)
        for (fetch, range) in zip(self.bench.upstream.fetches, ranges) {
            fetch.part(range, of: self.thousand, sending: range.count)
        }
        for fetch in self.bench.upstream.fetches { fetch.finish() }
        for (client, range) in zip(clients, ranges) {
            #expect(client.wholeBytes == Array(self.thousand.content[range]))
        }
        #expect(self.objects.count == 1)
        #expect(self.objects.first?.head.extent == nil)
        let whole = self.bench.ask()
        #expect(whole.cacheStatus?.contains("; hit") == true)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(self.bench.asked == ranges.count)
    }

    @Test("the last part and the whole, too, whichever is stored first", arguments: [true, false])
    func wholeAndParts(partsFirst: Bool) {
        self.store.hurries()
        _ = self.ask([0..<500])
        let whole = self.bench.ask()
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand)
        let rest = self.bench.ask("bytes=400-999")
        fetches[1].whole(self.thousand, sending: 700)
        let gap = self.bench.upstream.fetches[2]
        #expect(gap.range == "bytes=500-999")
        gap.part(500..<1000, of: self.thousand, sending: partsFirst ? nil : 100)
        fetches[1].bytes(self.thousand.content[700...])
        fetches[1].finish()
        if !partsFirst {
            gap.bytes(self.thousand.content[600...])
            gap.finish()
        }
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(rest.wholeBytes == Array(self.thousand.content[400...]))
        #expect(self.objects.map(\.bodyLength) == [1000])
        #expect(self.objects.first?.head.extent == nil)
        #expect(self.bench.ask().wholeBytes == self.thousand.content)
        #expect(self.bench.asked == 3)
    }

    @Test(
        "a whole that arrives is joined where it has what is missing first of a stored part",
        arguments: [(700, true), (501, true), (500, false), (100, false)])
    func joined(arrived: Int, joins: Bool) {
        self.store.hurries()
        _ = self.ask([0..<500])
        let first = self.bench.ask()
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand)
        fetches[1].whole(self.thousand, sending: arrived)
        let second = self.bench.ask()
        #expect(self.bench.asked == (joins ? 2 : 3))
        if !joins { self.bench.upstream.fetches[2].part(500..<1000, of: self.thousand) }
        fetches[1].bytes(self.thousand.content[arrived...])
        fetches[1].finish()
        #expect(first.wholeBytes == self.thousand.content)
        #expect(second.wholeBytes == self.thousand.content)
        #expect(second.cacheStatus?.contains("; collapsed") == joins)
        #expect(self.bench.ask().cacheStatus?.contains("; hit") == true)
    }

    @Test("a whole that is another representation than the stored part is joined, too")
    func joinedAnother() {
        self.store.hurries()
        _ = self.ask([0..<500])
        _ = self.bench.ask()
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand)
        let other = Representation(900, tag: "\"b\"", seed: 2)
        fetches[1].whole(other, sending: 700)
        let second = self.bench.ask()
        fetches[1].bytes(other.content[700...])
        fetches[1].finish()
        #expect(second.wholeBytes == other.content)
        #expect(self.bench.asked == 2)
    }

    @Test(
        "two that are whole leave one, the one that was asked for later",
        arguments: [[0, 1], [1, 0]], ["\"a\"", "\"b\"", nil])
    func twoWholes(_ order: [Int], tag: String?) {
        self.store.hurries()
        for _ in 0..<2 {
            _ = self.bench.ask(nil, ["Cache-Control": "no-cache"])
            self.bench.clock.advance(.seconds(1))
        }
        let later = Representation(900, tag: tag, seed: tag == "\"a\"" ? 1 : 2)
        for index in order {
            self.bench.upstream.fetches[index].whole(
                index == 0 ? Representation(900, seed: 1) : later)
        }
        #expect(self.objects.count == 1)
        #expect(self.bench.ask().wholeBytes == later.content)
        #expect(self.bench.asked == 2)
    }

    @Test("two that are whole stay where other requests select them, or they say other things")
    func twoVariants() {
        self.store.hurries()
        let languages = ["en", "de"]
        for language in languages {
            _ = self.bench.ask(
                nil, ["Cache-Control": "no-cache", "Accept-Language": language])
        }
        var varying = self.thousand
        varying.fields.append("Vary", "Accept-Language")
        for fetch in self.bench.upstream.fetches { fetch.whole(varying) }
        #expect(self.objects.count == 2)
        for language in languages {
            #expect(self.bench.ask(nil, ["Accept-Language": language]).status == 200)
        }
        #expect(self.bench.asked == 2)
    }

    @Test("of any size, and with holes between them")
    func large() {
        let store = LateStore()
        let bench = Bench(store: store)
        store.hurries()
        let large = Representation(900_000)
        let ranges = [0..<300_000, 600_000..<900_000, 200_000..<450_000]
        for range in ranges { _ = bench.ask("bytes=\(range.lowerBound)-\(range.upperBound - 1)") }
        for (fetch, range) in zip(bench.upstream.fetches, ranges) {
            fetch.part(range, of: large, sending: range.count)
        }
        for fetch in bench.upstream.fetches { fetch.finish() }
        #expect(
            store.objects(bench.key).map(\.head.extent?.ranges)
                == [[0..<450_000, 600_000..<900_000]])
        let client = bench.ask("bytes=199000-440000")
        #expect(client.wholeBytes == Array(large.content[199_000...440_000]))
        #expect(bench.asked == 3)
    }

    @Test("where the store takes nothing before it must, though they exceed what may be on its way")
    func hurried() {
        self.store.hurries()
        self.store.awaitHurry()
        let large = Representation(900_000)
        let ranges = [0..<450_000, 400_000..<900_000]
        _ = self.ask(ranges)
        for (fetch, range) in zip(self.bench.upstream.fetches, ranges) {
            fetch.part(range, of: large, sending: range.count)
        }
        for fetch in self.bench.upstream.fetches { fetch.finish() }
        #expect(self.objects.map(\.bodyLength) == [900_000])
        #expect(self.objects.first?.head.extent == nil)
    }

    @Test("who asks while they are put together waits for that")
    func waits() {
        _ = self.ask([0..<500, 500..<1000])
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand, sending: 500)
        fetches[1].part(500..<1000, of: self.thousand, sending: 500)
        for fetch in fetches { fetch.finish() }
        // Both are stored; now one is copied to the other, and that is held back, too.
        self.store.settle()
        #expect(self.objects.count == 2)
        let whole = self.bench.ask()
        #expect(whole.calls == 0)
        self.store.settle()
        #expect(whole.cacheStatus?.contains("; hit") == true)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(self.objects.count == 1)
        #expect(self.bench.asked == 2)
    }

    @Test("what is removed while they are put together does not come back (RFC 9111 §4.4)")
    func removed() {
        _ = self.ask([0..<500, 500..<1000])
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand, sending: 500)
        fetches[1].part(500..<1000, of: self.thousand, sending: 500)
        for fetch in fetches { fetch.finish() }
        self.store.settle()
        self.bench.session.remove(self.bench.key)
        self.store.settle()
        #expect(self.objects.isEmpty)
        _ = self.bench.ask()
        #expect(self.bench.asked == 3)
    }

    @Test(
        "of different representations they stay apart, and are never mixed",
        arguments: [
            Representation(1000, tag: "\"b\"", seed: 2),
            Representation(1000, tag: "W/\"a\"", seed: 2),
            Representation(1000, tag: nil, seed: 2), Representation(1001, seed: 2),
        ])
    func different(_ other: Representation) {
        self.store.hurries()
        _ = self.ask([0..<500, 500..<1000])
        let fetches = self.bench.upstream.fetches
        fetches[0].part(0..<500, of: self.thousand, sending: 500)
        fetches[1].part(500..<1000, of: other, sending: 500)
        for fetch in fetches { fetch.finish() }
        let ranges = self.objects.map(\.head.extent?.ranges)
        #expect(ranges.count == 2 && ranges.contains([0..<500]) && ranges.contains([500..<1000]))
        let whole = self.bench.ask()
        #expect(self.bench.asked == 3)
        #expect(whole.calls == 0)
    }

    @Test("where they contradict each other one of them goes")
    func contradictory() {
        self.store.hurries()
        _ = self.ask([0..<600, 500..<1000])
        let fetches = self.bench.upstream.fetches
        let other = Representation(1000, seed: 2)
        fetches[0].part(0..<600, of: self.thousand, sending: 600)
        fetches[1].part(500..<1000, of: other, sending: 500)
        for fetch in fetches { fetch.finish() }
        #expect(self.objects.count == 1)
        let whole = self.bench.ask()
        #expect(self.bench.asked == 2)
        // Where only one of them had come, there is no doubt.
        #expect(whole.wholeBytes?.prefix(500) == self.thousand.content.prefix(500))
        #expect(whole.wholeBytes?.suffix(400) == other.content.suffix(400))
    }
}

@Suite("Missing bytes are asked for once")
struct GapCollapsingTests {
    private let thousand = Representation(1000)

    private func bench() -> Bench {
        let bench = Bench()
        bench.store(0..<400, of: self.thousand)
        return bench
    }

    @Test("by all that wait for the head, and that come while the bytes do")
    func collapses() {
        let bench = self.bench()
        let first = bench.ask()
        let second = bench.ask()
        let part = bench.ask("bytes=300-")
        #expect(bench.asked == 2)
        #expect(bench.upstream.fetches[1].range == "bytes=400-999")
        bench.upstream.fetches[1].part(400..<1000, of: self.thousand, sending: 100)
        let late = bench.ask("bytes=350-999")
        #expect(bench.asked == 2)
        bench.upstream.fetches[1].bytes(self.thousand.content[500...])
        bench.upstream.fetches[1].finish()
        #expect(first.wholeBytes == self.thousand.content)
        #expect(second.wholeBytes == self.thousand.content)
        #expect(second.status == 200)
        #expect(part.wholeBytes == Array(self.thousand.content[300...]))
        #expect(part.field("Content-Range") == "bytes 300-999/1000")
        #expect(late.wholeBytes == Array(self.thousand.content[350...]))
        #expect(first.cacheStatus?.contains("collapsed") == false)
        for client in [second, part, late] {
            #expect(client.cacheStatus?.contains("collapsed") == true)
        }
        #expect(bench.session.counters().collapsed == 3)
        #expect(bench.session.counters().gapFetches == 1)
        #expect(bench.session.openFetches().isEmpty)
        #expect(bench.ask().cacheStatus?.contains("; hit") == true)
    }

    @Test("who is slow does not hold up the others")
    func slow() {
        let large = Representation(1 << 20)
        let bench = Bench()
        bench.store(0..<1000, of: large)
        let slow = bench.ask()
        let quick = bench.ask()
        #expect(bench.asked == 2)
        let fetch = bench.upstream.fetches[1]
        fetch.part(1000..<(1 << 20), of: large, sending: 0)
        var read: [UInt8] = []
        for start in stride(from: 1000, to: 1 << 20, by: 10_000) {
            fetch.bytes(large.content[start..<min(start + 10_000, 1 << 20)])
            read += quick.readBytes().bytes
        }
        fetch.finish()
        #expect(read + quick.readBytes().bytes == large.content)
        #expect(fetch.resumed == 0)
        #expect(slow.wholeBytes == large.content)
    }

    @Test(
        "the slow one holds up nobody where the store gives nothing back any more, and asks anew",
        arguments: [1, 300_000])
    func slowAfterRemoval(removedAt: Int) {
        let large = Representation(1 << 20)
        let bench = Bench()
        bench.store(0..<1000, of: large)
        let slow = bench.ask()
        let quick = bench.ask()
        let fetch = bench.upstream.fetches[1]
        fetch.part(1000..<(1 << 20), of: large, sending: 0)
        var (read, isRemoved) = ([UInt8](), false)
        for start in stride(from: 1000, to: 1 << 20, by: 10_000) {
            if start > removedAt, !isRemoved {
                bench.session.remove(bench.key)
                isRemoved = true
            }
            fetch.bytes(large.content[start..<min(start + 10_000, 1 << 20)])
            read += quick.readBytes().bytes
        }
        fetch.finish()
        #expect(read + quick.readBytes().bytes == large.content)
        #expect(fetch.resumed == 0)
        #expect(slow.readBytes().bytes == Array(large.content[..<1000]))
        #expect(bench.asked == 3)
        let again = bench.upstream.fetches[2]
        #expect(again.range == "bytes=1000-\((1 << 20) - 1)")
        again.part(1000..<(1 << 20), of: large)
        #expect(slow.readBytes().bytes == Array(large.content[1000...]))
    }

    @Test("the one who asked may leave")
    func leaves() {
        let bench = self.bench()
        let (_, exchange) = bench.perform()
        let second = bench.ask()
        exchange.cancel()
        bench.upstream.fetches[1].part(400..<1000, of: self.thousand)
        #expect(second.wholeBytes == self.thousand.content)
        #expect(bench.asked == 2)
    }

    @Test(
        "where the answer brings something else each asks for itself",
        arguments: [
            200, 206, 416,
        ])
    func changed(_ status: UInt16) {
        let bench = self.bench()
        let other = Representation(1000, tag: "\"b\"", seed: 3)
        let clients = [bench.ask(), bench.ask("bytes=100-")]
        #expect(bench.asked == 2)
        switch status {
        case 200: bench.upstream.fetches[1].whole(other)
        case 206: bench.upstream.fetches[1].part(400..<1000, of: other)
        default: bench.upstream.fetches[1].answer(416, ["Content-Range": "bytes */300"])
        }
        var next = 2
        while next < bench.asked, next < 10 {
            let fetch = bench.upstream.fetches[next]
            if fetch.ifRange == nil, let range = fetch.range {
                #expect(range == "bytes=100-")
                fetch.part(100..<1000, of: other)
            } else {
                fetch.whole(other)
            }
            next += 1
        }
        #expect(next < 10)
        for (client, start) in zip(clients, [0, 100]) {
            #expect(client.calls == 1)
            #expect(client.failure == nil)
            let expected = client.status == 206 ? Array(other.content[start...]) : other.content
            #expect(client.wholeBytes == expected)
        }
        #expect(bench.session.openFetches().isEmpty)
    }

    @Test("and where the origin fails it has failed for all; the next request tries again")
    func failed() {
        let bench = self.bench()
        let clients = [bench.ask(), bench.ask("bytes=100-")]
        bench.upstream.fetches[1].fail(.connectionRefused)
        for client in clients { #expect(client.failure?.status == .badGateway) }
        #expect(bench.asked == 2)
        let next = bench.ask()
        #expect(bench.asked == 3)
        bench.upstream.fetches[2].part(400..<1000, of: self.thousand)
        #expect(next.wholeBytes == self.thousand.content)
    }

    @Test("a later gap that fails cuts all answers off, and is asked for once")
    func laterFailure() {
        let large = Representation(400_000)
        let bench = Bench.large
        bench.store(0..<1000, of: large)
        bench.store(100_000..<200_000, of: large)
        let clients = [bench.ask(), bench.ask()]
        bench.upstream.fetches[2].part(1000..<100_000, of: large)
        for client in clients { #expect(client.readBytes().bytes.count == 200_000) }
        bench.upstream.fetches[3].fail(.connectionRefused)
        for client in clients { #expect(client.isCutOff) }
        #expect(bench.asked == 4)
    }

    @Test("a later gap of several answers, too")
    func later() {
        let large = Representation(400_000)
        let bench = Bench.large
        bench.store(0..<1000, of: large)
        bench.store(100_000..<200_000, of: large)
        let clients = [bench.ask(), bench.ask()]
        let first = bench.upstream.fetches[2]
        #expect(first.range == "bytes=1000-99999")
        first.part(1000..<100_000, of: large)
        var read = clients.map { $0.readBytes().bytes }
        #expect(bench.asked == 4)
        let second = bench.upstream.fetches[3]
        #expect(second.range == "bytes=200000-399999")
        second.part(200_000..<400_000, of: large)
        for index in clients.indices { read[index] += clients[index].readBytes().bytes }
        #expect(read == [large.content, large.content])
        #expect(bench.ask().wholeBytes == large.content)
        #expect(bench.asked == 4)
    }

    @Test("several ranges of which some are missing go to the origin as they came")
    func severalRanges() {
        let bench = self.bench()
        let fetching = bench.ask()
        let client = bench.ask("bytes=0-9, 500-509")
        #expect(bench.asked == 3)
        let fetch = bench.upstream.fetches[2]
        #expect(fetch.range == "bytes=0-9, 500-509")
        #expect(fetch.ifRange == nil)
        fetch.answer(206, ["Content-Type": "multipart/byteranges; boundary=x"], "parts")
        #expect(client.status == 206)
        #expect(client.wholeBody == "parts")
        bench.upstream.fetches[1].part(400..<1000, of: self.thousand)
        #expect(fetching.wholeBytes == self.thousand.content)
        let stored = bench.ask("bytes=0-9, 500-509")
        #expect(stored.cacheStatus?.contains("; hit") == true)
        #expect(bench.asked == 3)
    }
}
