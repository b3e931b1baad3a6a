import Foundation
import LarderHTTP
import Synchronization

/// What comes of a URL task to the Swift task that waits for it.
///
///     (answered)? ─▶ body | failed          cancel: at any time
///
/// Where an answer is whole, what is left to be done with it is done by the one who waits: its thread
/// is to be woken anyhow, and the thread of the transfers, which many share, has less to do. Where it
/// is there before anybody waits, as with a stored response in memory, nothing is suspended.
///
/// Neither generic over what comes nor made of what is: to take a generic one apart, metadata is looked
/// up at run time.
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

    /// What the one who waits has to do next.
    enum Event: Sendable {
        /// The task goes on with the answer to a load.
        case answered(LoadAnswer, URLSessionTask, load: Int)
        case body(Body, URLResponse)
        case failed(any Error)
    }

    @safe private struct State {
        var answered: Event?
        /// The last of all.
        var result: Event?
        var waiter: Waiter?
        /// The result has been taken.
        var isOver = false
        var isCancelled = false
        var task: URLSessionTask?
        /// Of a data task.
        var kept = KeptBody.none

        mutating func take() -> Event? {
            if let answered = self.answered.take() { return answered }
            guard let result = self.result.take() else { return nil }
            self.isOver = true
            self.task = nil
            return result
        }
    }

    private typealias Waiter = UnsafeContinuation<Void, Never>

    private let state = Mutex(State())

    /// What there is to do by now, the result last; nil: nothing.
    func take() -> Event? { self.state.withLock { $0.take() } }

    /// Waits for something to do.
    ///
    /// The continuation need not be a checked one, which is an object more a request: whoever resumes it
    /// has taken it out of the state under the lock, and it is only put there where nothing has come.
    func wait(isolation: isolated (any Actor)?) async {
        unsafe await withUnsafeContinuation(isolation: isolation) { continuation in
            let isDue = self.state.withLock { state in
                guard state.answered == nil, state.result == nil else { return true }
                unsafe state.waiter = continuation
                return false
            }
            if isDue { unsafe continuation.resume() }
        }
    }

    /// Has the one who waits go on with an answer; not again before that is done.
    private func hand(_ answer: LoadAnswer, of task: URLSessionTask, load: Int) {
        let (isLate, waiter) = unsafe self.state.withLock { state in
            guard !state.isOver else { return unsafe (true, Waiter?.none) }
            state.answered = .answered(answer, task, load: load)
            return unsafe (false, state.waiter.take())
        }
        // Whoever cancelled has let it go.
        if isLate { return task.answered(answer, load: load) }
        unsafe waiter?.resume()
    }

    func complete(_ body: Body?, _ response: URLResponse?, _ error: (any Error)?) {
        if let body, let response {
            self.finish(.body(body, response))
        } else {
            self.finish(.failed(error ?? URLError(.unknown)))
        }
    }

    /// Gives the result; once.
    private func finish(_ result: consuming Event) {
        let waiter = unsafe self.state.withLock { state in
            state.result = result
            return unsafe state.waiter.take()
        }
        unsafe waiter?.resume()
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

/// The purpose of a data task itself, so that small requests take no object more.
extension AwaitedResult: TaskPurpose {
    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    var isDirect: Bool { true }

    func relays(_ answer: LoadAnswer, of task: URLSessionTask, load: Int) -> Bool {
        self.hand(answer, of: task, load: load)
        return true
    }

    func keepsWhole(for task: URLSessionTask) -> Bool {
        // A delegate that was given to an async method is there to follow that one load.
        !(task.delegate is any URLSessionDataDelegate)
    }

    func keep(_ body: KeptBody) { self.state.withLock { $0.kept = body } }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let consumer = MemoryConsumer(expected: answer.response.expectedContentLength)
        self.keep(.pieces(consumer))
        return self.keepsWhole(for: task) ? consumer : HeardConsumer(keeping: consumer, task: task)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        // Taken: what it holds lives no longer than it is needed.
        let kept = self.state.withLock { exchange(&$0.kept, with: .none) }
        if let error { return self.finish(.failed(error)) }
        self.complete(.data(kept.data()), task.response, nil)
    }
}
