import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

@testable import LarderProxy

/// One exchange as a scripted session sees it.
final class ScriptedExchange: Exchange {
    let request: Request
    let body: (any BodySource)?
    let options: ExchangeOptions
    let client: any ExchangeClient
    let isCancelled = Event(false)

    init(
        _ request: Request, _ body: (any BodySource)?, _ options: ExchangeOptions,
        _ client: any ExchangeClient
    ) {
        self.request = request
        self.body = body
        self.options = options
        self.client = client
    }

    func cancel() { self.isCancelled.change { $0 = true } }

    func answer(
        _ status: UInt16 = 200, _ fields: Fields = ["Content-Type": "text/plain"],
        _ text: String = "hello", length: BodyLength? = nil
    ) {
        let body = ByteBuffer(string: text)
        self.client.exchange(
            answered: Answer(
                head: ResponseHead(status: StatusCode(status), fields: fields),
                bodyLength: length ?? .known(UInt64(body.readableBytes)), body: .resident(body),
                cacheStatus: CacheStatus(hit: true)))
    }

    func answer(from source: any BodySource, length: BodyLength = .unknown, _ status: UInt16 = 200)
    {
        self.client.exchange(
            answered: Answer(
                head: ResponseHead(status: StatusCode(status)), bodyLength: length,
                body: .source(source), cacheStatus: CacheStatus(forward: .miss)))
    }

    /// Reads the request's content to its end.
    func content() async throws -> (text: String, trailers: Fields) {
        guard let body = self.body else { return ("", Fields()) }
        let woken = Event(0)
        body.attach { woken.change { $0 += 1 } }
        var bytes: [UInt8] = []
        var wakes = 0
        while true {
            switch body.next() {
            case .piece(let piece): bytes += Array(buffer: piece)
            case .pending:
                let before = wakes
                wakes = try await woken.wait(for: "more content") { $0 > before }
            case .end(let trailers): return (String(decoding: bytes, as: UTF8.self), trailers)
            case .failed(let failure): throw failure
            }
        }
    }
}

/// A session that does what a test says, and counts what it was asked.
final class ScriptedSession: ExchangeSession {
    private let script: @Sendable (ScriptedExchange) -> Void
    let exchanges = Event<[ScriptedExchange]>([])
    let dialer: (any TunnelDialer)?
    private let performsAll: Bool

    /// - Parameters:
    ///   - performsAll: nothing may go past it.
    ///   - script: run inside `perform`. As it comes, a text is answered at once.
    init(
        dialer: (any TunnelDialer)? = nil, performsAll: Bool = false,
        _ script: @escaping @Sendable (ScriptedExchange) -> Void = { $0.answer() }
    ) {
        self.dialer = dialer
        self.performsAll = performsAll
        self.script = script
    }

    func mustPerform(_ request: Request) -> Bool { self.performsAll }

    func perform(
        _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) -> any Exchange {
        let exchange = ScriptedExchange(request, body, options, client)
        self.exchanges.change { $0.append(exchange) }
        self.script(exchange)
        return exchange
    }

    @discardableResult
    func exchange(_ index: Int = 0) async throws -> ScriptedExchange {
        try await self.exchanges.wait(for: "exchange \(index)") { $0.count > index }[index]
    }
}

/// A body that a test feeds, with everything noted that its reader does.
final class ScriptedBody: BodySource {
    private struct State {
        var steps = CircularBuffer<BodyStep>()
        var wake: (@Sendable () -> Void)?
        var waits = false
    }

    private let state = Mutex(State())
    let taken = Event(0)
    let isCancelled = Event(false)

    init(_ steps: [BodyStep] = []) {
        self.state.withLock { $0.steps.append(contentsOf: steps) }
    }

    func add(_ step: BodyStep) {
        let wake = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.steps.append(step)
            defer { state.waits = false }
            return state.waits ? state.wake : nil
        }
        wake?()
    }

    func add(_ text: String) { self.add(.piece(ByteBuffer(string: text))) }

    func attach(wake: @escaping @Sendable () -> Void) { self.state.withLock { $0.wake = wake } }

    func next() -> BodyStep {
        let step = self.state.withLock { state -> BodyStep in
            if let step = state.steps.popFirst() { return step }
            state.waits = true
            return .pending
        }
        if case .piece(let piece) = step { self.taken.change { $0 += piece.readableBytes } }
        return step
    }

    func cancel() {
        self.state.withLock { $0.wake = nil }
        self.isCancelled.change { $0 = true }
    }
}

/// A body without end, made as it is pulled.
final class EndlessBody: BodySource {
    let taken = Event(0)
    let isCancelled = Event(false)

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.taken.change { $0 += 16_384 }
        return .piece(ByteBuffer(repeating: UInt8(ascii: "x"), count: 16_384))
    }

    func cancel() { self.isCancelled.change { $0 = true } }
}

/// Keeps what is logged.
final class LogRecorder: ExchangeLog {
    let entries = Event<[ExchangeEntry]>([])

    /// Notes those that repeat themselves whole, too.
    private final class Recorder: ExchangeRecorder {
        private let entries: Event<[ExchangeEntry]>

        init(_ entries: Event<[ExchangeEntry]>) {
            self.entries = entries
        }

        func record(_ entry: ExchangeEntry) { self.entries.change { $0.append(entry) } }

        func record(_ facts: EntryFacts, of pattern: EntryPattern) {
            self.record(pattern.entry(with: facts))
        }
    }

    var isOn: Bool { true }

    func recorder() -> any ExchangeRecorder { Recorder(self.entries) }

    @discardableResult
    func entry(_ index: Int = 0) async throws -> ExchangeEntry {
        try await self.entries.wait(for: "log entry \(index)") { $0.count > index }[index]
    }
}
