import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import SeededNumbers
import Testing

@testable import LarderSession

@Suite("A client that comes late gets what it may reuse, whole")
struct LateClientTests {
    @Test("a response that must be validated answers nobody but who asked for it (RFC 9111 §4)")
    func noCache() {
        let bench = Bench()
        let first = bench.perform().client
        let waiting = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, ["Cache-Control": "no-cache", "ETag": "\"a\""])
        fetch.piece("hello")
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
        fetch.finish()
        #expect(first.wholeBody == "hello")
        bench.upstream.fetches[1].answer(200, bench.fresh, "other")
        #expect(waiting.wholeBody == "other")
    }

    @Test("a response that has become stale on its way is not joined (RFC 9111 §4.2)")
    func stale() {
        let bench = Bench()
        bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        bench.clock.advance(.seconds(59))
        bench.perform()
        #expect(bench.upstream.fetches.count == 1)
        bench.clock.advance(.seconds(2))
        bench.perform()
        #expect(bench.upstream.fetches.count == 2)
    }

    @Test("who comes while the last client's leaving ends the fetch makes one of its own")
    func joinsAtTheEnd() {
        let bench = Bench()
        let (_, exchange) = bench.perform()
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh, length: .known(1_000_000))
        fetch.piece("01234")
        let late = RecordingClient()
        fetch.onCancel { bench.perform(client: late) }
        exchange.cancel()
        #expect(fetch.isCancelled)
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches.last?.answer(200, bench.fresh, "whole")
        #expect(late.wholeBody == "whole")
    }
}

@Suite("A fetch minds which of its requests is under way")
struct RepeatedRequestTests {
    @Test("a 304 that comes before the request was said to be under way, and selects nothing")
    func earlyRepetition() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(200, bench.fresh, "hello")
        bench.clock.advance(.seconds(61))
        bench.upstream.onFetch { $0.answer(304, ["ETag": "\"other\""]) }
        let (_, exchange) = bench.perform()
        let (early, repeated) = (bench.upstream.fetches[1], bench.upstream.fetches[2])
        #expect(early.isCancelled)
        repeated.head(200, ["Cache-Control": "no-store"])
        exchange.cancel()
        #expect(repeated.isCancelled)
    }

    @Test("what still comes of a request that was given up is not taken for the next one's")
    func lateRemains() {
        let bench = Bench()
        bench.store(0..<400, of: Representation(1000))
        let other = Representation(1000, tag: "\"b\"", seed: 2)
        // All of it before the request was said to be under way.
        bench.upstream.onFetch { [upstream = bench.upstream] early in
            early.head(
                206, other.head(("Content-Range", "bytes 400-999/1000")), length: .known(600))
            upstream.fetches[2].head(200, ["Cache-Control": "no-store"], length: .known(5))
            #expect(early.piece(bytes: 3) == .pause)
            early.fail()
        }
        let client = bench.ask()
        #expect(bench.upstream.fetches[1].isCancelled)
        let repeated = bench.upstream.fetches[2]
        repeated.piece("hello")
        repeated.finish()
        #expect(client.status == 200)
        #expect(client.wholeBody == "hello")
        #expect(bench.asked == 3)
        #expect(bench.session.counters().openFetches == 0)
    }

    @Test("a stored response does not stand in for an answer to a condition of the client's own")
    func condition() {
        let bench = Bench()
        bench.perform()
        bench.upstream.fetches[0].answer(
            200, ["Cache-Control": "max-age=1, stale-if-error=100", "ETag": "\"a\""], "old")
        bench.clock.advance(.seconds(10))
        let client = bench.perform("/", ["If-Match": "\"b\""]).client
        bench.upstream.fetches[1].fail(.connectionRefused)
        #expect(client.failure?.status == .badGateway)
    }

    @Test("a response without content is heard to its end: its connection can be used again")
    func bodyless() {
        let bench = Bench()
        let head = bench.perform(method: .head).client
        bench.upstream.fetches[0].head(200, length: .known(5))
        #expect(head.status == 200)
        #expect(!bench.upstream.fetches[0].isCancelled)
        bench.upstream.fetches[0].finish()
        let empty = bench.perform(method: .post).client
        bench.upstream.fetches[1].head(200, length: .known(0))
        #expect(empty.status == 200)
        #expect(!bench.upstream.fetches[1].isCancelled)
        bench.upstream.fetches[1].finish()
        #expect(bench.session.counters().openFetches == 0)
    }
}

