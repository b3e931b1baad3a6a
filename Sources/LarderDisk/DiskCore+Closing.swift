import LarderLMDB
import Synchronization

/// Who waits for the end of a store.
struct ClosingState {
    var isClosed = false
    var waiters: [@Sendable () -> Void] = []
}

extension DiskCore {
    /// Calls `completion` when the file is closed: at once where it is.
    func whenClosed(_ completion: @escaping @Sendable () -> Void) {
        let isClosed = self.closing.withLock { closing in
            if !closing.isClosed { closing.waiters.append(completion) }
            return closing.isClosed
        }
        if isClosed { completion() }
    }

    /// The writer has done its last work: the readers end, the last of them closes the file.
    ///
    /// Somebody may still read from it on a thread of its own. Until that has ended this process cannot
    /// open the file again, so that nobody is told before.
    func writerEnded() {
        self.reads.stop { self.environment.close { self.fileClosed() } }
    }

    private func fileClosed() {
        self.writerLock.release()
        let waiters = self.closing.withLock { closing in
            closing.isClosed = true
            defer { closing.waiters = [] }
            return closing.waiters
        }
        for waiter in waiters { waiter() }
    }
}
