import Foundation
import Synchronization

extension URLSessionTask {
    /// Changes counts, and the progress with them.
    func count(_ change: (inout TaskState) -> Void) {
        let progress = self.guarded.withLock { state -> (Progress, TaskProgress)? in
            change(&state)
            return state.progress.map { ($0, TaskProgress(state)) }
        }
        guard let (progress, now) = progress else { return }
        now.show(in: progress)
    }

    func progressObject() -> Progress {
        if let progress = self.guarded.withLock({ $0.progress }) { return progress }
        let made = PausingProgress(of: self)
        made.cancellationHandler = { [weak self] in self?.cancel() }
        let (progress, now) = self.guarded.withLock { state in
            let progress = state.progress ?? made
            state.progress = progress
            return (progress, TaskProgress(state))
        }
        now.show(in: progress)
        return progress
    }
}

/// The progress of a task, which pausing it suspends.
///
/// Not by its handlers: they come later, on any thread and in any order, so that who pauses and goes on
/// could find the task suspended in the end.
final class PausingProgress: Progress, @unchecked Sendable {
    // `@unchecked`: what is added never changes.
    private weak let task: URLSessionTask?

    init(of task: URLSessionTask) {
        self.task = task
        super.init(parent: .current(), userInfo: nil)
        self.totalUnitCount = -1
        self.isPausable = true
    }

    /// Suspends the task, but once until it goes on.
    override func pause() {
        let wasPaused = self.isPaused
        super.pause()
        guard let task = self.task, !wasPaused || task.state == .running else { return }
        task.suspend()
    }

    override func resume() {
        super.resume()
        self.task?.resume()
    }
}

/// How far a task has come, as its `Progress` says it.
struct TaskProgress: Equatable {
    var total: Int64
    var completed: Int64

    /// - Parameters:
    ///   - total: both bodies; -1 where the length of one is not known. When the task is over, what
    ///     it was, or what was transferred.
    init(_ state: TaskState) {
        let (sum, overflow) = state.sent.addingReportingOverflow(state.received)
        self.completed = overflow ? Int64.max : sum
        self.total = Self.total(state) ?? -1
        guard state.machine.state == .completed || state.machine.state == .canceling else { return }
        self.total = self.total > 0 ? self.total : max(self.completed, 1)
        self.completed = self.total
    }

    private static func total(_ state: TaskState) -> Int64? {
        let sent = self.known(state.expectedToSend, or: state.clientExpectsToSend)
        // Nothing is known of a response that has not come, unless the program says so.
        let expected = state.response == nil ? -1 : state.expectedToReceive
        let received = self.known(expected, or: state.clientExpectsToReceive)
        guard let sent, let received else { return nil }
        let (sum, overflow) = sent.addingReportingOverflow(received)
        return overflow ? nil : sum
    }

    private static func known(_ length: Int64, or guess: Int64) -> Int64? {
        if length >= 0 { return length }
        return guess >= 0 ? guess : nil
    }

    func show(in progress: Progress) {
        if progress.totalUnitCount != self.total { progress.totalUnitCount = self.total }
        if progress.completedUnitCount != self.completed {
            progress.completedUnitCount = self.completed
        }
    }
}
