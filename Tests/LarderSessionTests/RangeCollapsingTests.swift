import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("A range of what is arriving is read out of it (RFC 9111 §4, RFC 9110 §14.2)")
struct ArrivingRangeTests {
    private let thousand = Representation(1000)
    private let large = Representation(3 << 20)

    @Test("as far as it has come, and as it comes")
    func arriving() {
        let bench = Bench()
        let whole = bench.ask()
        let fetch = bench.upstream.fetches[0]
        fetch.whole(self.thousand, sending: 300)
        let first = bench.ask("bytes=0-99")
        #expect(first.status == 206)
        #expect(first.field("Content-Range") == "bytes 0-99/1000")
        #expect(first.field("ETag") == "\"a\"")
        #expect(first.answer?.bodyLength == .known(100))
        #expect(first.wholeBytes == Array(self.thousand.content[..<100]))
        #expect(first.answer?.cacheStatus.collapsed == true)
        let next = bench.ask("bytes=250-399")
        let last = bench.ask("bytes=-100")
        let open = bench.ask("bytes=0-")
        #expect(next.readBytes().bytes == Array(self.thousand.content[250..<300]))
        #expect(last.readBytes().bytes.isEmpty)
        fetch.bytes(self.thousand.content[300..<500])
        #expect(next.wholeBytes == Array(self.thousand.content[300..<400]), "it has its last byte")
        fetch.bytes(self.thousand.content[500...])
        fetch.finish()
        #expect(last.field("Content-Range") == "bytes 900-999/1000")
        #expect(last.wholeBytes == Array(self.thousand.content[900...]))
        #expect(open.status == 206)
        #expect(open.wholeBytes == self.thousand.content)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(bench.asked == 1)
        #expect(bench.session.counters().collapsed == 4)
        #expect(bench.session.openFetches().isEmpty)
    }

    @Test("when its head comes, alone or with the content", arguments: [true, false])
    func awaited(inPieces: Bool) {
        let bench = Bench()
        let whole = bench.ask()
        let range = bench.ask("bytes=2-3")
        #expect(bench.asked == 1)
        #expect(range.calls == 0)
        if inPieces {
            bench.upstream.fetches[0].answerInPieces(200, bench.fresh, "hello")
        } else {
            bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        }
        #expect(range.status == 206)
        #expect(range.field("Content-Range") == "bytes 2-3/5")
        #expect(range.wholeBody == "ll")
        #expect(whole.wholeBody == "hello")
        #expect(bench.asked == 1)
    }

    @Test("also what no longer lies in memory")
    func readBack() {
        let bench = Bench()
        let storable = Representation(1 << 20)
        let whole = bench.ask()
        let fetch = bench.upstream.fetches[0]
        fetch.whole(storable, sending: 0)
        for start in stride(from: 0, to: 200_000, by: 10_000) {
            fetch.bytes(storable.content[start..<(start + 10_000)])
            _ = whole.readBytes()
        }
        let range = bench.ask("bytes=50000-50099")
        #expect(range.wholeBytes == Array(storable.content[50_000..<50_100]))
        #expect(bench.asked == 1)
    }

    @Test(
        "but not where the origin brings it sooner",
        arguments: [(nil, "bytes=2000000-2000099"), (0, "bytes=2000000-"), (100_000, "bytes=-100")]
            as [(Int?, String)])
    func tooFar(sent: Int?, range: String) {
        let bench = Bench.large
        _ = bench.ask()
        if let sent { bench.upstream.fetches[0].whole(self.large, sending: sent) }
        _ = bench.ask(range)
        #expect(bench.asked == 2)
        #expect(bench.upstream.fetches[1].range == range)
    }