@Suite("A removal reaches fetches under way (RFC 9111 §4.4)")
struct RemovalTests {
    @Test("nobody joins a fetch for a key that was removed since it began")
    func key() {
        let bench = Bench()
        let first = bench.perform().client
        bench.session.remove(bench.key) { _ in }
        let second = bench.perform().client
        #expect(bench.upstream.fetches.count == 2)
        bench.upstream.fetches[0].answer(200, bench.fresh, "old")
        bench.upstream.fetches[1].answer(200, bench.fresh, "new")
        #expect(first.wholeBody == "old")
        #expect(second.wholeBody == "new")
        #expect(bench.perform().client.wholeBody == "new")
    }

    @Test("nor for one that a predicate covers; others are joined")
    func predicate() {
        let bench = Bench()
        bench.perform("/a")
        bench.perform("/b")
        bench.session.removeAll(in: .matching { $0.parts.uri.hasSuffix("/a") }) { _ in }
        bench.perform("/a")
        bench.perform("/b")
        #expect(bench.upstream.fetches.count == 3)
    }

    @Test("an unsafe method's success counts as a removal")
    func unsafe() {
        let bench = Bench()
        bench.perform()
        bench.perform(method: .post)
        bench.upstream.fetches[1].answer(200)
        bench.perform()
        #expect(bench.upstream.fetches.count == 3)
    }
}

@Suite("What is invalidated while it is still being stored is not joined")
struct InvalidationTests {
    private let bench = Bench(
        store: TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))), disk: SlowDisk()))

    @Test("by the answer to a HEAD (RFC 9111 §4.3.5)")
    func head() {
        self.bench.perform()
        self.bench.upstream.fetches[0].answer(200, self.bench.fresh, "hello")
        self.bench.perform(method: .head, ["Cache-Control": "no-cache"])
        self.bench.upstream.fetches[1].head(200, ["ETag": "\"b\""], length: .known(5))
        self.bench.upstream.fetches[1].finish()
        self.bench.perform()
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("by its group (RFC 9875 §3)")
    func group() {
        var fields = self.bench.fresh
        fields.append("Cache-Groups", "\"a\"")
        self.bench.perform()
        self.bench.upstream.fetches[0].answer(200, fields, "hello")
        self.bench.perform("/other", method: .post)
        self.bench.upstream.fetches[1].answer(200, ["Cache-Group-Invalidation": "\"a\""])
        self.bench.perform()
        #expect(self.bench.upstream.fetches.count == 3)
    }
}

@Suite("What is updated while its storing is still to be told is not joined as it was")
struct UpdateTests {
    private let store = LateStore()
    private let bench: Bench

    init() {
        self.bench = Bench(store: self.store)
        self.store.hurries()
        self.store.holdReports()
    }

    /// Stores what varies by one field, and has a request with another one validate it.
    private func update(_ method: LarderHTTP.Method, _ status: UInt16, _ fields: Fields) {
        var stored = self.bench.fresh
        stored.append("Vary", "X-A")
        self.bench.perform("/", ["X-A": "1"])
        self.bench.upstream.fetches[0].answer(200, stored, "hello")
        self.bench.perform(
            "/", method: method, ["X-A": "1", "X-B": "1", "Cache-Control": "no-cache"])
        self.bench.upstream.fetches[1].head(status, fields, length: .known(5))
        self.bench.upstream.fetches[1].finish()
    }

