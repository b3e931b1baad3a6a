import LarderHTTP
import LarderStore
import NIOCore
import Testing

@testable import LarderSession

@Suite("A reader for whom others wait")
struct LaggardTests {
    /// What the store does for those who lag.
    enum Store: Sendable {
        case none
        case taking(UInt64, readsBack: Bool)
        case ended(UInt64)
    }

    /// Readers of a body with a window of 16 KiB, and how often each has asked for the next piece.
    struct Case: Sendable {
        var store = Store.none
        var pieces = [10_000, 10_000]
        let asked: [Int]
        let laggards: [UInt64: UInt64]
        /// The store keeps a reader waiting, too.
        var isStoreBehind = false
    }

    private final class Sink: ObjectSink {
        func write(_ piece: ByteBuffer) {}
        func hurry() {}
        func commit(trailers: Fields) {}
        func keep(completeLength: UInt64?) {}
        func abandon() {}
        func reader(from offset: UInt64) -> (any BodySource)? { nil }
    }

    private static func body(_ c: Case) -> FillingState {
        var body = FillingState(window: .kibibytes(16))
        switch c.store {
        case .none: break
        case .taking(_, let readsBack): body.begin(sink: Sink(), readsBack: readsBack)
        case .ended: body.begin(sink: Sink(), readsBack: true)
        }
        let readers = c.asked.map { _ in body.addReader() }
        for count in c.pieces {
            _ = body.append(ByteBuffer(repeating: 1, count: count))
            _ = body.demand()
        }
        switch c.store {
        case .none: break
        case .taking(let written, _): _ = body.sinkWritten(written)
        case .ended(let written):
            _ = body.sinkWritten(written)
            _ = body.stopSink()
        }
        for (reader, count) in zip(readers, c.asked) {
            for _ in 0..<count { _ = body.next(reader) }
        }
        return body
    }

    @Test(
        "is one alone that keeps the origin waiting, while another has all that came",
        arguments: [
            Case(asked: [0, 3], laggards: [0: 0]), Case(asked: [1, 3], laggards: [0: 10_000]),
            Case(asked: [0, 1, 3], laggards: [0: 0, 1: 10_000]),
            // Nobody waits, there is nobody else, or the origin goes on.
            Case(asked: [0, 2], laggards: [:]), Case(asked: [0], laggards: [:]),
            Case(asked: [3, 3], laggards: [:]), Case(pieces: [8000], asked: [0, 2], laggards: [:]),
            Case(pieces: [12_000, 8000], asked: [1, 3], laggards: [:]),
            // What the store gives back holds up nobody; a store that is behind itself has its own time.
            Case(store: .taking(20_000, readsBack: true), asked: [0, 3], laggards: [:]),
            Case(
                store: .taking(0, readsBack: false), asked: [0, 3], laggards: [:],
                isStoreBehind: true),
            Case(
                store: .taking(0, readsBack: true), asked: [0, 3], laggards: [:],
                isStoreBehind: true),
            Case(
                store: .taking(5000, readsBack: false), asked: [0, 3], laggards: [:],
                isStoreBehind: true),
            Case(
                store: .taking(10_000, readsBack: false), asked: [1, 3], laggards: [:],
                isStoreBehind: true),
            Case(
                store: .taking(0, readsBack: false), asked: [1, 3], laggards: [:],
                isStoreBehind: true),
            Case(store: .taking(0, readsBack: false), asked: [0, 0], laggards: [:]),
            Case(store: .taking(12_000, readsBack: false), asked: [0, 3], laggards: [0: 0]),
            Case(store: .taking(20_000, readsBack: false), asked: [0, 3], laggards: [0: 0]),
            Case(store: .ended(0), asked: [0, 3], laggards: [0: 0]),
            Case(store: .ended(20_000), asked: [0, 3], laggards: [:]),
        ])
    func laggards(_ c: Case) {
        var body = Self.body(c)
        #expect(body.laggards == c.laggards)
        #expect(body.isHeldUpBySink == c.isStoreBehind)
        let isHurried = body.sinkToHurry() != nil
        #expect(isHurried || !c.isStoreBehind)
    }

    @Test(
        "is left behind where it has not begun and the store gives nothing back",
        arguments: [true, false])
    func leftBehind(beginsFirst: Bool) {
        var body = FillingState(window: .kibibytes(16))
        body.begin(sink: Sink(), readsBack: true)
        body.readersBeginLate = true
        let (late, keen, unmade) = (body.addReader(), body.addReader(), body.addReader())
        if beginsFirst { _ = body.begin(keen) }
        for _ in 0..<2 {
            _ = body.append(ByteBuffer(repeating: 1, count: 10_000))
            _ = body.demand()
        }
        #expect(body.isPaused)
        var resumes = body.stopSink()
        #expect(!resumes)
        if !beginsFirst { _ = body.begin(keen) }
        for _ in 0..<3 { resumes = body.next(keen).resumes || resumes }
        #expect(resumes && body.base == body.end)
        let (mayRead, _) = body.begin(late)
        #expect(!mayRead)
        resumes = body.removeReader(unmade)
        #expect(!resumes)
        #expect(body.readers.map(\.id) == [keen])
    }