    @Test("nor where somebody keeps the origin waiting")
    func paused() {
        let bench = Bench(store: SlowDisk(), window: .kibibytes(16))
        _ = bench.ask()
        let fetch = bench.upstream.fetches[0]
        fetch.whole(self.large, sending: 16_384)
        let there = bench.ask("bytes=100-16383")
        #expect(bench.asked == 1)
        #expect(there.wholeBytes == Array(self.large.content[100..<16_384]))
        _ = bench.ask("bytes=100-16384")
        #expect(bench.asked == 2)
    }

    @Test(
        "nor where only the origin can say what it has, or may not be asked through another",
        arguments: [
            ("200", "bytes=0-99, 200-299", [:]), ("chunked", "bytes=0-99", [:]),
            ("200", "bytes=1000-", [:]), ("200", "bytes=0-99", ["If-Range": "\"a\""]),
            ("200", "bytes=0-99", ["Cache-Control": "no-cache"]),
            ("200", "bytes=0-99", ["If-None-Match": "\"z\""]),
            ("no-store", "bytes=0-99", [:]),
        ] as [(String, String, Fields)])
    func notFrom(_ answer: String, range: String, fields: Fields) {
        let bench = Bench()
        _ = bench.ask()
        let fetch = bench.upstream.fetches[0]
        switch answer {
        case "chunked": fetch.head(200, self.thousand.head())
        case "no-store":
            fetch.head(200, ["Cache-Control": "no-store"], length: .known(1000))
        default: fetch.whole(self.thousand, sending: 500)
        }
        _ = bench.ask(range, fields)
        #expect(bench.asked == 2)
        #expect(bench.upstream.fetches[1].range == range)
    }

    @Test("who waited for a response that is not to be shared asks for itself")
    func unshared() {
        let bench = Bench()
        _ = bench.ask()
        let range = bench.ask("bytes=1-2")
        bench.upstream.fetches[0].answer(200, ["Cache-Control": "no-store"], "mine")
        #expect(bench.asked == 2)
        #expect(bench.upstream.fetches[1].range == "bytes=1-2")
        bench.upstream.fetches[1].part(1..<3, of: self.thousand)
        #expect(range.wholeBytes == Array(self.thousand.content[1..<3]))
    }

    @Test("one validation answers for any range (§4.3)")
    func validation() {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        bench.clock.advance(.seconds(61))
        _ = bench.ask()
        let range = bench.ask("bytes=-10")
        #expect(bench.asked == 2)
        bench.upstream.fetches[1].answer(304, self.thousand.head())
        #expect(range.wholeBytes == Array(self.thousand.content[990...]))
        #expect(bench.asked == 2)
    }

    @Test("a client that wants a range keeps the fetch for as long as it wants it")
    func leaves() {
        let bench = Bench.large
        let (_, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.whole(self.large, sending: 1000)
        let range = bench.ask("bytes=900-1999")
        exchange.cancel()
        #expect(!fetch.isCancelled)
        #expect(range.readBytes().bytes.count == 100)
        fetch.bytes(self.large.content[1000..<3000])
        #expect(range.wholeBytes == Array(self.large.content[1000..<2000]))
        #expect(fetch.isCancelled)
    }

    @Test("a body that breaks off cuts the range off that it has not brought")
    func breaksOff() {
        let bench = Bench()
        _ = bench.ask()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(1000))
        fetch.piece(bytes: 500)
        let there = bench.ask("bytes=0-99")
        let coming = bench.ask("bytes=450-549")
        fetch.fail(.httpResponseBodySize)
        #expect(there.wholeBytes?.count == 100)
        #expect(coming.isCutOff)
    }
}

@Suite("A range of which nothing is stored is asked for once")
struct ColdRangeTests {
    private let thousand = Representation(1000)

