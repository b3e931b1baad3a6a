import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderState
import LarderStore
import NIOCore
import Synchronization
import Testing

@testable import LarderEngine

@Suite("Transfers that their session owns")
struct TransferDeskTests {
    private let bench = TransferBench()

    @Test("a fetch goes on without its client, whatever is missing, and is over when it is stored")
    func goesOn() {
        let exchange = self.bench.perform()
        let fetch = self.bench.fetches[0]
        fetch.head(200, length: 4 << 20)
        fetch.piece(100_000)
        #expect(self.bench.desk.facts.map(\.activity) == [.running])
        #expect(self.bench.desk.facts.map(\.received) == [100_000])
        #expect(self.bench.desk.facts.map(\.length) == [4 << 20])
        exchange.cancel()
        #expect(!fetch.isCancelled)
        self.bench.timers.fireAll()
        fetch.piece((4 << 20) - 100_000)
        fetch.finish()
        #expect(self.bench.desk.facts.isEmpty)
        #expect(self.bench.ends == [.stored])
        #expect(self.bench.isStored())
    }

    @Test(
        "what is short, is not stored, or was asked for otherwise ends with its client",
        arguments: [
            (.get, [:], [:], 200, (1 << 20) - 1),
            (.get, [:], ["Cache-Control": "no-store"], 200, 4 << 20),
            (.get, ["Range": "bytes=0-"], [:], 206, 4 << 20),
            (.get, ["If-None-Match": "\"x\""], [:], 200, 4 << 20), (.head, [:], [:], 200, 4 << 20),
        ] as [(Method, Fields, Fields, UInt16, UInt64)])
    func others(
        _ method: Method, _ asked: Fields, _ fields: Fields, _ status: UInt16, _ length: UInt64
    ) {
        let exchange = self.bench.perform(method: method, asked)
        let fetch = self.bench.fetches[0]
        fetch.head(status, fields, length: length)
        #expect(self.bench.desk.facts.isEmpty)
        exchange.cancel()
        #expect(fetch.isCancelled || method == .head)
    }

    @Test("one whose client does not say who he is has no owner")
    func nobody() {
        let exchange = self.bench.perform(by: nil)
        self.bench.fetches[0].head(200, length: 4 << 20)
        exchange.cancel()
        #expect(self.bench.fetches[0].isCancelled && self.bench.desk.facts.isEmpty)
    }