    @Test("is not left behind where the store has all of it")
    func stored() {
        var body = FillingState(window: .kibibytes(16))
        body.begin(sink: Sink(), readsBack: true)
        body.readersBeginLate = true
        let (late, keen) = (body.addReader(), body.addReader())
        _ = body.begin(keen)
        _ = body.append(ByteBuffer(repeating: 1, count: 10_000))
        _ = body.sinkWritten(10_000)
        _ = body.stopSink(isWhole: true)
        let (mayRead, _) = body.begin(late)
        #expect(mayRead)
    }

    @Test("is not left behind while the store gives back, nor where nobody else has begun")
    func notLeftBehind() {
        var body = FillingState(window: .kibibytes(16))
        body.begin(sink: Sink(), readsBack: true)
        body.readersBeginLate = true
        let (late, other) = (body.addReader(), body.addReader())
        _ = body.append(ByteBuffer(repeating: 1, count: 10_000))
        _ = body.begin(late)
        #expect(body.readers.count == 2)
        _ = body.removeReader(late)
        _ = body.stopSink()
        #expect(body.readers.map(\.id) == [other])
        let (mayRead, _) = body.begin(other)
        #expect(mayRead)
    }

    @Test("loses the rest when it is cut off, and the origin goes on")
    func cutOff() {
        var body = Self.body(Case(asked: [0, 3], laggards: [0: 0]))
        let resumes = body.cutOff([0])
        #expect(resumes)
        #expect(body.base == body.end)
        guard case .body(.failed(.client)) = body.next(0).step else {
            Issue.record("it reads on")
            return
        }
    }

    /// A bench whose store has given up, and three clients that share what follows: the first has
    /// taken nothing, the others all.
    private static func shared(
        _ role: SessionConfiguration.Role = .intermediary
    ) throws -> (bench: Bench, slow: RecordingClient, others: [RecordingClient]) {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16), role: role)
        let slow = bench.perform().client
        let others = (0..<2).map { _ in bench.perform().client }
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        try #require(disk.sinks.first).abandon()
        #expect(fetch.piece(bytes: 8000) == .more)
        #expect(fetch.piece(bytes: 10_000) == .pause)
        for other in others { #expect(other.read().text.count == 18_000) }
        #expect(fetch.resumed == 0)
        return (bench, slow, others)
    }

    @Test("that takes nothing until its time is over loses the rest, which the others get")
    func stands() throws {
        let (bench, slow, others) = try Self.shared()
        let fetch = bench.upstream.fetches[0]
        bench.timers.fireAll()
        #expect(fetch.resumed == 1)
        #expect(bench.session.counters().clientsCutOff == 1)
        fetch.piece(bytes: 1000)
        fetch.finish()
        for other in others { #expect(other.wholeBody?.count == 1000) }
        let (text, last) = slow.read()
        #expect(text.isEmpty)
        guard case .failed(.client)? = last else {
            Issue.record("\(String(describing: last))")
            return
        }
    }

    @Test("has its time when a store that takes nothing either has been hurried and given up")
    func behindStore() throws {
        let disk = SlowDisk()
        let bench = Bench(store: disk, window: .kibibytes(16))
        let slow = bench.perform().client
        let other = bench.perform().client
        let fetch = bench.upstream.fetches[0]
        fetch.head(200, bench.fresh)
        let sink = try #require(disk.sinks.first)
        #expect(fetch.piece(bytes: 8000) == .more)
        #expect(fetch.piece(bytes: 10_000) == .pause)
        #expect(other.read().text.count == 18_000)
        #expect(sink.hurries == 1)
        bench.timers.fireAll()
        #expect(sink.isAbandoned)
        #expect(bench.session.counters().storesTooSlow == 1)
        #expect(fetch.resumed == 0)
        bench.timers.fireAll()
        #expect(fetch.resumed == 1)
        #expect(bench.session.counters().clientsCutOff == 1)
        fetch.piece(bytes: 1000)
        fetch.finish()
        #expect(other.wholeBody?.count == 1000)
        guard case .failed(.client)? = slow.read().last else {
            Issue.record("it reads on")
            return
        }
    }

    @Test("that takes something has its time anew")
    func moves() throws {
        let (bench, slow, others) = try Self.shared()
        let fetch = bench.upstream.fetches[0]
        guard case .source(let source)? = slow.answer?.body, case .piece = source.next() else {
            Issue.record("the slow one has nothing to read")
            return
        }
        bench.timers.fireAll()
        #expect(fetch.resumed == 0)
        #expect(slow.read().text.count == 10_000)
        #expect(fetch.resumed == 1)
        bench.timers.fireAll()
        #expect(bench.session.counters().clientsCutOff == 0)
        fetch.piece(bytes: 1000)
        fetch.finish()
        for client in [slow] + others { #expect(client.wholeBody?.count == 1000) }
    }

    @Test("is waited for where it is a program's own task, which may rest")
    func rests() throws {
        let (bench, slow, _) = try Self.shared(.userAgent)
        bench.timers.fireAll()
        bench.timers.fireAll()
        #expect(bench.upstream.fetches[0].resumed == 0)
        #expect(slow.read().text.count == 18_000)
        #expect(bench.upstream.fetches[0].resumed == 1)
    }
}
