import Dispatch

/// Runs asynchronous work on a thread of the house's own, one job after the other, in place of the few
/// that all tasks of a process share: whoever waits for the work may have blocked all of those.
///
/// For what soon awaits something else; who computes or waits there keeps all others.
package final class HouseExecutor: TaskExecutor {
    package static let shared = HouseExecutor()

    private let queue = DispatchQueue(label: "larder.work")

    private init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
