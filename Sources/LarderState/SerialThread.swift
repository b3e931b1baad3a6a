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

    /// Runs work between two jobs, and returns when it is done; not from a job.
    func perform<R>(_ work: () throws(StateError) -> R) throws(StateError) -> R {
        let result = self.queue.sync { () -> Result<R, StateError> in
            do throws(StateError) { return .success(try work()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(self.queue))
    }
}
