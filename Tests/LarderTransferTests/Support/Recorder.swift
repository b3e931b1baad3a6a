import LarderHTTP
import NIOCore
import Synchronization

/// A receiver that writes down what it hears, and lets a test wait for it.
final class Recorder: UpstreamReceiver {
    struct Record: Sendable {
        var informational: [ResponseHead] = []
        var head: ResponseHead?
        var length: BodyLength?
        var facts: UpstreamConnectionFacts?
        var body = ByteBuffer()
        var largestPiece = 0
        var trailers: Fields?
        var failure: UpstreamFailure?
        /// It came in one call.
        var isWhole = false
        /// Calls that the protocol of the port does not allow.
        var violations: [String] = []

        var isOver: Bool { self.trailers != nil || self.failure != nil }
        var text: String { String(buffer: self.body) }
    }

    private struct Waiter {
        let condition: @Sendable (Record) -> Bool
        let continuation: CheckedContinuation<Record, Never>
    }

    private struct State {
        var record = Record()
        var waiters: [Waiter] = []
        var pausesAfter: Int?
        var isPaused = false
        var isCancelled = false
    }

    private let state: Mutex<State>
    let takesWholeResponses: Bool
    let mayBeAnsweredAtOnce: Bool
    private let ends: @Sendable () -> Bool

    /// - Parameters:
    ///   - pausesAfter: says `.pause` as soon as that many bytes came (0: at the head).
    ///   - ends: asked where another fetch waits for the connection.
    init(
        pausesAfter: Int? = nil, takesWholeResponses: Bool = false,
        mayBeAnsweredAtOnce: Bool = false, ends: @escaping @Sendable () -> Bool = { false }
    ) {
        self.ends = ends
        self.takesWholeResponses = takesWholeResponses
        self.mayBeAnsweredAtOnce = mayBeAnsweredAtOnce
        var state = State()
        state.pausesAfter = pausesAfter
        self.state = Mutex(state)
    }

    var record: Record { self.state.withLock { $0.record } }

    /// From now on everything is wanted; the fetch must be resumed as well.
    func wantAll() {
        self.state.withLock { state in
            state.pausesAfter = nil
            state.isPaused = false
        }
    }

    func wantUntil(_ count: Int) {
        self.state.withLock { state in
            state.pausesAfter = count
            state.isPaused = false
        }
    }

    /// Waits until what was heard fulfils a condition, or the test's time limit ends it.
    @discardableResult
    func wait(until condition: @escaping @Sendable (Record) -> Bool) async -> Record {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.change { state in
                    if state.isCancelled {
                        state.waiters.append(
                            Waiter(condition: { _ in true }, continuation: continuation))
                    } else {
                        state.waiters.append(
                            Waiter(condition: condition, continuation: continuation))
                    }
                }
            }
        } onCancel: {
            self.change { state in
                state.isCancelled = true
                state.waiters = state.waiters.map {
                    Waiter(condition: { _ in true }, continuation: $0.continuation)
                }
            }
        }
    }

    func end() async -> Record {
        await self.wait { $0.isOver }
    }

    private func change(_ body: (inout State) -> Void) {
        let ready: [(CheckedContinuation<Record, Never>, Record)] = self.state.withLock { state in
            body(&state)
            let met = state.waiters.filter { $0.condition(state.record) }
            guard !met.isEmpty else { return [] }
            let record = state.record
            state.waiters.removeAll { $0.condition(record) }
            return met.map { ($0.continuation, record) }
        }
        for (continuation, record) in ready { continuation.resume(returning: record) }
    }

    private func hear(_ what: String, _ body: (inout Record) -> Void) -> UpstreamDemand {
        var demand = UpstreamDemand.more
        self.change { state in
            if state.record.isOver { state.record.violations.append("\(what) after the end") }
            if state.isPaused { state.record.violations.append("\(what) in spite of a pause") }
            body(&state.record)
            if let limit = state.pausesAfter, state.record.body.readableBytes >= limit {
                state.isPaused = true
                demand = .pause
            }
        }
        return demand
    }

    // MARK: UpstreamReceiver

    func upstream(informational head: ResponseHead) {
        _ = self.hear("informational") { record in
            if record.head != nil { record.violations.append("informational after the head") }
            record.informational.append(head)
        }
    }

    func upstream(
        head: ResponseHead, bodyLength: BodyLength, connection: UpstreamConnectionFacts
    ) -> UpstreamDemand {
        self.hear("head") { record in
            if record.head != nil { record.violations.append("a second head") }
            record.head = head
            record.length = bodyLength
            record.facts = connection
        }
    }

    func upstream(piece: ByteBuffer) -> UpstreamDemand {
        self.hear("piece") { record in
            if record.head == nil { record.violations.append("a piece before the head") }
            if piece.readableBytes == 0 { record.violations.append("an empty piece") }
            record.largestPiece = max(record.largestPiece, piece.readableBytes)
            record.body.writeImmutableBuffer(piece)
        }
    }

    func upstream(finished trailers: Fields) {
        _ = self.hear("finished") { $0.trailers = trailers }
    }

    func upstream(whole response: WholeResponse) {
        _ = self.hear("whole") { record in
            if record.head != nil { record.violations.append("a whole response after its head") }
            record.head = response.head
            record.length = response.bodyLength
            record.facts = response.connection
            record.body = response.body
            record.trailers = Fields()
            record.isWhole = true
        }
    }

    func endsForAnother() -> Bool { self.ends() }

    func upstream(failed failure: UpstreamFailure) {
        _ = self.hear("failed") { $0.failure = failure }
    }
}
