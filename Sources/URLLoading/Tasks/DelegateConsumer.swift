import Foundation
import NIOCore
import Synchronization

/// Gives a body to the delegate, a message for each piece; the next is wanted when that returns.
///
/// Where the task does not prefer incremental delivery, the whole comes as one, at the end. The body of
/// an async method is its caller's: the task's own delegate may follow it, the session's does not hear of it.
final class DelegateConsumer: BodyConsumer {
    private weak let task: URLSessionTask?
    private let isCallers: Bool
    private let gathered: Mutex<Data?>

    init(task: URLSessionTask, isCallers: Bool = false) {
        self.task = task
        self.isCallers = isCallers
        self.gathered = Mutex(task.prefersIncrementalDelivery ? nil : Data())
    }

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        let isGathered = self.gathered.withLock { data in
            guard data != nil else { return false }
            data?.append(contentsOf: piece.readableBytesView)
            return true
        }
        guard !isGathered else { return ready(nil) }
        self.deliver({ Data(piece.readableBytesView) }, then: { ready(nil) })
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        let data = self.gathered.withLock { $0.take() }
        guard let data, !data.isEmpty else { return done(nil) }
        self.deliver({ data }, then: { done(nil) })
    }

    func stop() {
        self.gathered.withLock { $0 = nil }
    }

    private func deliver(
        _ data: @escaping @Sendable () -> Data, then next: @escaping @Sendable () -> Void
    ) {
        guard let task = self.task as? URLSessionDataTask else { return next() }
        task.send { [weak task, isCallers] in
            // What was under way when the task was cancelled need not come any more.
            if let task, let session = task.session, !task.isSettled {
                session.delegates(of: task, ownAlone: isCallers).call(.data) {
                    $0.data?.urlSession(session, dataTask: task, didReceive: data())
                }
            }
            next()
        }
    }
}
