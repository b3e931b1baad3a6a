import Foundation
import LarderHTTP
import Synchronization

/// Data for a completion handler, or an async method: the whole body at the end.
final class HandlerPurpose: TaskPurpose {
    typealias Handler = @Sendable (Data?, URLResponse?, (any Error)?) -> Void

    let isDirect: Bool
    private let handler: Mutex<Handler?>
    private let relay: (@Sendable (@escaping @Sendable () -> Void) -> Void)?
    private let memory = Mutex<MemoryConsumer?>(nil)

    /// - Parameters:
    ///   - isDirect: the handler may be called on any thread.
    ///   - relay: has something done by whoever waits for the handler; nil: nobody does.
    init(
        isDirect: Bool = false,
        relay: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil,
        _ handler: @escaping Handler
    ) {
        self.isDirect = isDirect
        self.relay = relay
        self.handler = Mutex(handler)
    }

    var asksForDisposition: Bool { false }
    var asksForStoring: Bool { false }

    func relays(_ work: @escaping @Sendable () -> Void) -> Bool {
        guard let relay = self.relay else { return false }
        relay(work)
        return true
    }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        let consumer = MemoryConsumer(expected: answer.response.expectedContentLength)
        self.memory.withLock { $0 = consumer }
        // A delegate that was given to an async method is there to follow that one load.
        guard self.isDirect, task.delegate is any URLSessionDataDelegate else { return consumer }
        return HeardConsumer(keeping: consumer, task: task)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        // Taken: what it holds lives no longer than it is needed.
        guard let handler = self.handler.withLock({ $0.take() }) else { return }
        let memory = self.memory.withLock { $0.take() }
        guard error == nil else { return handler(nil, nil, error) }
        handler(memory?.takeData() ?? Data(), task.response, nil)
    }
}
