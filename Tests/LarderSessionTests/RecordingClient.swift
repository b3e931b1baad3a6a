import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// A client that keeps what it hears and reads bodies when the test says so.
final class RecordingClient: ExchangeClient {
    private struct State: ~Copyable {
        var informational: [ResponseHead] = []
        var answer: Answer?
        var failure: ExchangeFailure?
        var calls = 0
        var wakes = 0
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var answer: Answer? { self.state.withLock { $0.answer } }
    var failure: ExchangeFailure? { self.state.withLock { $0.failure } }
    var informational: [ResponseHead] { self.state.withLock { $0.informational } }
    /// How often the exchange was answered or failed: never more than once.
    var calls: Int { self.state.withLock { $0.calls } }
    var wakes: Int { self.state.withLock { $0.wakes } }

    func exchange(informational head: ResponseHead) {
        self.state.withLock { $0.informational.append(head) }
    }

    func exchange(answered answer: Answer) {
        let waiting = self.state.withLock { state in
            state.answer = answer
            state.calls += 1
            return state.waiting.take()
        }
        waiting?.resume()
        if case .source(let source) = answer.body {
            source.attach { self.state.withLock { $0.wakes += 1 } }
        }
    }

    func exchange(failed failure: ExchangeFailure) {
        let waiting = self.state.withLock { state in
            state.failure = failure
            state.calls += 1
            return state.waiting.take()
        }
        waiting?.resume()
    }

    /// Returns once the exchange is answered or has failed.
    func answered() async {
        await withCheckedContinuation { continuation in
            let isThere = self.state.withLock { state in
                if state.calls == 0 { state.waiting = continuation }
                return state.calls > 0
            }
            if isThere { continuation.resume() }
        }
    }

    // MARK: Looking at it

    var status: UInt16? { self.answer?.head.status.rawValue }
    var cacheStatus: String? { self.answer?.head.fields.string("Cache-Status") }

    func field(_ name: String) -> String? {
        self.answer?.head.fields.string(FieldName(name))
    }

    /// Reads what there is now.
    func read() -> (text: String, last: BodyStep?) {
        switch self.answer?.body {
        case .resident(let buffer)?: return (String(buffer: buffer), .end(trailers: Fields()))
        case .source(let source)?:
            var all = ByteBuffer()
            while true {
                switch source.next() {
                case .piece(var piece): all.writeBuffer(&piece)
                case let last: return (String(buffer: all), last)
                }
            }
        case .none?, nil: return ("", .end(trailers: Fields()))
        }
    }

    /// The body, if it can be read to its end now.
    var wholeBody: String? {
        let (text, last) = self.read()
        if case .end? = last { return text }
        return nil
    }
}
