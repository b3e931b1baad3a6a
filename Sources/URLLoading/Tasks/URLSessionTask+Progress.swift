import Foundation
import Synchronization

extension URLSessionTask {
    /// Changes counts, and the progress with them.
    func count(_ change: (inout TaskState) -> Void) {
        let shown = self.guarded.withLock { state -> (PausingProgress, TaskProgress)? in
            change(&state)
            return state.progress.map { ($0, state.snapshot()) }
        }
        guard let (progress, now) = shown else { return }
        progress.show(now)
    }

    func progressObject() -> Progress {
        let (known, successor) = self.guarded.withLock { ($0.progress, $0.successor) }
        // What it goes on as has the object that was handed out before.
        if let successor { return successor.progress }
        if let known { return known }
        return self.keep(PausingProgress(of: self))
    }

    /// Makes a progress its own, or that of what it goes on as by now, unless there is one already.
    private func keep(_ made: PausingProgress) -> Progress {
        let (kept, successor) = self.guarded.withLock {
            state -> ((PausingProgress, TaskProgress)?, URLSessionTask?) in
            if let successor = state.successor { return (nil, successor) }
            let progress = state.progress ?? made
            state.progress = progress
            return ((progress, state.snapshot()), nil)
        }
        if let successor {
            made.aim(at: successor)
            return successor.keep(made)
        }
        guard let (progress, now) = kept else { return made }
        progress.show(now)
        return progress
    }
}

extension TaskState {
    fileprivate mutating func snapshot() -> TaskProgress {
        self.snapshots += 1
        return TaskProgress(self)
    }
}

/// The progress of a task, which pausing it suspends, and cancelling it cancels.
///
/// Not by its handlers: they are the program's to set, and come later, on any thread and in any order,
/// so that who pauses and goes on could find the task suspended in the end.
final class PausingProgress: Progress, @unchecked Sendable {
    // `@unchecked`: what is added is behind locks.
    private struct Aim {
        weak var task: URLSessionTask?
    }

    private let aim: Mutex<Aim>
    /// The number of the last snapshot that is shown.
    private let shown = Mutex(0)
    private var task: URLSessionTask? { self.aim.withLock { $0.task } }

    init(of task: URLSessionTask) {
        self.aim = Mutex(Aim(task: task))
        super.init(parent: .current(), userInfo: nil)
        self.totalUnitCount = -1
        self.isPausable = true
        self.isCancellable = true
    }

    /// Another task goes on with what it is about.
    func aim(at task: URLSessionTask) {
        self.aim.withLock { $0.task = task }
    }

    /// Shows how far the task has come, unless what came later is shown already.
    ///
    /// The lock is held meanwhile, as of two at a time the later one must be left in the end;
    /// `Progress` calls nobody for a change of its counts.
    func show(_ now: TaskProgress) {
        self.shown.withLock { shown in
            guard now.number > shown else { return }
            shown = now.number
            if self.totalUnitCount != now.total { self.totalUnitCount = now.total }
            if self.completedUnitCount != now.completed { self.completedUnitCount = now.completed }
        }
    }

    /// Cancels the task, whatever handler the program has set; also by what this is a part of.
    override func cancel() {
        super.cancel()
        self.task?.cancel()
    }

    /// Suspends the task, but once until it goes on.
    override func pause() {
        super.pause()
        self.task?.suspend(by: { $0.pause() })
    }

    /// Takes back the suspension of `pause`; those of the program's are not its own.
    ///
    /// The task knows whether it is there, and not `isPaused`, which stays when the program resumes
    /// the task itself.
    override func resume() {
        super.resume()
        self.task?.resume(by: { $0.endPause() })
    }
}

/// How far a task has come, as its `Progress` says it.
struct TaskProgress: Equatable {
    /// In the order in which a task's are made.
    var number: Int
    /// Of both bodies; -1 where the length of one is not known, but for the response to a request with
    /// content: that counts as one more than has come of it.
    ///
    /// When the task is over, what it was, or what was transferred.
    var total: Int64
    var completed: Int64

    init(number: Int, total: Int64, completed: Int64) {
        self.number = number
        self.total = total
        self.completed = completed
    }

    init(_ state: borrowing TaskState) {
        self.number = state.snapshots
        let (sum, overflow) = state.sent.addingReportingOverflow(state.received)
        self.completed = overflow ? Int64.max : sum
        self.total = Self.total(state) ?? -1
        guard state.machine.state == .completed || state.machine.state == .canceling else { return }
        self.total = self.total > 0 ? self.total : max(self.completed, 1)
        self.completed = self.total
    }

    private static func total(_ state: borrowing TaskState) -> Int64? {
        let sent = self.known(state.expectedToSend, or: state.clientExpectsToSend)
        // Nothing is known of a response that has not come, unless the program says so.
        let expected = state.response == nil ? -1 : state.expectedToReceive
        guard let sent else { return nil }
        // Who uploads looks at what is sent; and it is not over before the answer is.
        let received =
            self.known(expected, or: state.clientExpectsToReceive)
            ?? (sent > 0 && state.received < .max ? state.received + 1 : nil)
        guard let received else { return nil }
        let (sum, overflow) = sent.addingReportingOverflow(received)
        return overflow ? nil : sum
    }

    private static func known(_ length: Int64, or guess: Int64) -> Int64? {
        if length >= 0 { return length }
        return guess >= 0 ? guess : nil
    }
}
