import CLinux
import Glibc
import LarderLMDB

/// Wakes threads that wait for work: a semaphore of sem_overview(7).
///
/// Each ring lets one wait return, also one that begins later: none is lost.
@safe final class Doorbell: Sendable {
    /// Invariant: initialised before, and freed after, every use; sem_post and sem_wait may be
    /// called from any thread.
    private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

    init() throws(LMDBError) {
        unsafe self.semaphore = .allocate(capacity: 1)
        unsafe self.semaphore.initialize(to: sem_t())
        guard unsafe sem_init(self.semaphore, 0, 0) == 0 else {
            let number = errno
            unsafe self.semaphore.deallocate()
            throw LMDBError(returnCode: number, operation: "sem_init")
        }
    }

    deinit {
        _ = unsafe sem_destroy(self.semaphore)
        unsafe self.semaphore.deallocate()
    }

    func ring() {
        // EOVERFLOW means that two thousand million wakes are due anyhow.
        _ = unsafe sem_post(self.semaphore)
    }

    /// Waits for a ring, for at most `limit` where there is one.
    ///
    /// May return without a ring (a signal came): callers look for work in a loop.
    func wait(limit: Duration? = nil) {
        guard let limit else {
            _ = unsafe sem_wait(self.semaphore)
            return
        }
        var deadline = timespec()
        guard unsafe clock_gettime(CLOCK_MONOTONIC, &deadline) == 0 else { return }
        let (seconds, attoseconds) = limit.components
        let nanoseconds = deadline.tv_nsec + Int(attoseconds / 1_000_000_000)
        let (sum, overflow) = deadline.tv_sec.addingReportingOverflow(
            Int(clamping: seconds) + nanoseconds / 1_000_000_000)
        deadline.tv_sec = overflow ? .max : sum
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        _ = unsafe larder_wait_until(self.semaphore, &deadline)
    }
}