    @Test("what broke off is gone on with after a pause, from where it did, under its validator")
    func resumes() {
        self.bench.breakOff()
        let now = self.bench.clock.now()
        #expect(
            self.bench.desk.facts.map(\.activity)
                == [.waiting(until: now + .seconds(1), cause: "the response broke off")])
        let count = self.bench.fetches.count
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == count + 1)
        let again = self.bench.fetches[count]
        #expect(again.request.fields.string("Range") == "bytes=1048576-2097151")
        #expect(again.request.fields.string("If-Range") == "\"a\"")
        #expect(again.request.fields.string("X-Own") == "1")
        again.head(
            206, ["Content-Range": "bytes 1048576-2097151/2097152"], length: 1 << 20)
        again.piece(1 << 20)
        again.finish()
        #expect(self.bench.desk.facts.isEmpty && self.bench.ends == [.stored])
        #expect(self.bench.isStored())
    }

    @Test("an origin that is down is asked again and again, one that says no is not")
    func answers() {
        self.bench.breakOff()
        self.bench.timers.fireAll()
        self.bench.fetches[1].fail(.connectionRefused)
        #expect(self.bench.waits == .seconds(2))
        self.bench.timers.fireAll()
        self.bench.fetches[2].answer(503, ["Retry-After": "90"])
        #expect(self.bench.waits == .seconds(90))
        self.bench.timers.fireAll()
        self.bench.fetches[3].answer(404)
        #expect(self.bench.desk.facts.isEmpty)
        #expect(self.bench.ends == [.answered(StatusCode(404))])
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 4)
    }

    @Test("who may not have it any more does not get it")
    func refused() {
        self.bench.desk.ask { requester, _ in
            requester.user == "alice" ? RequesterLeave() : nil
        }
        self.bench.breakOff()
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 1 && self.bench.desk.facts.isEmpty)
        guard case .refused? = self.bench.ends.first else {
            Issue.record("\(self.bench.ends)")
            return
        }
    }

    @Test("a client who asks for the same takes it over, and it is asked for once")
    func takenOver() {
        self.bench.breakOff()
        let begun = self.bench.desk.facts.map(\.deadline)
        self.bench.clock.advance(.seconds(100))
        let exchange = self.bench.perform()
        let gap = self.bench.fetches[1]
        gap.head(206, ["Content-Range": "bytes 1048576-2097151/2097152"], length: 1 << 20)
        #expect(self.bench.desk.facts.map(\.activity) == [.running])
        #expect(self.bench.desk.facts.map(\.deadline) == begun)
        exchange.cancel()
        #expect(!gap.isCancelled)
        gap.piece(1 << 20)
        gap.finish()
        // Looked for once more, it is stored.
        #expect(self.bench.fetches.count == 2)
        #expect(self.bench.desk.facts.isEmpty && self.bench.ends == [.stored])
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 2)
    }

    @Test("a new fetch of the same in whole takes the place of one that waits, not its time")
    func replaced() {
        self.bench.breakOff(tag: false)
        let deadline = self.bench.desk.facts.map(\.deadline)
        self.bench.clock.advance(.seconds(100))
        let exchange = self.bench.perform()
        self.bench.fetches[1].head(200, length: 2 << 20)
        exchange.cancel()
        #expect(self.bench.desk.facts.map(\.activity) == [.running])
        #expect(self.bench.desk.facts.map(\.deadline) == deadline)
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 2 && !self.bench.fetches[1].isCancelled)
    }

    @Test("one that is cancelled is asked for no more, and its fetch ends with its clients")
    func cancelled() {
        self.bench.breakOff()
        let id = self.bench.desk.facts.first?.id ?? 0
        #expect(self.bench.desk.cancel(id) && !self.bench.desk.cancel(id))
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 1)
        let exchange = self.bench.perform("/other")
        self.bench.fetches[1].head(200, length: 4 << 20)
        #expect(self.bench.desk.cancel(self.bench.desk.facts.first?.id ?? 0))
        exchange.cancel()
        #expect(self.bench.fetches[1].isCancelled)
        #expect(self.bench.ends == [.cancelled, .cancelled])
    }

    @Test("so many are asked for again at a time, the others in their turn")
    func turns() {
        let part = self.bench.part
        let kept = (0..<7).map { number in
            KeptTransfer(
                id: UInt64(number) + 1, uri: "http://origin.example/\(number)", fields: [:],
                begun: self.bench.clock.now(), requester: Requester(address: "192.0.2.1"))
        }
        self.bench.desk.takeUp(kept, in: part)
        #expect(self.bench.fetches.map(\.request.uri.pathAndQuery) == ["/0", "/1", "/2", "/3"])
        #expect(self.bench.desk.facts.count { $0.activity == .queued } == 3)
        self.bench.fetches[1].answer(404)
        self.bench.fetches[0].answer(503)
        #expect(self.bench.fetches.count == 6)
        #expect(self.bench.desk.cancel(3))
        #expect(self.bench.fetches.count == 7)
        #expect(self.bench.desk.facts.count { $0.activity == .queued } == 0)
    }

    @Test(
        "as many as there may be that are stored already end one after the other, not inside each other"
    )
    func stored() {
        let paths = (0..<TransferDesk.limit).map { "/\($0)" }
        for path in paths {
            self.bench.perform(path)
            self.bench.fetches.last?.answer(200)
        }
        let count = self.bench.fetches.count
        self.bench.desk.takeUp(
            paths.enumerated().map { number, path in
                KeptTransfer(
                    id: UInt64(number) + 1, uri: "http://origin.example\(path)",
                    fields: ["X-Own": "1"], begun: self.bench.clock.now(),
                    requester: Requester(address: "192.0.2.1"))
            }, in: self.bench.part)
        #expect(self.bench.desk.facts.isEmpty && self.bench.fetches.count == count)
        #expect(self.bench.ends == paths.map { _ in .stored })
    }

    @Test("of one URL those are taken up whose clients sent other fields")
    func variants() {
        let kept = (1...3).map { number in
            KeptTransfer(
                id: UInt64(number), uri: "http://origin.example/",
                fields: ["Accept-Encoding": number == 1 ? "gzip" : "identity"],
                begun: self.bench.clock.now(), requester: Requester(address: "192.0.2.1"))
        }
        self.bench.desk.takeUp(kept, in: self.bench.part)
        #expect(self.bench.desk.facts.map(\.id) == [1, 2])
    }

    @Test("of those that were written down too long ago nothing is asked")
    func tooOld() {
        self.bench.desk.takeUp(
            [
                KeptTransfer(
                    id: 1, uri: "http://origin.example/", fields: [:],
                    begun: self.bench.clock.now() - TransferDesk.patience,
                    requester: Requester(address: "192.0.2.1")),
                KeptTransfer(
                    id: 2, uri: "not a target", fields: [:], begun: self.bench.clock.now(),
                    requester: Requester(address: "192.0.2.1")),
            ], in: self.bench.part)
        #expect(self.bench.fetches.isEmpty && self.bench.desk.facts.isEmpty)
        #expect(self.bench.ends.count == 2)
    }

    @Test("what may not be stored any more is not read at all")
    func notKept() {
        self.bench.breakOff(tag: false)
        self.bench.timers.fireAll()
        self.bench.fetches[1].head(200, ["Cache-Control": "no-store"], length: 2 << 20)
        #expect(self.bench.fetches[1].isCancelled && self.bench.desk.facts.isEmpty)
        #expect(self.bench.ends == [.notKept("it may not be stored any more")])
    }

    @Test(
        "what does not come farther than before is asked for ever more seldom",
        arguments: [true, false])
    func noFarther(_ tag: Bool) {
        self.bench.breakOff(tag: tag)
        for pause in [2, 4, 8, 16] {
            self.bench.timers.fireAll()
            guard let fetch = self.bench.fetches.last else { return }
            if tag {
                fetch.head(
                    206, ["Content-Range": "bytes 1048576-2097151/2097152"], length: 1 << 20)
            } else {
                fetch.head(200, ["ETag": "W/\"a\""], length: 2 << 20)
                fetch.piece(1 << 20)
            }
            self.bench.failAll()
            #expect(self.bench.waits == .seconds(pause))
        }
        self.bench.timers.fireAll()
        if tag {
            self.bench.fetches.last?.head(
                206, ["Content-Range": "bytes 1048576-2097151/2097152"], length: 1 << 20)
            self.bench.fetches.last?.piece(10)
        } else {
            self.bench.fetches.last?.head(200, ["ETag": "W/\"a\""], length: 2 << 20)
            self.bench.fetches.last?.piece((1 << 20) + 10)
        }
        self.bench.failAll()
        #expect(self.bench.waits == .seconds(1), "it came ten bytes farther")
    }

    @Test("what ends within a second is no news, whether its length was known or not")
    func atOnce() {
        for (path, length) in [("/a", 2 << 20), ("/b", nil)] as [(String, UInt64?)] {
            self.bench.perform(path)
            guard let fetch = self.bench.fetches.last else { return }
            fetch.head(200, length: length)
            fetch.piece(2 << 20)
            #expect(self.bench.desk.facts.count == 1)
            fetch.finish()
        }
        self.bench.timers.fireAll()
        #expect(self.bench.desk.facts.isEmpty && self.bench.ends.isEmpty)
    }

    @Test("one that is stored whole and stale is complete when its origin confirms that")
    func validated() {
        self.bench.perform()
        self.bench.fetches[0].head(
            200, ["Cache-Control": "max-age=0"], length: 2 << 20)
        self.bench.fetches[0].piece(2 << 20)
        self.bench.fetches[0].finish()
        self.bench.desk.takeUp(
            [
                KeptTransfer(
                    id: 1, uri: "http://origin.example/", fields: ["X-Own": "1"],
                    begun: self.bench.clock.now(), requester: Requester(address: "192.0.2.1"))
            ], in: self.bench.part)
        self.bench.fetches[1].head(304, ["Cache-Control": "max-age=0"], length: 0)
        self.bench.fetches[1].finish()
        #expect(self.bench.ends == [.stored] && self.bench.desk.facts.isEmpty)
    }

    @Test("a client that leaves while the head is being seen to leaves it all the same")
    func leavesEarly() {
        let held = Mutex<(any Exchange)?>(nil)
        // Between the head and the clients' hearing of it.
        self.bench.timers.onSchedule { held.withLock { $0 }?.cancel() }
        let exchange = self.bench.perform()
        held.withLock { $0 = exchange }
        let fetch = self.bench.fetches[0]
        fetch.head(200, length: 2 << 20)
        #expect(!fetch.isCancelled)
        fetch.piece(2 << 20)
        fetch.finish()
        #expect(self.bench.isStored() && self.bench.desk.facts.isEmpty)
    }

    @Test("the time for the whole goes on from the first request, also after a restart")
    func time() async throws {
        self.bench.breakOff(tag: false)
        let begun = self.bench.desk.facts.map(\.begun)
        self.bench.clock.advance(.seconds(100))
        self.bench.perform()
        self.bench.fetches[1].head(200, length: 2 << 20)
        #expect(self.bench.desk.facts.map(\.begun) == begun && begun.count == 1)
    }

    @Test("an offline session asks no origin for one, and keeps it")
    func offline() {
        self.bench.breakOff()
        var configuration = SessionConfiguration()
        configuration.cachePolicy = .returnCacheDontLoad
        self.bench.part.session.follow(configuration)
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 1 && self.bench.waits == .seconds(2))
        self.bench.part.session.follow(SessionConfiguration())
        self.bench.timers.fireAll()
        #expect(self.bench.fetches.count == 2)
    }

    @Test(
        "one that is cancelled while it is looked whether it may be had leaves its place to others")
    func places() {
        let desk = self.bench.desk
        desk.ask { _, uri in
            if uri.pathAndQuery.count == 2 {
                _ = desk.cancel(UInt64(uri.pathAndQuery.dropFirst()) ?? 0)
            }
            return RequesterLeave()
        }
        desk.takeUp(
            (1...9).map(self.kept) + [self.kept(10), self.kept(11)], in: self.bench.part)
        let asked = self.bench.fetches.filter { !$0.isCancelled }
        #expect(asked.map(\.request.uri.pathAndQuery) == ["/10", "/11"])
        #expect(desk.facts.map(\.activity) == [.running, .running])
        for number in 12...15 { desk.takeUp([self.kept(number)], in: self.bench.part) }
        #expect(desk.facts.count { $0.activity == .running } == TransferDesk.concurrency)
    }

    @Test("until it can be asked who may have what, nothing is asked for")
    func closed() {
        let bench = TransferBench(asks: false)
        bench.desk.takeUp([self.kept(1)], in: bench.part)
        #expect(bench.fetches.isEmpty)
        bench.desk.ask { _, _ in RequesterLeave() }
        #expect(bench.fetches.count == 1)
    }

    @Test("one client has no more than its share of them")
    func share() {
        for number in 0..<TransferDesk.share {
            self.bench.perform("/\(number)")
            self.bench.fetches.last?.head(200, length: 2 << 20)
        }
        self.bench.perform("/more").cancel()
        let exchange = self.bench.perform("/more")
        self.bench.fetches.last?.head(200, length: 2 << 20)
        exchange.cancel()
        #expect(self.bench.fetches.last?.isCancelled == true)
        self.bench.perform("/other", by: Requester(address: "192.0.2.2"))
        self.bench.fetches.last?.head(200, length: 2 << 20)
        #expect(self.bench.desk.facts.count == TransferDesk.share + 1)
    }

    private func kept(_ number: Int) -> KeptTransfer {
        KeptTransfer(
            id: UInt64(number), uri: "http://origin.example/\(number)", fields: ["X-Own": "1"],
            begun: self.bench.clock.now(), requester: Requester(address: "192.0.2.1"))
    }

    @Test("a removal of what arrives ends its transfer")
    func removed() {
        let exchange = self.bench.perform()
        self.bench.fetches[0].head(200, length: 2 << 20)
        exchange.cancel()
        let key = CacheKey(method: .get, uri: self.bench.fetches[0].request.uri)
        self.bench.part.session.remove(key)
        self.bench.fetches[0].piece(2 << 20)
        self.bench.fetches[0].finish()
        #expect(self.bench.desk.facts.isEmpty)
        #expect(self.bench.ends == [.notKept("removed-meanwhile")])
    }
}

