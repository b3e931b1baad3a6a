import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Testing

@Suite("Partial content is stored and reused (RFC 9111 §3.3, §3.4)")
struct PartialTests {
    let thousand = Representation(1000)

    @Test("a 206 is relayed and stored; the same range, and any inside it, is a hit")
    func hit() {
        let bench = Bench()
        let first = bench.store(100..<200, of: self.thousand)
        #expect(first.status == 206)
        #expect(first.field("Content-Range") == "bytes 100-199/1000")
        #expect(
            first.cacheStatus
                == "larder; fwd=uri-miss; fwd-status=206; stored; detail=nothing-stored")
        #expect(first.wholeBytes == Array(self.thousand.content[100..<200]))
        for (asked, range) in [
            ("100-199", 100..<200), ("100-100", 100..<101), ("150-199", 150..<200),
        ] {
            let client = bench.ask("bytes=\(asked)")
            #expect(client.status == 206)
            #expect(client.cacheStatus?.contains("; hit") == true)
            #expect(
                client.field("Content-Range")
                    == "bytes \(range.lowerBound)-\(range.upperBound - 1)/1000")
            #expect(client.field("Content-Type") == "text/plain")
            #expect(client.wholeBytes == Array(self.thousand.content[range]))
        }
        #expect(bench.asked == 1)
    }

    @Test("suffix and open ranges are hits once their end is stored (RFC 9110 §14.1.2)")
    func suffix() {
        let bench = Bench()
        bench.store(900..<1000, of: self.thousand)
        for asked in ["bytes=-50", "bytes=950-"] {
            let client = bench.ask(asked)
            #expect(client.field("Content-Range") == "bytes 950-999/1000")
            #expect(client.wholeBytes == Array(self.thousand.content[950...]))
        }
        let beyond = bench.ask("bytes=1000-")
        #expect(beyond.status == 416)
        #expect(beyond.field("Content-Range") == "bytes */1000")
        let head = bench.perform(method: .head).client
        #expect(head.status == 200)
        #expect(head.answer?.bodyLength == .known(1000))
        #expect(bench.asked == 1)
    }

    @Test(
        "parts of one strong validator make the whole (RFC 9110 §15.3.7.3)",
        arguments: [
            [0..<400, 400..<1000], [400..<1000, 0..<400], [0..<600, 400..<1000],
            [900..<1000, 0..<500, 500..<900],
        ])
    func combination(_ ranges: [Range<Int>]) {
        let bench = Bench()
        for range in ranges { bench.store(range, of: self.thousand) }
        let asked = bench.asked
        let whole = bench.ask()
        #expect(whole.status == 200)
        #expect(whole.cacheStatus?.contains("; hit") == true)
        #expect(whole.answer?.bodyLength == .known(1000))
        #expect(whole.field("Content-Range") == nil)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(bench.asked == asked)
    }

    @Test(
        "a strong Last-Modified combines, a weak one does not (RFC 9110 §8.8.2.2)",
        arguments: [
            (2, true), (1, true), (0, false),
        ] as [(Int64, Bool)])
    func modified(_ age: Int64, _ combines: Bool) {
        let bench = Bench()
        var representation = Representation(1000, tag: nil)
        let now = bench.clock.now()
        representation.fields.append("Date", HTTPDate.format(now))
        representation.fields.append("Last-Modified", HTTPDate.format(now - .seconds(age)))
        bench.store(0..<500, of: representation)
        bench.store(500..<1000, of: representation)
        let whole = bench.ask()
        #expect((bench.asked == 2) == combines)
        if combines {
            #expect(whole.wholeBytes == representation.content)
        } else {
            #expect(bench.upstream.fetches[2].range == nil)
        }
    }

    @Test(
        "a part of another representation takes the place of the old one",
        arguments: [
            "\"b\"", "W/\"a\"", nil,
        ])
    func replacement(_ tag: String?) {
        let bench = Bench()
        bench.store(0..<500, of: self.thousand)
        let other = Representation(1000, tag: tag, seed: 2)
        bench.store(500..<1000, of: other)
        #expect(bench.ask("bytes=500-599").wholeBytes == Array(other.content[500..<600]))
        #expect(bench.asked == 2)
        let old = bench.ask("bytes=0-99")
        #expect(bench.asked == 3)
        #expect(bench.upstream.fetches[2].range == "bytes=0-99")
        bench.upstream.fetches[2].part(0..<100, of: other)
        #expect(old.wholeBytes == Array(other.content[..<100]))
    }

    @Test(
        "what its head does not say for sure is passed on and not stored (§3.3)",
        arguments: [
            ("bytes 0-99/1000", 100, 100, true, "nothing-stored"),
            ("bytes 0-99/1000", 99, 99, false, "contradictory"),
            ("bytes 0-99/99", 100, 100, false, "contradictory"),
            ("bytes 99-0/1000", 100, 100, false, "contradictory"),
            ("bytes 0-18446744073709551615/18446744073709551616", 100, 100, false, "contradictory"),
            ("bytes 0-99/18446744073709551615", 100, 100, false, "contradictory"),
            ("bytes */1000", 100, 100, false, "contradictory"),
            ("lines 0-99/1000", 100, 100, false, "contradictory"),
            ("bytes 0-99", 100, 100, false, "contradictory"),
            // Of unknown length: the bytes are counted.
            ("bytes 0-99/1000", nil, 100, true, "nothing-stored"),
            ("bytes 0-99/1000", nil, 101, false, "nothing-stored"),
        ] as [(String, UInt64?, Int, Bool, String)])
    func judged(
        _ told: String, _ length: UInt64?, _ sent: Int, _ isStored: Bool, _ reason: String
    ) {
        let bench = Bench()
        let client = bench.ask("bytes=0-99")
        let fetch = bench.upstream.fetches[0]
        fetch.head(
            206, self.thousand.head(("Content-Range", told)),
            length: length.map { .known($0) } ?? .unknown)
        fetch.bytes(self.thousand.content[..<sent])
        fetch.finish()
        #expect(client.status == 206)
        #expect(client.wholeBytes == Array(self.thousand.content[..<sent]))
        #expect(client.answer?.cacheStatus.detail == reason)
        let second = bench.ask("bytes=0-49")
        #expect((bench.asked == 1) == isStored)
        if isStored { #expect(second.wholeBytes == Array(self.thousand.content[..<50])) }
    }

    @Test("multipart/byteranges is relayed and not stored (§3.3)")
    func multipart() {
        let bench = Bench()
        let client = bench.ask("bytes=0-1,5-6")
        bench.upstream.fetches[0].answer(
            206, ["Content-Type": "multipart/byteranges; boundary=x", "ETag": "\"a\""], "--x")
        #expect(client.status == 206)
        #expect(client.wholeBody == "--x")
        #expect(client.answer?.cacheStatus.detail == "multipart-byteranges")
        _ = bench.ask("bytes=0-1")
        #expect(bench.asked == 2)
    }

    @Test("a 206 that nobody asked for is contradictory")
    func unasked() {
        let bench = Bench()
        let client = bench.ask()
        bench.upstream.fetches[0].part(0..<100, of: self.thousand)
        #expect(client.answer?.cacheStatus.detail == "contradictory")
        _ = bench.ask("bytes=0-1")
        #expect(bench.asked == 2)
    }

    @Test("a 206 for other bytes than asked for is stored as what it says it is")
    func otherBytes() {
        let bench = Bench()
        _ = bench.ask("bytes=0-99")
        bench.upstream.fetches[0].part(500..<600, of: self.thousand)
        #expect(
            bench.ask("bytes=500-599").wholeBytes == Array(self.thousand.content[500..<600]))
        #expect(bench.asked == 1)
        _ = bench.ask("bytes=0-99")
        #expect(bench.asked == 2)
    }

    @Test("a 206 with fewer bytes than its Content-Range says is cut off where no more can be had")
    func short() {
        let bench = Bench()
        let client = bench.ask("bytes=100-199")
        let fetch = bench.upstream.fetches[0]
        fetch.head(
            206, self.thousand.head(("Content-Range", "bytes 100-199/1000")), length: .unknown)
        fetch.bytes(self.thousand.content[100..<150])
        fetch.finish()
        #expect(bench.upstream.fetches[1].range == "bytes=150-199")
        bench.upstream.fetches[1].answer(503, [:])
        let (bytes, last) = client.readBytes()
        #expect(bytes == Array(self.thousand.content[100..<150]))
        guard case .failed? = last else {
            Issue.record("the answer should be cut off")
            return
        }
    }

    @Test("parts of unknown whole serve what they have, and no more")
    func unknownLength() {
        let bench = Bench()
        _ = bench.ask("bytes=0-99")
        bench.upstream.fetches[0].part(0..<100, of: self.thousand, told: "bytes 0-99/*")
        let inner = bench.ask("bytes=10-19")
        #expect(inner.field("Content-Range") == "bytes 10-19/*")
        #expect(inner.wholeBytes == Array(self.thousand.content[10..<20]))
        #expect(bench.asked == 1)
        for asked in ["bytes=-10", "bytes=200-300"] {
            _ = bench.ask(asked)
            #expect(bench.upstream.fetches.last?.range == asked)
            #expect(bench.upstream.fetches.last?.ifRange == nil)
        }
        #expect(bench.asked == 3)
    }

    @Test("only-if-cached gets what is there and 504 for what is not (§5.2.1.7)")
    func onlyIfCached() {
        let bench = Bench()
        bench.store(0..<100, of: self.thousand)
        let only: Fields = ["Cache-Control": "only-if-cached"]
        #expect(bench.ask("bytes=0-99", only).status == 206)
        #expect(bench.ask("bytes=50-150", only).failure?.status == .gatewayTimeout)
        #expect(bench.ask(nil, only).failure?.status == .gatewayTimeout)
        #expect(bench.asked == 1)
    }

    @Test(
        "return-cache-dont-load gives what is there, and asks for nothing else",
        arguments: [
            ("bytes=0-99", true), ("bytes=50-150", false), ("bytes=200-299", false),
        ])
    func offline(_ range: String, _ isThere: Bool) {
        let bench = Bench()
        bench.store(0..<100, of: self.thousand)
        bench.clock.advance(.seconds(3600))
        let client = RecordingClient()
        _ = bench.session.perform(
            Request(
                uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: "/"),
                fields: ["Range": range]),
            body: nil, options: ExchangeOptions(cachePolicy: .returnCacheDontLoad),
            client: client)
        #expect((client.status == 206) == isThere)
        #expect((client.failure?.status == .gatewayTimeout) == !isThere)
        #expect(bench.asked == 1)
    }

    @Test("variants have parts of their own (§4.1)")
    func variants() {
        let bench = Bench()
        var english = Representation(1000, tag: "\"en\"", seed: 3)
        english.fields.append("Vary", "Accept-Language")
        var german = Representation(1000, tag: "\"de\"", seed: 4)
        german.fields.append("Vary", "Accept-Language")
        for (language, representation) in [("en", english), ("de", german)] {
            _ = bench.ask("bytes=0-499", ["Accept-Language": language])
            bench.upstream.fetches.last?.part(0..<500, of: representation)
        }
        for (language, representation) in [("en", english), ("de", german)] {
            let client = bench.ask("bytes=100-199", ["Accept-Language": language])
            #expect(client.wholeBytes == Array(representation.content[100..<200]))
        }
        #expect(bench.asked == 2)
    }

    @Test("a stale part is validated: 304 with what is stored, a new 206 in its place (§4.3.4)")
    func validation() {
        let bench = Bench()
        bench.store(0..<100, of: self.thousand)
        bench.clock.advance(.seconds(61))
        let confirmed = bench.ask("bytes=10-19")
        let conditional = bench.upstream.fetches[1]
        #expect(conditional.request.fields.string("If-None-Match") == "\"a\"")
        #expect(conditional.range == "bytes=10-19")
        conditional.answer(304, self.thousand.head())
        #expect(confirmed.status == 206)
        #expect(confirmed.wholeBytes == Array(self.thousand.content[10..<20]))
        bench.clock.advance(.seconds(61))
        let changed = bench.ask("bytes=10-19")
        let other = Representation(1000, tag: "\"b\"", seed: 5)
        bench.upstream.fetches[2].part(10..<20, of: other)
        #expect(changed.wholeBytes == Array(other.content[10..<20]))
        #expect(bench.ask("bytes=12-13").wholeBytes == Array(other.content[12..<14]))
        #expect(bench.asked == 3)
    }

    @Test(
        "the range stays in the request that validates a whole (RFC 9110 §13.2.2)",
        arguments: [
            304, 206, 200,
        ])
    func staleWhole(_ status: Int) {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        bench.clock.advance(.seconds(61))
        let client = bench.ask("bytes=10-19")
        let fetch = bench.upstream.fetches[1]
        #expect(fetch.range == "bytes=10-19")
        #expect(fetch.request.fields.string("If-None-Match") == "\"a\"")
        let other = Representation(1000, tag: "\"b\"", seed: 6)
        switch status {
        case 304: fetch.answer(304, self.thousand.head())
        case 206: fetch.part(10..<20, of: other)
        default: fetch.whole(other)
        }
        switch status {
        case 304: #expect(client.wholeBytes == Array(self.thousand.content[10..<20]))
        case 206: #expect(client.wholeBytes == Array(other.content[10..<20]))
        default: #expect(client.wholeBytes == other.content)
        }
        #expect(client.status == (status == 200 ? 200 : 206))
    }

    @Test("a part of the stored whole freshens it and does not take its place (§3.4)")
    func partOfWhole() {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        bench.clock.advance(.seconds(61))
        let client = bench.ask("bytes=10-19", ["Cache-Control": "no-cache"])
        bench.upstream.fetches[1].part(10..<20, of: self.thousand)
        #expect(client.wholeBytes == Array(self.thousand.content[10..<20]))
        let whole = bench.ask()
        #expect(whole.cacheStatus?.contains("; hit") == true)
        #expect(whole.wholeBytes == self.thousand.content)
        #expect(bench.asked == 2)
    }

    @Test("the beginning of a whole does not take the place of a part that is larger (§3.4)")
    func largerPart() {
        for (begun, isKept) in [(300, false), (700, true)] {
            let bench = Bench()
            bench.store(0..<600, of: self.thousand)
            _ = bench.ask(nil, ["Cache-Control": "no-cache"])
            bench.upstream.fetches[1].whole(self.thousand, sending: begun)
            bench.upstream.fetches[1].fail(.httpResponseIncomplete)
            bench.upstream.fetches[2].fail(.connectionRefused)
            #expect(
                bench.ask("bytes=500-599").wholeBytes == Array(self.thousand.content[500..<600]))
            #expect(bench.asked == 3)
            let further = bench.ask("bytes=600-699").wholeBytes
            #expect((further == Array(self.thousand.content[600..<700])) == isKept)
        }
    }

    @Test("several ranges from a stored whole are multipart/byteranges (RFC 9110 §15.3.7.2)")
    func several() throws {
        let bench = Bench()
        _ = bench.ask()
        bench.upstream.fetches[0].whole(self.thousand)
        let client = bench.ask("bytes=500-599, 0-99, -10")
        #expect(client.status == 206)
        #expect(client.field("Content-Range") == nil)
        let type = try #require(client.field("Content-Type"))
        let boundary = try #require(type.split(separator: "=").last.map(String.init))
        #expect(type == "multipart/byteranges; boundary=\(boundary)")
        #expect(boundary.count >= 32)
        var expected: [UInt8] = []
        for (index, range) in [500..<600, 0..<100, 990..<1000].enumerated() {
            expected += Array("\(index == 0 ? "" : "\r\n")--\(boundary)\r\n".utf8)
            expected += Array("Content-Type: text/plain\r\n".utf8)
            expected += Array(
                "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/1000\r\n\r\n"
                    .utf8)
            expected += self.thousand.content[range]
        }
        expected += Array("\r\n--\(boundary)--\r\n".utf8)
        #expect(client.wholeBytes == expected)
        #expect(client.answer?.bodyLength == .known(UInt64(expected.count)))
        let second = bench.ask("bytes=500-599, 0-99, -10")
        #expect(second.field("Content-Type") != type)
    }
}
