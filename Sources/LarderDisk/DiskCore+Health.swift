import LarderHTTP
import LarderLMDB
import LarderPolicy
import LarderStore
import Synchronization

/// Whether the disk works, and what is told of it.
extension DiskCore {
    /// Whether it is worth while to store something now.
    func isHealthy(at now: Timestamp) -> Bool {
        self.health.withLock { $0.isHealthy(at: now) }
    }

    /// How long nothing is stored from now on.
    var pauseLeft: Duration {
        let now = self.clock()
        return self.health.withLock { $0.left(at: now) }
    }

    /// The writer failed with the file that is in use.
    ///
    /// Where the file itself is to blame, the writer sees to it; else nothing is stored for a while.
    func failed(_ error: LMDBError) {
        self.failures.wrappingAdd(1, ordering: .relaxed)
        if let trouble = FileTrouble(error) {
            _ = self.file.note(trouble)
        } else {
            self.pause(self.storeError(error))
        }
    }

    func storeError(_ error: LMDBError) -> StoreError {
        StoreError(error, path: self.files.data)
    }

    /// A reader failed with `environment`; the writer is called where the file itself is to blame.
    func readFailed(_ error: LMDBError, with environment: Environment) {
        self.failures.wrappingAdd(1, ordering: .relaxed)
        let file = self.file
        guard let trouble = FileTrouble(error), file.environment === environment,
            file.note(trouble)
        else { return }
        self.mailbox.nudge()
    }

    /// Nothing is stored for a while, which is said once.
    ///
    /// - Returns: until when.
    @discardableResult
    func pause(_ error: StoreError) -> Timestamp {
        let now = self.clock()
        let (event, until) = self.health.withLock { $0.failed(error, at: now) }
        if let event { self.report(event) }
        return until
    }

    /// Something was stored: the disk works again, if that was asked after the pause.
    func worked() {
        let now = self.clock()
        if let event = self.health.withLock({ $0.worked(at: now) }) { self.report(event) }
    }

    /// The cause of a failure was removed.
    func mended() {
        let now = self.clock()
        if let event = self.health.withLock({ $0.mended(at: now) }) { self.report(event) }
    }

    /// Why what was removed may come back with the next process: neither the file nor the note beside it
    /// could be written, or the store was closed before.
    var unkeptRemoval: StoreError? {
        if let error = self.writerLock.unwrittenDebt {
            return StoreError(error, path: self.files.writerLock)
        }
        guard self.walks.withLock({ $0.hasLost }) else { return nil }
        return self.storeError(LMDBError(.closed, operation: "remove"))
    }

    /// Tells, once in a trouble, that what was removed may come back, where it may.
    func tellOfUnkeptRemoval() {
        guard let error = self.writerLock.unwrittenDebt,
            self.health.withLock({ $0.tellsOfUnkeptRemoval() })
        else { return }
        self.report(.removalNotKept(StoreError(error, path: self.files.writerLock)))
    }
}

extension UnkeptRemoval {
    init(_ error: StoreError) {
        let code: Code =
            switch error.code {
            case .inUse, .closed, .cancelled: .unavailable
            case .missing, .notWritable, .untrusted, .noSpace, .damaged, .incomplete,
                .invalidConfiguration, .failed:
                .notWritten
            }
        self.init(
            code, path: error.path, cause: error.cause, remedy: "\(error.remedy); then purge again")
    }
}