/// A background session with everything around it scripted, but for the memory store.
struct TransferBench {
    let upstream = OriginOfTransfers()
    let clock = StandingClock()
    let timers = ManualTimers()
    let desk: TransferDesk
    let part: PrincipalSession
    private let told = Told()

    private final class Told: Sendable {
        let events = Mutex<[TransferEnd]>([])
    }

    init(asks: Bool = true) {
        let told = self.told
        self.desk = TransferDesk(
            clock: self.clock, timers: self.timers, journal: nil
        ) { event in
            if case .ended(_, let end) = event { told.events.withLock { $0.append(end) } }
        }
        let credentials = SessionCredentials(
            CredentialStore(keepsPermanent: false), hasher: CryptoHasher())
        let session = Session(
            configuration: SessionConfiguration(finishAfterClientLeft: ByteCount(0)),
            store: MemoryStore(
                MemoryConfiguration(capacity: .mebibytes(64), maximumObject: .mebibytes(16))),
            upstream: self.upstream, clock: self.clock, timers: self.timers)
        self.part = PrincipalSession(
            principal: "", session: session, cookies: nil, credentials: credentials,
            desk: self.desk)
        self.part.begin()
        if asks { self.desk.ask { _, _ in RequesterLeave() } }
    }

    var fetches: [OriginOfTransfers.Fetch] { self.upstream.fetches.withLock { $0 } }
    var ends: [TransferEnd] { self.told.events.withLock { $0 } }

