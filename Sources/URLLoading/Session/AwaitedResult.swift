import Foundation
import Synchronization

/// What comes of a URL task to the Swift task that waits for it.
///
///     (work)? ─▶ result          cancel: at any time
///
/// Where an answer is whole, what is left to be done with it is done by the one who waits: its thread
/// is to be woken anyhow, and the thread of the transfers, which many share, has less to do. Where it
/// is there before anybody waits, as with a stored response in memory, nothing is suspended.
final class AwaitedResult<Value: Sendable>: Sendable {
    /// What the one who waits has to do next.
    enum Event: Sendable {
        case work(@Sendable () -> Void)
        case result(Result<(Value, URLResponse), any Error>)
    }

    private struct State {
        var work: (@Sendable () -> Void)?
        var result: Result<(Value, URLResponse), any Error>?
        var waiter: CheckedContinuation<Event, Never>?
        /// The result has been taken.
        var isOver = false
        var isCancelled = false
        var task: URLSessionTask?

        mutating func take() -> Event? {
            if let work = self.work.take() { return .work(work) }
            guard let result = self.result.take() else { return nil }
            self.isOver = true
            self.task = nil
            return .result(result)
        }
    }

    private let state = Mutex(State())

    /// Waits for what there is to do: the result comes last.
    func next(isolation: isolated (any Actor)?) async -> Event {
        if let event = self.state.withLock({ $0.take() }) { return event }
        return await withCheckedContinuation(isolation: isolation) { continuation in
            let event = self.state.withLock { state in
                let event = state.take()
                if event == nil { state.waiter = continuation }
                return event
            }
            if let event { continuation.resume(returning: event) }
        }
    }

    /// Has something done by the one who waits; not again before that is done.
    func hand(_ work: @escaping @Sendable () -> Void) {
        let isLate = self.state.withLock { state in
            guard !state.isOver else { return true }
            state.work = work
            return false
        }
        // Whoever cancelled has let it go.
        if isLate { return work() }
        self.wake()
    }

    func complete(_ value: Value?, _ response: URLResponse?, _ error: (any Error)?) {
        if let value, let response {
            self.finish(.success((value, response)))
        } else {
            self.finish(.failure(error ?? URLError(.unknown)))
        }
    }

    /// Gives the result; once.
    func finish(_ result: Result<(Value, URLResponse), any Error>) {
        self.state.withLock { $0.result = result }
        self.wake()
    }

    private func wake() {
        let due = self.state.withLock { state -> (CheckedContinuation<Event, Never>, Event)? in
            guard let waiter = state.waiter, let event = state.take() else { return nil }
            state.waiter = nil
            return (waiter, event)
        }
        if let (waiter, event) = due { waiter.resume(returning: event) }
    }

    // MARK: Cancellation

    /// Carries the cancellation of the Swift task to the URL task, whichever comes first.
    func cover(_ task: URLSessionTask) {
        let isCancelled = self.state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
