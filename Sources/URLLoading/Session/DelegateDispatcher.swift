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
        self.isSerial = queue.maxConcurrentOperationCount == 1
        self.session = DelegateLane(
            queue: queue, sight: self.isSerial ? Self.sight(of: queue) : .needless)
    }

    private static func sight(of queue: OperationQueue) -> DelegateLane.Sight {
        if let queue = queue as? SessionQueue { return .counted(queue) }
        // The main queue has one, too.
        return unsafe queue.underlyingQueue == nil ? .byOperations : .none
    }

    /// Where the messages of a new task go.
    func lane() -> DelegateLane {
        self.isSerial ? self.session : DelegateLane(queue: self.queue, sight: .needless)
    }
}

/// The delegate queue of a session that was given none.
///
/// On a dispatch queue of its own: the threads that queues share by default are few, and programs
/// block them, with a server's reads in a test, say. The session must not wait for those.
final class SessionQueue: OperationQueue, @unchecked Sendable {
    /// Held here, as an operation queue does not promise to.
    private let dispatch = DispatchQueue(label: "URLLoading.session")
    private let others = Atomic(0)

    override init() {
        super.init()
        self.maxConcurrentOperationCount = 1
        unsafe self.underlyingQueue = self.dispatch
    }

    /// How often others have put something on it.
    ///
    /// Counted when it is there: what comes behind in between is taken for what came before, and stands
    /// on its own.
    var foreign: Int { self.others.load(ordering: .relaxed) }

    /// Adds what does not count.
    func addOwn(_ operation: Operation) { super.addOperation(operation) }

    override func addOperation(_ operation: Operation) {
        super.addOperation(operation)
        self.others.add(1, ordering: .relaxed)
    }

    override func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
        super.addOperations(operations, waitUntilFinished: false)
        self.others.add(1, ordering: .relaxed)
        if wait { for operation in operations { operation.waitUntilFinished() } }
    }

    override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        super.addBarrierBlock(barrier)
        self.others.add(1, ordering: .relaxed)
    }
}