    @discardableResult
    func perform(
        _ path: String = "/", method: Method = .get, _ fields: Fields = ["X-Own": "1"],
        by requester: Requester? = Requester(address: "192.0.2.1")
    ) -> any Exchange {
        var options = ExchangeOptions()
        options.requester = requester
        let request = Request(
            method: method,
            uri: TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path),
            fields: fields)
        return self.part.perform(
            request, body: nil, options: options,
            client: TransferReading(clock: self.clock) { _ in })
    }

    /// Has one break off in the middle of 2 MiB.
    func breakOff(tag: Bool = true) {
        let exchange = self.perform()
        let fetch = self.fetches[0]
        fetch.head(200, tag ? [:] : ["ETag": "W/\"a\""], length: 2 << 20)
        exchange.cancel()
        fetch.piece(1 << 20)
        fetch.fail()
    }

    /// Has the last fetch fail, and those by which it is gone on with at once.
    func failAll() {
        for _ in 0..<4 where self.waits == nil { self.fetches.last?.fail() }
    }

    /// How long the only one waits.
    var waits: Duration? {
        guard case .waiting(let until, _)? = self.desk.facts.first?.activity else { return nil }
        return until - self.clock.now()
    }

    func isStored(_ path: String = "/") -> Bool {
        let uri = TargetURI(scheme: .http, host: "origin.example", pathAndQuery: path)
        let isStored = Mutex(false)
        self.part.session.holds(Request(method: .get, uri: uri)) { holds in
            isStored.withLock { $0 = holds }
        }
        return isStored.withLock { $0 }
    }
}

