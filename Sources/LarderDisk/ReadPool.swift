import LarderHTTP
import LarderLMDB
import Synchronization

/// A few threads that read from the disk, so that no caller waits for it.
///
/// ```
/// start ─▶ submit* ─▶ stop ─▶ (jobs that wait are run, each thread ends) ─▶ ended()
/// ```
final class ReadPool: Sendable {
    private struct State {
        var jobs = ReadQueue<@Sendable () -> Void>()
        var idle = 0
        var threads = 0
        var ended: (@Sendable () -> Void)?
        var isStopped = false
    }

    private let state = Mutex(State())
    private let doorbell: Doorbell

    init(threads: Int) throws(LMDBError) {
        self.doorbell = try Doorbell()
        for number in 0..<max(1, threads) {
            do throws(NamedThread.Failure) {
                try NamedThread.start("larder-read-\(number)") { self.run() }
                self.state.withLock { $0.threads += 1 }
            } catch {
                // One thread is enough to go on with; none is a failure.
                if number == 0 { throw LMDBError(error) }
                return
            }
        }
    }

    /// Runs `job` on one of the threads; false when the pool was stopped.
    func submit(for purpose: ReadPurpose, _ job: @escaping @Sendable () -> Void) -> Bool {
        let (accepted, rings) = self.state.withLock { state in
            if state.isStopped { return (false, false) }
            state.jobs.append(job, for: purpose)
            let rings = state.idle > 0
            if rings { state.idle -= 1 }
            return (true, rings)
        }
        if rings { self.doorbell.ring() }
        return accepted
    }

    /// Ends the threads once they have nothing left to do; the last one calls `ended`.
    func stop(_ ended: @escaping @Sendable () -> Void) {
        let threads = self.state.withLock { state in
            state.isStopped = true
            state.ended = ended
            return state.threads
        }
        for _ in 0..<threads { self.doorbell.ring() }
    }

    private func run() {
        while true {
            let (job, isEnd) = self.state.withLock { state in
                let job = state.jobs.take()
                if job == nil && !state.isStopped { state.idle += 1 }
                return (job, job == nil && state.isStopped)
            }
            if let job {
                job()
            } else if isEnd {
                break
            } else {
                self.waitForWork()
            }
        }
        let ended = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.threads -= 1
            // Taken out: it holds who holds this.
            return state.threads == 0 ? state.ended.take() : nil
        }
        ended?()
    }

    /// Counts itself busy again by whichever ring ends the wait; a wait that ends without one
    /// leaves `idle` too high by one, which costs a ring too many, never one too few.
    private func waitForWork() {
        self.doorbell.wait()
    }
}

extension LMDBError {
    init(_ failure: NamedThread.Failure) {
        self.init(returnCode: failure.number, operation: "pthread_create")
    }
}
