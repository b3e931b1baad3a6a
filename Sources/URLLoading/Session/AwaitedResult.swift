import Foundation
import Synchronization

/// What comes of a URL task to the Swift task that waits for it.
///
///     (work)? ─▶ result          cancel: at any time
///
/// Where an answer is whole, what is left to be done with it is done by the one who waits: its thread
/// is to be woken anyhow, and the thread of the transfers, which many share, has less to do. Where it
/// is there before anybody waits, as with a stored response in memory, nothing is suspended.
///
/// Not generic over what comes: to take a generic one apart, metadata is looked up at run time.
final class AwaitedResult: Sendable {
    /// What a task's body has become.
    enum Body: Sendable {
        case data(Data)
        case file(URL)
        case bytes(BytesConsumer)

        func data() throws(URLError) -> Data {
            guard case .data(let data) = self else { throw URLError(.unknown) }
            return data
        }

        func file() throws(URLError) -> URL {
            guard case .file(let file) = self else { throw URLError(.unknown) }
            return file
        }
    }

    typealias Result = Swift.Result<(Body, URLResponse), any Error>

    /// What the one who waits has to do next.
    enum Event: Sendable {
        case work(@Sendable () -> Void)
        case result(Result)
    }

    private struct State {
        var work: (@Sendable () -> Void)?
        var result: Result?
        var waiter: CheckedContinuation<Void, Never>?
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
        while true {
            if let event = self.state.withLock({ $0.take() }) { return event }
            await withCheckedContinuation(isolation: isolation) { continuation in
                let isDue = self.state.withLock { state in
                    guard state.work == nil, state.result == nil else { return true }
                    state.waiter = continuation
                    return false
                }
                if isDue { continuation.resume() }
            }
        }
    }

    /// Has something done by the one who waits; not again before that is done.
    func hand(_ work: @escaping @Sendable () -> Void) {
        let (isLate, waiter) = self.state.withLock { state in
            guard !state.isOver else { return (true, Waiter?.none) }
            state.work = work
            return (false, state.waiter.take())
        }
        // Whoever cancelled has let it go.
        if isLate { return work() }
        waiter?.resume()
    }

    func complete(_ body: Body?, _ response: URLResponse?, _ error: (any Error)?) {
        if let body, let response {
            self.finish(.success((body, response)))
        } else {
            self.finish(.failure(error ?? URLError(.unknown)))
        }
    }

    /// Gives the result; once.
    func finish(_ result: Result) {
        let waiter = self.state.withLock { state in
            state.result = result
            return state.waiter.take()
        }
        waiter?.resume()
    }

    private typealias Waiter = CheckedContinuation<Void, Never>

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
