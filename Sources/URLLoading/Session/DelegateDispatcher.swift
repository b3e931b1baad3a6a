import Foundation
import Synchronization

/// Brings a session's messages to its delegate queue, in order.
///
/// Where the queue is serial, one lane serves the whole session, so that messages come in the order
/// in which they were sent, whichever task they are about. Where it is concurrent, each task has a
/// lane of its own: one message of a task at a time, and tasks beside each other.
final class DelegateDispatcher: Sendable {
    let queue: OperationQueue
    /// The session's own messages; on a serial queue all of them.
    let session: DelegateLane
    private let isSerial: Bool

    init(queue: OperationQueue) {
        self.queue = queue
        self.session = DelegateLane(queue: queue)
        self.isSerial = queue.maxConcurrentOperationCount == 1
    }

    /// Where the messages of a new task go.
    func lane() -> DelegateLane {
        self.isSerial ? self.session : DelegateLane(queue: self.queue)
    }
}

/// The delegate queue of a session that was given none.
///
/// On a dispatch queue of its own: the threads that queues share by default are few, and programs
/// block them, with a server's reads in a test, say. The session must not wait for those.
final class SessionQueue: OperationQueue, @unchecked Sendable {
    /// Held here, as an operation queue does not promise to.
    private let dispatch = DispatchQueue(label: "URLLoading.session")

    override init() {
        super.init()
        self.maxConcurrentOperationCount = 1
        unsafe self.underlyingQueue = self.dispatch
    }
}

/// Messages that wait for their turn on a queue, one after the other.
///
/// One operation delivers many of them: that is cheaper by far than one each.
final class DelegateLane: Sendable {
    typealias Message = @Sendable () -> Void

    private struct State {
        var waiting: [Message] = []
        var isScheduled = false
    }

    /// How many messages one operation delivers at most, so that others get at a shared queue.
    static let batch = 32

    private let queue: OperationQueue
    private let state = Mutex(State())

    init(queue: OperationQueue) {
        self.queue = queue
    }

    func send(_ message: @escaping Message) {
        let isFirst = self.state.withLock { state in
            state.waiting.append(message)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { self.queue.addOperation(Delivery(self)) }
    }

    fileprivate func deliver() {
        var delivered = 0
        // A program may stop its queue in the midst of it; what was not delivered then waits.
        while delivered < Self.batch, delivered == 0 || !self.queue.isSuspended {
            let messages = self.take(atMost: Self.batch - delivered)
            guard !messages.isEmpty else { return }
            for (index, message) in messages.enumerated() {
                if index > 0, self.queue.isSuspended {
                    self.state.withLock { $0.waiting.insert(contentsOf: messages[index...], at: 0) }
                    break
                }
                message()
                delivered += 1
            }
        }
        self.queue.addOperation(Delivery(self))
    }

    /// The next; none: and the lane is not scheduled any more.
    private func take(atMost limit: Int) -> [Message] {
        self.state.withLock { state in
            let messages: [Message]
            if state.waiting.count <= limit {
                messages = state.waiting
                state.waiting = []
            } else {
                messages = Array(state.waiting[..<limit])
                state.waiting.removeSubrange(..<limit)
            }
            if messages.isEmpty { state.isScheduled = false }
            return messages
        }
    }

    /// Delivers what waits in a lane.
    ///
    /// Not to be cancelled: whoever empties the queue must not take a task's completion away.
    private final class Delivery: Operation, @unchecked Sendable {
        private let lane: DelegateLane

        init(_ lane: DelegateLane) {
            self.lane = lane
            super.init()
        }

        override func cancel() {}

        override func main() {
            self.lane.deliver()
        }
    }
}
