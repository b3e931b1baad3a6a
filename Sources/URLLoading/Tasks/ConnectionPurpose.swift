import Foundation
import Synchronization

/// A purpose whose handlers are called while the task lives, and before it begins.
protocol ConversingPurpose: TaskPurpose {
    /// Where they are called, and all messages of the task go.
    var lane: DelegateLane { get }
}

/// A connection for a program: who waits for something of it hears when that cannot come any more.
final class ConnectionPurpose: ConversingPurpose {
    typealias Waiter = @Sendable (any Error) -> Void

    private struct State {
        var waiters: [Waiter] = []
        /// What it ended with.
        var error: (any Error)?
    }

    private let state = Mutex(State())
    let lane: DelegateLane

    init(lane: DelegateLane) {
        self.lane = lane
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    var isDirect: Bool { false }

    /// Has somebody hear of the end, on the delegate queue: also where it has been.
    func wait(_ waiter: @escaping Waiter) {
        let error = self.state.withLock { state in
            if state.error == nil { state.waiters.append(waiter) }
            return state.error
        }
        if let error { self.lane.send { waiter(error) } }
    }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        throw BodyConsumerError(error: URLError(.unsupportedURL))
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let reason = error ?? URLError(.networkConnectionLost)
        let waiters = self.state.withLock { state in
            state.error = reason
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter(reason) }
        guard let session else { return }
        session.delegates(of: task).task?.urlSession(
            session, task: task, didCompleteWithError: error)
    }
}
