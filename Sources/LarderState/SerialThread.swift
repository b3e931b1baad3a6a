import Dispatch

/// Runs an actor's jobs one after the other on a queue of Dispatch's, whose threads may wait for the
/// disk: neither an event loop nor the threads that tasks share.
final class SerialThread: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) {
        self.queue = DispatchQueue(label: label)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(self.queue))
    }
}