/// An upstream whose origin is the test.
final class OriginOfTransfers: Upstream {
    final class Fetch: UpstreamFetch {
        let request: Request
        private let receiver: any UpstreamReceiver
        private let cancelled = Atomic(false)

        init(_ request: Request, _ receiver: any UpstreamReceiver) {
            self.request = request
            self.receiver = receiver
        }

        var isCancelled: Bool { self.cancelled.load(ordering: .relaxed) }
        func resume() {}
        func cancel() { self.cancelled.store(true, ordering: .relaxed) }

        /// - Parameter fields: beside, or in place of, those of what may be stored under a validator.
        func head(_ status: UInt16, _ fields: Fields = Fields(), length: UInt64?) {
            var all: Fields = ["Cache-Control": "max-age=600", "ETag": "\"a\""]
            for line in fields.lines {
                all.remove(FieldName(String(decoding: fields.name(of: line), as: UTF8.self)))
            }
            all.append(contentsOf: fields)
            _ = self.receiver.upstream(
                head: ResponseHead(status: StatusCode(status), fields: all),
                bodyLength: length.map { .known($0) } ?? .unknown,
                connection: UpstreamConnectionFacts(remoteAddress: "192.0.2.9:80"))
        }

        func piece(_ bytes: Int) {
            _ = self.receiver.upstream(piece: ByteBuffer(repeating: 0x61, count: bytes))
        }

