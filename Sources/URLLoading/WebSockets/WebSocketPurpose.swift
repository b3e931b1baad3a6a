import Foundation
import NIOCore
import Synchronization

/// A WebSocket for a program: what it sends before the connection is open, and who waits for what.
///
/// Each handler is called once: with what it waits for, or with what the task completes with.
final class WebSocketPurpose: TaskPurpose {
    typealias Waiter = @Sendable ((any Error)?) -> Void
    typealias Message = URLSessionWebSocketTask.Message
    typealias Receiver = @Sendable (Result<Message, any Error>) -> Void

    /// What is kept of messages that nobody has asked for, in octets; then no more is read.
    private static let room = 1 << 16

    private struct State {
        var load: WebSocketLoad?
        /// Who is told that it is open may close it before there is a load to say so to.
        var isOpening = false
        var closing: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)?
        /// Before it is open.
        var unsent: [(opcode: WebSocketFrame.Opcode, payload: Data, number: Int)] = []
        var senders: [Int: Waiter] = [:]
        var pings: [(number: Int, waiter: Waiter)] = []
        // Both may be long: of empty messages there is room for as many as octets.
        var receivers = CircularBuffer<Receiver>()
        var inbox = CircularBuffer<Message>()
        var inboxSize = 0
        var number = 0
        var limit = 1 << 20
        var closeCode = URLSessionWebSocketTask.CloseCode.invalid
        var closeReason: Data?
        var task: URLSessionTask?
        var end: (any Error)?
    }

    let lane: DelegateLane
    var ownLane: DelegateLane? { self.lane }
    private let state = Mutex(State())

    init(lane: DelegateLane) {
        self.lane = lane
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    var isDirect: Bool { false }

    var closeCode: URLSessionWebSocketTask.CloseCode { self.state.withLock { $0.closeCode } }
    var closeReason: Data? { self.state.withLock { $0.closeReason } }
    var hasRoom: Bool { self.state.withLock { $0.inboxSize < Self.room } }

    var maximumLength: Int {
        get { self.state.withLock { $0.limit } }
        set { self.state.withLock { $0.limit = max(0, newValue) } }
    }

    // MARK: What the program asks

    func send(_ message: Message, _ waiter: @escaping Waiter) {
        switch message {
        case .data(let data): self.send(.binary, data, waiter)
        case .string(let text): self.send(.text, Data(text.utf8), waiter)
        }
    }

    private func send(_ opcode: WebSocketFrame.Opcode, _ payload: Data, _ waiter: @escaping Waiter)
    {
        let (load, number, end) = self.state.withLock { state in
            state.number += 1
            if state.end == nil {
                state.senders[state.number] = waiter
                if state.load == nil { state.unsent.append((opcode, payload, state.number)) }
            }
            return (state.load, state.number, state.end)
        }
        if let end { return self.lane.send { waiter(end) } }
        load?.send(opcode, payload) { self.sent(number, payload.count, $0) }
    }

    /// On the load's queue.
    private func sent(_ number: Int, _ count: Int, _ error: (any Error)?) {
        // One that fails fails with the task, which knows why.
        guard error == nil else { return }
        let (waiter, task) = self.state.withLock {
            ($0.senders.removeValue(forKey: number), $0.task)
        }
        guard let waiter else { return }
        task?.countOfBytesSent += Int64(count)
        self.lane.send { waiter(nil) }
    }

    func ping(_ waiter: @escaping Waiter) {
        let (load, number, end) = self.state.withLock { state in
            state.number += 1
            if state.end == nil {
                state.pings.append((state.number, waiter))
                if state.load == nil {
                    state.unsent.append((.ping, Self.payload(state.number), state.number))
                }
            }
            return (state.load, state.number, state.end)
        }
        if let end { return self.lane.send { waiter(end) } }
        load?.send(.ping, Self.payload(number)) { _ in }
    }

    /// By which a pong is known (RFC 6455 §5.5.3).
    private static func payload(_ number: Int) -> Data { Data(String(number).utf8) }

    func receive(_ receiver: @escaping Receiver) {
        let (message, load, end) = self.state.withLock { state in
            if let message = state.inbox.popFirst() {
                state.inboxSize -= message.size
                return (Optional(message), state.load, state.end)
            }
            if state.end == nil { state.receivers.append(receiver) }
            return (nil, state.load, state.end)
        }
        if let message {
            self.lane.send { receiver(.success(message)) }
            load?.goOn()
        } else if let end {
            self.lane.send { receiver(.failure(end)) }
        }
    }

    /// - Returns: false where there is no connection to close.
    func close(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) -> Bool {
        let (load, isOpen) = self.state.withLock { state in
            if state.load == nil, state.isOpening, state.closing == nil {
                state.closing = (code, reason)
            }
            return (state.load, state.load != nil || state.isOpening)
        }
        load?.close(code, reason)
        return isOpen
    }

    // MARK: What the connection says

    /// On the load's queue, as all of these.
    func received(_ message: Message) {
        // Before anybody hears of it, who may ask.
        self.state.withLock { $0.task }?.countOfBytesReceived += Int64(message.count)
        let receiver = self.state.withLock { state -> Receiver? in
            if let receiver = state.receivers.popFirst() { return receiver }
            state.inbox.append(message)
            state.inboxSize += message.size
            return nil
        }
        if let receiver { self.lane.send { receiver(.success(message)) } }
    }

    /// A pong answers the pings before its own, too.
    func ponged(_ payload: Data) {
        let waiters = self.state.withLock { state -> [Waiter] in
            guard let index = state.pings.firstIndex(where: { Self.payload($0.number) == payload })
            else { return [] }
            defer { state.pings.removeFirst(index + 1) }
            return state.pings[...index].map(\.waiter)
        }
        for waiter in waiters { self.lane.send { waiter(nil) } }
    }

    func failed(_ error: URLError) {
        self.state.withLock { $0.task }?.settle(.failed(error))
    }

    func closed(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        let task = self.state.withLock { state in
            state.closeCode = code
            state.closeReason = reason
            return state.task as? URLSessionWebSocketTask
        }
        guard let task else { return }
        self.tell(task, .closed) {
            $0.urlSession($1, webSocketTask: task, didCloseWith: code, reason: reason)
        }
        task.settle(.finished)
    }

    /// Tells the delegates, also what the end of the task follows at once.
    private func tell(
        _ task: URLSessionWebSocketTask, _ method: DelegateCall.Method,
        _ message: @escaping @Sendable (any URLSessionWebSocketDelegate, URLSession) -> Void
    ) {
        guard let session = task.session else { return }
        self.lane.send {
            guard !task.isOver else { return }
            session.delegates(of: task).call(method) { delegates in
                if let delegate = delegates.webSocket { message(delegate, session) }
            }
        }
    }

    // MARK: The task

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        guard let body = answer.body as? WebSocketBody, let task = task as? URLSessionWebSocketTask
        else { throw BodyConsumerError(error: URLError(.badServerResponse)) }
        let chosen = body.chosen
        self.state.withLock { $0.isOpening = true }
        self.tell(task, .opened) {
            $0.urlSession($1, webSocketTask: task, didOpenWithProtocol: chosen)
        }
        self.state.withLock { state in
            state.isOpening = false
            // The task has completed meanwhile, and would be kept for ever: it keeps this.
            guard state.end == nil else { return }
            state.load = body.load
            state.task = task
            // Suspended since it was decided to go on: nobody knew the load then.
            body.load.pause(if: { task.isSuspended })
            // In the lock, as the load only puts it on its queue: whoever sends next finds the load, and
            // must not get there before these.
            for (opcode, payload, number) in state.unsent {
                body.load.send(opcode, payload) {
                    if opcode != .ping { self.sent(number, payload.count, $0) }
                }
            }
            state.unsent = []
            body.load.open(for: self)
            if let closing = state.closing.take() {
                body.load.close(closing.code, closing.reason)
            }
        }
        return WebSocketConsumer()
    }

    func suspensionChanged(_ task: URLSessionTask) {
        self.state.withLock { $0.load }?.pause(if: { task.isSuspended })
    }

    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        self.state.withLock { $0.load }?.cancel()
        then(outcome)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let reason =
            error
            ?? URLError(.networkConnectionLost).completed(
                for: (task.currentRequest ?? task.originalRequest)?.url)
        let left = self.state.withLock { state in
            state.end = reason
            state.load = nil
            state.task = nil
            state.unsent = []
            defer {
                state.senders = [:]
                state.pings = []
                state.receivers = CircularBuffer()
            }
            let senders = state.senders.sorted { $0.key < $1.key }.map(\.value)
            return (senders, state.pings.map(\.waiter), Array(state.receivers))
        }
        for waiter in left.0 + left.1 { waiter(reason) }
        for receiver in left.2 { receiver(.failure(reason)) }
        session?.tellCompletion(of: task, with: error)
    }
}

/// There is nothing to consume: messages go another way.
private final class WebSocketConsumer: BodyConsumer {
    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        ready(nil)
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) { done(nil) }
    func stop() {}
}

extension URLSessionWebSocketTask.Message {
    /// How many octets it has on the wire.
    fileprivate var count: Int {
        switch self {
        case .data(let data): data.count
        case .string(let text): text.utf8.count
        }
    }

    /// In octets; one that is empty takes room, too.
    fileprivate var size: Int { self.count + 1 }
}
