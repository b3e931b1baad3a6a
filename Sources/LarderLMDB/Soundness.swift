import Synchronization

/// Whether an environment can still be used; once it cannot, it never can again.
///
/// So the owner of a damaged file can close it, set it aside and begin a new one, and until then
/// nobody reads or writes what is not to be believed.
final class Soundness: Sendable {
    private let isLost = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)
    private let reason = Mutex<LMDBError?>(nil)
    private let observer: (@Sendable (LMDBError) -> Void)?

    init(observer: (@Sendable (LMDBError) -> Void)?) {
        self.observer = observer
    }

    /// Throws the damage that was found, if any was.
    @inline(__always)
    func check() throws(LMDBError) {
        if self.isLost.load(ordering: .acquiring), let error = self.damage { throw error }
    }

    /// Notes that LMDB was left in the middle of something: nothing of the environment may be freed.
    func noteAssertion() {
        self.isAbandoned.store(true, ordering: .releasing)
    }

    /// Whether LMDB's environment may only be left alone.
    var mustAbandon: Bool { self.isAbandoned.load(ordering: .acquiring) }

    /// What made it unsound; nil as long as it is sound.
    var damage: LMDBError? { self.reason.withLock { $0 } }

    /// Notes damage, tells the observer if it is the first, and gives back the first.
    func lose(_ error: LMDBError) -> LMDBError {
        let (first, isNew) = self.reason.withLock { reason in
            if let known = reason { return (known, false) }
            reason = error
            return (error, true)
        }
        guard isNew else { return first }
        self.isLost.store(true, ordering: .releasing)
        self.observer?(error)
        return error
    }
}
