import Foundation
import LarderHTTP
import Synchronization

/// Data for a completion handler: the whole body at the end.
final class HandlerPurpose: TaskPurpose {
    typealias Handler = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    private let handler: Mutex<Handler?>
    private let kept = Mutex(KeptBody.none)

    init(_ handler: @escaping Handler) {
        self.handler = Mutex(handler)
    }

    var isDirect: Bool { false }
    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }

    func keepsWhole(for task: URLSessionTask) -> Bool { true }
    func keep(_ body: KeptBody) { self.kept.withLock { $0 = body } }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let consumer = MemoryConsumer(expected: answer.response.expectedContentLength)
        self.keep(.pieces(consumer))
        return consumer
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        // Taken: what it holds lives no longer than it is needed.
        guard let handler = self.handler.withLock({ $0.take() }) else { return }
        let kept = self.kept.withLock { exchange(&$0, with: .none) }
        // Also behind an error: a response that has come says what it was an error of.
        handler(error == nil ? kept.data() : nil, task.response, error)
    }
}