        func finish() {
            if !self.isCancelled { self.receiver.upstream(finished: Fields()) }
        }

        func fail(_ kind: UpstreamFailure.Kind = .connectionTerminated) {
            self.receiver.upstream(failed: UpstreamFailure(kind, detail: "scripted"))
        }

        func answer(_ status: UInt16, _ fields: Fields = Fields()) {
            var fields = fields
            if status >= 300 { fields.append("Cache-Control", "no-store") }
            self.head(status, fields, length: 0)
            self.finish()
        }
    }

    let fetches = Mutex<[Fetch]>([])

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        let fetch = Fetch(request, receiver)
        self.fetches.withLock { $0.append(fetch) }
        return fetch
    }
}

/// A clock that stands still until the test moves it.
final class StandingClock: WallClock {
    private let time = Mutex(Timestamp(seconds: 1_800_000_000))

    func now() -> Timestamp { self.time.withLock { $0 } }

    func advance(_ duration: Duration) { self.time.withLock { $0 = $0 + duration } }
}

/// Timers that fire when the test says so.
final class ManualTimers: Timers {
    private final class Token: TimerToken {
        let work: Mutex<(@Sendable () -> Void)?>

        init(_ work: @escaping @Sendable () -> Void) { self.work = Mutex(work) }

        func cancel() { self.work.withLock { $0 = nil } }
    }

    private let tokens = Mutex<[Token]>([])
    private let hook = Mutex<(@Sendable () -> Void)?>(nil)

    /// What is to happen while the next one is scheduled.
    func onSchedule(_ work: @escaping @Sendable () -> Void) { self.hook.withLock { $0 = work } }

    func schedule(
        after delay: Duration, _ work: @escaping @Sendable () -> Void
    ) -> any TimerToken {
        self.hook.withLock { $0.take() }?()
        let token = Token(work)
        self.tokens.withLock { $0.append(token) }
        return token
    }

    /// Fires all that were scheduled and not cancelled.
    func fireAll() {
        let due = self.tokens.withLock { tokens in
            defer { tokens = [] }
            return tokens
        }
        for token in due { token.work.withLock { $0.take() }?() }
    }
}
