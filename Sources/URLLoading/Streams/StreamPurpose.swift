import Foundation
import LarderHTTP
import Synchronization

/// Where a stream task connects to.
struct StreamPlace: Sendable {
    /// As a URL has it: lower case, IPv6 in brackets.
    let host: String
    let port: Int
    /// The scheme of what is spoken there, where the proxy for that leads to it; nil: whichever
    /// there is.
    let scheme: Scheme?

    init(host: String, port: Int, for scheme: Scheme? = nil) {
        self.scheme = scheme
        let host = host.lowercased()
        self.host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        self.port = port
    }
}

/// What the operations of a stream task are done on: a connection, or the body of a response.
protocol StreamChannel: AnyObject, Sendable {
    /// - Parameters:
    ///   - number: by which its owner hears of it.
    ///   - timeout: nil: none.
    func enqueue(_ operation: StreamMachine.Operation, number: Int, timeout: Duration?)
    /// Stands still, or goes on.
    ///
    /// - Parameter isSuspended: asked when it takes effect, one call after the other: what was decided
    ///   last counts then, whoever comes here last.
    func pause(if isSuspended: @escaping @Sendable () -> Bool)
    /// Lets go of everything; nothing is told any more.
    func end()
}

/// A connection for a program, or a response, and who waits for what of it.
///
/// Each handler is called once: with what its operation had, or, when the task completes, with what
/// that completes with.
final class StreamPurpose: TaskPurpose, StreamOwner {
    /// Who waits for an operation.
    enum Handler: Sendable {
        case read(@Sendable (Data?, Bool, (any Error)?) -> Void)
        case write(@Sendable ((any Error)?) -> Void)

        func fail(_ error: any Error) {
            switch self {
            case .read(let handler): handler(nil, false, error)
            case .write(let handler): handler(error)
            }
        }
    }

    private struct State {
        var handlers: [Int: Handler] = [:]
        var number = 0
        /// What it ended with; nil: it has not.
        var end: (any Error)?
        /// From `resume` to the completion.
        var task: URLSessionTask?
    }

    let lane: DelegateLane
    var ownLane: DelegateLane? { self.lane }
    private let state = Mutex(State())
    private let channel: any StreamChannel

    /// A connection to be made.
    init(_ place: StreamPlace, lane: DelegateLane) {
        self.lane = lane
        self.channel = StreamConnection(place)
    }

    /// The response that a data task got.
    init(ofResponseFor lane: DelegateLane) {
        self.lane = lane
        self.channel = StreamedResponse()
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    var isDirect: Bool { false }

    // MARK: Operations

    /// - Parameters:
    ///   - handler: nil: nobody waits for it.
    ///   - timeout: in seconds; nothing above zero: none.
    func enqueue(
        _ operation: StreamMachine.Operation, timeout: TimeInterval = 0, _ handler: Handler? = nil
    ) {
        let (number, end) = self.state.withLock { state in
            state.number += 1
            if state.end == nil { state.handlers[state.number] = handler }
            return (state.number, state.end)
        }
        if let end {
            if let handler { self.lane.send { handler.fail(end) } }
            return
        }
        self.channel.enqueue(operation, number: number, timeout: Duration(interval: timeout))
    }

    private func take(_ number: Int) -> Handler? {
        self.state.withLock { $0.handlers.removeValue(forKey: number) }
    }

    /// An operation is done.
    func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?) {
        guard let handler = self.take(number) else { return }
        self.lane.send {
            switch handler {
            case .read(let handler): handler(data, atEnd, error)
            case .write(let handler): handler(error.map { $0.ofWriting })
            }
        }
    }

    // MARK: What the connection says

    private var task: URLSessionTask? { self.state.withLock { $0.task } }

    func failed(_ error: URLError) { self.task?.settle(.failed(error)) }

    func finished() {
        guard let task = self.task else { return }
        let pump = task.guarded.withLock { $0.pump }
        task.settle(.finished)
        // What is left of a response that is not read any more.
        pump?.cancel()
    }

    func counted(received: Int, sent: Int) {
        guard let task = self.task else { return }
        if received > 0 { task.countOfBytesReceived += Int64(received) }
        if sent > 0 { task.countOfBytesSent += Int64(sent) }
    }

    func patience(beyond limit: Duration) -> Duration? { self.task?.patience(beyond: limit) }

    func readClosed() { self.tell(.readClosed) { $0.urlSession($1, readClosedFor: $2) } }
    func writeClosed() { self.tell(.writeClosed) { $0.urlSession($1, writeClosedFor: $2) } }

    func captured(_ connection: CapturedConnection) {
        self.tell(.captured) {
            $0.urlSession(
                $1, streamTask: $2, didBecome: CapturedInputStream(connection),
                outputStream: CapturedOutputStream(connection))
        }
        self.task?.settle(.finished)
    }

    /// By the task-level method alone (§3.6).
    func asks(
        _ challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.task?.ask(challenge, isSessionWide: false, then: answer)
    }

    /// Tells the delegates, also what the end of the task follows at once.
    private func tell(
        _ method: DelegateCall.Method,
        _ message:
            @escaping @Sendable (any URLSessionStreamDelegate, URLSession, URLSessionStreamTask) ->
            Void
    ) {
        guard let task = self.task as? URLSessionStreamTask, let session = task.session else {
            return
        }
        self.lane.send {
            guard !task.isOver else { return }
            session.delegates(of: task).call(method) { delegates in
                if let delegate = delegates.stream { message(delegate, session, task) }
            }
        }
    }

    // MARK: The task

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        guard let response = self.channel as? StreamedResponse else {
            throw BodyConsumerError(error: URLError(.unsupportedURL))
        }
        if self.keep(task) { response.begin(self) }
        return response
    }

    /// Connects; no load begins.
    func prepare(for task: URLSessionTask, then: @escaping @Sendable () -> Void) {
        guard let session = task.session else { return task.fail(.cancelled) }
        if self.keep(task) { (self.channel as? StreamConnection)?.begin(of: session, self) }
    }

    /// - Returns: false where it has completed meanwhile: it would be kept for ever, as it keeps this.
    private func keep(_ task: URLSessionTask) -> Bool {
        self.state.withLock { state in
            guard state.end == nil else { return false }
            state.task = task
            return true
        }
    }

    func suspensionChanged(_ task: URLSessionTask) {
        self.channel.pause(if: { task.isSuspended })
    }

    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        self.channel.end()
        then(outcome)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let reason = error ?? URLError(.networkConnectionLost)
        let left = self.state.withLock { state in
            state.end = reason
            state.task = nil
            defer { state.handlers = [:] }
            return state.handlers.sorted { $0.key < $1.key }.map(\.value)
        }
        for handler in left { handler.fail(reason) }
        session?.tellCompletion(of: task, with: error)
    }
}

extension URLError {
    /// This error where an operation that writes fails with it: what is lost is the side that
    /// writes.
    fileprivate var ofWriting: URLError {
        guard self.code == .networkConnectionLost else { return self }
        return URLError(self.code, userInfo: [NSUnderlyingErrorKey: POSIXError(.EPIPE)])
    }
}
