import Foundation
import Synchronization

/// Messages that wait for their turn on a queue, one after the other.
///
/// ```
/// send ─▶ joins the last batch | opens another, with an operation ─▶ an operation delivers the oldest
/// ```
///
/// One operation delivers a batch of messages: that is cheaper by far than one each. But a serial queue
/// is first in, first out, and a program may rely on that: what it queues before it resumes a task has
/// run before it hears of that task. So a message joins a batch only where nothing of the program's can
/// stand behind the operation of that batch.
final class DelegateLane: Sendable {
    typealias Message = @Sendable () -> Void

    /// How it is known that nothing of the program's stands behind the last batch.
    enum Sight: Sendable {
        /// It need not be: the queue is concurrent, and has no order.
        case needless
        /// The queue counts what others put on it.
        case counted(SessionQueue)
        /// By as many operations on the queue as there are batches.
        case byOperations
        /// It cannot be: blocks of a dispatch queue may stand between operations.
        case none
    }

    private struct Batch {
        let number: Int
        /// What others had put on the queue when it was opened.
        let foreign: Int
        /// Without those that are being delivered.
        var waiting: [Message]
        /// How many more may join, so that others get at a shared queue.
        var room = 31
    }

    private struct State {
        /// The oldest first, of which messages are being delivered; each has an operation.
        var batches: [Batch] = []
        var opened = 0
        var isDelivering = false
        /// Operations that began beside one that delivered, which goes on in their place.
        var leftOver = 0

        mutating func join(_ message: @escaping Message) -> Bool {
            let last = self.batches.count - 1
            guard last >= 0, self.batches[last].room > 0 else { return false }
            self.batches[last].waiting.append(message)
            self.batches[last].room -= 1
            return true
        }

        mutating func open(with message: @escaping Message, behind foreign: Int) {
            self.opened += 1
            self.batches.append(Batch(number: self.opened, foreign: foreign, waiting: [message]))
        }
    }

    private let queue: OperationQueue
    private let sight: Sight
    private let state = Mutex(State())

    init(queue: OperationQueue, sight: Sight) {
        self.queue = queue
        self.sight = sight
    }

    func send(_ message: @escaping Message) {
        let seen = self.lastByOperations()
        let hasOpened = self.state.withLock { state in
            let foreign: Int
            let mayJoin: Bool
            switch self.sight {
            case .needless: (mayJoin, foreign) = (true, 0)
            case .counted(let queue):
                foreign = queue.foreign
                mayJoin = state.batches.last?.foreign == foreign
            case .byOperations: (mayJoin, foreign) = (state.batches.last?.number == seen, 0)
            case .none: (mayJoin, foreign) = (false, 0)
            }
            if mayJoin, state.join(message) { return false }
            state.open(with: message, behind: foreign)
            return true
        }
        if hasOpened { self.add(Delivery(self)) }
    }

    /// The number of the last batch, where all operations on the queue are the lane's own.
    ///
    /// Found out of the lane's lock, as the queue has one of its own. An operation that is not on the queue
    /// yet will stand behind whatever is; so it does no harm that it counts.
    private func lastByOperations() -> Int? {
        guard case .byOperations = self.sight else { return nil }
        let (last, count) = self.state.withLock { ($0.batches.last?.number, $0.batches.count) }
        guard let last, self.queue.operationCount == count else { return nil }
        return last
    }

    private func add(_ delivery: Delivery) {
        if case .counted(let queue) = self.sight {
            queue.addOwn(delivery)
        } else {
            self.queue.addOperation(delivery)
        }
    }

    fileprivate func deliver() {
        let isMine = self.state.withLock { state in
            defer { state.isDelivering = true }
            if state.isDelivering { state.leftOver += 1 }
            return !state.isDelivering
        }
        guard isMine else { return }
        var isFirst = true
        while true {
            let messages = self.take()
            if messages.isEmpty { return }
            for (index, message) in messages.enumerated() {
                // A program may stop its queue in the midst of it; what was not delivered then waits.
                if !isFirst, self.queue.isSuspended { return self.putBack(messages[index...]) }
                message()
                isFirst = false
            }
        }
    }

    /// What waits in the oldest batch; nothing: it is over, and so is the operation.
    private func take() -> [Message] {
        self.state.withLock { state in
            while !state.batches.isEmpty {
                if !state.batches[0].waiting.isEmpty {
                    var messages: [Message] = []
                    swap(&messages, &state.batches[0].waiting)
                    return messages
                }
                state.batches.removeFirst()
                guard state.leftOver > 0 else { break }
                state.leftOver -= 1
            }
            state.isDelivering = false
            return []
        }
    }

    /// Leaves the rest of a batch to another operation, before whatever waits on the queue.
    private func putBack(_ messages: ArraySlice<Message>) {
        let operations = self.state.withLock { state in
            state.batches[0].waiting.insert(contentsOf: messages, at: 0)
            state.isDelivering = false
            defer { state.leftOver = 0 }
            return 1 + state.leftOver
        }
        for _ in 0..<operations {
            let delivery = Delivery(self)
            delivery.queuePriority = .veryHigh
            self.add(delivery)
        }
    }

    /// Delivers a batch of a lane, the oldest.
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
