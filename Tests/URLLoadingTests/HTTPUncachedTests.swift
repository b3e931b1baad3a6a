import LarderEngine
import LarderHTTP
import LarderSession
import NIOCore
import Synchronization
import Testing

@testable import URLLoading

/// What a request past the cache makes of what its upstream says.
@Suite("Exchanges past the cache")
struct HTTPUncachedTests {
    private let upstream = HeldUpstream()
    private let client = NotedClient()

    private func begin(_ method: Method = .get) -> UncachedExchange {
        let uri = TargetURI(scheme: .http, host: "origin", port: 80, pathAndQuery: "/")
        let exchange = UncachedExchange(
            Request(method: method, uri: uri), cookies: nil, clock: SystemClock(),
            client: self.client)
        exchange.begin(by: self.upstream)
        return exchange
    }

    private func head(_ length: BodyLength, _ receiver: (any UpstreamReceiver)?) {
        _ = receiver?.upstream(
            head: ResponseHead(status: .ok), bodyLength: length,
            connection: UpstreamConnectionFacts())
    }

    @Test("give a response that came as a whole in one piece, at once")
    func whole() {
        let exchange = self.begin()
        let receiver = self.upstream.receiver
        #expect(receiver?.takesWholeResponses == true)
        #expect(receiver?.mayBeAnsweredAtOnce == false)
        receiver?.upstream(
            whole: WholeResponse(
                head: ResponseHead(status: .ok), bodyLength: .known(3),
                connection: UpstreamConnectionFacts(), body: ByteBuffer(string: "abc")))
        guard case .resident(let bytes) = self.client.answer?.body else {
            Issue.record("not resident: \(String(describing: self.client.answer))")
            return
        }
        #expect(String(buffer: bytes) == "abc")
        exchange.cancel()
        #expect(self.upstream.cancels == 0)
        #expect(self.client.calls == ["answered"])
    }

    @Test("read ahead by a window, and go on when half of it is read")
    func window() {
        let exchange = self.begin()
        let receiver = self.upstream.receiver
        self.head(.unknown, receiver)
        let piece = ByteBuffer(repeating: 0x78, count: 65_536)
        let demands = (0..<4).map { _ in receiver?.upstream(piece: piece) }
        #expect(demands == [.more, .more, .more, .pause])
        exchange.attach {}
        for resumes in [0, 1, 1, 1] {
            guard case .piece(let read) = exchange.next() else {
                Issue.record("no piece")
                return
            }
            #expect(read.readableBytes == 65_536)
            #expect(self.upstream.resumes == resumes)
        }
        guard case .pending = exchange.next() else {
            Issue.record("not pending")
            return
        }
        receiver?.upstream(finished: Fields())
        guard case .end = exchange.next() else {
            Issue.record("no end")
            return
        }
    }

    @Test("keep nothing of what was read, also for a reader that never quite catches up")
    func letsGo() {
        let exchange = self.begin()
        let receiver = self.upstream.receiver
        self.head(.unknown, receiver)
        exchange.attach {}
        let piece = ByteBuffer(repeating: 0x78, count: 8_192)
        for _ in 0..<4 { _ = receiver?.upstream(piece: piece) }
        var (mostBytes, mostPlaces) = (0, 0)
        for _ in 0..<5_000 {
            _ = receiver?.upstream(piece: piece)
            _ = exchange.next()
            let holding = exchange.holding
            mostBytes = max(mostBytes, holding.bytes)
            mostPlaces = max(mostPlaces, holding.places)
        }
        #expect(mostBytes == 4 * 8_192)
        #expect(mostPlaces < 64)
    }

    @Test("gather small pieces, which would keep their whole allocations")
    func small() {
        let exchange = self.begin()
        let receiver = self.upstream.receiver
        self.head(.unknown, receiver)
        let demands = (0..<100_000).map { index in
            receiver?.upstream(piece: ByteBuffer(bytes: [UInt8(index % 251)]))
        }
        #expect(demands.allSatisfy { $0 == .more })
        receiver?.upstream(finished: Fields())
        exchange.attach {}
        var (pieces, bytes): (Int, [UInt8]) = (0, [])
        while case .piece(let piece) = exchange.next() {
            pieces += 1
            bytes += piece.readableBytesView
        }
        #expect(pieces <= 4)
        #expect(bytes == (0..<100_000).map { UInt8($0 % 251) })
    }

