import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// What came of a transfer that was asked for again.
enum TransferOutcome: Sendable {
    /// It was stored already.
    case hit
    /// All of it has come.
    case complete
    /// - Parameter wait: how long the origin wants to be left alone.
    case answered(StatusCode, wait: Duration?)
    case failed(StatusCode, detail: String)
    /// What comes is not stored: nobody needs it.
    case notStored
    /// - Parameter received: bytes from the beginning on, those that were stored already with them.
    case brokenOff(detail: String, received: UInt64)
}

/// The client of a transfer that is asked for again: reads all of the answer, for the sake of the store.
final class TransferReading: ExchangeClient {
    private struct State {
        var source: (any BodySource)?
        var received: UInt64 = 0
        var length: UInt64?
        var turn = OneAtATime()
        /// Told of the end; nil: it has been.
        var end: (@Sendable (TransferOutcome) -> Void)?
    }

    private let clock: any WallClock
    private let state: Mutex<State>

    /// - Parameter end: called once, on any thread.
    init(clock: any WallClock, end: @escaping @Sendable (TransferOutcome) -> Void) {
        self.clock = clock
        self.state = Mutex(State(end: end))
    }

    /// Bytes that have come, and of how many where that is known.
    var progress: (received: UInt64, length: UInt64?) {
        self.state.withLock { ($0.received, $0.length) }
    }

    /// Tells nobody of its end any more.
    func abandon() {
        let source = self.state.withLock { state in
            state.end = nil
            return state.source.take()
        }
        source?.cancel()
    }

    private func ended(_ outcome: TransferOutcome) {
        let end = self.state.withLock { state in
            state.source = nil
            return state.end.take()
        }
        end?(outcome)
    }

    // MARK: What the session says

    func exchange(informational head: ResponseHead) {}

    func exchange(failed failure: ExchangeFailure) {
        self.ended(.failed(failure.status, detail: failure.detail))
    }

    func exchange(answered answer: Answer) {
        guard answer.head.status.isSuccessful, !answer.cacheStatus.hit else {
            if case .source(let source) = answer.body { source.cancel() }
            guard answer.head.status.isSuccessful else {
                return self.ended(
                    .answered(
                        answer.head.status,
                        wait: Self.retryAfter(answer.head.fields, now: self.clock.now())))
            }
            return self.ended(.hit)
        }
        guard case .source(let source) = answer.body else { return self.ended(.complete) }
        let status = answer.cacheStatus
        // The whole was stored, and has been validated, or stands in for a failure.
        if status.validation == .confirmed || status.validation == .standIn {
            source.cancel()
            return self.ended(.hit)
        }
        let isPart = status.forward == .partial || status.forwardStatus == .partialContent
        guard status.stored || status.collapsed || isPart else {
            source.cancel()
            return self.ended(.notStored)
        }
        let isWanted = self.state.withLock { state in
            guard state.end != nil else { return false }
            state.source = source
            state.length = answer.bodyLength.knownBytes
            return true
        }
        guard isWanted else { return source.cancel() }
        source.attach { [weak self] in self?.read() }
        self.read()
    }

    /// How long the origin wants to be left alone (RFC 9110 §10.2.3); nil where it does not say.
    static func retryAfter(_ fields: Fields, now: Timestamp) -> Duration? {
        guard let value = fields.values(FieldName(.retryAfter)).first else { return nil }
        if let seconds = UInt32(String(decoding: value, as: UTF8.self)) {
            return .seconds(Int64(seconds))
        }
        return HTTPDate.parse(value, now: now).map { max(.zero, $0 - now) }
    }

    // MARK: Reading

    private func read() {
        guard self.state.withLock({ $0.turn.begins() }) else { return }
        repeat { self.readAll() } while self.state.withLock { $0.turn.goesOn() }
    }

    private func readAll() {
        while let source = self.state.withLock({ $0.source }) {
            switch source.next() {
            case .pending: return
            case .piece(let piece):
                self.state.withLock { $0.received += UInt64(piece.readableBytes) }
            case .end: return self.ended(.complete)
            case .failed(let failure):
                let received = self.state.withLock { $0.received }
                return self.ended(
                    .brokenOff(detail: Self.detail(failure), received: received))
            }
        }
    }

    private static func detail(_ failure: BodyFailure) -> String {
        switch failure {
        case .upstream(let failure): failure.detail
        case .client(let detail), .store(let detail): detail
        case .cancelled: "the fetch was cancelled"
        }
    }
}
