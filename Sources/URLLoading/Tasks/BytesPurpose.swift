import Foundation
import LarderHTTP
import Synchronization

/// A sequence of bytes for an async method: the response first, then what comes.
final class BytesPurpose: TaskPurpose {
    typealias Answered = @Sendable (Result<(BytesConsumer, URLResponse), any Error>) -> Void

    private struct State {
        /// Until it has been called.
        var answered: Answered?
        var consumer: BytesConsumer?
    }

    private let state: Mutex<State>

    /// - Parameter answered: called once, on any thread, when the head of the response has come, or
    ///   the task is over without one.
    init(_ answered: @escaping Answered) {
        self.state = Mutex(State(answered: answered))
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }
    var isDirect: Bool { true }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let consumer = BytesConsumer()
        let answered = self.state.withLock { state in
            state.consumer = consumer
            return state.answered.take()
        }
        answered?(.success((consumer, answer.response)))
        return consumer
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        let (answered, consumer) = self.state.withLock { ($0.answered.take(), $0.consumer.take()) }
        consumer?.end(error)
        answered?(.failure(error ?? URLError(.badServerResponse)))
    }
}