    @Test(
        "by a 304 that varies by more (RFC 9111 §4.3.4), however long the store takes",
        arguments: [true, false])
    func notModified(_ isTold: Bool) {
        self.update(.get, 304, ["Vary": "X-A, X-B", "ETag": "\"a\""])
        self.bench.perform("/", ["X-A": "1", "X-B": "2"])
        if isTold { self.store.giveReports() } else { self.bench.timers.fireAll() }
        #expect(self.bench.upstream.fetches.count == 3)
    }

    @Test("by the answer to a HEAD (RFC 9111 §4.3.5)")
    func head() {
        self.update(
            .head, 200,
            [
                "Vary": "X-A, X-B", "ETag": "\"a\"", "Cache-Control": "max-age=60",
                "Content-Length": "5",
            ])
        self.bench.perform("/", ["X-A": "1", "X-B": "2"])
        self.store.giveReports()
        #expect(self.bench.upstream.fetches.count == 3)
    }
}

@Suite("Memory of a filling is bounded by what it costs")
struct FillingMemoryTests {
    @Test("small pieces share a buffer")
    func gathered() {
        var body = FillingState(window: .kibibytes(64))
        let reader = body.addReader()
        for number in 0..<1000 {
            var piece = ByteBuffer()
            piece.reserveCapacity(16_384)
            piece.writeInteger(UInt8(truncatingIfNeeded: number))
            _ = body.append(piece)
            _ = body.demand()
        }
        var read: [UInt8] = []
        var pieces = 0
        while case .body(.piece(let piece)) = body.next(reader).step {
            read += piece.readableBytesView
            pieces += 1
        }
        #expect(read == (0..<1000).map { UInt8(truncatingIfNeeded: $0) })
        #expect(pieces == 1)
    }

    /// Takes bytes by the segment, as the disk's does, and keeps what is behind the last whole one.
    private final class SegmentSink: ObjectSink {
        static let size: UInt64 = 66_048

        func write(_ piece: ByteBuffer) {}
        func hurry() {}
        func commit(trailers: Fields) {}
        func keep(completeLength: UInt64?) {}
        func abandon() {}
        func reader(from offset: UInt64) -> (any BodySource)? { nil }
    }

    @Test(
        "a pause ends when the sink has all whole segments, whatever the sizes of the pieces",
        arguments: 1...20 as ClosedRange<UInt64>)
    func segments(seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        var body = FillingState(window: .kibibytes(256))
        body.becomesUnshared()
        body.begin(sink: SegmentSink(), readsBack: false)
        let reader = body.addReader()
        // The part begins in the midst of a segment.
        let before = UInt64.random(in: 0..<SegmentSink.size, using: &numbers)
        for _ in 0..<300 {
            let count = Int.random(in: 4_096...131_072, using: &numbers)
            _ = body.append(ByteBuffer(repeating: 1, count: count))
            guard body.demand() == .pause else { continue }
            var resumes = false
            while case (.body(.piece), let does) = body.next(reader) { resumes = resumes || does }
            let taken = (before + body.end) / SegmentSink.size * SegmentSink.size
            resumes = body.sinkWritten(taken - min(before, taken)) || resumes
            #expect(resumes)
        }
    }

    @Test("what only its own client may have is let go as it is read")
    func unshared() {
        var body = FillingState(window: .mebibytes(2))
        body.becomesUnshared()
        let reader = body.addReader()
        for _ in 0..<3 {
            _ = body.append(ByteBuffer(repeating: 1, count: 65_536))
            #expect(body.demand() == .more)
            _ = body.next(reader)
            #expect(body.base == body.end)
        }
        for _ in 0..<4 { _ = body.append(ByteBuffer(repeating: 1, count: 65_536)) }
        #expect(body.demand() == .pause)
    }
}