    @Test("wake a reader that waits, once, and tell it how a body ended")
    func waking() {
        let exchange = self.begin()
        let receiver = self.upstream.receiver
        self.head(.known(9), receiver)
        let wakes = Count()
        exchange.attach { wakes.add() }
        _ = receiver?.upstream(piece: ByteBuffer(string: "a"))
        #expect(wakes.value == 0)
        _ = exchange.next()
        guard case .pending = exchange.next() else {
            Issue.record("not pending")
            return
        }
        _ = receiver?.upstream(piece: ByteBuffer(string: "b"))
        receiver?.upstream(failed: UpstreamFailure(.connectionTerminated, detail: "cut"))
        #expect(wakes.value == 1)
        _ = exchange.next()
        guard case .failed(.upstream(let failure)) = exchange.next() else {
            Issue.record("no failure")
            return
        }
        #expect(failure.kind == .connectionTerminated)
        #expect(self.client.calls == ["answered"])
    }

    @Test("fail before the head with the name of the host")
    func failure() {
        _ = self.begin()
        self.upstream.receiver?.upstream(
            failed: UpstreamFailure(.connectionRefused, detail: "refused"))
        #expect(self.client.calls == ["failed"])
        #expect(self.client.failure?.nextHop == "origin")
    }

    @Test("announce what a HEAD says, and have no body")
    func bodyless() {
        _ = self.begin(.head)
        var head = ResponseHead(status: .ok)
        head.fields.append("Content-Length", "7")
        _ = self.upstream.receiver?.upstream(
            head: head, bodyLength: .none, connection: UpstreamConnectionFacts())
        #expect(self.client.answer?.bodyLength == .known(7))
        guard case Answer.Body.none? = self.client.answer?.body else {
            Issue.record("a body")
            return
        }
    }

    @Test("end with their cancellation: the upstream's too, and nobody hears more")
    func cancelled() {
        let early = self.begin()
        early.cancel()
        early.cancel()
        self.head(.known(1), self.upstream.receiver)
        #expect(self.upstream.cancels == 1)
        #expect(self.client.calls.isEmpty)

        let late = self.begin()
        self.head(.known(2), self.upstream.receiver)
        late.attach {}
        _ = self.upstream.receiver?.upstream(piece: ByteBuffer(string: "a"))
        late.cancel()
        #expect(self.upstream.cancels == 2)
        guard case .failed(.cancelled) = late.next() else {
            Issue.record("not cancelled")
            return
        }
        #expect(self.upstream.receiver?.upstream(piece: ByteBuffer(string: "b")) == .pause)
    }
}

/// Keeps the receiver for the test.
private final class HeldUpstream: Upstream, UpstreamFetch {
    private struct State {
        var receiver: (any UpstreamReceiver)?
        var resumes = 0
        var cancels = 0
    }

    private let state = Mutex(State())

    var receiver: (any UpstreamReceiver)? { self.state.withLock { $0.receiver } }
    var resumes: Int { self.state.withLock { $0.resumes } }
    var cancels: Int { self.state.withLock { $0.cancels } }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        self.state.withLock { $0.receiver = receiver }
        return self
    }

    func resume() { self.state.withLock { $0.resumes += 1 } }
    func cancel() { self.state.withLock { $0.cancels += 1 } }
}

private final class Count: Sendable {
    private let count = Atomic(0)

    var value: Int { self.count.load(ordering: .relaxed) }

    func add() { self.count.wrappingAdd(1, ordering: .relaxed) }
}

/// Writes down what it hears.
private final class NotedClient: ExchangeClient {
    private struct State {
        var calls: [String] = []
        var answer: Answer?
        var failure: ExchangeFailure?
    }

    private let state = Mutex(State())

    var calls: [String] { self.state.withLock { $0.calls } }
    var answer: Answer? { self.state.withLock { $0.answer } }
    var failure: ExchangeFailure? { self.state.withLock { $0.failure } }

    func exchange(informational head: ResponseHead) {
        self.state.withLock { $0.calls.append("informational") }
    }

    func exchange(answered answer: Answer) {
        self.state.withLock { state in
            state.calls.append("answered")
            state.answer = answer
        }
    }

    func exchange(failed failure: ExchangeFailure) {
        self.state.withLock { state in
            state.calls.append("failed")
            state.failure = failure
        }
    }
}
