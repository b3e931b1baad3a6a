import Foundation

/// What a task is for: who takes the body of the response, and who is told of the end.
///
/// One for each way to ask: a delegate, a completion handler, an async method; for data, for a file,
/// for a sequence of bytes. Called by its task alone, one call after the other.
protocol TaskPurpose: AnyObject, Sendable {
    /// The delegate hears the response, and decides what becomes of it.
    var asksForDisposition: Bool { get }
    /// The delegate may decide what is stored of the response.
    var asksForStoring: Bool { get }
    /// Nobody minds on which thread the end is told, if there is no delegate either.
    var isDirect: Bool { get }
    /// Where all messages of the task go, also those that come before it begins; nil: that is settled
    /// when it begins.
    var ownLane: DelegateLane? { get }
    /// Has the task go on with an answer that is whole (`answered`) on the thread of whoever waits for
    /// the result; false where nobody does, and it is to go on here and now.
    func relays(_ answer: LoadAnswer, of task: URLSessionTask, load: Int) -> Bool
    /// Whether a body that is in memory as a whole may be given to `keep`, in the place of a consumer.
    func keepsWhole(for task: URLSessionTask) -> Bool
    func keep(_ body: KeptBody)
    /// Who takes the body, when the head of the response is there.
    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer
    /// Gets together what the first load needs, before it begins.
    ///
    /// - Parameter then: called once, on any thread.
    func prepare(for task: URLSessionTask, then: @escaping @Sendable () -> Void)
    /// A request of the task's as it is to be sent.
    func asking(_ request: URLRequest) -> URLRequest
    /// How much of the content a request leaves out, in bytes, as the server has it.
    var sentBefore: Int64 { get }
    /// A server has said something before its response.
    func informed(by response: HTTPURLResponse, for task: URLSessionTask)
    /// Whether a response is of no use, and another request to be made instead; called for each that
    /// might be the final one, before anybody hears of it.
    func reconsider(_ answer: LoadAnswer, for task: URLSessionTask) -> URLRequest?
    /// The result is there, and nothing more comes; what is left to do is done now.
    ///
    /// - Parameter then: to be called once, with the result to tell.
    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void)
    /// Another task goes on with the response; no end is told of this one.
    func handedOver()
    /// The task is suspended or resumed: nothing is to be transmitted while `isSuspended` says so.
    func suspensionChanged(_ task: URLSessionTask)
    /// Tells what comes before the metrics and the end, of a task that succeeded. On the delegate
    /// queue unless `isDirect`.
    func conclude(_ task: URLSessionTask, of session: URLSession)
    /// Tells the end. The last call, exactly once; on the delegate queue unless `isDirect`.
    ///
    /// - Parameter session: of the task, which forgets it afterwards.
    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?)
}

extension TaskPurpose {
    var ownLane: DelegateLane? { nil }
    func relays(_ answer: LoadAnswer, of task: URLSessionTask, load: Int) -> Bool { false }
    func keepsWhole(for task: URLSessionTask) -> Bool { false }
    func keep(_ body: KeptBody) {}
    func prepare(for task: URLSessionTask, then: @escaping @Sendable () -> Void) { then() }
    func asking(_ request: URLRequest) -> URLRequest { request }
    var sentBefore: Int64 { 0 }
    func informed(by response: HTTPURLResponse, for task: URLSessionTask) {}
    func reconsider(_ answer: LoadAnswer, for task: URLSessionTask) -> URLRequest? { nil }

    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        then(outcome)
    }

    func handedOver() {}
    func suspensionChanged(_ task: URLSessionTask) {}
    func conclude(_ task: URLSessionTask, of session: URLSession) {}
}

/// Data for a delegate: the response, then each piece of the body.
final class DelegatePurpose: TaskPurpose {
    var asksForDisposition: Bool { true }
    var asksForStoring: Bool { true }
    var isDirect: Bool { false }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        DelegateConsumer(task: task)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        session?.tellCompletion(of: task, with: error)
    }
}

/// The delegates that hear of a task: its own before the session's.
///
/// What the first does not implement, its default implementation passes on to the second.
struct TaskDelegates {
    let own: (any URLSessionTaskDelegate)?
    let common: (any URLSessionDelegate)?

    init(own: (any URLSessionTaskDelegate)?, common: (any URLSessionDelegate)?) {
        self.own = own
        self.common = common
    }

    var isEmpty: Bool { self.own == nil && self.common == nil }
    var session: (any URLSessionDelegate)? { self.common }

    var task: (any URLSessionTaskDelegate)? {
        self.own ?? self.common as? any URLSessionTaskDelegate
    }

    var data: (any URLSessionDataDelegate)? {
        self.own as? any URLSessionDataDelegate ?? self.common as? any URLSessionDataDelegate
    }

    /// Whether no other hears of the response and its body.
    func isOnlyData(_ delegate: AnyObject) -> Bool {
        guard self.data === delegate else { return false }
        return self.common === delegate || !(self.common is any URLSessionDataDelegate)
    }

    var download: (any URLSessionDownloadDelegate)? {
        self.own as? any URLSessionDownloadDelegate
            ?? self.common as? any URLSessionDownloadDelegate
    }

    var webSocket: (any URLSessionWebSocketDelegate)? {
        self.own as? any URLSessionWebSocketDelegate
            ?? self.common as? any URLSessionWebSocketDelegate
    }

    var stream: (any URLSessionStreamDelegate)? {
        self.own as? any URLSessionStreamDelegate ?? self.common as? any URLSessionStreamDelegate
    }
}