    @Test("by all that ask for the very same one meanwhile")
    func collapses() {
        let bench = Bench()
        let clients = (0..<4).map { _ in bench.ask("bytes=100-299") }
        #expect(bench.asked == 1)
        let fetch = bench.upstream.fetches[0]
        fetch.part(100..<300, of: self.thousand, sending: 50)
        let late = bench.ask("bytes=100-299")
        let other = bench.ask("bytes=100-298")
        #expect(bench.asked == 2)
        fetch.bytes(self.thousand.content[150..<300])
        fetch.finish()
        bench.upstream.fetches[1].part(100..<299, of: self.thousand)
        for client in clients + [late] {
            #expect(client.status == 206)
            #expect(client.field("Content-Range") == "bytes 100-299/1000")
            #expect(client.wholeBytes == Array(self.thousand.content[100..<300]))
        }
        #expect(other.wholeBytes == Array(self.thousand.content[100..<299]))
        #expect(clients[0].answer?.cacheStatus.collapsed == false)
        #expect(clients[1].answer?.cacheStatus.collapsed == true)
        #expect(bench.session.counters().collapsed == 4)
        #expect(bench.session.openFetches().isEmpty)
        #expect(bench.ask("bytes=100-299").cacheStatus?.contains("; hit") == true)
        #expect(bench.asked == 2)
    }

    @Test(
        "and where the origin sends another one, by none but who asked (RFC 9111 §3.3)",
        arguments: [500..<510, 100..<200, 100..<400, 150..<300])
    func another(_ sent: Range<Int>) {
        let bench = Bench()
        let clients = (0..<3).map { _ in bench.ask("bytes=100-299") }
        #expect(bench.asked == 1)
        bench.upstream.fetches[0].part(sent, of: self.thousand)
        bench.upstream.fetches[0].finish()
        let own = "bytes \(sent.lowerBound)-\(sent.upperBound - 1)/1000"
        #expect(clients[0].field("Content-Range") == own)
        for (index, fetch) in bench.upstream.fetches.dropFirst().enumerated() where index < 2 {
            fetch.part(100..<300, of: self.thousand)
            fetch.finish()
        }
        for client in clients[1...] {
            #expect(client.field("Content-Range") == "bytes 100-299/1000")
            #expect(client.wholeBytes == Array(self.thousand.content[100..<300]))
        }
    }

