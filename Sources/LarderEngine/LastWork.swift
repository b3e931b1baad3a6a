import Dispatch
import Glibc
import LarderHTTP
import Synchronization

/// What is to be finished before the process ends: a program that only fetches something may be over
/// before a disk has taken what came with it.
///
/// `exit(3)` runs it, and so does the return of `main`; not a signal that kills.
package enum LastWork {
    /// For all of it together: a disk that takes longer keeps no program from ending.
    private static let patience = DispatchTimeInterval.seconds(2)

    private typealias Work = @Sendable (@escaping @Sendable () -> Void) -> Void

    private static let works = Mutex<[Work]>([])
    /// Registered once, with the first work.
    private static let isRegistered: Bool = atexit { LastWork.finish() } == 0

    /// Adds work that is done at the end, beside other work; it must be quick where nothing is left,
    /// and needs none of the threads that tasks share: those may be taken by who ends the process.
    package static func add(_ work: @escaping @Sendable () async -> Void) {
        self.begin { done in
            Task(executorPreference: HouseExecutor.shared) {
                await work()
                done()
            }
        }
    }

    /// Adds work that calls back when it is done.
    static func begin(_ work: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        _ = self.isRegistered
        self.works.withLock { $0.append(work) }
    }

    private static func finish() {
        let works = self.works.withLock { works in
            defer { works = [] }
            return works
        }
        guard !works.isEmpty else { return }
        let group = DispatchGroup()
        for work in works {
            group.enter()
            work { group.leave() }
        }
        _ = group.wait(timeout: .now() + self.patience)
    }
}
