import Dispatch
import Glibc
import Synchronization

/// What is to be finished before the process ends: a program that only fetches something may be over
/// before a disk has taken what came with it.
///
/// `exit(3)` runs it, and so does the return of `main`; not a signal that kills.
package enum LastWork {
    /// A disk that takes longer keeps no program from ending.
    private static let patience = DispatchTimeInterval.seconds(2)

    private static let works = Mutex<[@Sendable () async -> Void]>([])
    /// Registered once, with the first work.
    private static let isRegistered: Bool = atexit { LastWork.finish() } == 0

    /// Adds work that is done at the end, beside other work; it must be quick where nothing is left.
    package static func add(_ work: @escaping @Sendable () async -> Void) {
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
            Task {
                await work()
                group.leave()
            }
        }
        _ = group.wait(timeout: .now() + self.patience)
    }
}