    @Test("what reaches beyond the end is the very same where the origin has no more")
    func beyond() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.ask("bytes=900-1999") }
        bench.upstream.fetches[0].part(900..<1000, of: self.thousand)
        bench.upstream.fetches[0].finish()
        for client in clients {
            #expect(client.wholeBytes == Array(self.thousand.content[900...]))
        }
        #expect(bench.asked == 1)
    }

    @Test("and who asks for all, or for another range, asks for itself")
    func others() {
        let bench = Bench()
        for range in ["bytes=0-99", "bytes=0-", "bytes=-100", "bytes=0-99, 200-299", nil] {
            _ = bench.ask(range)
        }
        #expect(bench.asked == 5)
    }

    @Test("where it may be shared; else each asks for itself, and for a while nobody waits")
    func unshared() {
        let bench = Bench()
        var secret = self.thousand
        secret.fields = ["Cache-Control": "no-store"]
        let clients = (0..<3).map { _ in bench.ask("bytes=0-9") }
        #expect(bench.asked == 1)
        bench.upstream.fetches[0].part(0..<10, of: secret)
        #expect(clients[0].wholeBytes == Array(secret.content[..<10]))
        #expect(clients[1].calls == 0)
        #expect(bench.asked == 3)
        for fetch in bench.upstream.fetches[1...] { fetch.part(0..<10, of: secret) }
        for client in clients[1...] { #expect(client.wholeBytes?.count == 10) }
        _ = bench.ask("bytes=0-9")
        _ = bench.ask("bytes=0-9")
        #expect(bench.asked == 5)
    }

    @Test("where it varies, by those whom it matches (§4.1)")
    func varies() {
        let bench = Bench()
        var varying = self.thousand
        varying.fields.append("Vary", "Accept-Language")
        let clients = ["en", "de", "en"].map {
            bench.ask("bytes=0-9", ["Accept-Language": $0])
        }
        bench.upstream.fetches[0].part(0..<10, of: varying)
        #expect(clients.map(\.calls) == [1, 0, 1])
        #expect(bench.asked == 2)
        #expect(bench.upstream.fetches[1].request.fields.string("Accept-Language") == "de")
    }

    @Test("by none with credentials, where the answer is for one alone (§3.5)")
    func credentials() {
        let bench = Bench()
        let fields: Fields = ["Authorization": "Basic YTpi"]
        let clients = (0..<2).map { _ in bench.ask("bytes=0-9", fields) }
        bench.upstream.fetches[0].part(0..<10, of: self.thousand)
        #expect(clients.map(\.calls) == [1, 0])
        #expect(bench.asked == 2)
    }

    @Test("an origin that knows no ranges brings the whole, and each takes its own from it")
    func whole() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.ask("bytes=100-299") }
        bench.upstream.fetches[0].whole(self.thousand, sending: 200)
        #expect(clients[0].status == 200)
        #expect(clients[1].status == 206)
        bench.upstream.fetches[0].bytes(self.thousand.content[200...])
        bench.upstream.fetches[0].finish()
        #expect(clients[0].wholeBytes == self.thousand.content)
        #expect(clients[1].wholeBytes == Array(self.thousand.content[100..<300]))
        #expect(bench.asked == 1)
    }

    @Test("what has none of these bytes is told to each by the origin")
    func unsatisfiable() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.ask("bytes=1000-") }
        bench.upstream.fetches[0].answer(416, ["Content-Range": "bytes */1000"])
        #expect(clients.map(\.status) == [416, nil])
        #expect(bench.asked == 2)
        // Nor does it say anything of other ranges.
        _ = bench.ask("bytes=0-9")
        _ = bench.ask("bytes=0-9")
        #expect(bench.asked == 3)
    }

    @Test("a failure is everybody's, and the next request tries again")
    func failure() {
        let bench = Bench()
        let clients = (0..<2).map { _ in bench.ask("bytes=0-9") }
        bench.upstream.fetches[0].fail(.connectionRefused)
        for client in clients { #expect(client.failure?.status == .badGateway) }
        _ = bench.ask("bytes=0-9")
        #expect(bench.asked == 2)
    }

    @Test("after a removal nobody gets what was asked for before it (§4.4)")
    func removed() {
        let bench = Bench()
        _ = bench.ask("bytes=0-9")
        bench.session.remove(bench.key)
        _ = bench.ask("bytes=0-9")
        #expect(bench.asked == 2)
    }

    @Test("one validation of a whole that is stored answers all (§4.3)")
    func validation() {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        bench.clock.advance(.seconds(61))
        let clients = (0..<3).map { _ in bench.ask("bytes=0-9") }
        #expect(bench.asked == 2)
        bench.upstream.fetches[1].answer(304, self.thousand.head())
        for client in clients {
            #expect(client.wholeBytes == Array(self.thousand.content[..<10]))
        }
        #expect(bench.asked == 2)
    }

    @Test("the range that a validation in the background keeps is nobody else's (RFC 5861 §3)")
    func background() {
        let bench = Bench()
        var old = self.thousand
        old.fields = ["Cache-Control": "max-age=1, stale-while-revalidate=600"]
        _ = bench.ask("bytes=0-99")
        bench.upstream.fetches[0].part(0..<100, of: old)
        bench.clock.advance(.seconds(10))
        #expect(bench.ask("bytes=0-99").wholeBytes == Array(old.content[..<100]))
        #expect(bench.upstream.fetches.last?.range == "bytes=0-99")
        let other = bench.ask("bytes=200-299")
        let changed = Representation(1000, tag: "\"b\"", seed: 2)
        bench.upstream.fetches[1].part(0..<100, of: changed)
        bench.upstream.fetches.last?.part(200..<300, of: changed)
        #expect(other.field("Content-Range") == "bytes 200-299/1000")
        #expect(other.wholeBytes == Array(changed.content[200..<300]))
        #expect(bench.asked == 3)
    }
}
