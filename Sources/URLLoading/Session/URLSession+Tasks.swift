import Foundation
import LarderSession
import LarderTransfer
import Synchronization

extension URLSession {
    /// The number of the next task, the first is 1; and whether it is counted as one that may be resumed.
    func enrol() -> (identifier: Int, isCounted: Bool) {
        self.guarded.withLock { state in
            state.identifier += 1
            if !state.isInvalidated { state.unbegun += 1 }
            return (state.identifier, !state.isInvalidated)
        }
    }

    /// A task that was counted begins, ends, or is gone.
    func uncount() {
        self.guarded.withLock { $0.unbegun -= 1 }
    }

    /// Keeps a task until it has completed.
    ///
    /// - Parameter wasCounted: it was made before the session was invalidated.
    /// - Returns: false where the session does not take it any more.
    func begin(_ task: URLSessionTask, wasCounted: Bool) -> Bool {
        let isTaken = self.guarded.withLock { state in
            if wasCounted { state.unbegun -= 1 }
            let isOpen = wasCounted ? !state.isCancelled : !state.isInvalidated
            guard isOpen, !state.isEnding else { return false }
            state.tasks[task.taskIdentifier] = task
            return true
        }
        if isTaken { self.deadlines.begin(task.taskIdentifier) }
        return isTaken
    }

    /// Keeps a task that ends without having begun, so that the session's last message comes behind
    /// the task's.
    func keepUntilTold(_ task: URLSessionTask) {
        self.guarded.withLock { state in
            // Behind its last message a session has nobody left to tell.
            if !state.isEnding { state.tasks[task.taskIdentifier] = task }
        }
    }

    /// A task goes on as another.
    ///
    /// - Returns: false where the session's tasks were cancelled meanwhile.
    func replace(_ task: URLSessionTask, by successor: URLSessionTask) -> Bool {
        let isWanted = self.guarded.withLock { state in
            _ = state.tasks.remove(task.taskIdentifier)
            state.tasks[successor.taskIdentifier] = successor
            return !state.isCancelled
        }
        // Where its time was up meanwhile, that was said to a task which is none any more.
        if !self.deadlines.pass(task.taskIdentifier, on: successor.taskIdentifier) {
            successor.resourceTimeExpired()
        }
        return isWanted
    }

    /// A task has completed, and its last message has been delivered; also twice.
    func end(_ task: URLSessionTask) {
        let kept = self.guarded.withLock { $0.tasks.remove(task.taskIdentifier) }
        // Released out of the lock.
        withExtendedLifetime(kept) {}
        // Also of one that was over before its time had begun to run.
        self.deadlines.end(task.taskIdentifier)
        // Also for one that was over before it was no longer counted as one to be resumed.
        self.endIfIdle()
    }

    /// Who hears of a task.
    ///
    /// - Parameter ownAlone: nothing falls through to the session's delegate.
    func delegates(of task: URLSessionTask, ownAlone: Bool = false) -> TaskDelegates {
        TaskDelegates(own: task.delegate, common: ownAlone ? nil : self.delegate)
    }

    /// Tells the delegate of a task that it is over.
    func tellCompletion(of task: URLSessionTask, with error: (any Error)?) {
        self.delegates(of: task).call(.completion) {
            $0.task?.urlSession(self, task: task, didCompleteWithError: error)
        }
    }
}

extension Duration {
    /// A number of seconds as a program gives it; what is no number, or beyond a human life, becomes
    /// a bound.
    static func bounded(seconds: Double) -> Duration {
        let bound = 4_000_000_000.0
        guard !seconds.isNaN else { return .seconds(bound) }
        return .seconds(min(max(seconds, 0), bound))
    }
}

// MARK: - Making tasks

extension URLSession {
    func make(_ order: borrowing TaskOrder) -> URLSessionDataTask {
        self.introduce(URLSessionDataTask(order, of: self), delegate: order.delegate)
    }

    func makeUpload(_ order: consuming TaskOrder) -> URLSessionUploadTask {
        order.purpose = UploadPurpose(order.purpose, sending: order.content)
        return self.introduce(URLSessionUploadTask(order, of: self), delegate: order.delegate)
    }

    func makeDownload(_ order: borrowing TaskOrder) -> URLSessionDownloadTask {
        self.introduce(URLSessionDownloadTask(order, of: self), delegate: order.delegate)
    }

    /// Tells the delegate of a new task, at once and on this thread (§1.6).
    func introduce<Task: URLSessionTask>(
        _ task: Task, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> Task {
        if let delegate { task.delegate = delegate }
        self.delegates(of: task).call(.created) {
            $0.task?.urlSession(self, didCreateTask: task)
        }
        return task
    }
}
